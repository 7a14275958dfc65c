//! Tests of rules that compare two readings or two runs: each on both sides of its threshold.

use super::answers::answer;
use super::*;
use linerate_facts::nic::{Coalesce, Counter, Nic};

fn with(nic: Nic) -> Inventory {
    let mut host = Inventory::default();
    host.network.nics = vec![Nic { name: "eth0".to_owned(), ..nic }];
    host
}

/// A host whose port has a counter that grew from 1000 by `more`.
fn counted(driver: &str, name: &str, more: u64) -> Inventory {
    let count = |value: u64| vec![Counter { name: name.to_owned(), value }];
    let mut nic =
        Nic { driver: driver.to_owned(), counters: count(1_000 + more), ..Nic::default() };
    nic.before.counters = count(1_000);
    with(nic)
}

fn lossy(direction: Direction, retransmits: u64) -> Vec<Source> {
    near(vec![changed(1, 2.0, |one| {
        one.direction = direction;
        (one.seconds, one.retransmits) = (Some(10.0), Some(retransmits));
    })])
}

#[test]
fn damage_that_grew_as_a_transfer_lost_is_the_link() {
    let of = |host: Inventory, direction, lost| answer(lossy(direction, lost), host);
    let crc = |more| counted("", "rx_crc_errors", more);
    assert_eq!(of(crc(450), Direction::Reverse, 900), "path-loss");
    assert_eq!(of(crc(2_700), Direction::Reverse, 900), "path-loss");
    // The port counts more or fewer damaged packets than were lost: other traffic, or another fault.
    assert_eq!(of(crc(449), Direction::Reverse, 900), "path-loss|path-rate");
    assert_eq!(of(crc(2_701), Direction::Reverse, 900), "path-loss|path-rate");
    // The other direction; no growth of the counter; only one reading; hardly any loss.
    assert_eq!(of(crc(900), Direction::Forward, 900), "unknown");
    assert_eq!(of(crc(0), Direction::Reverse, 900), "unknown");
    let mut once = crc(900);
    once.network.nics[0].before.counters.clear();
    assert_eq!(of(once, Direction::Reverse, 900), "unknown");
    // Fewer than 20 lost packets may agree by chance.
    assert_eq!(of(crc(20), Direction::Reverse, 20), "path-loss");
    assert_eq!(of(crc(19), Direction::Reverse, 19), "unknown");
    // A full port may lose packets because it is full.
    let mut full = crc(900);
    full.network.nics[0].link.speed = Some(Rate(2_100_000_000));
    assert_ne!(of(full, Direction::Reverse, 900), "path-loss");
    // Names of counters in drivers: first of damaged packets, below of packets that the link did not damage.
    for name in ["rx_fcs_errors", "align_errors"] {
        assert_eq!(of(counted("", name, 900), Direction::Reverse, 900), "path-loss", "{name}");
    }
    // The port had no room for about as many packets as were lost.
    let missed = |more| of(counted("", "rx_missed_errors", more), Direction::Reverse, 900);
    assert_eq!((missed(720), missed(1_350)), ("local-drops".to_owned(), "local-drops".to_owned()));
    assert_eq!((missed(719), missed(1_351)), ("unknown".to_owned(), "unknown".to_owned()));
    // Equal counts also agree if the paste does not tell which host counted them.
    let other = |more| of(counted("", "rx_missed_errors", more), Direction::Forward, 900);
    assert_eq!((other(890), other(850)), ("local-drops".to_owned(), "unknown".to_owned()));
    for name in ["tx_crc_errors", "rx_csum_offload_errors", "rx_packets"] {
        assert_eq!(of(counted("", name, 900), Direction::Reverse, 900), "unknown", "{name}");
    }
}

