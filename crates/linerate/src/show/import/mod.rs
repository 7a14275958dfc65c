//! Views of results that other programs reported.

pub(in crate::show) mod json;
pub(in crate::show) mod text;

pub use json::SCHEMA;
pub(crate) use json::json;
pub(crate) use text::page;
