//! The user's side of linerate: the command line, the demonstration, and the bounds on a result.
//!
//! The command line turns options into a plan, passes it to the engine, and shows the result. The pages of results are
//! in `linerate-show`: functions of a record, its model and its verdict that do not read the machine.
#![forbid(unsafe_code)]

mod cases;
pub mod cli;
pub mod demo;
pub mod expect;
