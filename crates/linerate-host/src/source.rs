//! What every source of readings can do.

use linerate_facts::Gap;
use linerate_record::Table;

use super::Machine;

/// A source reads one part of the machine repeatedly.
pub(super) trait Source: Send {
    /// Appends a row to each table of the source. A gap as the result ends the source until the next
    /// [`Source::take`]; a gap in `gaps` does not.
    fn observe(&mut self, machine: &dyn Machine, at: u64, gaps: &mut Vec<Gap>) -> Result<(), Gap>;
    /// Takes the tables made since the last call.
    fn take(&mut self) -> Vec<Table>;
}
