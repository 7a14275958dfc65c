//! Published sweeps, and the hardware that they point to.

use super::candidates::{Candidate, Candidates, Standing, candidates};
use super::facts::{Facts, Known, Medium};
use super::fit::{Fit, Point, fit};
use super::table::{Carrier, Kind, rows};
use crate::infiniband::Speed;
use crate::{Bounds, Link};
use linerate_units::{Bytes, Nanos};

/// Typical times of perftest in microseconds, for sizes that double from 2 B on, between two servers with FDR ports
/// (published 2013). Times of reads are round trips, times of writes and sends are one way.
const READS: [f64; 23] = [
    2.36, 2.37, 2.37, 2.37, 2.40, 2.42, 2.52, 2.69, 3.02, 3.66, 4.95, 6.13, 8.47, 13.15, 22.98,
    41.72, 79.65, 155.51, 307.26, 610.89, 1217.84, 2431.94, 4860.07,
];
const WRITES: [f64; 23] = [
    1.28, 1.28, 1.28, 1.29, 1.35, 1.36, 1.50, 2.26, 2.98, 3.63, 4.91, 6.09, 8.43, 13.48, 22.89,
    42.04, 79.93, 155.84, 307.65, 611.27, 1218.48, 2433.46, 4991.06,
];
const SENDS: [f64; 23] = [
    1.34, 1.34, 1.34, 1.35, 1.37, 1.42, 1.55, 2.31, 2.95, 3.59, 4.88, 6.07, 8.40, 13.09, 23.21,
    42.02, 79.92, 155.81, 307.68, 611.27, 1218.48, 2433.54, 4991.17,
];

const FDR: Link = Link::InfiniBand { width: 4, speed: Speed::Fdr };

fn swept(micros: &[f64]) -> Fit {
    let point = |(k, micros): (usize, &f64)| Point {
        size: Bytes(2 << k),
        time: Nanos((micros * 1_000.0).round() as u64),
    };
    let points: Vec<Point> = micros.iter().enumerate().map(point).collect();
    fit(&points).unwrap()
}

/// A fit with this rate and a narrow interval.
fn exact(rate: f64) -> Fit {
    Fit {
        floor: Nanos(1_000),
        rate,
        interval: Bounds::exact(rate),
        spans: 9,
        half: Bytes(4_096),
        knees: Vec::new(),
    }
}

/// Facts of RDMA over ports of 4x FDR; `all`: whether the path has no other links.
fn verbs(all: bool) -> Facts {
    Facts {
        medium: Some(Medium::InfiniBand),
        links: Known { parts: vec![FDR], all },
        carrier: Some(Carrier::Verbs),
        ..Facts::default()
    }
}

fn named<'a>(found: &'a Candidates, name: &str) -> Option<&'a Candidate> {
    let has = |c: &&Candidate| c.names.iter().any(|named| named.name == name);
    found.possible.iter().find(has)
}

#[test]
fn published_sweeps_name_the_slow_slot_and_its_rival() {
    for (times, floor) in [(READS, 2_360), (WRITES, 1_280), (SENDS, 1_340)] {
        let fit = swept(&times);
        assert_eq!(fit.floor, Nanos(floor));
        assert!((13.80e9..13.83e9).contains(&fit.rate), "{fit:?}");
        for facts in [Facts::default(), verbs(false)] {
            let found = candidates(&fit, &facts);
            let first = &found.possible[0];
            let names: Vec<&str> = first.names.iter().map(|n| n.name.as_str()).collect();
            // PCIe gen1 x8 and gen2 x4 have the same rate: the table alone cannot tell them apart.
            assert_eq!(names[..2], ["PCIe gen1 x8", "PCIe gen2 x4"]);
            assert_eq!(first.names[0].nearest.name, "reads of memory, payload 128 B");
            assert!(first.off == 0.0 && first.margin > 0.0, "{first:?}");

            let rival = named(&found, "InfiniBand FDR 1x").unwrap();
            assert!((0.015..0.025).contains(&rival.off), "2 % above it: {rival:?}");
            assert!(rival.margin < 0.0 && !rival.is_known);
            assert_eq!(named(&found, "InfiniBand FDR 4x"), None);
            assert_eq!(named(&found, "PCIe gen2 x8"), None);
        }
    }
}

#[test]
fn the_port_is_stated_and_is_not_the_limit() {
    let found = candidates(&swept(&READS), &verbs(false));
    let [port] = found.stated.as_slice() else { panic!("{found:?}") };
    assert_eq!((port.name.as_str(), port.standing), ("InfiniBand FDR 4x", Standing::NotTheLimit));
    assert!((2.9..2.95).contains(&port.margin), "{port:?}");
    assert!(found.excluded.iter().all(|excluded| excluded.named.name != "InfiniBand FDR 1x"));
}

#[test]
fn a_rival_that_the_path_does_not_have_is_ruled_out_by_a_fact() {
    let found = candidates(&swept(&READS), &verbs(true));
    assert_eq!(named(&found, "InfiniBand FDR 1x"), None);
    let mut excluded = found.excluded.iter();
    let rival = excluded.find(|excluded| excluded.named.name == "InfiniBand FDR 1x");
    assert_eq!(rival.unwrap().by, "the path has no link but 4x FDR");
}

#[test]
fn every_row_is_a_candidate_at_its_rates_and_none_beyond_them() {
    for row in rows() {
        let rates = row.variants.iter().map(|v| v.rate);
        let carries = Bounds::of(rates.clone());
        let found = |rate: f64| {
            let found = candidates(&exact(rate), &Facts::default());
            found.possible.iter().flat_map(|c| &c.names).any(|named| named.name == row.name)
        };
        for share in [0.93, 1.0, 1.02] {
            assert!(found(carries.high() * share), "{} {share}", row.name);
        }
        // Ceilings that differ by up to 2 % form one candidate, so only rates further away must not find it.
        assert!(!found(carries.high() * 1.05), "{}", row.name);
        assert!(!found(carries.low() * 0.88), "{}", row.name);
    }
}

#[test]
fn a_stated_ceiling_stands_above_at_or_below_the_rate() {
    let facts = verbs(false);
    // RDMA over FDR carries 53.2 to 54.2 Gb/s. Rates agree from 0.93 of the lower end less 2.5 %, to 2.5 % above
    // the upper end.
    for (gigabits, standing) in [
        (48.1, Standing::NotTheLimit),
        (48.5, Standing::Agrees),
        (55.4, Standing::Agrees),
        (55.7, Standing::Exceeded),
    ] {
        let found = candidates(&exact(gigabits * 1e9), &facts);
        assert_eq!(found.stated[0].standing, standing, "{gigabits}");
        let is_first = found.possible.first().is_some_and(|first| first.is_known);
        assert_eq!(is_first, standing == Standing::Agrees, "{gigabits}");
    }
}

#[test]
fn equal_ceilings_are_one_candidate_with_several_names() {
    let found = candidates(&exact(7.9e9), &Facts::default());
    let lanes = named(&found, "InfiniBand QDR 1x").unwrap();
    assert_eq!(lanes.words(), "InfiniBand SDR 4x or InfiniBand DDR 2x or InfiniBand QDR 1x");
    assert!(lanes.names.iter().all(|named| named.kind == Kind::InfiniBand));
}
