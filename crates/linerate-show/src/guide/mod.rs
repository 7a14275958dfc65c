//! The checks of a first InfiniBand network, as text and as JSON.

pub mod json;
mod text;

pub use json::json;
pub use text::page;
