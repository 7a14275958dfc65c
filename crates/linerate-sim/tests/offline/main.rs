//! Tests that use no network and no privileges of this machine: of simulated paths, their verdicts, and the statistics.

mod sim;
mod statistics;
mod verdicts;
