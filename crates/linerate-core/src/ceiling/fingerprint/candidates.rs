//! The links whose rate a measured one may be.

use crate::ceiling::infiniband::{self, MTUS, Speed};
use crate::ceiling::pcie::{self, Slot, USUAL_PAYLOADS};
use crate::ceiling::{Bounds, Cost};

/// Candidates further away than this are not listed.
const NEAR: f64 = 0.05;

/// A link, and the payload rate that it allows.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Name of the candidate, in words: `PCIe gen2 x4, reads of memory, payload 128 B`.
    pub name: String,
    /// Possible goodput of the candidate, in bits per second, from the least to the most.
    pub carries: Bounds,
    /// Distance of the measured rate from the range `carries`, as a share of the nearer end: 0 inside,
    /// positive above the range, negative below it.
    pub off: f64,
}

/// Every link that carries about as much as was measured (`rate`, bits per second), the nearest first; among
/// those whose range contains the rate, the one whose maximum is nearest comes first.
pub fn candidates(rate: f64) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = slots()
        .chain(lanes())
        .map(|(name, carries)| Candidate {
            name,
            carries,
            off: off(rate, carries),
        })
        .filter(|c| c.off.abs() <= NEAR)
        .collect();
    let key = |c: &Candidate| (c.off.abs(), (c.carries.high() / rate - 1.0).abs());
    all.sort_by(|a, b| {
        let ((a, x), (b, y)) = (key(a), key(b));
        a.total_cmp(&b).then(x.total_cmp(&y))
    });
    all
}

fn off(rate: f64, carries: Bounds) -> f64 {
    if rate > carries.high() {
        rate / carries.high() - 1.0
    } else if rate < carries.low() {
        rate / carries.low() - 1.0
    } else {
        0.0
    }
}

/// Slots of every generation and width, in both directions, with the usual payloads.
fn slots() -> impl Iterator<Item = (String, Bounds)> {
    let links = pcie::GENERATIONS
        .into_iter()
        .flat_map(|g| pcie::WIDTHS.map(|w| (g, w)));
    links.flat_map(|(generation, lanes)| {
        USUAL_PAYLOADS.into_iter().flat_map(move |payload| {
            let slot = Slot {
                generations: vec![generation],
                lanes: vec![lanes],
                payloads: vec![payload],
                requests: vec![512],
            };
            let named = |what: &str, cost: &Cost| {
                let name = format!("PCIe gen{generation} x{lanes}, {what}, payload {payload} B");
                (name, goodput(&slot, cost))
            };
            [
                named("reads of memory", &slot.read()),
                named("writes to memory", &slot.write()),
            ]
        })
    })
}

fn goodput(slot: &Slot, cost: &Cost) -> Bounds {
    let bits = slot.capacity().low() * 8.0;
    Bounds::new(bits / cost.per_byte.high(), bits / cost.per_byte.low())
}

/// InfiniBand links of every speed and width, narrow ones too, with any MTU.
fn lanes() -> impl Iterator<Item = (String, Bounds)> {
    let links = Speed::NAMES
        .into_iter()
        .flat_map(|(name, speed)| infiniband::WIDTHS.map(|width| (name, speed, width)));
    links.filter_map(|(name, speed, width)| {
        let bits = infiniband::capacity(speed, width).low() * 8.0;
        // No system chooses less than 1024 bytes for large messages.
        let packet = infiniband::rdma(&MTUS[2..])?;
        let (low, high) = (packet.wire_per_byte.low(), packet.wire_per_byte.high());
        let name = format!("InfiniBand {name} {width}x, MTU 1024 to 4096");
        Some((name, Bounds::new(bits / high, bits / low)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Point, fit};
    use super::*;
    use crate::units::{Bytes, Nanos};

    /// Sizes, and typical times in microseconds, of RDMA writes between two servers with FDR ports.
    const WRITES: [(u64, f64); 23] = [
        (2, 1.28),
        (4, 1.28),
        (8, 1.28),
        (16, 1.29),
        (32, 1.35),
        (64, 1.36),
        (128, 1.50),
        (256, 2.26),
        (512, 2.98),
        (1024, 3.63),
        (2048, 4.91),
        (4096, 6.09),
        (8192, 8.43),
        (16384, 13.48),
        (32768, 22.89),
        (65536, 42.04),
        (131_072, 79.93),
        (262_144, 155.84),
        (524_288, 307.65),
        (1_048_576, 611.27),
        (2_097_152, 1218.48),
        (4_194_304, 2433.46),
        (8_388_608, 4991.06),
    ];

    #[test]
    fn a_published_sweep_names_the_slow_slot_and_its_rival() {
        let point = |(size, micros): &(u64, f64)| Point {
            size: Bytes(*size),
            time: Nanos((micros * 1000.0) as u64),
        };
        let points: Vec<_> = WRITES.iter().map(point).collect();
        let fit = fit(&points).unwrap();
        assert!((13.80e9..13.83e9).contains(&fit.rate), "{fit:?}");
        assert!(fit.interval.contains(fit.rate) && fit.interval.low() > 13.6e9);
        assert_eq!(fit.floor, Nanos(1_280));
        assert!((2_048..8_192).contains(&fit.half.0), "{fit:?}");
        assert_eq!(fit.knees.len(), 1, "8 MiB are slower: {fit:?}");

        let found = candidates(fit.rate);
        let names: Vec<_> = found.iter().map(|c| c.name.as_str()).collect();
        // The same rate twice: the table alone cannot tell them apart.
        let first = |link: &str| format!("PCIe {link}, reads of memory, payload 128 B");
        assert_eq!(names[..2], [first("gen1 x8"), first("gen2 x4")]);
        let rival = found
            .iter()
            .find(|c| c.name.starts_with("InfiniBand FDR 1x"));
        let off = rival.unwrap().off;
        assert!(
            (0.015..0.025).contains(&off),
            "2 % above what it carries: {off}"
        );
        assert!(!names.iter().any(|n| n.contains("FDR 4x")), "{names:?}");
    }

    #[test]
    fn every_link_is_its_own_candidate_and_one_that_is_far_off_is_none() {
        for (name, carries) in slots().chain(lanes()) {
            let all = candidates(carries.high() * 0.9999);
            let own = all.iter().find(|c| c.name == name);
            assert!(own.is_some_and(|c| c.off.abs() < 0.001), "{name}");
            let all = candidates(carries.high() * 1.06);
            assert!(!all.iter().any(|c| c.name == name), "{name}");
        }
    }
}
