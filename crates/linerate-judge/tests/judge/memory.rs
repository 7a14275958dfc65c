//! Tests of memory channels: both sides of each threshold, and causes that look alike.

use linerate_facts::memory::Channels;
use linerate_units::Transfers;

use super::*;

/// Two channels of DDR4-2000, which carry 32 GB/s.
const TWO: Channels = Channels { least: 2, most: 2, speed: Transfers(2_000_000_000) };

/// A card at both ends, and a load of `gbits` Gb/s. The receiving thread is busy for the share `busy`; the receiver's
/// memory moved `gbytes` GB/s.
fn moved(gbits: f64, busy: f64, gbytes: Option<f64>) -> Model {
    let mut base = load();
    base.goodput.mean = gbits * 1e9;
    base.receivers = vec![thread(busy)];
    base.memory.receiver = gbytes.map(|g| g * 1e9);
    let mut m = model(base);
    for host in &mut m.hosts {
        host.facts.channels = Some(TWO);
        host.facts.port = Some(Port {
            name: "eth0".into(),
            is_ethernet: true,
            speed_mbps: Some(100_000),
            ..Port::default()
        });
    }
    m
}

fn says(m: &Model) -> &'static str {
    outcome(m, "memory-bandwidth")
}

#[test]
fn channels_count_from_80_per_cent_of_what_their_modules_could_move() {
    for (gbytes, expected) in [
        // With all payload added, memory is used by 79 and by 81 %.
        (18.9, "clear"),
        (19.6, "suspect"),
        (25.5, "suspect"),
        (25.7, "enough"),
    ] {
        assert_eq!(says(&moved(51.2, 0.92, Some(gbytes))), expected, "{gbytes} GB/s");
    }
    let m = moved(51.2, 0.92, Some(26.0));
    let verdict = judge(&m);
    assert_eq!(verdict.limits[0].cause, "memory-bandwidth");
    assert!(verdict.limits[0].evidence[0].contains("2 x 2000 MT/s x 8 B"));
}

#[test]
fn a_rate_far_below_the_channels_is_clear_without_any_counter() {
    // The threshold: three crossings of memory use half of 256 Gb/s.
    assert_eq!(says(&moved(42.5, 0.96, None)), "clear");
    assert_eq!(says(&moved(42.9, 0.96, None)), "unknown");
    // If the modules are unknown, a single channel of the slowest kind is assumed.
    let unlisted = |gbits| {
        let mut m = moved(gbits, 0.96, Some(1.0));
        m.hosts[1].facts.channels = None;
        says(&m)
    };
    assert_eq!((unlisted(11.3), unlisted(11.5)), ("clear", "unknown"));
}

#[test]
fn a_thread_with_time_to_spare_does_not_wait_for_memory() {
    assert_eq!(says(&moved(60.0, 0.79, None)), "clear");
    assert_eq!(says(&moved(60.0, 0.81, None)), "unknown");
}

#[test]
fn ports_without_a_card_ask_nothing_of_memory() {
    let mut m = moved(60.0, 0.96, None);
    for host in &mut m.hosts {
        host.facts.port.as_mut().expect("a port").is_virtual = true;
    }
    assert_eq!(says(&m), "clear");
}

#[test]
fn more_streams_that_carry_more_clear_memory() {
    let with = |ratio| {
        let mut m = moved(60.0, 0.96, None);
        m.directions[0].sweep[0].goodput.mean = 60e9 * ratio;
        says(&m)
    };
    assert_eq!((with(1.09), with(1.11)), ("unknown", "clear"));
}

#[test]
fn channels_that_firmware_does_not_name_bound_it_from_both_sides() {
    let mut m = moved(51.2, 0.92, Some(26.0));
    m.hosts[1].facts.channels = Some(Channels { most: 4, ..TWO });
    assert_eq!(says(&m), "suspect", "it may be half of four");
    m.directions[0].base.memory.receiver = Some(1e9);
    assert_eq!(says(&m), "clear");
}

#[test]
fn dropped_payload_that_gains_nothing_excludes_memory() {
    let judged = |ratio| {
        let mut m = moved(51.2, 0.92, Some(26.0));
        tried(&mut m, "discard", ratio);
        judge(&m)
    };
    assert!(judged(1.0).limits.iter().all(|l| l.cause != "memory-bandwidth"));
    assert_eq!(judged(1.5).limits[0].cause, "memory-bandwidth");
}

#[test]
fn payload_that_is_not_copied_decides_on_the_memory_of_the_sender_alone() {
    let judged = |gbytes: [f64; 2], ratio| {
        let mut m = moved(51.2, 0.92, None);
        m.directions[0].base.senders = vec![thread(0.92)];
        m.directions[0].base.memory = gbytes.map(|g| Some(g * 1e9)).into();
        tried(&mut m, "zero-copy", ratio);
        let verdict = judge(&m);
        let mut answers = verdict.answers.iter();
        let memory = answers.find(|a| a.cause == "memory-bandwidth");
        memory.expect("it answers").outcome
    };
    assert_eq!(
        [1.0, 1.2].map(|ratio| judged([26.0, 1.0], ratio)),
        ["excluded", "finding"],
        "of the sender"
    );
    assert_eq!(
        [1.0, 1.2].map(|ratio| judged([1.0, 26.0], ratio)),
        ["finding", "excluded"],
        "of the receiver"
    );
}
