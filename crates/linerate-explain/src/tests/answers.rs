//! Tests of the headline that transfers get: each rule on both sides of its threshold.

use super::*;
use crate::Answered;
use linerate_facts::nic::Nic;
use linerate_record::reported::{Counters, Cpu, CpuOf, CpuTime, Lost};

/// The kind of answer as JSON has it.
pub(super) fn word(stands: Answered) -> &'static str {
    match stands {
        Answered::Contradiction => "contradiction",
        Answered::Limit => "limit",
        Answered::Unknown => "unknown",
        Answered::Healthy => "healthy",
    }
}

/// The headline's answer: its cause, else its candidates, else the kind of answer.
pub(super) fn answer(sources: Vec<Source>, near: Inventory) -> String {
    let material = Material { sources, near, ..Material::default() };
    let explained = explain(&material);
    let headline = explained.headline.unwrap();
    let word = word(headline.stands);
    match (headline.stands, headline.cause) {
        (Answered::Limit, Some(cause)) => cause.to_owned(),
        (Answered::Unknown, _) if !headline.candidates.is_empty() => headline.candidates.join("|"),
        _ => word.to_owned(),
    }
}

fn of(results: Vec<Measured>) -> String {
    answer(near(results), Inventory::default())
}

/// A transfer of 10 s with retransmissions; its direction is forward unless changed.
fn run(streams: u32, gigabits: f64, retransmits: u64) -> Measured {
    changed(streams, gigabits, |one| {
        (one.seconds, one.retransmits) = (Some(10.0), Some(retransmits));
    })
}

fn back(mut of: Measured) -> Measured {
    if let Measured::Transfer(one) = &mut of {
        one.direction = Direction::Reverse;
    }
    of
}

fn ticks(gigabits: &[f64]) -> Measured {
    let mean = gigabits.iter().sum::<f64>() / gigabits.len() as f64;
    changed(1, mean, |one| {
        one.ticks = gigabits.iter().map(|rate| rate * 1e9).collect();
        (one.tick, one.seconds) = (Some(1.0), Some(gigabits.len() as f64));
        one.retransmits = Some(0);
    })
}

#[test]
fn a_full_link_is_healthy_only_where_little_is_lost_and_nothing_is_faster() {
    assert_eq!(of(vec![run(1, 9.41, 8)]), "healthy");
    // One of 1000 segments, of 8.1 million, was retransmitted.
    assert_ne!(of(vec![run(1, 9.41, 8_100)]), "healthy");
    assert_ne!(of(vec![run(1, 9.15, 8)]), "healthy");
    // This is more than TCP can carry on a port of 10 Gb/s.
    assert_ne!(of(vec![run(1, 9.96, 0)]), "healthy");
    // Many streams together carry more, so a single one was limited.
    assert_eq!(of(vec![run(1, 9.53, 0), run(32, 47.7, 0)]), "flow-rate-cap");
    assert_eq!(of(vec![run(1, 9.41, 0), run(32, 9.41, 0)]), "healthy");
    assert_eq!(
        of(vec![run(1, 3.0, 0), run(8, 11.0, 0)]),
        "sender-core|receive-window|flow-rate-cap"
    );
}

#[test]
fn a_rate_that_steps_down_is_two_rates() {
    assert_eq!(of(vec![ticks(&[0.7, 0.4, 0.4, 0.41])]), "path-rate");
    // If the rate falls later than after the first interval, other traffic may have begun.
    assert_eq!(of(vec![ticks(&[5.0, 5.0, 3.0, 3.0, 3.1])]), "path-rate|contended");
    // The time for many intervals does not grow with their square.
    let long = |first: usize| ticks(&[vec![5.0; first], vec![3.0; 40_000 - first]].concat());
    assert_eq!(of(vec![long(9_999)]), "burst-credit");
    assert_eq!(of(vec![long(0)]), "unknown");
    // A slow start with one dip; a fall that is too small for a step; a fall that is too late to last.
    assert_eq!(
        of(vec![ticks(&[3.0, 7.0, 9.41, 9.42, 5.0, 9.41, 9.41, 9.41, 9.41, 9.41])]),
        "healthy"
    );
    assert_eq!(of(vec![ticks(&[5.0, 5.0, 4.2, 4.2, 4.2])]), "unknown");
    assert_eq!(of(vec![ticks(&[0.7, 0.4, 0.4])]), "unknown");
}