#[test]
fn damage_is_of_the_direction_and_the_side_of_the_port() {
    let material = Material {
        sources: lossy(Direction::Forward, 900),
        far: counted("", "rx_crc_errors", 900),
        ..Material::default()
    };
    let headline = explain(&material).headline.unwrap();
    assert_eq!(headline.cause, Some("path-loss"));
    assert_eq!((headline.direction, headline.side), (Some(Direction::Forward), Some(Side::Far)));
}

/// A run of a latency test with this mean time in microseconds.
fn latency(operation: &str, trip: Trip, micros: f64) -> Source {
    let mut sizes = sizes(Carrier::Udp, trip, &[(14, micros)]);
    sizes.operation = operation.to_owned();
    source(Side::Near, vec![Measured::Sizes(sizes)])
}

fn coalesced(micros: u32, adaptive: bool) -> Inventory {
    with(Nic {
        coalesce: Some(Coalesce {
            rx_usecs: Some(micros),
            adaptive_rx: Some(adaptive),
            ..Coalesce::default()
        }),
        ..Nic::default()
    })
}

fn two(trip: Trip, slow: f64, fast: f64) -> Vec<Source> {
    vec![latency("ping-pong", trip, slow), latency("ping-pong", trip, fast)]
}

#[test]
fn runs_that_differ_by_the_delay_of_interrupts_are_of_it() {
    let of = |trip, slow, fast, micros| answer(two(trip, slow, fast), coalesced(micros, false));
    assert_eq!(of(Trip::Half, 65.0, 16.0, 50), "latency-interrupts|latency-wakeup");
    assert_eq!(of(Trip::Half, 16.0, 65.0, 50), "latency-interrupts|latency-wakeup");
    // The difference in one direction may be 1.5 times down to 0.2 times the delay.
    assert_eq!(of(Trip::Half, 91.0, 16.0, 50), "latency-interrupts|latency-wakeup");
    assert_eq!(of(Trip::Half, 91.5, 16.0, 50), "unknown");
    assert_eq!(of(Trip::Whole, 166.0, 16.0, 50), "latency-interrupts|latency-wakeup");
    assert_eq!(of(Trip::Half, 26.0, 16.0, 50), "latency-interrupts|latency-wakeup");
    assert_eq!(of(Trip::Half, 25.9, 16.0, 50), "unknown");
    // The shortest delay that counts is 10 us.
    assert_eq!(of(Trip::Half, 26.0, 16.0, 10), "latency-interrupts|latency-wakeup");
    assert_eq!(of(Trip::Half, 25.0, 16.0, 9), "unknown");
    assert_eq!(of(Trip::Unknown, 65.0, 16.0, 50), "unknown");
    // The times must differ by a factor of at least 1.3.
    assert_eq!(of(Trip::Half, 52.0, 40.0, 12), "latency-interrupts|latency-wakeup");
    assert!(!has("runs-differ", two(Trip::Half, 51.9, 40.0), &[]));
    assert_eq!(answer(two(Trip::Half, 65.0, 16.0), coalesced(50, true)), "unknown");
    // The delay was read during the slower run, and was changed afterwards.
    let mut off = coalesced(0, false);
    off.network.nics[0].before.coalesce = coalesced(50, false).network.nics[0].coalesce;
    assert_eq!(answer(two(Trip::Half, 65.0, 16.0), off), "latency-interrupts");
}

#[test]
fn runs_that_differ_without_such_facts_have_no_cause() {
    assert!(has("runs-differ", two(Trip::Half, 65.0, 16.0), &[]));
    assert_eq!(answer(two(Trip::Half, 65.0, 16.0), Inventory::default()), "unknown");
    // Another operation is another test. Three times of one test give one remark.
    let other = vec![latency("send", Trip::Half, 65.0), latency("write", Trip::Half, 16.0)];
    assert!(!has("runs-differ", other, &[]));
    let mut three = two(Trip::Half, 65.0, 16.0);
    three.push(latency("ping-pong", Trip::Half, 40.0));
    let reported = remarks(three, &[]);
    assert_eq!(reported.iter().filter(|(id, _)| *id == "runs-differ").count(), 1);
}
