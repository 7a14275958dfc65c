//! Tests of the rules about round trips of packets: each on both sides of its threshold.

use super::answers::answer;
use super::*;
use linerate_record::reported::Hop;

/// The result of a ping to a host: shortest, mean and longest round trip in milliseconds, and lost packets.
fn ping(host: &str, [least, mean, most]: [f64; 3], lost: u64) -> Source {
    let time = |millis: f64| Some(Nanos((millis * 1e6) as u64));
    let mut sizes = sizes(Carrier::Udp, Trip::Whole, &[]);
    (sizes.carrier, sizes.operation) = (None, "ICMP echo".to_owned());
    sizes.rows = vec![SizeRow {
        size: Bytes(56),
        samples: Some(20),
        lost: Some(lost),
        least: time(least),
        mean: time(mean),
        most: time(most),
        ..SizeRow::default()
    }];
    let mut source = source(Side::Near, vec![Measured::Sizes(sizes)]);
    source.tool = Tool::named("ping");
    source.results[0].title = host.to_owned();
    source
}

fn routed(host: &str, times: [f64; 3], lost: u64) -> Source {
    ttl(ping(host, times, lost), 57)
}

fn ttl(mut source: Source, ttl: u8) -> Source {
    if let Measured::Sizes(sizes) = &mut source.results[0].measured {
        sizes.rows[0].ttl = Some(ttl);
    }
    source
}

fn of(sources: Vec<Source>) -> String {
    answer(sources, Inventory::default())
}

const IDLE: [f64; 3] = [10.0, 12.0, 15.0];

fn beside_idle(host: &str, times: [f64; 3], lost: u64) -> String {
    of(vec![routed("a", IDLE, 0), routed(host, times, lost)])
}

#[test]
fn round_trips_that_grow_under_load_are_a_queue() {
    assert_eq!(beside_idle("a", [50.0, 60.0, 80.0], 0), "latency-queue");
    assert_eq!(beside_idle("a", [50.0, 59.0, 80.0], 0), "unknown");
    // The round trip must grow by at least 30 ms.
    let short =
        |mean: f64| of(vec![routed("a", [5.0, 6.0, 7.0], 0), routed("a", [20.0, mean, 40.0], 0)]);
    assert_eq!((short(36.0), short(35.9)), ("latency-queue".into(), "unknown".into()));
    // Pings of another host, on another path, or with loss are not compared.
    assert_eq!(beside_idle("b", [50.0, 60.0, 80.0], 0), "unknown");
    assert_eq!(beside_idle("a", [50.0, 60.0, 80.0], 1), "unknown");
    let far = ttl(ping("a", [50.0, 60.0, 80.0], 0), 51);
    assert_eq!(of(vec![routed("a", IDLE, 0), far]), "unknown");
    // If all round trips are nearly equal, distance explains them, and not a queue.
    assert_eq!(beside_idle("a", [57.0, 60.0, 62.9], 0), "unknown");
    assert_eq!(beside_idle("a", [57.0, 60.0, 63.0], 0), "latency-queue");
    // Some packets did not wait in a queue.
    let some = vec![routed("a", IDLE, 0), routed("a", [23.9, 80.0, 400.0], 0)];
    assert_eq!(of(some.clone()), "unknown");
    assert!(has("queue-fills", some, &[]));
}

#[test]
fn the_only_direction_that_is_loaded_is_that_of_the_queue() {
    let material = Material {
        sources: vec![
            ping("a", IDLE, 0),
            ping("a", [50.0, 60.0, 80.0], 0),
            source(Side::Near, vec![tcp(1, 0.04)]),
        ],
        ..Material::default()
    };
    let headline = explain(&material).headline.unwrap();
    assert_eq!(headline.cause, Some("latency-queue"));
    assert_eq!(headline.direction, Some(Direction::Forward));
}

/// The result of networkQuality for one direction: idle and loaded round trip in milliseconds.
fn quality(direction: Direction, idle: u64, loaded: u64) -> Source {
    let rate = Rate(20_000_000);
    let mut one = Transfer::new(Carrier::Sockets, direction, rate, Counted::Unknown);
    one.round_trip.least = Some(Nanos::from_millis(idle));
    one.round_trip.mean = Some(Nanos::from_millis(loaded));
    let mut source = source(Side::Near, vec![Measured::Transfer(Box::new(one))]);
    source.tool = Tool::named("networkQuality");
    source
}

#[test]
fn a_loaded_round_trip_of_network_quality_is_that_of_its_direction() {
    let fine = quality(Direction::Reverse, 17, 47);
    let sources = vec![fine.clone(), quality(Direction::Forward, 17, 1_200)];
    let material = Material { sources, ..Material::default() };
    let headline = explain(&material).headline.unwrap();
    assert_eq!(
        (headline.cause, headline.direction),
        (Some("latency-queue"), Some(Direction::Forward))
    );
    assert_eq!(of(vec![fine]), "unknown");
    // The path has a long round trip even without load.
    assert_eq!(of(vec![quality(Direction::Forward, 240, 260)]), "unknown");
}

