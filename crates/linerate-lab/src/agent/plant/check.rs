//! Checks which faults cannot be planted, and says why.

use std::slice;

use linerate_plan::path::{Direction, Side};

use crate::agent::wire::is_on_the_wire;
use crate::fault::{Fault, Origin};
use crate::spec::Topology;

/// Returns the reason why the fault cannot be planted in a lab of this topology; `None` if it can.
pub(super) fn misplaced(fault: &Fault, topology: Topology) -> Option<&'static str> {
    let needs_router = is_on_the_wire(fault)
        || matches!(
            fault,
            Fault::PathRate { .. } | Fault::Traffic { origin: Origin::Elsewhere, .. }
        );
    (needs_router && topology == Topology::Direct)
        .then_some("it needs a router, and this lab has none")
}

/// Part of the lab that a fault occupies, so that no other fault of its kind may use it.
#[derive(PartialEq, Eq)]
enum Place<'a> {
    Whole,
    Ways(&'a [Direction]),
    Side(Side),
    Cpu(u32),
    Variable(Side, &'a str),
}

/// Returns whether two faults cannot be planted together, because they are of one kind and act on the same part of the
/// lab.
pub(super) fn collide(a: &Fault, b: &Fault) -> bool {
    kind(a) == kind(b)
        && match (place(a), place(b)) {
            (Place::Ways(a), Place::Ways(b)) => a.iter().any(|direction| b.contains(direction)),
            (a, b) => a == b,
        }
}

/// Returns the kind of a fault, by which faults exclude each other: `queue` and `shape` use the same queue.
fn kind(fault: &Fault) -> &'static str {
    match fault.name() {
        "queue" => "shape",
        name => name,
    }
}

fn place(fault: &Fault) -> Place<'_> {
    match fault {
        Fault::PathRate { directions, .. }
        | Fault::Police { directions, .. }
        | Fault::FlowRate { directions, .. }
        | Fault::Loss { directions, .. }
        | Fault::Reorder { directions, .. }
        | Fault::Jitter { directions, .. }
        | Fault::BlackHole { directions, .. } => Place::Ways(directions.each()),
        Fault::Traffic { direction, .. } => Place::Ways(slice::from_ref(direction)),
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
        | Fault::Stall { side, .. } => Place::Side(*side),
        Fault::Environment { side, name, .. } => Place::Variable(*side, name),
        Fault::Hog { cpu, .. } => Place::Cpu(*cpu),
        Fault::Mtu { .. } | Fault::Delay { .. } => Place::Whole,
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
            assert_eq!(fault(inside).out_of_bounds(), None, "{inside}");
            assert!(fault(outside).out_of_bounds().is_some(), "{outside}");
        }
    }
}
