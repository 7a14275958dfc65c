//! Views: functions of a record, its model and its verdict. None of them reads the machine.

pub mod json;
mod page;
pub mod progress;
#[cfg(test)]
pub(crate) mod sample;
pub mod text;
mod words;

pub use page::Style;
pub(crate) use page::{Ink, Page};
#[cfg(test)]
pub(crate) use words::summary;
