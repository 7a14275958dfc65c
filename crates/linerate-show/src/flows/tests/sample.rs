//! Invented observations for the tests of text and JSON.

use std::time::Duration;

use linerate_facts::metric::{self as m, Metric};
use linerate_facts::{BufferLimits, Gap, HostFacts};
use linerate_record::flow::{Flow, Owner, Seen};
use linerate_record::{Column, EndReadings, Table};
use linerate_units::Nanos;

use super::Look;

/// Time between two rows of a table, in nanoseconds.
const TICK: u64 = 100_000_000;
const ROWS: i64 = 20;

/// A table. Gauges have the given value in all rows; counters grow by the given value with each row.
fn table(subject: &str, rows: &[(Metric, i64)]) -> Table {
    let values = |metric: &Metric, value: i64| -> Vec<i64> {
        match metric.kind {
            m::Kind::Counter => (0..ROWS).map(|i| i * value).collect(),
            m::Kind::Gauge => vec![value; ROWS as usize],
        }
    };
    Table {
        source: rows[0].0.source.to_owned(),
        subject: subject.to_owned(),
        at: (0..ROWS as u64).map(|i| i * TICK).collect(),
        columns: rows
            .iter()
            .map(|(metric, value)| Column {
                name: metric.name.into(),
                unit: metric.unit,
                kind: metric.kind,
                values: values(metric, *value),
            })
            .collect(),
    }
}

fn flow(remote: &str, tables: Vec<Table>, gaps: Vec<Gap>) -> Flow {
    Flow {
        local: "10.0.0.1:43210".parse().unwrap(),
        remote: remote.parse().unwrap(),
        congestion: "cubic".to_owned(),
        owners: Vec::new(),
        ended: false,
        facts: HostFacts {
            buffers: BufferLimits {
                tcp_rmem: Some([4096, 131_072, 131_072]),
                ..BufferLimits::default()
            },
            ..HostFacts::default()
        },
        readings: EndReadings { tables, gaps, ..EndReadings::default() },
    }
}

/// A download limited by a window of 64 KiB over a round trip of 20 ms: 26.2 Mb/s.
fn windowed() -> Flow {
    let tcp = [
        (m::TCP_BYTES_ACKED, 0),
        (m::TCP_BYTES_RECEIVED, 327_680),
        (m::TCP_RCV_RTT, 20_000),
        (m::TCP_RCV_WND, 65_536),
        (m::TCP_MIN_RTT, 19_900),
        (m::TCP_RCV_MSS, 1448),
        (m::TCP_PMTU, 1500),
    ];
    let socket = [(m::SOCKET_UNREAD, 0), (m::SOCKET_RCVBUF, 131_072)];
    let thread = [(m::THREAD_RUN, 3_000_000), (m::THREAD_WAIT, 0)];
    let tables =
        vec![table(Flow::SUBJECT, &tcp), table(Flow::SUBJECT, &socket), table("t4711", &thread)];
    Flow {
        owners: vec![Owner { pid: 4711, name: "curl".to_owned() }],
        ..flow("10.0.0.2:8000", tables, Vec::new())
    }
}

/// An upload by another user's process, limited by the far end's window.
fn held_by_far() -> Flow {
    upload(97_000)
}

/// An upload of 13 Mb/s. The far window limits the upload for `by_window` microseconds of each 100 ms, and the
/// network limits it otherwise.
fn upload(by_window: i64) -> Flow {
    let tcp = [
        (m::TCP_BYTES_ACKED, 163_840),
        (m::TCP_BYTES_RECEIVED, 0),
        (m::TCP_BYTES_SENT, 163_840),
        (m::TCP_BYTES_RETRANS, 0),
        (m::TCP_BUSY, 100_000),
        (m::TCP_RWND_LIMITED, by_window),
        (m::TCP_SNDBUF_LIMITED, 0),
        (m::TCP_UNACKED, 45),
        (m::TCP_SND_MSS, 1448),
        (m::TCP_SND_WND, if by_window > 0 { 65_536 } else { 1 << 20 }),
        (m::TCP_CWND, 90),
        (m::TCP_NOTSENT, 200_000),
        (m::TCP_APP_LIMITED, 0),
        (m::TCP_RTT, 40_000),
        (m::TCP_MIN_RTT, 39_500),
        (m::TCP_PMTU, 1500),
    ];
    let gap = Gap {
        what: "thread of the process that holds it".to_owned(),
        why: "it may belong to another user, whose processes are not shown".to_owned(),
        hint: "sudo linerate flows".to_owned(),
    };
    let tables = vec![table(Flow::SUBJECT, &tcp)];
    flow("[fd00::2]:22", tables, vec![gap])
}

/// An observation of twelve connections, two of which carry a transfer.
pub(super) fn look() -> Look {
    let seen = Seen { connections: 12, flows: vec![windowed(), held_by_far()], gaps: Vec::new() };
    Look::judge(seen, true, Nanos(2_000_000_000), Duration::from_millis(3))
}

/// An observation of one transfer that the network limits.
pub(super) fn by_network() -> Look {
    let seen = Seen { connections: 1, flows: vec![upload(0)], gaps: Vec::new() };
    Look::judge(seen, true, Nanos(2_000_000_000), Duration::ZERO)
}

/// A connection that sends answers in two writes; the second write waits 40 ms for the acknowledgement of the first.
pub(super) fn small_writes() -> Look {
    let tcp = [
        (m::TCP_BYTES_ACKED, 10_000),
        (m::TCP_BYTES_RECEIVED, 120),
        (m::TCP_BYTES_SENT, 10_000),
        (m::TCP_BYTES_RETRANS, 0),
        (m::TCP_RWND_LIMITED, 0),
        (m::TCP_SNDBUF_LIMITED, 0),
        (m::TCP_UNACKED, 1),
        (m::TCP_SND_MSS, 1448),
        (m::TCP_SND_WND, 65_536),
        (m::TCP_CWND, 10),
        (m::TCP_NOTSENT, 130),
        (m::TCP_APP_LIMITED, 1),
        (m::TCP_RTT, 21_000),
        (m::TCP_MIN_RTT, 50),
        (m::TCP_PMTU, 1500),
    ];
    let seen = Seen {
        connections: 1,
        flows: vec![flow("10.0.0.2:7002", vec![table(Flow::SUBJECT, &tcp)], Vec::new())],
        gaps: Vec::new(),
    };
    Look::judge(seen, true, Nanos(2_000_000_000), Duration::ZERO)
}

/// An observation without any traffic, in which one reading failed.
pub(super) fn idle() -> Look {
    let gap = Gap {
        what: "connections of IPv6".to_owned(),
        why: "cannot read sock_diag: Operation not permitted".to_owned(),
        hint: "sudo linerate flows".to_owned(),
    };
    let seen = Seen { connections: 0, flows: Vec::new(), gaps: vec![gap] };
    Look::judge(seen, false, Nanos(700_000_000), Duration::ZERO)
}
