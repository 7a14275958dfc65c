//! iperf3: its JSON, whole or line by line, and its text.

pub(crate) mod json;
pub(crate) mod text;
