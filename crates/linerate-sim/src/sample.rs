//! Invented results of runs, for tests of the screens and documents that show results.

use linerate_facts::advice::{Advice, Step};
use linerate_facts::nic::{LinkModes, Nic};
use linerate_facts::pci::{Buses, Device, Link, PortKind, find_parents};
use linerate_facts::route::Route;
use linerate_facts::{HostFacts, Port};
use linerate_judge::model::{Ceiling, DirectionModel, Estimate, Latency, Load, Model, TrialModel};
use linerate_judge::verdict::{Answered, Decided, Disturbance, Limit, Unknown, Verdict};
use linerate_plan::path::{Certainty, Direction, Measure, Place, Side, Stage};
use linerate_plan::{Knobs, Plan};
use linerate_record::{End, FORMAT, Host, Record, Start, TrialPlan};
use linerate_units::stats::Interval;
use linerate_units::{Nanos, Rate, Transfers};

pub type Result = (Record, Model, Verdict);

fn record(end: Option<End>) -> Record {
    let plan = Plan {
        engine: "tcp".into(),
        peer: Some("brook".into()),
        reach: Vec::new(),
        knobs: Knobs::default(),
        directions: Direction::ALL.to_vec(),
        time: Nanos::from_secs(60),
        sweep: true,
        trials: true,
    };
    Record {
        start: Start {
            format: FORMAT,
            linerate: "0.1.0".into(),
            wall_secs: 1_795_000_000,
            plan,
            made: linerate_record::Made::default(),
            note: String::new(),
            study: None,
        },
        hosts: vec![host(Side::Near, "ripple"), host(Side::Far, "brook")],
        sets: Vec::new(),
        trials: Vec::new(),
        steps: Vec::new(),
        imported: None,
        end,
    }
}

fn host(side: Side, name: &str) -> Host {
    let facts = HostFacts {
        name: name.into(),
        boot_id: name.into(),
        kernel: "6.12.0".into(),
        linerate: "0.1.0".into(),
        cpus: (0..8).collect(),
        nodes: 1,
        port: Some(Port {
            name: "eth0".into(),
            driver: "mlx5_core".into(),
            speed_mbps: Some(10_000),
            mtu: Some(1500),
            is_ethernet: true,
            is_virtual: false,
            node: Some(0),
            served_by: Vec::new(),
        }),
        route: (side == Side::Near).then(route),
        ..HostFacts::default()
    };
    Host { side, facts }
}

/// The route of the near host: a VLAN on a card with 8 lanes in a slot with 4.
fn route() -> Route {
    let link = |width| Link { speed: Some(Transfers(8_000_000_000)), width: Some(width) };
    let card = Device {
        address: "0000:3b:00.0".parse().expect("an address"),
        kind: Some(PortKind::Endpoint),
        now: Some(link(4)),
        max: Some(link(8)),
        ..Device::default()
    };
    let root = Device {
        address: "0000:3a:00.0".parse().expect("an address"),
        buses: Some(Buses { secondary: 0x3b, subordinate: 0x3b }),
        kind: Some(PortKind::Root),
        now: Some(link(4)),
        max: Some(link(4)),
        ..Device::default()
    };
    let mut pci = vec![root, card];
    find_parents(&mut pci);
    let mut vlan = Nic {
        name: "eth0".into(),
        index: 7,
        kind: "vlan".into(),
        driver: "vlan".into(),
        is_virtual: true,
        up: true,
        mtu: Some(1500),
        ..Nic::default()
    };
    vlan.stack.below = vec![2];
    vlan.stack.vlan = Some(100);
    let card = Nic {
        name: "ens1".into(),
        index: 2,
        driver: "mlx5_core".into(),
        device: "0000:3b:00.0".into(),
        pci: "0000:3b:00.0".into(),
        node: Some(0),
        up: true,
        mtu: Some(1500),
        link: LinkModes { speed: Some(Rate(10_000_000_000)), ..LinkModes::default() },
        ..Nic::default()
    };
    Route { gateway: Some([192, 0, 2, 1].into()), ports: vec![vlan, card], pci, ..Route::default() }
}

fn estimate(mean: f64, half: f64) -> Estimate {
    Estimate { mean, interval: Some(interval(mean - half, mean, mean + half)), samples: 40 }
}

