//! Functions that the readers of all formats use: numbered lines, prompts and options of commands, numbers with
//! units, tables by size, and what was found, with a bounded number of notes.
//!
//! Nothing in this module depends on a single format.

mod command;
mod found;
mod lines;
mod notes;
mod numbers;
mod prompt;
mod quantity;

pub(crate) use command::{command_of, flag, option};
pub(crate) use found::{Found, disk, outcome, ping_pong, sizes, transfer};
pub(crate) use lines::{Line, Section, Start, after, first_line, floor, head, pair};
pub(crate) use notes::{MOST_ROWS, Notes, quoted};
pub(crate) use numbers::{
    count, decimal, hexadecimal, is_digits, is_one_of, list, lookup, named, number, scaled, small,
};
pub(crate) use prompt::{command, program, run};
pub(crate) use quantity::{
    BITS, FOR_P99, FOR_P999, MEBIBIT, MEBIBYTE, MICRO, MILLI, SECOND, bytes, drop_unsupported,
    figure, nanos, positive, rate, size, time,
};

/// Largest number of things of one kind that a text may describe: devices, ports, CPUs.
pub(crate) const MOST: usize = 8_192;
