//! What the user sees of linerate: the command line, and every view of a result.
//!
//! Views are functions of a record, its model and its verdict; they read no machine. The command
//! line turns options into a plan, hands it to the engine, and shows what came back.
#![forbid(unsafe_code)]

mod cases;
pub mod cli;
mod demo;
pub mod expect;
#[cfg(feature = "lab-dev")]
mod score;
pub mod show;
