//! Views: functions of a record, its model and its verdict, of an inventory, or of a described path.
//! None of them reads the machine.

pub mod bw;
pub mod diff;
pub mod flows;
pub mod host;
pub mod json;
pub mod lat;
mod page;
pub mod progress;
pub mod repeat;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
pub(crate) mod schema;
pub mod stream;
pub mod sweep;
pub mod text;
pub(crate) mod whatif;
mod words;

pub use page::Style;
pub(crate) use page::{Ink, Page};
#[cfg(test)]
pub(crate) use words::summary;
