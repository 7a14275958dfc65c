//! Shows figures that other programs reported.

pub mod json;
pub(crate) mod text;

pub use json::json;
pub use text::page;
