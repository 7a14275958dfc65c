//! The memory channels of a host are full.

use crate::causes::predict::{added_work, bystander, scaled};
use crate::causes::prelude::*;
use crate::signs::threads::{threads, wanted};
use linerate_ceiling::memory;
use linerate_facts::HostFacts;
use linerate_facts::memory::Channels;
use linerate_plan::Receive;
use linerate_plan::factor::Class;
use linerate_plan::transport::{FarEnd, RING, RING_DEFAULT};
use linerate_record::Host;
use linerate_units::stats::EQUAL;
use linerate_units::{Bytes, Rate};

/// Share of its CPU that a thread must need to be a suspect: a thread that waits for memory looks busy.
const SUSPECT: f64 = 0.8;
/// Share of the modules' nominal bandwidth, at which memory channels are full in practice.
//= J. D. McCalpin, STREAM: 80 to 90 % of the peak is what well-written loops reach
const FULL: f64 = 0.8;
/// Share of their capacity up to which memory channels have no effect on goodput.
const FAR: f64 = 0.5;
/// Largest buffer of a program, in bytes, where the plan leaves its size open.
const BUFFER: u64 = 1 << 20;
/// Least memory bandwidth of a host with a port of its own, in bits per second: one channel of DDR3-1066.
//= JEDEC JESD79-3F: the slowest standard speed but one
const LEAST: f64 = 1066e6 * 8.0 * 8.0;

/// The result for the memory channels of one end.
enum End {
    Clear(String),
    Unknown(NoFinding),
    /// The share of the channels' capacity in use, and whether it is certain.
    Busy(Finding),
}

pub(crate) static CAUSE: Cause = Cause {
    id: "memory-bandwidth",
    name: "memory bandwidth is used up",
    stage: Stage::Memory,
    decided_by: &[Factor::Discard, Factor::ZeroCopy],
    page: include_str!("../pages/memory-bandwidth.md"),
    check,
    predict,
    decides,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    if let Some(scaled) = scaled(model, direction, "memory") {
        return Err(NoFinding::Clear(scaled));
    }
    let (mut found, mut unknown, mut clear) = (None::<Finding>, None, Vec::new());
    for host in &model.hosts {
        match end(model, host, load, direction) {
            End::Clear(why) => clear.push(why),
            End::Unknown(gap) => unknown = Some(gap),
            End::Busy(finding) => {
                if found.as_ref().is_none_or(|f| f.share < finding.share) {
                    found = Some(finding);
                }
            }
        }
    }
    match (found, unknown) {
        (Some(finding), _) => Ok(finding),
        (None, Some(unknown)) => Err(unknown),
        (None, None) => Err(NoFinding::Clear(clear.join("; "))),
    }
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let work = |on_sender| {
        let added = added_work(model, trial, on_sender)?;
        // Goodput falls in proportion to the added work if one thread waits for memory, and not at all if many threads
        // do.
        Some(Range { low: 0.8 / (1.0 + added), high: EQUAL.high })
    };
    let factor = trial.factor()?;
    match (factor.class(), factor) {
        // If a receiver discards payload, one of three memory crossings is left.
        (_, Factor::Discard) => Some(Range { low: GAIN, high: 3.0 }),
        // If a sender does not copy, one of three memory crossings is left at its end; this gains if the channels there
        // are full.
        (_, Factor::ZeroCopy) => match check(model, trial.direction) {
            Ok(found) if found.side == trial.direction.sender().into() => {
                Some(Range { low: GAIN, high: 3.0 })
            }
            Err(NoFinding::Unknown(_)) => None,
            _ => bystander(model, trial),
        },
        // All streams share the memory channels.
        (_, Factor::MoreStreams | Factor::MoreDepth | Factor::OtherCongestion) => {
            Some(Range { low: 0.3, high: GAIN })
        }
        (_, Factor::SenderWork) => work(true),
        (_, Factor::ReceiverWork) => work(false),
        // With other sizes, more or less of the payload may fit into caches: the effect is unknown.
        (
            Class::Parallel
            | Class::LargerBuffer
            | Class::HalfBuffer
            | Class::Packets
            | Class::Calls
            | Class::Placement,
            _,
        ) => None,
        _ => bystander(model, trial),
    }
}

fn decides(model: &Model, trial: &TrialPlan) -> bool {
    let sends = || match check(model, trial.direction) {
        Ok(found) => found.side == trial.direction.sender().into(),
        _ => false,
    };
    match trial.factor() {
        Some(Factor::Discard) => true,
        Some(Factor::ZeroCopy) => sends(),
        _ => false,
    }
}

fn advice(_: &Model, _: Direction) -> Vec<Advice> {
    vec![Advice::new(
        "fill every memory channel with modules of the highest speed that the board supports; keep buffers small \
         enough for the cache",
    )]
}

