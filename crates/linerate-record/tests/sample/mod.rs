//! Records made from a seed: they have the tables of real records, with values that change as real ones do.

use linerate_facts::metric::{self as m, Kind, Metric};
use linerate_facts::{Gap, HostFacts, Port};
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Knobs, Pattern, Plan, Purpose, SetPlan, StepPlan};
use linerate_record::{
    ClockPair, Column, End, EndReadings, FORMAT, Host, Record, Set, SetEnd, Start, Step, Table,
    Total, TrialPlan,
};
use linerate_units::stats::Histogram;
use linerate_units::{Bytes, Nanos};

/// A small generator of pseudo-random numbers (xorshift), which gives the same numbers on every machine.
pub(crate) struct Dice(u64);

impl Dice {
    /// A generator with this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2) | 1)
    }

    /// A number from 0 to `n` - 1.
    pub(crate) fn below(&mut self, n: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 1) as i64 % n
    }
}

/// Metrics of the sample records. The list is separate, so that stored records stay readable when new metrics are
/// added.
const METRICS: &[Metric] = &[
    m::WORKER_BYTES,
    m::WORKER_OPS,
    m::THREAD_RUN,
    m::THREAD_WAIT,
    m::THREAD_USER,
    m::THREAD_SYSTEM,
    m::THREAD_CPU,
    m::TCP_STATE,
    m::TCP_CA_STATE,
    m::TCP_RTT,
    m::TCP_RTTVAR,
    m::TCP_MIN_RTT,
    m::TCP_CWND,
    m::TCP_SSTHRESH,
    m::TCP_SND_MSS,
    m::TCP_RCV_MSS,
    m::TCP_PMTU,
    m::TCP_UNACKED,
    m::TCP_LOST,
    m::TCP_RETRANS,
    m::TCP_BYTES_SENT,
    m::TCP_BYTES_RETRANS,
    m::TCP_BYTES_ACKED,
    m::TCP_BYTES_RECEIVED,
    m::TCP_SEGS_OUT,
    m::TCP_SEGS_IN,
    m::TCP_BUSY,
    m::TCP_RWND_LIMITED,
    m::TCP_SNDBUF_LIMITED,
    m::TCP_NOTSENT,
    m::TCP_DELIVERY_RATE,
    m::TCP_APP_LIMITED,
    m::TCP_PACING_RATE,
    m::TCP_MAX_PACING_RATE,
    m::TCP_SND_WND,
    m::TCP_RCV_WND,
    m::TCP_RCV_SPACE,
    m::TCP_RCV_SSTHRESH,
    m::TCP_REORD_SEEN,
    m::TCP_DELIVERED,
    m::TCP_DELIVERED_CE,
    m::TCP_TOTAL_RTO,
    m::SOCKET_SNDBUF,
    m::SOCKET_RCVBUF,
    m::SOCKET_WMEM_QUEUED,
    m::SOCKET_RMEM_ALLOC,
    m::SOCKET_UNREAD,
    m::SOCKET_DROPS,
    m::CPU_USER,
    m::CPU_NICE,
    m::CPU_SYSTEM,
    m::CPU_IDLE,
    m::CPU_IOWAIT,
    m::CPU_IRQ,
    m::CPU_SOFTIRQ,
    m::CPU_STEAL,
    m::PORT_RX_BYTES,
    m::PORT_TX_BYTES,
    m::PORT_RX_PACKETS,
    m::PORT_TX_PACKETS,
    m::PORT_RX_DROPPED,
    m::PORT_TX_DROPPED,
    m::PORT_RX_ERRORS,
    m::PORT_TX_ERRORS,
    m::PORT_CARRIER_CHANGES,
    m::PORT_UP,
];

