//! Tests of connections of other programs: what this end can know of them, on both sides of each threshold.

use linerate_facts::metric::{self as m, Kind, Metric};
use linerate_facts::{BufferLimits, HostFacts, Port};
use linerate_judge::model::flow;
use linerate_judge::verdict::{Verdict, judge, suspects};
use linerate_plan::path::{Certainty, Direction, Place};
use linerate_record::flow::Flow;
use linerate_record::{Column, EndReadings, Table};

/// Time between two rows, in nanoseconds.
const TICK: u64 = 100_000_000;
pub(super) const ROWS: i64 = 20;

/// A table in which counters grow by these values in each row, and gauges keep them.
pub(super) fn table(subject: &str, cells: &[(Metric, i64)]) -> Table {
    let column = |(metric, value): &(Metric, i64)| Column {
        name: metric.name.into(),
        unit: metric.unit,
        kind: metric.kind,
        values: (0..ROWS)
            .map(|row| if metric.kind == Kind::Counter { row * value } else { *value })
            .collect(),
    };
    Table {
        source: cells[0].0.source.to_owned(),
        subject: subject.to_owned(),
        at: (0..ROWS as u64).map(|row| row * TICK).collect(),
        columns: cells.iter().map(column).collect(),
    }
}

/// A download that receives `bytes` in each tick, with a window of 100 kB and a round trip of 20 ms: 500 kB in a tick
/// fill the window.
pub(super) fn download(bytes: i64) -> Vec<(Metric, i64)> {
    vec![
        (m::TCP_BYTES_ACKED, 10),
        (m::TCP_BYTES_RECEIVED, bytes),
        (m::TCP_RCV_RTT, 20_000),
        (m::TCP_RCV_WND, 100_000),
        (m::TCP_RCV_MSS, 1448),
        (m::TCP_MIN_RTT, 19_900),
        (m::TCP_PMTU, 1500),
    ]
}

/// An upload that the window limits for `window` per cent of the time, by the kernel's timer.
pub(super) fn upload(window: i64) -> Vec<(Metric, i64)> {
    vec![
        (m::TCP_BYTES_ACKED, 500_000),
        (m::TCP_BYTES_RECEIVED, 10),
        (m::TCP_BYTES_SENT, 500_000),
        (m::TCP_BYTES_RETRANS, 0),
        (m::TCP_RWND_LIMITED, window * 1000),
        (m::TCP_SNDBUF_LIMITED, 0),
        (m::TCP_UNACKED, 30),
        (m::TCP_SND_MSS, 1448),
        (m::TCP_SND_WND, 100_000),
        (m::TCP_CWND, 90),
        (m::TCP_NOTSENT, 200_000),
        (m::TCP_APP_LIMITED, 0),
        (m::TCP_RTT, 20_000),
        (m::TCP_MIN_RTT, 19_900),
        (m::TCP_PMTU, 1500),
    ]
}

/// A connection with `unread` bytes in its socket; the program's threads are busy for these per cent of the time.
pub(super) fn connection(tcp: &[(Metric, i64)], unread: i64, busy: &[i64]) -> Flow {
    let socket = [(m::SOCKET_UNREAD, unread), (m::SOCKET_RCVBUF, 200_000)];
    let thread = |(n, percent): (usize, &i64)| {
        let run = (m::THREAD_RUN, percent * 1_000_000);
        table(&format!("t{n}"), &[run, (m::THREAD_WAIT, 0)])
    };
    let own = [table(Flow::SUBJECT, tcp), table(Flow::SUBJECT, &socket)];
    Flow {
        local: "10.0.0.1:43210".parse().expect("an address"),
        remote: "10.0.0.2:8000".parse().expect("an address"),
        congestion: "cubic".to_owned(),
        owners: Vec::new(),
        ended: false,
        facts: HostFacts {
            buffers: BufferLimits {
                tcp_rmem: Some([4096, 131_072, 200_000]),
                ..BufferLimits::default()
            },
            ..HostFacts::default()
        },
        readings: EndReadings {
            tables: own.into_iter().chain(busy.iter().enumerate().map(thread)).collect(),
            ..EndReadings::default()
        },
    }
}