fn end(model: &Model, host: &Host, load: &Load, direction: Direction) -> End {
    let (side, facts) = (host.side, &host.facts);
    let name = side.name();
    let shared = load.transport.far_end == FarEnd::Process;
    if shared && let Some(why) = cached(load, facts, name) {
        return End::Clear(why);
    }
    if !shared && !facts.has_card() {
        // Payload between two programs of one machine stays in its caches, or it costs them CPU time.
        return End::Clear(format!("no card of {name} moves payload to or from memory"));
    }
    let goodput = load.goodput.mean;
    let copied = load.knobs.receive == Receive::Copy;
    let typical = f64::from(memory::typical(copied)) * goodput;
    let nodes = facts.topology.nodes.iter().filter(|n| !n.cpus.is_empty()).count().max(1);
    let known = facts.channels.map(|c| (c.capacity().0 * 8.0, c.words()));
    // The bandwidth of one node's channels is used: payload may not be spread over all nodes.
    let (least, words) = match &known {
        Some((rate, words)) => (rate / nodes as f64, words.as_str()),
        None => (LEAST, "one channel of DDR3-1066, the least there is"),
    };
    if typical < FAR * least {
        let need = Rate(typical as u64);
        return End::Clear(format!(
            "{name} usually needs {need} of memory, {} of {words}",
            percent(typical / least)
        ));
    }
    match wanted(threads(load, direction, side)) {
        None => return End::Unknown(lacks(model, "thread", side)),
        Some(share) if share < SUSPECT => {
            let share = percent(share);
            return End::Clear(format!(
                "the {name} thread needed its CPU only {share} of the time"
            ));
        }
        Some(_) => {}
    }
    let traffic = load.memory.at(direction, side).map(|bytes| bytes * 8.0);
    seen(side, load, facts.channels, nodes, traffic)
}

/// The result for memory channels that may be full.
fn seen(
    side: Side,
    load: &Load,
    channels: Option<Channels>,
    nodes: usize,
    traffic: Option<f64>,
) -> End {
    let shared = load.transport.far_end == FarEnd::Process;
    match (channels, traffic) {
        (Some(channels), Some(traffic)) => {
            let by_card = if shared { 0.0 } else { load.goodput.mean };
            counted(side, channels, nodes, traffic, by_card)
        }
        (None, _) => {
            let hint = if shared {
                // Without a card, the list of memory modules is not read.
                "--ring SIZE and fewer streams: rings that fit into the last cache need no memory"
            } else {
                "sudo linerate ..."
            };
            unknown(side, "the capacity of its memory modules", hint)
        }
        (_, None) => {
            let hint =
                "sudo mount -t resctrl resctrl /sys/fs/resctrl, on a processor that counts it";
            unknown(side, "the traffic between its CPUs and memory", hint)
        }
    }
}

/// The reason why payload through shared memory needs no memory channel: the buffers, which the streams use again and
/// again, fit into the last-level cache. `None` if they do not, or if the size of that cache is unknown.
fn cached(load: &Load, facts: &HostFacts, name: &str) -> Option<String> {
    let cache = facts.last_cache?;
    let knobs = &load.knobs;
    let ring = knobs.options.number(RING.key).unwrap_or(RING_DEFAULT);
    let buffers = [knobs.write_size, knobs.read_size].map(|size| size.0.max(BUFFER));
    let stream = buffers.into_iter().fold(ring, u64::saturating_add);
    let all = Bytes(stream.saturating_mul(load.streams.into()));
    let why = format!("rings and buffers ({all}) fit into the last cache of {name} ({cache})");
    (all <= cache).then_some(why)
}

fn unknown(side: Side, what: &str, hint: &str) -> End {
    End::Unknown(NoFinding::Unknown(vec![Gap {
        what: format!("the memory of {}", side.name()),
        why: format!("at this rate it could be the limit, and {what} was not read"),
        hint: hint.to_owned(),
    }]))
}

/// The use of the channels by counters: the traffic of the CPUs, plus at most all traffic of the card, which the
/// counters do not include.
fn counted(side: Side, channels: Channels, nodes: usize, traffic: f64, by_card: f64) -> End {
    let (name, words) = (side.name(), channels.words());
    let (least, most) = channels.capacity();
    let at_least = traffic / (most * 8.0);
    // At most, all traffic goes to the channels of one node.
    let at_most = (traffic + by_card) / (least * 8.0 / nodes as f64);
    let moved = Rate(traffic as u64);
    if at_most < FULL {
        let share = percent(at_most);
        return End::Clear(format!("memory of {name} moved {moved}, {share} at most of {words}"));
    }
    End::Busy(
        Finding::at(
            side,
            at_least.min(1.0),
            vec![format!(
                "the CPUs of {name} moved {moved} to and from memory, {} of all that {words} could",
                percent(at_least)
            )],
        )
        .enough(at_least >= FULL),
    )
}