#[test]
fn loss_is_of_the_way_that_has_it() {
    // 3 % of the segments are retransmitted.
    let lossy = || back(run(1, 0.186, 5_200));
    assert_eq!(of(vec![run(1, 0.934, 4), lossy()]), "path-loss");
    assert_eq!(of(vec![run(1, 0.934, 4), back(run(1, 0.934, 11))]), "healthy");
    assert_eq!(
        of(vec![run(1, 0.934, 4), back(run(1, 0.5, 4))]),
        "path-rate|receiver-core|sender-core"
    );
    // A policer gives a steady rate with loss.
    let flat = changed(1, 0.3, |one| {
        (one.seconds, one.retransmits) = (Some(6.0), Some(3_000));
        (one.ticks, one.tick) = (vec![0.3e9; 6], Some(1.0));
    });
    assert_eq!(of(vec![flat]), "path-rate|path-loss");
}

#[test]
fn nothing_that_arrives_is_told_apart_by_window_and_retransmissions() {
    let still = |window: u64, retransmits: u64| {
        of(vec![changed(1, 0.0, |one| {
            (one.window, one.retransmits, one.seconds) =
                (Some(Bytes(window)), Some(retransmits), Some(5.0));
        })])
    };
    assert_eq!(still(8_948, 5), "mtu-black-hole");
    assert_eq!(still(1_448, 5), "mtu-black-hole|path-loss");
    assert_eq!(still(30_000, 5), "path-loss|mtu-black-hole");
    assert_eq!(still(30_000, 0), "unknown");
}

fn datagrams(offered: f64, share: f64) -> Measured {
    let got = offered * (1.0 - share);
    changed(1, got, |one| {
        one.carrier = Carrier::Udp;
        one.datagrams = Some(Lost { lost: (share * 1e6) as u64, of: 1_000_000, jitter: None });
    })
}

#[test]
fn datagrams_are_lost_from_a_rate_on_or_at_any_rate() {
    let knee = vec![datagrams(0.2, 0.0), datagrams(0.4, 0.0001), datagrams(0.8, 0.23)];
    assert_eq!(of(knee), "path-rate");
    let same = vec![datagrams(0.1, 0.29), datagrams(0.1, 0.0)];
    assert_eq!(of(same), "path-loss|socket-drops");
    let share = vec![datagrams(0.2, 0.19), datagrams(0.4, 0.2), datagrams(0.8, 0.195)];
    assert_eq!(of(share), "path-loss");
    assert_eq!(of(vec![datagrams(0.2, 0.19)]), "path-rate|path-loss|socket-drops");
    assert_eq!(of(vec![datagrams(0.2, 0.004)]), "unknown");
    // The requested rate is no answer if a part of the datagrams is lost.
    let requested = |share: f64| {
        let Measured::Transfer(mut one) = datagrams(0.1, share) else {
            unreachable!();
        };
        (one.requested, one.size) = (Some(Rate(100_000_000)), Some(Bytes(1448)));
        of(vec![Measured::Transfer(one)])
    };
    assert_eq!(requested(0.015), "path-rate|path-loss|socket-drops");
    assert_eq!(requested(0.0), "pacing");
}

#[test]
fn a_rate_above_its_port_is_a_contradiction() {
    let port = |mbps: u64| {
        let mut nic = Nic { name: "eth0".to_owned(), up: true, ..Nic::default() };
        nic.link.speed = Some(Rate(mbps * 1_000_000));
        let mut inventory = Inventory::default();
        inventory.network.nics.push(nic);
        inventory
    };
    let beside = |mbps: u64| answer(near(vec![run(1, 5.63, 0)]), port(mbps));
    assert_eq!(beside(1_000), "contradiction");
    assert_ne!(beside(10_000), "contradiction");
}

