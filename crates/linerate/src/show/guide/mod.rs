//! The checks of a first InfiniBand network, for people and for programs.

pub(super) mod json;
mod text;

pub(crate) use json::{SCHEMA, json};
pub(crate) use text::page;
