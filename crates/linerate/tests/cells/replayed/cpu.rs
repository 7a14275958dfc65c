//! Processors, memory, and the CPUs and nodes on which threads run.

use linerate_facts::cpu::{Clock, Clocked, IdleState};
use linerate_facts::memory::Channels;
use linerate_facts::metric as m;
use linerate_facts::nic::Coalesce;
use linerate_facts::topology::Node;
use linerate_plan::Pattern;
use linerate_plan::path::Side;
use linerate_record::{Record, Set};
use linerate_units::{Hertz, Nanos, Transfers};

use super::super::hardware::{
    cards, column, facts, idle_cpu, port, reads, round_trips, share_of, shift, tables,
};
use super::{Replay, Shown};

pub(super) const REPLAYS: &[Replay] = &[
    // The thread either ran or its CPU was stolen: it never slept.
    Replay {
        cause: "cpu-steal",
        on: "receiver-core-over",
        over: Shown {
            words: "40 % of the receiver's CPU is stolen, from its thread",
            show: |r| stolen(r, 0.4),
            named: &["cpu-steal"],
            disturbed: &[],
        },
        under: Shown {
            words: "14 %, so that the core is what it lacks",
            show: |r| stolen(r, 0.14),
            named: &["receiver-core"],
            disturbed: &["cpu-steal"],
        },
    },
    // This kernel counts stolen time as time in which the thread ran.
    Replay {
        cause: "cpu-steal",
        on: "receiver-core-over",
        over: Shown {
            words: "20 % of the receiver's CPU is stolen while its thread is said to run",
            show: |r| shift(r, "1", [m::CPU_USER, m::CPU_STEAL], 0.2),
            named: &["cpu-steal"],
            disturbed: &[],
        },
        under: Shown {
            words: "8 %",
            show: |r| shift(r, "1", [m::CPU_USER, m::CPU_STEAL], 0.08),
            named: &["receiver-core"],
            disturbed: &[],
        },
    },
    // The threads sleep most of the time, because the path limits them.
    Replay {
        cause: "cpu-steal",
        on: "path-rate-1g",
        over: Shown {
            words: "11 % of the receiver's CPU is stolen, beside a path that is shaped",
            show: |r| shift(r, "1", [m::CPU_IDLE, m::CPU_STEAL], 0.11),
            named: &["path-rate"],
            disturbed: &["cpu-steal"],
        },
        under: Shown {
            words: "9 %",
            show: |r| shift(r, "1", [m::CPU_IDLE, m::CPU_STEAL], 0.09),
            named: &["path-rate"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "cpu-steal",
        on: "planted-flow-rate",
        over: Shown {
            words: "36 % of the sender's CPU is stolen, beside a cap of each flow",
            show: |r| shift(r, "0", [m::CPU_USER, m::CPU_STEAL], 0.36),
            named: &["flow-rate-cap"],
            disturbed: &["cpu-steal"],
        },
        under: Shown {
            words: "8 %",
            show: |r| shift(r, "0", [m::CPU_USER, m::CPU_STEAL], 0.08),
            named: &["flow-rate-cap"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "cpu-clock",
        on: "receiver-core-over",
        over: Shown {
            words: "the receiver's CPU runs at 88 % of its nominal clock",
            show: |r| clocked(r, 0.88),
            named: &["receiver-core", "cpu-clock"],
            disturbed: &[],
        },
        under: Shown {
            words: "at 92 %",
            show: |r| clocked(r, 0.92),
            named: &["receiver-core"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "numa-remote",
        on: "receiver-core-over",
        over: Shown {
            words: "the receiver's port is on another node, 2.1 times as far",
            show: |r| on_two_nodes(r, 21),
            named: &["receiver-core", "numa-remote"],
            disturbed: &[],
        },
        under: Shown {
            words: "1.4 times as far",
            show: |r| on_two_nodes(r, 14),
            named: &["receiver-core"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "softirq-core",
        on: "path-rate-5g",
        over: Shown {
            words: "the CPU of the receiver's interrupts handles packets 92 % of the time",
            show: |r| interrupted(r, 0.92),
            named: &["softirq-core"],
            disturbed: &[],
        },
        under: Shown {
            words: "88 %",
            show: |r| interrupted(r, 0.88),
            named: &["path-rate"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "hash-collision",
        on: "planted-two-streams",
        over: Shown {
            words: "one of two queues takes in both streams, and its CPU is full",
            show: |r| queued(r, [2, 2]),
            named: &["softirq-core", "hash-collision"],
            disturbed: &[],
        },
        under: Shown {
            words: "each takes in one stream",
            show: |r| queued(r, [2, 3]),
            named: &["softirq-core"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "latency-wakeup",
        on: "planted-deep-queue",
        over: Shown {
            words: "what answers waits for its CPU 55 % of the round trip",
            show: |r| woken(r, 0.55),
            named: &["latency-queue", "latency-wakeup"],
            disturbed: &[],
        },
        under: Shown {
            words: "45 %",
            show: |r| woken(r, 0.45),
            named: &["latency-queue"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "latency-idle-states",
        on: "path-rate-5g",
        over: Shown {
            words: "the idle path takes 100 us more, and a CPU wakes in 55",
            show: |r| quiet(r, 55, 52),
            named: &["latency-interrupts", "latency-idle-states"],
            disturbed: &[],
        },
        under: Shown {
            words: "it wakes in 45",
            show: |r| quiet(r, 45, 52),
            named: &["latency-interrupts"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "latency-interrupts",
        on: "path-rate-5g",
        over: Shown {
            words: "each port holds interrupts back for 52 us of 200",
            show: |r| quiet(r, 55, 52),
            named: &["latency-interrupts", "latency-idle-states"],
            disturbed: &[],
        },
        under: Shown {
            words: "for 48",
            show: |r| quiet(r, 55, 48),
            named: &["latency-idle-states"],
            disturbed: &[],
        },
    },
    Replay {
        cause: "shared-core",
        on: "planted-shared-core",
        over: Shown {
            words: "both threads on one CPU, another one is used 10 %",
            show: |r| another_cpu(r, 0.1),
            // One end could move to an idle CPU; the CPU of the other would still be full.
            named: &["shared-core", "sender-core"],
            disturbed: &[],
        },
        under: Shown {
            words: "the other one is used 30 %, and the ends are two machines",
            show: |r| {
                another_cpu(r, 0.3);
                "another".clone_into(&mut facts(r, Side::Far).boot_id);
            },
            // The other end is now another machine, so its work on this CPU counts as that of other programs.
            named: &["cpu-contention"],
            // The other end waits for its CPU as long as this one, and no longer, so this is a disturbance.
            disturbed: &["cpu-contention"],
        },
    },
    Replay {
        cause: "memory-bandwidth",
        on: "planted-one-cpu",
        over: Shown {
            words: "the sender's CPUs move 82 % of what its one channel could",
            show: |r| of_memory(r, 0.82),
            // No trial was made that would distinguish these two causes.
            named: &["sender-core", "memory-bandwidth"],
            disturbed: &[],
        },
        under: Shown {
            words: "78 %",
            show: |r| of_memory(r, 0.78),
            named: &["sender-core"],
            disturbed: &[],
        },
    },
];

/// The hypervisor takes CPU 1 for a share of the time, and the receiving threads, which are bound to it, run less by
/// this share.
fn stolen(record: &mut Record, share: f64) {
    shift(record, "1", [m::CPU_USER, m::CPU_STEAL], share);
    let threads = tables(record, Side::Far, m::THREAD_RUN.source);
    for thread in threads.filter(|table| table.subject.contains("/rx")) {
        let ran = column(thread, m::THREAD_RUN);
        *ran = share_of(ran, 1.0 - share);
    }
}

/// The far CPUs run at a share of their nominal clock of 2.5 GHz.
fn clocked(record: &mut Record, share: f64) {
    facts(record, Side::Far).clocks = Some(vec![Clocked {
        cpus: vec![0, 1],
        clock: Clock {
            nominal: Some(Hertz(2_500_000_000)),
            driver: "intel_pstate".to_owned(),
            governor: "powersave".to_owned(),
            ..Clock::default()
        },
    }]);
    reads(record, Side::Far, (m::CLOCK_NOW, "1"), |_| share * 2_500_000.0);
}

/// The far host has a second node with the card, at this distance from the first.
fn on_two_nodes(record: &mut Record, distance: u32) {
    cards(record, 1_000);
    let facts = facts(record, Side::Far);
    let node = |id: u32, distances| Node { id, cpus: vec![id * 2, id * 2 + 1], distances };
    facts.topology.nodes = vec![node(0, vec![10, distance]), node(1, vec![distance, 10])];
    facts.cpus = (0..4).collect();
    facts.nodes = 2;
    let port = facts.port.as_mut().unwrap();
    (port.node, port.served_by) = (Some(1), vec![2]);
}

/// The far host is another machine than the near one, and a CPU that the load does not use handles its port's
/// interrupts.
fn interrupted(record: &mut Record, share: f64) {
    cards(record, 10_000);
    idle_cpu(record, Side::Far, 2);
    shift(record, "2", [m::CPU_IDLE, m::CPU_SOFTIRQ], share);
    let facts = facts(record, Side::Far);
    "another".clone_into(&mut facts.boot_id);
    facts.port.as_mut().unwrap().served_by = vec![2];
}

/// The far port has two queues, served by CPUs that the load does not use. `takes_in` is the CPU that receives each of
/// the two streams; the first CPU spends nearly all of its time on that.
fn queued(record: &mut Record, takes_in: [i64; 2]) {
    interrupted(record, 0.95);
    idle_cpu(record, Side::Far, 3);
    let port = facts(record, Side::Far).port.as_mut();
    port.unwrap().served_by = vec![2, 3];
    for table in tables(record, Side::Far, m::SOCKET_CPU.source) {
        let stream = usize::from(table.subject.ends_with("/1"));
        column(table, m::SOCKET_CPU).fill(takes_in[stream]);
    }
}

/// The far end's thread that answers round trips waits for its CPU this share of the time. The trial that would
/// distinguish this from a queue is removed.
fn woken(record: &mut Record, share: f64) {
    record.trials.clear();
    let pings = |set: &Set| matches!(set.plan.pattern, Pattern::PingPong { .. });
    let pings: Vec<String> = record
        .sets
        .iter()
        .filter(|set| pings(set))
        .map(|set| format!("s{}/", set.plan.id))
        .collect();
    for table in tables(record, Side::Far, m::THREAD_WAIT.source) {
        if pings.iter().any(|set| table.subject.starts_with(set.as_str())) {
            let at = table.at.clone();
            let waited = at.iter().map(|at| (*at as f64 * share) as i64);
            *column(table, m::THREAD_WAIT) = waited.collect();
        }
    }
}

/// Round trips take 200 us on the idle path and 100 us under load. The far CPUs have an idle state from which they wake
/// in `leave` microseconds, and each port delays interrupts by `held` microseconds.
fn quiet(record: &mut Record, leave: u64, held: u32) {
    cards(record, 10_000);
    round_trips(record, 200, 100);
    for side in [Side::Near, Side::Far] {
        port(record, side).coalesce =
            Some(Coalesce { rx_usecs: Some(held), ..Coalesce::default() });
        facts(record, side).idle_states = Some(Vec::new());
    }
    facts(record, Side::Far).idle_states = Some(vec![IdleState {
        name: "C6".to_owned(),
        latency: Nanos::from_micros(leave),
        disabled: false,
    }]);
}

/// Both ends may use CPU 1 too, which other programs use for a share of its time.
fn another_cpu(record: &mut Record, share: f64) {
    for side in [Side::Near, Side::Far] {
        facts(record, side).cpus = vec![0, 1];
    }
    shift(record, "1", [m::CPU_IDLE, m::CPU_USER], share);
}

/// Each host has a card of 100 Gb/s and one channel of DDR4-2133 memory; the near channel is used for this share.
fn of_memory(record: &mut Record, share: f64) {
    const CHANNEL: Channels = Channels { least: 1, most: 1, speed: Transfers(2_133_000_000) };
    cards(record, 100_000);
    for (side, share) in [(Side::Near, share), (Side::Far, 0.1)] {
        facts(record, side).channels = Some(CHANNEL);
        let bytes = CHANNEL.speed.0 as f64 * 8.0;
        reads(record, side, (m::MEMORY_BYTES, "mon_L3_00"), |secs| secs * bytes * share);
    }
}
