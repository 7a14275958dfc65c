//! What needs nothing of this machine: simulated paths, copied trees of other machines, statistics.

mod sim;
mod statistics;
mod verdicts;