#[test]
fn the_cpu_time_of_a_machine_is_one_core_where_the_number_of_cpus_is_known() {
    let with = |share: f64, cpus: u32| {
        let one = changed(1, 13.4, |one| {
            one.cpu.receiver = Some(Cpu { total: share, system: None, of: CpuOf::AllCpus });
        });
        let mut host = Inventory::default();
        host.processors.cpus = (0..cpus).map(|_| linerate_facts::cpu::Cpu::default()).collect();
        answer(near(vec![one]), host)
    };
    assert_eq!(with(0.1248, 8), "receiver-core");
    assert_eq!(with(0.06, 8), "unknown");
    assert_eq!(with(0.1248, 0), "unknown");
}

#[test]
fn retransmissions_that_were_needless_are_no_loss() {
    let read = |repeated: u64, needless: u64, grew: bool| {
        let values = [
            ("TcpOutSegs", 6_000_000),
            ("TcpRetransSegs", repeated),
            ("TcpExtTCPDSACKRecv", needless),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value)).to_vec();
        of(vec![Measured::Counters(Counters { values, grew })])
    };
    let counted = |repeated, needless| read(repeated, needless, true);
    assert_eq!(counted(2_210, 2_098), "receiver-core|path-reordering");
    assert_eq!(counted(47_000, 900), "path-loss");
    assert_eq!(counted(2_210, 900), "unknown");
    // One reading does not show whether the load adds to the counter.
    assert_eq!(read(47_000, 900, false), "unknown");
    assert_eq!(read(2_210, 2_098, false), "unknown");
}

#[test]
fn ends_with_one_address_measure_no_network() {
    let local = |local| of(vec![changed(1, 40.0, |one| one.local = Some(local))]);
    assert_eq!(local(true), "not-a-measurement");
    assert_eq!(local(false), "unknown");
}

#[test]
fn full_links_are_healthy_and_rates_with_loss_are_not() {
    let ways: Vec<f64> = linerate_ceiling::fingerprint::ways(
        linerate_ceiling::fingerprint::Kind::Ethernet,
        linerate_ceiling::fingerprint::Carrier::Sockets,
    )
    .filter(|(_, way)| way.name.starts_with("TCP"))
    .map(|(_, way)| way.rate / 1e9)
    .collect();
    let share = |rate: f64, share: f64| {
        let segments = rate * 1e9 / 8.0 * 10.0 / 1448.0;
        of(vec![run(1, rate, (segments * share) as u64)])
    };
    for rate in &ways {
        for off in [0.992, 0.996, 1.0] {
            assert_eq!(share(rate * off, 1e-5), "healthy", "{rate} x {off}");
        }
    }
    let steps = 400;
    let healthy = (0..steps).filter(|step| {
        let rate = 0.05 * (4_000.0_f64).powf(f64::from(*step) / f64::from(steps));
        share(rate, 1e-3) == "healthy"
    });
    assert!(healthy.count() <= 4);
}

#[test]
fn counters_of_the_input_tell_needless_retransmissions_from_loss() {
    let beside = |needless: u64, grew: bool| {
        let values =
            [("TcpOutSegs", 815_601), ("TcpRetransSegs", 3_107), ("TcpExtTCPDSACKRecv", needless)];
        let values = values.map(|(name, value)| (name.to_owned(), value)).to_vec();
        of(vec![run(1, 0.941, 3_107), Measured::Counters(Counters { values, grew })])
    };
    // The host counts as many retransmissions as the transfer had, so both are of the same packets.
    assert_eq!(
        (beside(3_081, true).as_str(), beside(3_081, false).as_str()),
        ("healthy", "healthy")
    );
    assert_eq!(beside(81, true), "path-loss");
}