/// A record with a load in one direction: `streams` streams, `rows` rows 100 ms apart, and round trips before it.
pub(crate) fn record(streams: u32, rows: usize, seed: u64) -> Record {
    let mut dice = Dice::new(seed);
    let knobs = Knobs { streams, ..Knobs::default() };
    let forward = Pattern::Stream { direction: Direction::Forward };
    let ping = Pattern::PingPong { size: Bytes(64), interval: Nanos(0) };
    Record {
        start: start(&knobs),
        hosts: vec![host(Side::Near, "ripple"), host(Side::Far, "brook")],
        sets: vec![set(0, ping, &Knobs::default()), set(1, forward, &knobs)],
        trials: vec![TrialPlan {
            id: 0,
            kind: "half-window".to_owned(),
            direction: Direction::Forward,
            before: knobs.clone(),
            after: Knobs { window_clamp: Some(Bytes(65_536)), ..knobs },
            max_blocks: 5,
        }],
        steps: vec![idle_step(&mut dice), load_step(streams, rows, &mut dice)],
        imported: None,
        end: Some(End::Complete),
    }
}

fn start(knobs: &Knobs) -> Start {
    Start {
        format: FORMAT,
        linerate: "0.1.0".to_owned(),
        wall_secs: 1_795_257_067,
        plan: Plan {
            engine: "tcp".to_owned(),
            peer: Some("brook".to_owned()),
            reach: Vec::new(),
            knobs: knobs.clone(),
            directions: Direction::ALL.to_vec(),
            time: Nanos::from_secs(60),
            sweep: true,
            trials: true,
        },
        made: linerate_record::Made::default(),
        note: String::new(),
        study: None,
    }
}

fn host(side: Side, name: &str) -> Host {
    let gap = Gap {
        what: "facts.pcie".to_owned(),
        why: "config space needs root".to_owned(),
        hint: "sudo linerate serve".to_owned(),
    };
    Host {
        side,
        facts: HostFacts {
            name: name.to_owned(),
            boot_id: format!("{name}-boot"),
            cpus: (0..8).collect(),
            nodes: 1,
            l2_cache: Some(Bytes(1 << 20)),
            port: Some(Port {
                name: "eth0".to_owned(),
                speed_mbps: Some(10_000),
                mtu: Some(1500),
                ..Port::default()
            }),
            congestion_default: "cubic".to_owned(),
            ticks_per_sec: 100,
            gaps: vec![gap],
            ..HostFacts::default()
        },
    }
}

fn set(id: u32, pattern: Pattern, knobs: &Knobs) -> Set {
    let end = SetEnd {
        way: String::new(),
        send_buffer: Some(87_040),
        recv_buffer: None,
        congestion: "cubic".to_owned(),
        mss: Some(1448),
        cpus: (0..knobs.streams).collect(),
        write_size: 131_072,
        read_size: 131_072,
        burst: 0,
        rdma: None,
        gaps: Vec::new(),
    };
    Set { plan: SetPlan { id, pattern, knobs: knobs.clone() }, ends: vec![end.clone(), end] }
}

fn step_plan(index: u32, purpose: Purpose, rows: usize) -> StepPlan {
    StepPlan {
        index,
        purpose,
        sets: vec![index],
        washout: Nanos::from_millis(500),
        measure: Nanos::from_millis(rows as u64 * 100),
        tick: Nanos::from_millis(100),
    }
}

fn idle_step(dice: &mut Dice) -> Step {
    let counts = (0..40).map(|n| (38_000 + n * 250, dice.below(400) as u64 + 1)).collect();
    let near = EndReadings {
        latencies: vec![Histogram { set: 0, counts, ..Histogram::default() }],
        ..EndReadings::default()
    };
    Step {
        plan: step_plan(0, Purpose::IdleLatency, 10),
        began: Nanos::from_millis(310),
        ends: vec![near, EndReadings::default()],
        clock: Some(ClockPair { offset_ns: -1_234_567, bound_ns: 21_000 }),
        took: Nanos(0),
        trouble: None,
    }
}