fn interval(low: f64, mid: f64, high: f64) -> Interval {
    Interval { low, mid, high }
}

fn latency(p50: u64, p99: u64) -> Latency {
    Latency {
        percentiles: vec![(50.0, Nanos(p50)), (90.0, Nanos(p99 * 9 / 10)), (99.0, Nanos(p99))],
        samples: 4_000,
        least: Nanos(p50 / 2),
    }
}

pub fn load(streams: u32, mean: f64) -> Load {
    let goodput = estimate(mean, mean * 0.004);
    Load {
        knobs: Knobs { streams, ..Knobs::default() },
        goodput_with_ramp: mean * 0.99,
        steady: true,
        ..Load::bare(&linerate_plan::transport::TCP, streams, goodput)
    }
}

fn direction(direction: Direction, mean: f64, ceilings: Vec<Ceiling>) -> DirectionModel {
    DirectionModel { direction, base: load(1, mean), sweep: Vec::new(), ceilings, fell: None }
}

fn wire() -> Ceiling {
    Ceiling {
        rate: Rate(9_410_000_000),
        least: Rate(9_410_000_000),
        stage: Stage::Net,
        side: Place::Far,
        name: "far port eth0".into(),
        formula: "10 Gb/s x 1448/1538".into(),
    }
}

/// A complete run: goodput of both directions is at the ceiling of the wire, and there is nothing to improve.
pub fn healthy() -> Result {
    let record = record(Some(End::Complete));
    let mut model = Model {
        hosts: record.hosts.clone(),
        same_machine: false,
        idle: Some(latency(41_000, 58_000)),
        directions: Direction::ALL.iter().map(|d| direction(*d, 9.39e9, vec![wire()])).collect(),
        both: Direction::ALL.iter().map(|d| (*d, estimate(9.3e9, 2e7))).collect(),
        trials: Vec::new(),
        gaps: Vec::new(),
        complete: true,
        watched: false,
        reported: false,
        alone: false,
        requested: linerate_judge::model::Requested::path(" brook"),
    };
    for d in &mut model.directions {
        d.sweep = vec![load(2, 9.4e9), load(4, 9.4e9)];
        d.base.latency = Some(latency(310_000, 900_000));
    }
    let limits = Direction::ALL.map(|d| Limit {
        cause: "wire-full",
        stage: Stage::Port,
        side: Place::Far,
        direction: d,
        evidence: vec!["9.39 Gb/s of goodput is 99.8 % of the wire's 9.41 Gb/s".into()],
        trial: None,
        advice: vec![Advice::new(
            "nothing: the path is as fast as far port eth0 is; a faster port, or a second one, carries more",
        )],
        metric: Measure::Goodput,
        certainty: Certainty::Proved,
    });
    let verdict = Verdict { limits: limits.to_vec(), ..Verdict::default() };
    (record, model, verdict)
}

/// Forward is limited by a small receive window, which is proved; reverse is limited by the wire.
pub fn limited() -> Result {
    let (record, mut model, mut verdict) = healthy();
    let forward = &mut model.directions[0];
    forward.base = load(1, 4.71e9);
    forward.base.latency = Some(latency(3_100_000, 3_400_000));
    forward.sweep = vec![load(2, 9.38e9), load(4, 9.4e9)];
    model.directions[1].base = load(1, 9.38e9);
    model.both = vec![
        (Direction::Forward, estimate(4.65e9, 2e7)),
        (Direction::Reverse, estimate(9.31e9, 1e6)),
    ];
    model.trials = vec![
        trial(0, "half-window", Some(interval(0.49, 0.50, 0.51))),
        trial(1, "half-pace", None),
    ];
    verdict.next = vec![verdict.limits[0].clone()];
    verdict.limits[0] = window();
    verdict.unknown = vec![Unknown {
        what: "far PCIe payload size".into(),
        why: "config space needs root".into(),
        hint: "sudo linerate serve".into(),
    }];
    verdict.answers = vec![
        answer("receive-window", "finding", "limited by the window for 97 % of the time"),
        answer("path-rate", "excluded", "twice the streams gave x1.99, not x1.00"),
        answer("send-buffer", "clear", "limited by the send buffer for 0 % of the time"),
        answer("receiver-core", "unknown", "no thread times: /proc/self/task is not readable"),
    ];
    (record, model, verdict)
}

