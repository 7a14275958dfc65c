//! Readers of iperf 2: its text, and its CSV.

pub(crate) mod csv;
#[cfg(test)]
mod tests;
pub(crate) mod text;
mod transfer;
