//! Views: functions of a record, its model and its verdict, or of an inventory. None of them reads
//! the machine.

pub mod host;
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