/// Forward is limited by a CPU of the sender, and more streams would help; reverse is limited by the wire.
pub fn at_its_cpu() -> Result {
    let (record, mut model, mut verdict) = limited();
    let forward = &mut model.directions[0];
    forward.base.senders = vec![linerate_judge::model::Thread {
        busy: Some(0.99),
        user: Some(0.02),
        ..linerate_judge::model::Thread::default()
    }];
    let tried = &mut model.trials[0];
    tried.effect = Some(interval(0.78, 0.80, 0.82));
    tried.goodput[1] = tried.goodput[0] * 0.8;
    let advice = Advice::new("use 2 streams, so that more CPUs share the work")
        .on(Side::Near, "linerate run brook --streams 2")
        .gain(Some(1.99));
    verdict.limits[0] = Limit {
        cause: "sender-core",
        stage: Stage::Cpu,
        side: Place::Near,
        evidence: vec![
            "one sending thread on CPU 1 was 99 % busy, 98 % of it in the kernel".into(),
        ],
        trial: window().trial.map(|trial| Decided {
            words: "25 % more work on the sending thread",
            effect: interval(0.78, 0.80, 0.82),
            ..trial
        }),
        advice: vec![advice],
        ..window()
    };
    verdict.next.clear();
    verdict.unknown.clear();
    verdict.answers = vec![
        answer("small-packets", "clear", "packets are joined"),
        answer("sender-core", "finding", "one sending thread was 99 % busy"),
    ];
    (record, model, verdict)
}

/// A result between hosts with long names, like those in clouds and clusters.
pub fn with_long_names((mut record, mut model, verdict): Result) -> Result {
    let names = [
        "ip-10-0-112-34.eu-central-1.compute.internal",
        "kafka-broker-2.kafka-headless.streaming-prod.svc.cluster.local.",
    ];
    for hosts in [&mut record.hosts, &mut model.hosts] {
        for (host, name) in hosts.iter_mut().zip(names) {
            name.clone_into(&mut host.facts.name);
        }
    }
    (record, model, verdict)
}

fn trial(id: u32, kind: &str, effect: Option<Interval>) -> TrialModel {
    TrialModel {
        plan: TrialPlan {
            id,
            kind: kind.to_owned(),
            direction: Direction::Forward,
            before: Knobs::default(),
            after: Knobs::default(),
            max_blocks: 8,
        },
        effect,
        slices: 12,
        goodput: [4.71e9, 2.36e9],
        cost: [None; 2],
        lost: [None; 2],
        changed: None,
        loss: effect.map(|_| interval(0.2, 0.9, 4.1)),
        latency: None,
    }
}

fn answer(cause: &'static str, outcome: &'static str, why: &str) -> Answered {
    Answered { cause, direction: Direction::Forward, outcome, why: vec![why.into()] }
}

fn window() -> Limit {
    Limit {
        metric: Measure::Goodput,
        cause: "receive-window",
        stage: Stage::Socket,
        side: Place::Far,
        direction: Direction::Forward,
        certainty: Certainty::Proved,
        evidence: vec![
            "the sender waited for the receiver's window 97 % of the time".into(),
            "251 KiB in flight, 256 KiB offered, round trip 437 us: 4.70 Gb/s".into(),
        ],
        trial: Some(Decided {
            id: 0,
            kind: "half-window",
            words: "half the window",
            effect: interval(0.49, 0.50, 0.51),
            loss: None,
            transport: &linerate_plan::transport::TCP,
            latency: None,
            slices: 12,
            excluded: vec!["path-rate", "receiver-core"],
        }),
        advice: vec![
            Advice::new("allow receive buffers of 1 MiB")
                .set(Side::Far, "sudo sysctl -w net.ipv4.tcp_rmem=\"4096 131072 1048576\"")
                .undo_on(Side::Far, "sudo sysctl -w net.ipv4.tcp_rmem=\"4096 131072 524288\"")
                .gain(Some(1.99)),
        ],
    }
}

