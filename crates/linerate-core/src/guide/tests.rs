//! Checks on both sides.
