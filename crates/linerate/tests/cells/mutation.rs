//! No cause is there for nothing: without it a cell is no longer right.

use linerate_core::causes::{CAUSES, Cause};

use super::CELLS;

/// Whether a cell that is right is so only thanks to this cause.
fn is_needed(cause: &dyn Cause) -> bool {
    let others = CAUSES.iter().copied().filter(|c| c.id() != cause.id());
    let others: Vec<&'static dyn Cause> = others.collect();
    // Those that it is named on will notice first.
    let (about, rest): (Vec<_>, Vec<_>) = CELLS.iter().partition(|c| c.first.contains(&cause.id()));
    let mut cells = about.into_iter().chain(rest);
    cells.any(|cell| cell.is_right(CAUSES) && !cell.is_right(&others))
}

/// Causes of the connections of other programs: no record of a run has them. `tests/flows.rs` plants them.
const OF_FLOWS: [&str; 1] = ["latency-nagle"];

#[test]
fn without_any_one_cause_a_cell_is_no_longer_right() {
    let of_runs = CAUSES
        .iter()
        .filter(|cause| !OF_FLOWS.contains(&cause.id()));
    let unneeded = of_runs.filter(|cause| !is_needed(**cause));
    let unneeded: Vec<&str> = unneeded.map(|cause| cause.id()).collect();
    assert!(
        unneeded.is_empty(),
        "no cell needs {unneeded:?}: plant one in the lab and keep its record, or replay one"
    );
}
