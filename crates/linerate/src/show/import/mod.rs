//! Views of results that other programs reported.

mod json;
mod text;

pub use json::SCHEMA;
pub(in crate::show) use json::Output;
pub(crate) use json::json;
pub(crate) use text::page;
