//! Checks which faults cannot be planted, and says why.

use std::ops::RangeInclusive;

use linerate_units::Rate;

use crate::agent::wire::is_on_the_wire;
use crate::fault::{Fault, Origin, Rhythm};
use crate::spec::Topology;

/// Longest time of any fault, in nanoseconds.
const LONGEST: u64 = 10_000_000_000;
/// Periods of a tick that releases packets, in nanoseconds. A shorter one is within the time that the forwarding
/// process needs for a packet.
const PERIODS: RangeInclusive<u64> = 20_000..=10_000_000;
/// Most spinning threads: more would have no further effect.
const MOST_THREADS: u32 = 64;

/// Returns why the fault cannot be planted in this lab's topology.
pub(super) fn misplaced(fault: &Fault, topology: Topology) -> Option<&'static str> {
    let needs_router = is_on_the_wire(fault)
        || matches!(
            fault,
            Fault::PathRate { .. } | Fault::Traffic { origin: Origin::Elsewhere, .. }
        );
    (needs_router && topology == Topology::Direct)
        .then_some("it needs a router, and this lab has none")
}

/// Returns why a number of the fault is out of bounds; `None` if all are within.
pub(super) fn out_of_bounds(fault: &Fault) -> Option<&'static str> {
    let short = |time: u64| (1..=LONGEST).contains(&time);
    let packet = |bytes: u32| (576..=65535).contains(&bytes);
    let (fine, why) = match fault {
        Fault::PathRate { rate, .. }
        | Fault::Police { rate, .. }
        | Fault::FlowRate { rate, .. }
        | Fault::Shape { rate, .. }
        | Fault::Traffic { rate, .. } => (is_rate(*rate), RATE),
        Fault::Queue { rate, bytes, .. } => (
            is_rate(*rate) && (2_000..=1 << 30).contains(&bytes.0),
            "the rate is outside 100 kb/s to 300 Gb/s, or the room outside 2 kB to 1 GiB",
        ),
        Fault::ReceiveWindow { bytes, .. } | Fault::SendBuffer { bytes, .. } => (
            // Below this size, the kernel's own minimum of a socket applies.
            (4096..=(1 << 30)).contains(&bytes.0),
            "the size is outside 4 KiB to 1 GiB",
        ),
        Fault::Mtu { bytes } => (packet(*bytes), "the MTU is outside 576 to 65535"),
        Fault::BlackHole { bytes, .. } => (packet(*bytes), "the size is outside 576 to 65535"),
        Fault::Delay { forward, reverse } => {
            (short(forward.0.max(reverse.0)), "the delay is outside 1 ns to 10 s")
        }
        Fault::Jitter { most, .. } => (short(most.0), "the time is outside 1 ns to 10 s"),
        Fault::Hold { period, .. } => {
            (PERIODS.contains(&period.0), "the period is outside 20 us to 10 ms")
        }
        Fault::Reorder { by, every, .. } => (
            short(by.0) && *every >= 2,
            "the time is outside 1 ns to 10 s, or more than every second packet is late",
        ),
        Fault::Loss { share, burst, .. } => (
            share.part() <= 0.5 && (1..=10_000).contains(burst),
            "the share is above 50%, or the burst outside 1 to 10000 packets",
        ),
        Fault::Hog { threads, .. } => {
            ((1..=MOST_THREADS).contains(threads), "the threads are not 1 to 64")
        }
        Fault::Stall { lasting, rhythm, .. } => (
            match rhythm {
                Rhythm::Once(_) => true,
                Rhythm::Every(period) => period.0 > lasting.0,
            },
            "it lasts longer than its period",
        ),
        Fault::LinkDown { .. }
        | Fault::Application { .. }
        | Fault::Environment { .. }
        | Fault::Cpus { .. }
        | Fault::Quota { .. }
        | Fault::Offloads { .. } => (true, ""),
    };
    (!fine).then_some(why)
}

const RATE: &str = "the rate is outside 100 kb/s to 300 Gb/s";

fn is_rate(rate: Rate) -> bool {
    (100_000..=300_000_000_000).contains(&rate.0)
}

/// Part of the path that a fault occupies, so that no other fault may use it.
#[derive(PartialEq, Eq)]
enum Scope<'a> {
    Whole,
    Side(linerate_plan::path::Side),
    Cpu(u32),
    Variable(linerate_plan::path::Side, &'a str),
}

