//! The facts of one machine, for people and for programs.

mod json;
mod pci;
#[cfg(test)]
mod sample;
mod text;

pub use json::{FORMAT, SCHEMA, json};
pub use text::text;
