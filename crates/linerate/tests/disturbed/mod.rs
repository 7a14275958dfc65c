//! What a run tells whose machine stood still for a while, or lost its CPUs to its host: it is no answer to what a
//! test asks.

/// Causes of such a machine.
pub(crate) const DISTURBED: [&str; 2] = ["interrupted", "cpu-steal"];