fn load_step(streams: u32, rows: usize, dice: &mut Dice) -> Step {
    let purpose = Purpose::Base { direction: Direction::Forward };
    Step {
        plan: step_plan(1, purpose, rows),
        began: Nanos::from_secs(2),
        ends: vec![end(streams, rows, "tx", dice), end(streams, rows, "rx", dice)],
        clock: None,
        took: Nanos(0),
        trouble: None,
    }
}

fn end(streams: u32, rows: usize, role: &str, dice: &mut Dice) -> EndReadings {
    let at: Vec<u64> =
        (0..rows as u64).map(|row| row * 100_000_000 + dice.below(60_000) as u64).collect();
    let mut tables = Vec::new();
    for stream in 0..streams {
        let thread = format!("s1/{role}{stream}");
        let socket = format!("s1/{stream}");
        tables.push(table("worker", &thread, &at, role, dice));
        tables.push(table("thread", &thread, &at, role, dice));
        tables.push(table("tcp", &socket, &at, role, dice));
        tables.push(table("socket", &socket, &at, role, dice));
    }
    for cpu in 0..8 {
        tables.push(table("cpu", &cpu.to_string(), &at, role, dice));
    }
    tables.push(table("port", "eth0", &at, role, dice));
    let totals = (0..streams).map(|stream| Total {
        set: 1,
        stream,
        sent: 6_250_000_000,
        received: 0,
        complete: true,
    });
    EndReadings { tables, totals: totals.collect(), ..EndReadings::default() }
}

fn table(source: &str, subject: &str, at: &[u64], role: &str, dice: &mut Dice) -> Table {
    let columns = METRICS.iter().filter(|metric| metric.source == source).map(|metric| Column {
        name: metric.name.into(),
        unit: metric.unit,
        kind: metric.kind,
        values: column(metric, at, role, dice),
    });
    Table {
        source: source.to_owned(),
        subject: subject.to_owned(),
        at: at.to_vec(),
        columns: columns.collect(),
    }
}

/// Values of one metric: `base` plus a random part below `noise` per row; the values of a counter are sums.
fn column(metric: &Metric, at: &[u64], role: &str, dice: &mut Dice) -> Vec<i64> {
    let (base, noise) = shape(metric.name, role);
    let mut sum = 0;
    at.iter()
        .map(|_| {
            let value = if noise == 0 { base } else { base + dice.below(noise) };
            sum += value;
            if metric.kind == Kind::Counter { sum } else { value }
        })
        .collect()
}

/// How much a metric grows or varies in 100 ms, for one stream of 150 Mb/s among 64: `base` and `noise`.
fn shape(name: &str, role: &str) -> (i64, i64) {
    let sends = role == "tx";
    match name {
        "bytes" | "rx_bytes" | "tx_bytes" => (1_700_000, 400_000),
        "bytes_sent" | "bytes_acked" if sends => (1_700_000, 400_000),
        "bytes_received" if !sends => (1_700_000, 400_000),
        "ops" => (14, 3),
        "segs_out" | "segs_in" | "delivered" => (1_200, 300),
        "run_ns" => (2_000_000, 900_000),
        "wait_ns" => (200_000, 400_000),
        "user_ticks" | "system_ticks" | "user" | "system" | "idle" | "softirq" => (0, 3),
        "rtt_us" | "rttvar_us" if sends => (3_000, 400),
        "cwnd" | "unacked" if sends => (300, 40),
        "busy_us" | "rwnd_limited_us" if sends => (96_000, 8_000),
        "notsent_bytes" | "snd_wnd" | "wmem_queued" if sends => (400_000, 300_000),
        "rcv_wnd" | "rcv_space" | "rmem_alloc" | "unread_bytes" if !sends => (400_000, 300_000),
        "delivery_rate" | "pacing_rate" if sends => (150_000_000, 40_000_000),
        "rx_packets" | "tx_packets" => (76_000, 9_000),
        _ => (1, 0),
    }
}
