//! Checks that every cause is needed: without any one of them, some cell is judged wrongly.

use linerate_judge::causes::{CAUSES, Cause};

use super::{CELLS, OF_FLOWS};

/// Whether some cell is right with all causes, and is not without this one.
fn is_needed(cause: &Cause) -> bool {
    let others = CAUSES.iter().copied().filter(|c| c.id != cause.id);
    let others: Vec<&'static Cause> = others.collect();
    // Cells that expect this cause are tried first: they fail most likely without it.
    let (about, rest): (Vec<_>, Vec<_>) =
        CELLS.iter().partition(|c| c.place_of(cause.id).is_some());
    let mut cells = about.into_iter().chain(rest);
    cells.any(|cell| cell.is_right(CAUSES) && !cell.is_right(&others))
}

#[test]
fn without_any_one_cause_a_cell_is_no_longer_right() {
    let of_runs = CAUSES.iter().filter(|cause| !OF_FLOWS.contains(&cause.id));
    let unneeded = of_runs.filter(|cause| !is_needed(cause));
    let unneeded: Vec<&str> = unneeded.map(|cause| cause.id).collect();
    assert!(
        unneeded.is_empty(),
        "no cell needs {unneeded:?}: plant one in the lab and keep its record, or replay one"
    );
}
