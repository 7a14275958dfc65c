//! Results and facts that other programs print.
//!
//! [`read`] finds the outputs of known programs in a text by their content, and reads each into the types of
//! `linerate_record`: results become `Outcome`s, facts of a host become an `Inventory`. A text may have the outputs
//! of several programs in turn, with other lines between them; lines that no format understands become notes. Each
//! format is one entry of [`FORMATS`], and one file or folder.
//!
//! All input is hostile: reading has no side effects, and its memory and time are bounded. A value that a program
//! could not know is left out.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod columns;
mod disk;
mod facts;
mod fi_pingpong;
mod format;
mod formats;
mod heads;
mod imb;
mod iperf2;
mod iperf3;
mod iperf_command;
mod iperf_row;
mod launch;
mod merge;
mod mpstat;
mod mtr;
mod nccl;
mod netperf;
mod netpipe;
mod network_quality;
mod nstat;
mod nuttcp;
mod osu;
mod peel;
mod perftest;
mod ping;
mod ping_windows;
mod qperf;
mod read;
mod reading;
#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
mod sockperf;
mod ss;
#[cfg(test)]
#[path = "tests/summary.rs"]
mod summary;
mod text;
mod ucx_perftest;
mod wall_clock;

pub use format::{Format, Holds};
pub use formats::FORMATS;
pub use merge::merge;
pub use read::{MOST_BYTES, Parsed, Part, Refused, read};