/// Both directions are limited by the wire. Forward also has a latency limit, which is proved: a deep queue on the
/// path.
pub fn queued() -> Result {
    let (record, mut model, mut verdict) = healthy();
    model.directions[0].base.latency = Some(latency(98_200_000, 104_000_000));
    verdict.limits.push(Limit {
        metric: Measure::Latency,
        cause: "latency-queue",
        stage: Stage::Net,
        side: Place::Path,
        direction: Direction::Forward,
        certainty: Certainty::Proved,
        evidence: vec![
            "a round trip took 98.2 ms under load, 41 us on the idle path (p50)".into(),
            "the streams' own segments were acknowledged after 97 ms".into(),
        ],
        trial: Some(Decided {
            id: 1,
            kind: "half-pace",
            words: "half the pace",
            effect: interval(0.49, 0.50, 0.51),
            loss: None,
            transport: &linerate_plan::transport::TCP,
            latency: Some(interval(0.004, 0.005, 0.006)),
            slices: 8,
            excluded: vec!["latency-wakeup"],
        }),
        advice: vec![
            Advice::new("limit eth0 to just below the rate of the path, so that the queue stands here and is short")
                .step(
                    Step::on(Side::Near, "tc -d qdisc show dev eth0 | tee qdisc-before.txt")
                        .about("save the old settings"),
                )
                .set(Side::Near, "sudo tc qdisc replace dev eth0 root cake bandwidth 45000kbit")
                .undo_on(Side::Near, "sudo tc qdisc del dev eth0 root"),
        ],
    });
    (record, model, verdict)
}

/// The limit of forward is unknown, and its goodput is low; reverse is limited by a small window. The hypervisor took a
/// share of a CPU's time, and another session was measuring.
pub fn disturbed() -> Result {
    let (record, mut model, mut verdict) = healthy();
    model.directions[0].base = load(1, 0.93e9);
    model.directions[1].base = load(1, 4.71e9);
    let mut held = window();
    for step in held.advice.iter_mut().flat_map(|a| a.steps.iter_mut().chain(&mut a.undo)) {
        step.host = Some(Side::Near);
    }
    verdict.limits = vec![Limit { direction: Direction::Reverse, side: Place::Near, ..held }];
    verdict.unknown = vec![Unknown {
        what: "what limits forward".into(),
        why: "no cause that linerate knows fits what was measured".into(),
        hint: String::new(),
    }];
    let advice = |what: &str| Advice::new(what);
    verdict.disturbances = vec![
        Disturbance {
            cause: "cpu-steal",
            stage: Stage::Cpu,
            side: Place::Far,
            direction: Direction::Forward,
            share: Some(0.24),
            evidence: vec![
                "the hypervisor took CPU 1 of far away 24 % of the time, and it was idle 61 %"
                    .into(),
            ],
            advice: vec![advice("run again while the host below has time to spare")],
        },
        Disturbance {
            cause: "contended",
            stage: Stage::Net,
            side: Place::Path,
            direction: Direction::Reverse,
            share: None,
            evidence: vec!["another session was measuring on a host at the same time".into()],
            advice: vec![advice("wait until the other traffic has ended, then run again")],
        },
    ];
    (record, model, verdict)
}

/// Little could be read: there are virtual ports, and no intervals, ceilings or causes.
pub fn unknowing() -> Result {
    let (record, mut model, _) = healthy();
    model.same_machine = true;
    model.idle = None;
    model.both.clear();
    for h in &mut model.hosts {
        h.facts = HostFacts { name: h.facts.name.clone(), ..HostFacts::default() };
    }
    for d in &mut model.directions {
        *d = direction(d.direction, 2.1e9, Vec::new());
        d.base.goodput.interval = None;
        d.base.steady = d.direction == Direction::Forward;
    }
    let unknown = |what: &str, why: &str, hint: &str| Unknown {
        what: what.into(),
        why: why.into(),
        hint: hint.into(),
    };
    let verdict = Verdict {
        unknown: vec![
            unknown("near thread times", "/proc is not mounted", "mount -t proc proc /proc"),
            unknown("far port", "netlink answered: operation not permitted", ""),
        ],
        ..Verdict::default()
    };
    (record, model, verdict)
}

/// The user stopped the run before the reverse direction began.
pub fn interrupted() -> Result {
    let (_, mut model, mut verdict) = limited();
    model.complete = false;
    model.directions.truncate(1);
    model.directions[0].sweep.clear();
    model.both.clear();
    verdict.limits.truncate(1);
    verdict.limits[0].certainty = Certainty::Supported;
    verdict.limits[0].trial = None;
    verdict.next.clear();
    (record(Some(End::Interrupted)), model, verdict)
}