#[test]
fn long_round_trips_to_a_host_nearby_are_not_distance_and_not_healthy() {
    let result_of = |times: [f64; 3], lost: u64, hops: u8| {
        let sources = vec![ttl(ping("a", times, lost), hops)];
        assert_eq!(of(sources.clone()), "unknown");
        has("held-nearby", sources, &[])
    };
    for fresh in [64, 128, 255] {
        assert!(result_of([6.0, 30.0, 200.0], 0, fresh));
    }
    assert!(result_of([40.0, 90.0, 200.0], 0, 64));
    assert!(!result_of([40.1, 90.0, 200.0], 0, 64));
    assert!(!result_of([6.0, 29.9, 200.0], 0, 64));
    assert!(!result_of([6.0, 30.0, 200.0], 1, 64));
    assert!(!result_of([6.0, 30.0, 200.0], 0, 57));
    // Without a time to live, only a private address shows that the host is near.
    let alone = |host: &str| has("held-nearby", vec![ping(host, [6.0, 30.0, 200.0], 0)], &[]);
    assert!(alone("192.168.1.5") && alone("10.0.0.9"));
    assert!(!alone("192.0.2.5") && !alone("host"));
    // Windows prints no time below a millisecond.
    let mut zero = ttl(ping("a", [0.0, 30.0, 200.0], 0), 128);
    if let Measured::Sizes(sizes) = &mut zero.results[0].measured {
        sizes.rows[0].least = None;
    }
    assert!(has("held-nearby", vec![zero], &[]));
}

/// A report of mtr: for each hop the lost packets of 200; the round trips of the last hop in milliseconds.
fn hops(lost: &[u64], [least, mean, most]: [u64; 3]) -> Source {
    let hop = |(at, lost): (usize, &u64)| Hop {
        number: at as u32 + 1,
        host: format!("host{}", at + 1),
        row: SizeRow {
            samples: Some(200 - lost),
            lost: Some(*lost),
            least: Some(Nanos::from_millis(least)),
            mean: Some(Nanos::from_millis(mean)),
            most: Some(Nanos::from_millis(most)),
            ..SizeRow::default()
        },
    };
    let all = lost.iter().enumerate().map(hop).collect();
    source(Side::Near, vec![Measured::Hops(all)])
}

const STEADY: [u64; 3] = [9, 10, 15];

#[test]
fn loss_of_a_middle_hop_is_none_of_the_path() {
    let of_hops = |lost: &[u64], times| of(vec![hops(lost, times)]);
    assert_eq!(of_hops(&[0, 0, 143, 0, 4, 0], STEADY), "healthy");
    // A longest round trip that distance explains, and one that a queue may cause.
    assert_eq!(of_hops(&[0, 0], [40, 50, 69]), "healthy");
    assert_eq!(of_hops(&[0, 0], [50, 51, 60]), "unknown");
    assert_eq!(of_hops(&[0, 0], [9, 20, 39]), "unknown");
    // One lost packet at the last hop is too few for an answer; a last hop that is silent gives none.
    assert_eq!(of_hops(&[0, 0, 1], STEADY), "unknown");
    assert_eq!(of_hops(&[0, 0, 200], STEADY), "unknown");
    // Too few packets were sent to exclude loss.
    let mut few = hops(&[0, 0], STEADY);
    if let Measured::Hops(hops) = &mut few.results[0].measured {
        hops[1].row.samples = Some(99);
    }
    assert_eq!(of(vec![few]), "unknown");
    // If there is a transfer too, hops without loss do not answer what limits it.
    let beside = vec![hops(&[0, 143, 0], STEADY), source(Side::Near, vec![tcp(1, 0.2)])];
    assert_eq!(of(beside), "unknown");
}

#[test]
fn loss_that_stays_to_the_last_hop_is_of_the_path() {
    let result_of = |lost: &[u64]| {
        let material = Material { sources: vec![hops(lost, STEADY)], ..Material::default() };
        let headline = explain(&material).headline.unwrap();
        (headline.cause, headline.what)
    };
    let (cause, what) = result_of(&[0, 0, 20, 24, 18]);
    assert_eq!(cause, Some("path-loss"));
    assert!(what.contains("between hop 2 (host2) and hop 3 (host3)"), "{what}");
    // A router that limits its answers does not show where loss begins.
    let (_, what) = result_of(&[0, 143, 20, 18]);
    assert!(what.contains("between hop 1 (host1) and hop 3 (host3)"), "{what}");
    let (_, what) = result_of(&[10, 10]);
    assert!(what.contains("between this host and hop 1 (host1)"), "{what}");
    // Thresholds: half of the last hop's share of loss, three lost packets, and one lost of a hundred.
    assert_eq!(result_of(&[0, 9, 18]).0, Some("path-loss"));
    assert_eq!(result_of(&[0, 8, 18]).0, None);
    assert_eq!(result_of(&[0, 3, 3]).0, Some("path-loss"));
    assert_eq!(result_of(&[0, 2, 2]).0, None);
    assert_eq!(result_of(&[0, 0, 18]).0, None);
}
