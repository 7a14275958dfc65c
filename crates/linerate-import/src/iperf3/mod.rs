//! Readers of iperf3: its JSON, as a document or as lines of events, and its text.

pub(crate) mod json;
pub(crate) mod text;