/// Returns whether two faults cannot be planted together because they act on the same part of the lab.
pub(super) fn collide(a: &Fault, b: &Fault) -> bool {
    if kind(a) != kind(b) {
        return false;
    }
    match (ways(a), ways(b)) {
        (Some(a), Some(b)) => a.iter().any(|direction| b.contains(direction)),
        _ => scope(a) == scope(b),
    }
}

/// Returns the kind of a fault. Two faults of one kind, or on the same queue, exclude each other.
fn kind(fault: &Fault) -> String {
    let code = fault.code();
    let name = code.split(':').next().unwrap_or_default();
    match name {
        "queue" => "shape".to_owned(),
        name => name.to_owned(),
    }
}

fn ways(fault: &Fault) -> Option<&'static [linerate_plan::path::Direction]> {
    match fault {
        Fault::PathRate { directions, .. }
        | Fault::Police { directions, .. }
        | Fault::FlowRate { directions, .. }
        | Fault::Loss { directions, .. }
        | Fault::Reorder { directions, .. }
        | Fault::Jitter { directions, .. }
        | Fault::BlackHole { directions, .. } => Some(directions.each()),
        Fault::Traffic { direction, .. } => {
            Some(crate::fault::FaultDirection::from(*direction).each())
        }
        _ => None,
    }
}

fn scope(fault: &Fault) -> Scope<'_> {
    match fault {
        Fault::ReceiveWindow { side, .. }
        | Fault::SendBuffer { side, .. }
        | Fault::LinkDown { side, .. }
        | Fault::Application { side, .. }
        | Fault::Shape { side, .. }
        | Fault::Queue { side, .. }
        | Fault::Cpus { side, .. }
        | Fault::Quota { side, .. }
        | Fault::Offloads { side }
        | Fault::Hold { side, .. }
        | Fault::Stall { side, .. } => Scope::Side(*side),
        Fault::Environment { side, name, .. } => Scope::Variable(*side, name),
        Fault::Hog { cpu, .. } => Scope::Cpu(*cpu),
        _ => Scope::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Fault {
        text.parse().unwrap()
    }

    #[test]
    fn faults_of_one_kind_collide_where_they_meet() {
        let pairs = [
            ("police:1Gb/s,forward", "police:2Gb/s", true),
            ("police:1Gb/s,forward", "police:2Gb/s,reverse", false),
            ("police:1Gb/s", "path-rate:1Gb/s,deep", false),
            ("delay:1ms", "delay:2ms,forward", true),
            ("delay:1ms", "jitter:2ms", false),
            ("shape:near,1Gb/s", "queue:near,1Gb/s,30KiB", true),
            ("shape:near,1Gb/s", "shape:far,1Gb/s", false),
            ("hold:near,200us", "hold:near,1ms", true),
            ("hold:near,200us", "hold:far,200us", false),
            ("hog:cpu=0,threads=1", "hog:cpu=1,threads=1", false),
            ("environment:near,A=1", "environment:near,B=1", false),
            ("environment:near,A=1", "environment:near,A=2", true),
            ("mtu:1280", "mtu:9000", true),
        ];
        for (a, b, expected) in pairs {
            let (a, b) = (fault(a), fault(b));
            assert_eq!(collide(&a, &b), expected, "{a} and {b}");
            assert_eq!(collide(&b, &a), expected, "{b} and {a}");
        }
    }

    #[test]
    fn numbers_have_bounds() {
        let pairs = [
            ("police:100kb/s", "police:99kb/s"),
            ("loss:50%", "loss:50.0001%"),
            ("loss:1%,bursts=10000", "loss:1%,bursts=0"),
            ("reorder:1ms,every=2", "reorder:1ms,every=1"),
            ("jitter:10s", "jitter:11s"),
            ("hold:far,20us", "hold:far,19999ns"),
            ("hold:far,10ms", "hold:far,10001us"),
            ("black-hole:576", "black-hole:575"),
            ("queue:near,1Gb/s,2000B", "queue:near,1Gb/s,1999B"),
            ("hog:cpu=0,threads=64", "hog:cpu=0,threads=65"),
            ("stall:far,200ms,every=201ms", "stall:far,200ms,every=200ms"),
            ("mtu:576", "mtu:65536"),
            ("receive-window:far,4KiB", "receive-window:far,4095B"),
        ];
        for (inside, outside) in pairs {
            assert_eq!(out_of_bounds(&fault(inside)), None, "{inside}");
            assert!(out_of_bounds(&fault(outside)).is_some(), "{outside}");
        }
    }
}
