//! Tests of the judge on models built by hand: which causes are named and which are proved, on both sides of each
//! threshold.

mod after;
mod black_hole;
mod changes;
mod clock;
mod collision;
mod commands;
mod copy;
mod cpu;
mod crowd;
mod datagrams;
mod disk;
mod flow;
mod host;
mod last;
mod latency;
mod loss;
#[path = "../machines/mod.rs"]
mod machines;
mod memory;
mod odd;
mod overtaking;
mod own_port;
mod path;
mod port;
mod program;
mod proof;
mod queues;
mod rate;
mod rdma;
mod reported;
#[path = "../slot/mod.rs"]
mod slot;
mod steal;
mod thresholds;
mod transport;
mod underlay;
mod verbs;
mod ways;
mod window;
mod wire;

use linerate_facts::{HostFacts, Port};
use linerate_judge::causes::{NoFinding, cause};
use linerate_judge::model::{
    Ceiling, DirectionModel, Estimate, Foreign, Latency, Load, Model, Packets, TcpShares, Thread,
    TrialModel,
};
use linerate_judge::trial::propose;
use linerate_judge::verdict::{
    Disturbance, Verdict, collapsed, decides, judge, next_trials, notes,
};
use linerate_plan::Knobs;
use linerate_plan::factor::kind;
use linerate_plan::path::{Certainty, Direction, Measure, Place, Side, Slowness, Stage};
use linerate_plan::transport::{OTHER, RDMA, SHM, TCP, TransportInfo, UDP};
use linerate_record::{Host, TrialPlan};
use linerate_units::stats::Interval;
use linerate_units::{Bytes, Nanos, Rate};

/// Sizes of full packets of TCP over IPv4, with timestamps.
const FULL: Packets = Packets { payload: Bytes(1448), packet: Some(Bytes(1500)), path_mtu: None };

fn thread(busy: f64) -> Thread {
    Thread {
        busy: Some(busy),
        waiting: Some(0.0),
        bytes_per_op: Some(65_536.0),
        ..Thread::default()
    }
}

/// A goodput whose interval is 0.4 % to either side.
fn steady(mean: f64) -> Estimate {
    Estimate {
        mean,
        interval: Some(Interval { low: mean * 0.996, mid: mean, high: mean * 1.004 }),
        samples: 30,
    }
}

/// A load of 1 Gb/s that congestion control limits, on idle CPUs.
fn load() -> Load {
    let goodput = Estimate { mean: 1e9, interval: None, samples: 30 };
    Load {
        ticks: vec![1e9; 30],
        steady: true,
        tcp: TcpShares {
            network: Some(1.0),
            rwnd_limited: Some(0.0),
            sndbuf_limited: Some(0.0),
            starved: Some(0.0),
            in_flight: Some(Bytes(256 * 1024)),
            window: Some(Bytes(4 << 20)),
            rtt: Some(Nanos::from_millis(2)),
            min_rtt: Some(Nanos::from_micros(100)),
            send_memory: Some(Bytes(1 << 20)),
            retransmitted: Some(0.0),
            ..TcpShares::default()
        },
        senders: vec![thread(0.2)],
        receivers: vec![thread(0.2)],
        unread: Some(0.0),
        behind: Some(0.0),
        caught_up: Some(0.0),
        recv_memory: Some(Bytes(1 << 20)),
        ..Load::bare(&TCP, 1, goodput)
    }
}

/// A round trip on a path without a queue: windows and buffers may be the limit.
const UNQUEUED: Option<Nanos> = Some(Nanos::from_micros(110));

/// A load that the receive window limits nearly all the time, on a path without a queue.
fn held_by_window() -> Load {
    let mut base = load();
    base.tcp.rwnd_limited = Some(0.97);
    base.tcp.rtt = UNQUEUED;
    base.tcp.network = Some(0.03);
    base
}

fn model(base: Load) -> Model {
    let host = |side| {
        let mut facts = HostFacts { boot_id: format!("{side:?}"), ..HostFacts::default() };
        // The port is virtual: it has no wire of its own.
        facts.port = Some(Port { is_virtual: true, ..Port::default() });
        // A virtual machine has no clocks to read.
        facts.clocks = Some(Vec::new());
        facts.buffers.rmem_max = Some(4 << 20);
        facts.buffers.wmem_max = Some(4 << 20);
        facts.buffers.tcp_rmem = Some([4096, 131_072, 1 << 20]);
        facts.buffers.tcp_wmem = Some([4096, 16_384, 1 << 20]);
        Host { side, facts }
    };
    let sweep = Load { streams: 2, ..base.clone() };
    Model {
        hosts: vec![host(Side::Near), host(Side::Far)],
        same_machine: false,
        requested: linerate_judge::model::Requested::default(),
        idle: Some(Latency {
            percentiles: vec![(50.0, Nanos::from_micros(100))],
            samples: 500,
            least: Nanos::from_micros(80),
        }),
        directions: vec![DirectionModel {
            direction: Direction::Forward,
            base,
            sweep: vec![sweep],
            ceilings: Vec::new(),
            fell: None,
        }],
        both: Vec::new(),
        trials: Vec::new(),
        gaps: Vec::new(),
        complete: true,
        watched: false,
        reported: false,
        alone: false,
    }
}

/// The ceiling of a stage, from the least to the most bits per second that it may be.
fn ceiling(stage: Stage, least: f64, most: f64) -> Ceiling {
    Ceiling {
        rate: Rate(most as u64),
        least: Rate(least as u64),
        stage,
        side: Place::Far,
        name: "far port eth0".into(),
        formula: String::new(),
    }
}

/// The most informative trial for the limit of `direction`.
fn next_trial(model: &Model, direction: Direction, id: u32) -> Option<TrialPlan> {
    next_trials(model, &[direction], Slowness::Rate, id).pop()
}

fn outcome(model: &Model, id: &str) -> &'static str {
    match cause(id).expect("a known cause").check(model, Direction::Forward) {
        Ok(f) if f.enough => "enough",
        Ok(_) => "suspect",
        Err(NoFinding::Clear(_)) => "clear",
        Err(NoFinding::Unknown(_)) => "unknown",
    }
}

/// Adds a trial `id` whose effect is `ratio`, with an interval of one per cent to either side.
fn tried(model: &mut Model, id: &str, ratio: f64) {
    tried_in(model, Direction::Forward, id, ratio);
}

/// The same in a direction.
fn tried_in(model: &mut Model, direction: Direction, id: &str, ratio: f64) {
    let number = model.trials.len() as u32;
    let plan = propose(kind(id).expect("a known kind"), model, direction, number)
        .expect("it can be tried");
    model.trials.push(TrialModel {
        plan,
        effect: Some(Interval { low: ratio * 0.99, mid: ratio, high: ratio * 1.01 }),
        slices: 8,
        goodput: [1e9, 1e9 * ratio],
        cost: [None; 2],
        lost: [None; 2],
        changed: None,
        loss: None,
        latency: None,
    });
}