pub(super) fn judged(read: &Flow) -> Verdict {
    judge(&flow(read).expect("two rows"))
}

pub(super) fn limits(verdict: &Verdict) -> Vec<(&'static str, Place)> {
    verdict.limits.iter().map(|l| (l.cause, l.side)).collect()
}

pub(super) fn in_play(verdict: &Verdict) -> Vec<&'static str> {
    suspects(verdict).iter().map(|s| s.cause).collect()
}

#[test]
fn a_full_window_here_is_supported_and_one_with_room_is_not() {
    // First nine tenths of the window are in flight, then seven.
    let full = judged(&connection(&download(450_000), 0, &[10]));
    assert_eq!(limits(&full), [("receive-window", Place::Near)]);
    assert_eq!(full.limits[0].certainty, Certainty::Supported);
    assert_eq!(full.limits[0].direction, Direction::Reverse);
    let advice = full.limits[0].advice[0].text();
    assert!(advice.contains("on near: sudo sysctl -w net.ipv4.tcp_rmem"), "{advice}");
    let roomy = judged(&connection(&download(350_000), 0, &[10]));
    assert_eq!(limits(&roomy), []);
    let rest = in_play(&roomy);
    assert!(!rest.contains(&"receive-window") && rest.contains(&"path-rate"), "{rest:?}");
}

#[test]
fn a_window_that_a_queue_fills_is_no_limit() {
    let mut queued = download(450_000);
    queued[5] = (m::TCP_MIN_RTT, 9_000);
    assert_eq!(limits(&judged(&connection(&queued, 0, &[10]))), []);
}

#[test]
fn a_window_full_of_what_nobody_reads_is_the_programs_doing() {
    // Unread bytes are compared with bytes in flight, 90 kB: the threshold is 30 % of their sum.
    let late = judged(&connection(&download(450_000), 60_000, &[10]));
    assert_eq!(limits(&late), [("receiver-app", Place::Near)]);
    let in_time = judged(&connection(&download(450_000), 30_000, &[10]));
    assert_eq!(limits(&in_time), [("receive-window", Place::Near)]);
    let mut closed = download(50_000);
    closed[3] = (m::TCP_RCV_WND, 1000);
    let closed = judged(&connection(&closed, 90_000, &[10]));
    assert_eq!(limits(&closed), [("receiver-app", Place::Near)]);
}

#[test]
fn a_program_that_has_no_time_is_the_limit_only_where_its_thread_is_known() {
    let one = judged(&connection(&download(350_000), 0, &[97]));
    assert_eq!(limits(&one), [("receiver-core", Place::Near)]);
    // It is unknown which of the threads serves the connection.
    let several = judged(&connection(&download(350_000), 0, &[97, 10]));
    assert_eq!(limits(&several), []);
    assert!(in_play(&several).contains(&"receiver-core"));
    let idle = judged(&connection(&download(350_000), 0, &[40, 10]));
    assert!(!in_play(&idle).contains(&"receiver-core"));
    let unseen = judged(&connection(&download(350_000), 0, &[]));
    assert!(in_play(&unseen).contains(&"receiver-core"));
}

#[test]
fn what_only_the_far_host_knows_is_unknown() {
    let held = judged(&connection(&upload(97), 0, &[10]));
    assert_eq!(limits(&held), []);
    let rest = in_play(&held);
    for cause in ["receive-window", "receiver-app", "receiver-core"] {
        assert!(rest.contains(&cause), "{cause}: {rest:?}");
    }
    for cause in ["path-rate", "flow-rate-cap", "sender-core", "sender-app"] {
        assert!(!rest.contains(&cause), "{cause}: {rest:?}");
    }
    let hint = "on the far host: linerate flows 10.0.0.1:43210";
    assert!(held.unknown.iter().any(|u| u.hint == hint), "{:?}", held.unknown);
    let free = judged(&connection(&upload(3), 0, &[10]));
    let rest = in_play(&free);
    assert!(rest.contains(&"path-rate") && rest.contains(&"flow-rate-cap"), "{rest:?}");
    assert!(!rest.contains(&"receive-window"), "{rest:?}");
}

