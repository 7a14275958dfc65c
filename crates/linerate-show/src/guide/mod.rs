//! The checks of a first InfiniBand network, for people and for programs.

pub mod json;
mod text;

pub use json::json;
pub use text::page;
