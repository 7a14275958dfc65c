use std::collections::HashSet;

use super::*;

fn kind(id: &str) -> &'static CellKind {
    CellKind::named(id).unwrap()
}

#[test]
fn a_seed_draws_the_same_cell_and_seeds_draw_all_kinds() {
    let kinds: HashSet<_> = (0..1000).map(|s| CellKind::drawn(s).id).collect();
    let offered = CellKind::answerable().filter(|kind| kind.shown);
    assert_eq!(kinds.len(), offered.count());
    for kind in CELLS {
        for seed in 0..20 {
            let cell = kind.cell(seed);
            assert_eq!(cell, kind.cell(seed));
            let planted = !cell.faults.is_empty() || cell.company.is_some();
            assert_eq!(planted, !kind.expected.is_empty(), "{}", kind.id);
            // Only this kind may be named where its fault does not reduce goodput: both ends still share a core.
            let anyway = kind.id == "shared-core";
            let named = cell.neighbours.contains(&cell.expected);
            assert_eq!(named, anyway, "{}", kind.id);
        }
    }
    let severities: HashSet<_> =
        (0..50).map(|s| format!("{:?}", kind("path-rate").cell(s))).collect();
    assert_eq!(severities.len(), 12, "rates, depths and directions all vary");
}

#[test]
fn ids_differ_and_what_is_drawn_can_be_named() {
    let ids: HashSet<_> = CELLS.iter().map(|kind| kind.id).collect();
    assert_eq!(ids.len(), CELLS.len());
    for seed in 0..1000 {
        let drawn = CellKind::drawn(seed);
        let expected = drawn.expected;
        let fixed = |fault: &Fault| {
            matches!(fault, Fault::Cpus { .. } | Fault::Hog { .. } | Fault::Quota { .. })
        };
        assert!(!drawn.cell(seed).planted().any(fixed), "{}", drawn.id);
        assert!(expected.is_empty() || causes::cause(expected).is_some());
    }
}

#[test]
fn healthy_paths_are_of_many_kinds() {
    let healthy = CELLS.iter().filter(|kind| kind.expected.is_empty());
    let cells: Vec<Cell> = healthy.map(|kind| kind.cell(0)).collect();
    assert!(cells.len() >= 8, "{}", cells.len());
    for (number, cell) in cells.iter().enumerate() {
        let own = (cell.path, &cell.scenery);
        let same = |other: &&Cell| (other.path, &other.scenery) == own;
        assert_eq!(cells[number + 1..].iter().find(same), None);
    }
}

#[test]
fn what_is_planted_can_be_written() {
    for kind in CELLS {
        for seed in 0..20 {
            for fault in kind.cell(seed).planted() {
                assert_eq!(fault.code().parse().as_ref(), Ok(fault), "{}", kind.id);
            }
        }
    }
}

#[test]
fn every_second_time_no_server_knows_of_the_other_client() {
    let apart = |seed| kind("contended").cell(seed).company.unwrap().apart;
    assert!((0..20).all(|seed| apart(seed) != apart(seed + 1)));
}

#[test]
fn any_seeds_in_a_row_hold_each_rate_of_a_path_as_often() {
    let rate = |seed| match kind("path-rate").cell(seed).faults[..] {
        [Fault::PathRate { rate, .. }] => rate.0 / 1_000_000,
        _ => panic!("a path rate alone"),
    };
    for first in 0..20 {
        let mut rates = [rate(first), rate(first + 1), rate(first + 2)];
        rates.sort_unstable();
        assert_eq!(rates, [100, 1_000, 5_000], "from seed {first}");
    }
}