#[test]
fn runs_that_differ_in_their_buffer_or_way_are_compared() {
    let with = |gigabits: f64, buffer: Option<u64>| {
        changed(1, gigabits, |one| one.buffer = buffer.map(Bytes))
    };
    let held = "receive-window|send-buffer";
    assert_eq!(of(vec![with(0.0054, None), with(0.0848, Some(1 << 20))]), held);
    assert_ne!(of(vec![with(0.08, None), with(0.0848, Some(1 << 20))]), held);
    // A window of 4 MiB in a round trip of 80 ms allows 419 Mb/s.
    let long = |gigabits: f64| {
        of(vec![changed(1, gigabits, |one| {
            (one.window, one.retransmits, one.seconds) =
                (Some(Bytes(4 << 20)), Some(0), Some(10.0));
            one.round_trip.mean = Some(Nanos::from_millis(80));
        })])
    };
    assert_eq!((long(0.417).as_str(), long(0.2).as_str()), (held, "unknown"));
    let ways = |forward: f64, reverse: f64| {
        let both = |of: Measured| match of {
            Measured::Transfer(mut one) => {
                one.both = true;
                Measured::Transfer(one)
            }
            other => other,
        };
        let alone = [run(1, 0.912, 0), back(run(1, 0.908, 2))];
        let together = [both(run(1, forward, 3)), both(back(run(1, reverse, 4)))];
        of(alone.into_iter().chain(together).collect())
    };
    assert_eq!(ways(0.498, 0.41), "duplex|sender-core|path-rate");
    assert_ne!(ways(0.9, 0.88), "duplex|sender-core|path-rate");
}

#[test]
fn a_full_port_below_its_own_speed_is_the_limit() {
    let of = |speed: u64, own: &str, gigabits: f64| {
        let mut nic = Nic { name: "eth0".to_owned(), up: true, ..Nic::default() };
        nic.link.speed = Some(Rate(speed * 1_000_000));
        nic.link.advertised = vec![own.to_owned()];
        let mut near = Inventory::default();
        near.network.nics.push(nic);
        answer(vec![source(Side::Near, vec![run(1, gigabits, 0)])], near)
    };
    assert_eq!(of(100, "1000baseT/Full", 0.0938), "wire-full");
    assert_eq!(of(1000, "1000baseT/Full", 0.938), "healthy");
    assert_eq!(of(100, "1000baseT/Full", 0.060), "unknown");
}

#[test]
fn the_same_from_two_nodes_shows_that_the_place_matters() {
    let from = |node: u32, gigabits: f64| {
        let Measured::Transfer(mut one) = run(4, gigabits, 0) else { unreachable!() };
        one.setup.node = Some(node);
        Measured::Transfer(one)
    };
    let time = |node: u32, nanos: u64| {
        let row = SizeRow { size: Bytes(8), typical: Some(Nanos(nanos)), ..SizeRow::default() };
        Measured::Sizes(Sizes {
            carrier: Some(Carrier::Rdma),
            operation: "send".to_owned(),
            trip: Trip::Half,
            both: false,
            rows: vec![row],
            setup: Setup { node: Some(node), ..Setup::default() },
        })
    };
    assert_eq!(of(vec![from(0, 37.0), from(1, 22.0)]), "numa-remote");
    assert_eq!(of(vec![time(0, 1_120), time(1, 1_690)]), "numa-remote");
    for other in [
        vec![from(0, 37.0), from(1, 30.0)],
        vec![from(0, 37.0), from(0, 22.0)],
        // Runs on one node alone differ as much.
        vec![from(0, 37.0), from(1, 22.0), from(1, 36.0)],
        vec![time(0, 1_120), time(1, 1_400)],
    ] {
        assert!(!of(other).contains("numa-remote"));
    }
}

fn counted(values: &[(&str, u64)]) -> Measured {
    Measured::Counters(Counters {
        values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        grew: true,
    })
}

#[test]
fn a_full_cpu_is_the_limit_where_others_rest() {
    let with = |each: &[(f64, f64)], all: Option<f64>| {
        let time = |cpu, (busy, interrupts)| CpuTime { cpu, busy, interrupts };
        let mean = all.map(|busy| time(None, (busy, 0.0)));
        let each = each.iter().zip(3..).map(|(one, cpu)| time(Some(cpu), *one));
        let cpus = Measured::Cpus(mean.into_iter().chain(each).collect());
        of(vec![run(8, 13.2, 0), cpus])
    };
    let rest = Some(0.2);
    assert_eq!(with(&[(0.95, 0.475)], Some(0.8)), "softirq-core");
    // A busy CPU may belong to any program; and if several CPUs are full, no single one is the limit.
    assert_eq!(with(&[(0.99, 0.494)], rest), "unknown");
    let two = with(&[(0.99, 0.98), (0.98, 0.98)], Some(0.5));
    assert_eq!(two, "unknown");
    assert_eq!(with(&[(0.99, 0.98)], None), "unknown", "the others are not known");
    assert_eq!(with(&[(0.94, 0.93)], rest), "unknown");
    assert_eq!(with(&[(0.99, 0.98)], Some(0.81)), "unknown", "all are busy");
}

