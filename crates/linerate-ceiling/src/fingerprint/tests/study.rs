//! Simulated sweeps: how often the true ceiling is among the candidates, and how often hardware is named that is
//! not there. The documentation of the module `fingerprint` has the figures.

use super::candidates::{Candidates, among};
use super::draw::Draw;
use super::facts::{Facts, Known, Medium};
use super::fit::{Fit, Point, fit};
use super::table::{Carrier, Row, rows};
use crate::pcie;
use linerate_units::{Bytes, Nanos};

/// Noise of each time: standard deviation of its logarithm.
const NOISE: f64 = 0.03;

/// Number of sizes: they double from 2 B to 8 MiB.
const SIZES: u32 = 23;

/// A simulated sweep at this rate: half of the rate is reached at a random size from 64 B to 16 KiB.
fn sweep(draw: &mut Draw, rate: f64) -> Option<Fit> {
    let floor = draw.spread(64.0, 16_384.0) * 8e9 / rate;
    let points: Vec<Point> = (1..=SIZES)
        .map(|k| {
            let size = 1_u64 << k;
            let plain = floor + size as f64 * 8e9 / rate;
            let time = plain * draw.normal(NOISE).exp() * draw.late();
            Point { size: Bytes(size), time: Nanos(time as u64) }
        })
        .collect();
    fit(&points)
}

/// What is known of the simulated paths.
struct Setting {
    name: &'static str,
    medium: Option<Medium>,
    carrier: Option<Carrier>,
    /// Whether the slots of the path are known.
    slots: bool,
    /// Percentage of sweeps in which the true ceiling must be the first candidate, at least.
    first: f64,
}

const SETTINGS: [Setting; 6] = [
    setting("nothing", None, None, false, 53.0),
    setting("Ethernet", Some(Medium::Ethernet), None, false, 80.0),
    setting("InfiniBand", Some(Medium::InfiniBand), None, false, 68.0),
    setting("disk", Some(Medium::Disk), None, false, 70.0),
    setting("Ethernet, sockets, slots", Some(Medium::Ethernet), Some(Carrier::Sockets), true, 80.0),
    setting("InfiniBand, verbs, slots", Some(Medium::InfiniBand), Some(Carrier::Verbs), true, 76.0),
];

/// Percentage of sweeps in which the true ceiling must be a candidate, at least; and of sweeps with no ceiling near
/// that must have no candidate.
const LEAST_PERCENT: f64 = 95.0;

const fn setting(
    name: &'static str,
    medium: Option<Medium>,
    carrier: Option<Carrier>,
    slots: bool,
    first: f64,
) -> Setting {
    Setting { name, medium, carrier, slots, first }
}

impl Setting {
    /// Facts of one simulated path; its slots are random.
    fn facts(&self, draw: &mut Draw) -> Facts {
        let generation = *draw.one(&[1, 2, 3, 4, 5]);
        let slot = pcie::Slot {
            generations: vec![generation],
            lanes: vec![*draw.one(&[1, 4, 8, 16])],
            payloads: pcie::USUAL_PAYLOADS.to_vec(),
            requests: vec![512],
        };
        Facts {
            medium: self.medium,
            carrier: self.carrier,
            slots: Known {
                parts: if self.slots { vec![slot] } else { Vec::new() },
                all: self.slots,
            },
            ..Facts::default()
        }
    }
}

/// Percentages of the sweeps in which the true ceiling was found, and numbers of candidates.
#[derive(Debug)]
struct Outcome {
    among: f64,
    first: f64,
    /// Number of candidates of a sweep: the median, and the number that 90 % of the sweeps do not exceed.
    counts: [usize; 2],
}

/// The rows that the facts do not rule out.
fn left<'a>(rows: &'a [Row], facts: &Facts) -> Vec<&'a Row> {
    let rows = rows.iter().filter(|row| facts.against(row).is_none());
    rows.collect()
}

/// Simulates sweeps at ceilings of the table. If `is_even`, rare ceilings are drawn as often as others, else a
/// fifth as often.
fn of_true_ceilings(setting: &Setting, draw: &mut Draw, sweeps: usize, is_even: bool) -> Outcome {
    let rows = rows();
    let (mut found, mut first, mut counts) = (0, 0, Vec::new());
    while counts.len() < sweeps {
        let facts = setting.facts(draw);
        let row = *draw.one(&left(&rows, &facts));
        if row.is_rare && !is_even && draw.unit() > 0.2 {
            continue;
        }
        let variants: Vec<_> = row.variants.iter().filter(|v| facts.allows(v)).collect();
        let rate = draw.one(&variants).rate * draw.between(0.93, 1.0);
        let Some(fit) = sweep(draw, rate) else {
            continue;
        };
        let Candidates { possible, .. } = among(&rows, &fit, &facts);
        let place = possible
            .iter()
            .position(|candidate| candidate.names.iter().any(|named| named.name == row.name));
        found += usize::from(place.is_some());
        first += usize::from(place == Some(0));
        counts.push(possible.len());
    }
    counts.sort_unstable();
    let share = |n: usize| n as f64 * 100.0 / sweeps as f64;
    Outcome {
        among: share(found),
        first: share(first),
        counts: [counts[sweeps / 2], counts[sweeps * 9 / 10]],
    }
}

/// Simulates sweeps at rates that are 10 % away from every ceiling. Returns the percentage of sweeps without a
/// candidate, and the percentage of rates from 10 Mb/s to 800 Gb/s that are this far away.
fn of_other_rates(setting: &Setting, draw: &mut Draw, sweeps: usize) -> [f64; 2] {
    let rows = rows();
    let (mut none, mut far, mut drawn) = (0, 0, 0);
    while far < sweeps {
        let facts = setting.facts(draw);
        let rate = draw.spread(1e7, 8e11);
        drawn += 1;
        let is_near = |v: f64| (v * 0.93 * 0.9..=v * 1.1).contains(&rate);
        let variants = left(&rows, &facts).into_iter().flat_map(|row| &row.variants);
        if variants.filter(|v| facts.allows(v)).any(|v| is_near(v.rate)) {
            continue;
        }
        let Some(fit) = sweep(draw, rate) else {
            continue;
        };
        far += 1;
        none += usize::from(among(&rows, &fit, &facts).possible.is_empty());
    }
    [none as f64 * 100.0 / far as f64, far as f64 * 100.0 / f64::from(drawn)]
}

/// Simulates sweeps for every setting, prints the figures, and checks the required percentages.
fn study(sweeps: usize) {
    let mut missed = Vec::new();
    for setting in &SETTINGS {
        let mut draw = Draw(0x1234_5683);
        let outcome = of_true_ceilings(setting, &mut draw, sweeps, false);
        let [none, far] = of_other_rates(setting, &mut draw, sweeps);
        let name = setting.name;
        println!("{name}: {outcome:.1?}, none {none:.1}, far {far:.0}");
        let is_found = outcome.among >= LEAST_PERCENT && outcome.first >= setting.first;
        if !is_found || outcome.counts[0] > 4 || none < LEAST_PERCENT {
            missed.push(name);
        }
    }
    assert_eq!(missed, [""; 0]);
}

#[test]
fn true_ceilings_are_found_and_others_are_not_named() {
    study(500);
}

/// Prints the figures for the documentation of `fingerprint`, from many sweeps:
/// `cargo test -p linerate-ceiling --lib fingerprint::study -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn many_sweeps() {
    for setting in &SETTINGS {
        let outcome = of_true_ceilings(setting, &mut Draw(0x1234_5689), 5_000, true);
        println!("{}, all drawn as often: {outcome:.1?}", setting.name);
    }
    study(5_000);
}
