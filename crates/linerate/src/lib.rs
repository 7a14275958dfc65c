//! The user's side of linerate: the command line, and every view of a result.
//!
//! Views are functions of a record, its model and its verdict; they do not read the machine. The command line
//! turns options into a plan, passes it to the engine, and shows the result.
#![forbid(unsafe_code)]

mod cases;
pub mod cli;
pub mod demo;
pub mod expect;