#[test]
fn a_pace_that_the_program_asked_for_is_named_where_it_is_reached() {
    // 500 kB in 100 ms is 40 Mb/s.
    for (pace, want) in [(42_000_000, 1), (60_000_000, 0)] {
        let mut paced = upload(3);
        paced.push((m::TCP_MAX_PACING_RATE, pace));
        let verdict = judged(&connection(&paced, 0, &[10]));
        let found = verdict.limits.iter().filter(|l| l.cause == "pacing").count();
        assert_eq!(found, want, "{pace}");
        let advised = verdict.limits.iter().flat_map(|l| &l.advice);
        assert!(advised.clone().all(|a| !a.text().contains("--pacing")));
    }
}

#[test]
fn a_program_that_writes_too_little_is_named() {
    let mut starved = upload(0);
    for cell in &mut starved {
        match cell.0.name {
            "notsent_bytes" => cell.1 = 0,
            "delivery_rate_app_limited" => cell.1 = 1,
            _ => {}
        }
    }
    let verdict = judged(&connection(&starved, 0, &[10]));
    assert_eq!(limits(&verdict), [("sender-app", Place::Near)]);
}

#[test]
fn counters_that_are_missing_give_no_answer() {
    let one = connection(&download(450_000), 0, &[10]);
    let mut short = one.clone();
    // Linux 6.1 does not report the window that the receiver offers.
    short.readings.tables[0].columns.retain(|c| c.name != m::TCP_RCV_WND.name);
    let verdict = judged(&short);
    assert_eq!(limits(&verdict), []);
    assert!(in_play(&verdict).contains(&"receive-window"));
    // Linux 4.0 does not count bytes.
    short.readings.tables[0].columns.retain(|c| !c.name.starts_with("bytes"));
    assert_eq!((flow(&short), short.carried()), (None, None));
    let mut single = one.clone();
    for table in &mut single.readings.tables {
        table.at.truncate(1);
        table.columns.iter_mut().for_each(|c| c.values.truncate(1));
    }
    assert_eq!((flow(&single), single.carried()), (None, None));
    // A counter that falls is invalid.
    let mut fallen = one;
    fallen.readings.tables[0].columns[1].values.reverse();
    assert_eq!(flow(&fallen), None);
}

#[test]
fn a_shaper_of_the_own_port_and_its_wire_are_ceilings_of_what_is_sent() {
    // The upload carries 40 Mb/s of payload.
    let at = |share: f64| {
        let mut own = connection(&upload(0), 0, &[10]);
        let rate = 40e6 / share * 1514.0 / 1448.0;
        let subject = "eth0 tbf 1:";
        let sent = [(m::QDISC_BYTES, 530_000), (m::QDISC_OVERLIMITS, 100)];
        let shaper = [(m::SHAPER_RATE, rate as i64), (m::SHAPER_FRAME, 14)];
        let tables = [table(subject, &sent), table(subject, &shaper)];
        own.readings.tables.extend(tables);
        own.facts.port = Some(Port {
            name: "eth0".to_owned(),
            speed_mbps: Some(100),
            is_ethernet: true,
            ..Port::default()
        });
        own
    };
    let model = flow(&at(0.99)).expect("two rows");
    let known = model.directions[0].ceilings.iter();
    let formulas: Vec<&str> = known.map(|c| c.formula.as_str()).collect();
    let wire = "100 Mb/s x 1448/1538";
    assert_eq!(formulas, ["42.2 Mb/s x 1448/1514", wire]);
    let holds = |share| limits(&judged(&at(share))) == [("host-shaping", Place::Near)];
    assert_eq!([0.985, 0.975].map(holds), [true, false]);
    let mut received = at(0.99);
    received.readings.tables[0] = table(Flow::SUBJECT, &download(450_000));
    let model = flow(&received).expect("two rows");
    assert_eq!(model.directions[0].ceilings, [], "its sender was not read");
}