#[test]
fn datagrams_dropped_at_the_socket_are_those_that_were_lost() {
    let of_dropped = |dropped: u64| {
        let lost = changed(1, 4.47, |one| {
            one.carrier = Carrier::Udp;
            one.datagrams = Some(Lost { lost: 460_895, of: 4_315_891, jitter: None });
        });
        of(vec![lost, counted(&[("UdpRcvbufErrors", dropped)])])
    };
    assert_eq!(of_dropped(460_000), "socket-drops");
    assert_ne!(of_dropped(300_000), "socket-drops");
    let few = |lost: u64| {
        let one = changed(1, 4.47, |one| {
            one.carrier = Carrier::Udp;
            one.datagrams = Some(Lost { lost, of: 4_315_891, jitter: None });
        });
        of(vec![one, counted(&[("UdpRcvbufErrors", lost.max(1))])])
    };
    assert_eq!(few(20), "socket-drops");
    assert_ne!(few(19), "socket-drops");
    assert_ne!(few(0), "socket-drops");
    assert_ne!(of_dropped(0), "socket-drops");
}

#[test]
fn a_run_of_milliseconds_says_nothing_unless_a_longer_one_is_there() {
    let lasted = |seconds: f64| changed(1, 0.203, |one| one.seconds = Some(seconds));
    assert_eq!(of(vec![lasted(0.04)]), "test-too-short");
    assert_eq!(of(vec![lasted(0.6)]), "unknown");
    assert_ne!(of(vec![lasted(0.04), lasted(10.0)]), "test-too-short");
}

#[test]
fn what_a_closed_window_makes_a_sender_repeat_is_no_loss() {
    // One of 16 segments is retransmitted.
    let held = |share: f64| {
        of(vec![changed(1, 0.000_04, |one| {
            (one.seconds, one.retransmits) = (Some(38.0), Some(9));
            one.held.window = Some(share);
        })])
    };
    assert_eq!(held(0.5), "receive-window");
    assert_eq!(held(0.49), "path-loss");
}

#[test]
fn large_datagrams_alone_that_are_lost_are_fragmented() {
    let sized = |size: u64, share: f64| {
        let Measured::Transfer(mut one) = datagrams(0.4, share) else { unreachable!() };
        one.size = Some(Bytes(size));
        Measured::Transfer(one)
    };
    let both = || vec![sized(8_192, 0.087), sized(1_472, 0.0)];
    assert_eq!(of(both()), "fragmentation|socket-drops");
    let with = |count| {
        let mut all = both();
        all.push(counted(&[("IpReasmFails", count)]));
        of(all)
    };
    // Counts that agree with the number of lost datagrams, and counts of something else.
    for (count, want) in [
        (87_000, "fragmentation"),
        (79_000, "fragmentation"),
        (77_000, "fragmentation|socket-drops"),
        (97_000, "fragmentation|socket-drops"),
        (20, "fragmentation|socket-drops"),
    ] {
        assert_eq!(with(count), want);
    }
    // Both datagrams fit into one packet, or neither does; or the small ones are lost.
    for other in [
        vec![sized(1_400, 0.087), sized(1_472, 0.0)],
        vec![sized(8_192, 0.087), sized(1_473, 0.0)],
        vec![sized(8_192, 0.0), sized(1_400, 0.087)],
    ] {
        assert_eq!(of(other), "path-loss|socket-drops");
    }
}

#[test]
fn a_stream_at_the_window_of_64_kib_is_held_by_it() {
    let at = |megabits: f64, retransmits: u64| {
        let mut one = run(1, megabits / 1e3, retransmits);
        if let Measured::Transfer(one) = &mut one {
            one.round_trip.mean = Some(Nanos::from_millis(38));
        }
        of(vec![one])
    };
    assert_eq!(at(13.7, 0), "receive-window|send-buffer|path-rate");
    assert_eq!(at(14.3, 0), "unknown");
    assert_eq!(at(13.0, 0), "unknown");
}
