//! The built program on this machine, as a user sees it: its output, its measurements of loopback, and its errors.
#![expect(clippy::unwrap_used, reason = "clippy does not recognise helpers of tests")]

mod carriers;
mod cli;
mod diff;
mod disk;
mod document;
mod fabric;
mod guide;
mod host;
mod hostile;
mod import;
mod kept;
mod markdown;
mod memory;
mod program;
mod replays;
#[path = "../../../linerate-show/src/tests/schema/fits.rs"]
mod schema;
mod shm;
mod single;
mod ssh;
mod stream;
mod walks;
