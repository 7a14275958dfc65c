//! Patterns: when bytes are moved, whatever moves them.

pub(crate) mod operations;
