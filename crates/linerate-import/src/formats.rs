//! The table of formats.

use crate::format::Format;

/// Every format. The first that recognises a text reads it.
pub static FORMATS: &[&Format] = &[&crate::iperf3::json::FORMAT];
