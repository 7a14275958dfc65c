//! The table of trial kinds: what one can change on the path, and how.
//!
//! A trial changes one factor of the connections that the tool itself owns, or, only where its user
//! allowed it, one setting of a host. Trials stand apart from causes, because one trial parts several
//! rivals.

mod host;

use crate::causes::{crowded, lost, raised};
use crate::model::{Load, Model, TcpShares, elsewhere, follows};
use crate::plan::{Direction, ExtraWork, Handover, Knobs, Receive};
use crate::record::TrialPlan;
use crate::units::{Bytes, Nanos, Rate};

/// What a trial changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factor {
    /// Twice the streams.
    MoreStreams,
    /// A larger receive buffer, as far as the host allows.
    LargerWindow,
    /// A receive window of half the bytes that are in flight.
    HalfWindow,
    /// A larger send buffer, as far as the host allows.
    LargerSendBuffer,
    /// A host that allows a larger receive buffer.
    HostWindow,
    /// A host that allows a larger send buffer.
    HostSendBuffer,
    /// The port's offloads switched on, on one end's host.
    HostOffloads,
    /// A host with more room in the queue of its own that drops.
    HostRoom,
    /// Packets of a host's port handed to its idle CPUs.
    HostSpread,
    /// Half the send buffer.
    HalfSendBuffer,
    /// More CPU work for each byte on the sending threads.
    SenderWork,
    /// More CPU work for each byte on the receiving threads.
    ReceiverWork,
    /// Half the bytes in each write.
    SmallerWrites,
    /// Half the bytes in each read.
    SmallerReads,
    /// The pace that was asked for lifted.
    Unpaced,
    /// Another congestion control.
    OtherCongestion,
    /// Each stream paced at half of what it carries: goodput follows, what counts is what it loses and how
    /// long round trips beside it take.
    Paced,
    /// Segments of half the size; small ones where none get through.
    SmallerMss,
    /// Payload dropped in the kernel instead of copied to the receiving program.
    Discard,
    /// Payload handed over as pages that the kernel sends itself, instead of copied from the sending program.
    ZeroCopy,
    /// One end's threads on the NUMA node that the port's interrupts are sent to.
    NearInterrupts,
    /// One end's threads on CPUs that had little to do.
    OtherCpu,
    /// Other source ports, by which fewer streams share a receive queue.
    OtherPorts,
}

impl Factor {
    /// Whether datagrams have it: there is no window, no congestion control, and a write is one of them.
    const fn is_of_datagrams(self) -> bool {
        match self {
            Self::MoreStreams
            | Self::LargerWindow
            | Self::HostOffloads
            | Self::SenderWork
            | Self::ReceiverWork
            | Self::Unpaced
            | Self::Paced
            | Self::SmallerMss
            | Self::NearInterrupts
            | Self::OtherCpu => true,
            Self::HalfWindow
            | Self::LargerSendBuffer
            | Self::HostWindow
            | Self::HostSendBuffer
            | Self::HalfSendBuffer
            | Self::SmallerWrites
            | Self::SmallerReads
            | Self::OtherCongestion
            | Self::Discard
            | Self::HostRoom
            | Self::HostSpread
            | Self::ZeroCopy
            | Self::OtherPorts => false,
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct TrialKind {
    /// Stable id, as it stands in records.
    pub id: &'static str,
    /// What it changes.
    pub factor: Factor,
    /// What is being tried, after the word "testing".
    pub words: &'static str,
    /// The change in the past tense, before "gave x1.92".
    pub change: &'static str,
}

/// Every kind of trial. Of two that part the same rivals the earlier is preferred: those that can
/// show a gain come before those that only show a loss.
pub const TRIALS: &[TrialKind] = &[
    TrialKind {
        id: "unpaced",
        factor: Factor::Unpaced,
        words: "whether the pace that was asked for holds it back",
        change: "lifting the pace",
    },
    TrialKind {
        id: "larger-window",
        factor: Factor::LargerWindow,
        words: "whether a larger receive buffer helps",
        change: "a larger receive buffer",
    },
    TrialKind {
        id: "larger-send-buffer",
        factor: Factor::LargerSendBuffer,
        words: "whether a larger send buffer helps",
        change: "a larger send buffer",
    },
    // Settings of a host, where it was allowed to change them.
    TrialKind {
        id: "host-window",
        factor: Factor::HostWindow,
        words: "whether a host that allows a larger receive buffer helps",
        change: "raising the receiving host's limit of receive buffers",
    },
    TrialKind {
        id: "host-send-buffer",
        factor: Factor::HostSendBuffer,
        words: "whether a host that allows a larger send buffer helps",
        change: "raising the sending host's limit of send buffers",
    },
    TrialKind {
        id: "host-offloads",
        factor: Factor::HostOffloads,
        words: "whether the port's offloads help",
        change: "switching the port's offloads on",
    },
    TrialKind {
        id: "host-room",
        factor: Factor::HostRoom,
        words: "whether more room in the host's own queue helps",
        change: "more room in the host's own queue",
    },
    TrialKind {
        id: "host-spread",
        factor: Factor::HostSpread,
        words: "whether packets gain on CPUs that have little to do",
        change: "handing the port's packets to idle CPUs",
    },
    TrialKind {
        id: "other-ports",
        factor: Factor::OtherPorts,
        words: "whether streams gain in receive queues of their own",
        change: "other source ports",
    },
    TrialKind {
        id: "more-streams",
        factor: Factor::MoreStreams,
        words: "whether twice the streams help",
        change: "twice the streams",
    },
    TrialKind {
        id: "other-congestion",
        factor: Factor::OtherCongestion,
        words: "whether another congestion control does better",
        change: "another congestion control",
    },
    TrialKind {
        id: "half-pace",
        factor: Factor::Paced,
        words: "whether less is lost, or waits, at half the pace",
        change: "half the pace",
    },
    TrialKind {
        id: "receiver-work",
        factor: Factor::ReceiverWork,
        words: "whether the receiving threads have time to spare",
        change: "25 % more work on the receiving thread",
    },
    TrialKind {
        id: "sender-work",
        factor: Factor::SenderWork,
        words: "whether the sending threads have time to spare",
        change: "25 % more work on the sending thread",
    },
    TrialKind {
        id: "half-window",
        factor: Factor::HalfWindow,
        words: "whether half the receive window halves the goodput",
        change: "half the receive window",
    },
    TrialKind {
        id: "half-send-buffer",
        factor: Factor::HalfSendBuffer,
        words: "whether half the send buffer halves the goodput",
        change: "half the send buffer",
    },
    TrialKind {
        id: "smaller-reads",
        factor: Factor::SmallerReads,
        words: "whether the size of a read matters",
        change: "reads of half the size",
    },
    TrialKind {
        id: "smaller-writes",
        factor: Factor::SmallerWrites,
        words: "whether the size of a write matters",
        change: "writes of half the size",
    },
    TrialKind {
        id: "smaller-mss",
        factor: Factor::SmallerMss,
        words: "whether smaller packets get through",
        change: "segments of half the size",
    },
    TrialKind {
        id: "near-interrupts",
        factor: Factor::NearInterrupts,
        words: "whether threads gain beside the port's interrupts",
        change: "moving the threads to the node of the port's interrupts",
    },
    TrialKind {
        id: "other-cpu",
        factor: Factor::OtherCpu,
        words: "whether threads gain on a CPU that has nothing else to do",
        change: "moving the threads to an idle CPU",
    },
    // Last: how much they gain depends on what a copy weighs here, which only the trial shows.
    TrialKind {
        id: "discard",
        factor: Factor::Discard,
        words: "whether the receiving thread gains where nothing is copied to it",
        change: "dropping the payload in the kernel",
    },
    TrialKind {
        id: "zero-copy",
        factor: Factor::ZeroCopy,
        words: "whether the sending thread gains where nothing is copied from it",
        change: "handing payload over without a copy",
    },
];

/// Share of the wall time of each byte that the work trials add.
pub const WORK_SHARE: f64 = 0.25;

/// Segment that fits an IPv4 packet of 576 bytes, which every host must take (RFC 9293, section 3.7.1).
pub const SMALL_MSS: u32 = 536;

/// Most blocks of four slices in a trial.
pub const BLOCKS: u32 = 5;

/// The row of an id.
pub fn kind(id: &str) -> Option<&'static TrialKind> {
    TRIALS.iter().find(|k| k.id == id)
}

impl TrialPlan {
    /// What this trial changes; `None` for a kind that this version does not know.
    pub fn factor(&self) -> Option<Factor> {
        kind(&self.kind).map(|k| k.factor)
    }

    /// How many times the streams of setting A setting B has.
    pub fn stream_ratio(&self) -> f64 {
        f64::from(self.after.streams) / f64::from(self.before.streams.max(1))
    }
}

/// Wall time of one byte on one thread of `streams` that carry `goodput` bits per second together, in
/// picoseconds; `None` without goodput.
pub fn ps_per_byte(goodput: f64, streams: u32) -> Option<f64> {
    (goodput > 0.0).then(|| 8e12 * f64::from(streams) / goodput)
}

impl TrialKind {
    /// The trial of this kind on one direction; `None` where it changes nothing or cannot be made.
    pub fn propose(&self, model: &Model, direction: Direction, id: u32) -> Option<TrialPlan> {
        let load = &model.direction(direction)?.base;
        if load.datagrams.is_some() && !self.factor.is_of_datagrams() {
            return None;
        }
        let (before, after) = self.settings(model, direction, load)?;
        (before != after).then(|| TrialPlan {
            id,
            kind: self.id.to_owned(),
            direction,
            before,
            after,
            max_blocks: match self.factor {
                // Its slices may be long, and what three blocks do not tell five hardly do.
                Factor::Paced => 3,
                _ => BLOCKS,
            },
        })
    }

    fn settings(&self, model: &Model, direction: Direction, load: &Load) -> Option<(Knobs, Knobs)> {
        let mut before = load.knobs.clone();
        let mut after = before.clone();
        match self.factor {
            Factor::MoreStreams => {
                after.streams = before.streams.checked_mul(2).filter(|n| *n <= 64)?;
            }
            Factor::LargerWindow => {
                let limit = buffers(model, direction.receiver()).rmem_max;
                after.recv_buffer = Some(larger(window_memory(load)?, limit)?);
            }
            Factor::LargerSendBuffer => {
                let limit = buffers(model, direction.sender()).wmem_max;
                after.send_buffer = Some(larger(load.tcp.send_memory?, limit)?);
            }
            Factor::HostWindow => after = host::window(model, direction)?,
            Factor::HostSendBuffer => after = host::send_buffer(model, direction)?,
            Factor::HostOffloads => after.host = Some(host::offloads(model, direction)?),
            Factor::HostRoom => after.host = Some(host::room(model, direction)?),
            Factor::HostSpread => after.host = Some(host::spread(model, direction)?),
            Factor::HalfWindow => after.window_clamp = Some(half_window(load)?),
            // The kernel doubles what is asked for.
            Factor::HalfSendBuffer => {
                after.send_buffer = Some(Bytes((load.tcp.send_memory?.0 / 4).max(4096)));
            }
            Factor::SenderWork => after.extra_work = work(load, true)?,
            Factor::ReceiverWork => after.extra_work = work(load, false)?,
            Factor::SmallerReads => {
                let size = operation(&load.receivers)?;
                before.read_size = Bytes(size);
                after.read_size = Bytes(size / 2);
            }
            Factor::SmallerWrites => {
                let size = operation(&load.senders)?;
                before.write_size = Bytes(size);
                after.write_size = Bytes(size / 2);
            }
            Factor::OtherCongestion => {
                after.congestion = Some(other_congestion(model, direction, load)?);
            }
            Factor::Unpaced => after.pacing = None,
            Factor::Paced => after.pacing = Some(half_pace(model, direction, load)?),
            // Datagrams are as large as what is written.
            Factor::SmallerMss if load.datagrams.is_some() => {
                load.silent()?;
                after.write_size = Bytes(smaller_mss(load)?.into());
            }
            Factor::SmallerMss => after.mss = Some(smaller_mss(load)?),
            Factor::Discard => after.receive = Receive::Discard,
            Factor::ZeroCopy => after.copy = without_copy(load)?,
            Factor::NearInterrupts => to_near_interrupts(&mut after, model, direction)?,
            Factor::OtherCpu => to_other_cpus(&mut after, model, direction)?,
            Factor::OtherPorts => {
                crowded(model, direction)?;
                after.other_ports = true;
            }
        }
        Some((before, after))
    }
}

/// Memory behind the receive window, where more of it makes the window larger: not of one that is not scaled.
fn window_memory(load: &Load) -> Option<Bytes> {
    let scaled = load.tcp.window_scaling != Some(false);
    load.recv_memory.filter(|_| scaled)
}

/// Half of the bytes in flight, not of the option's value: buffers count memory, not payload.
fn half_window(load: &Load) -> Option<Bytes> {
    let used = load.tcp.in_flight?.0.min(load.tcp.window?.0);
    Some(Bytes((used / 2).max(4096)))
}

/// Moves one end's threads to the node that interrupts are sent to.
fn to_near_interrupts(knobs: &mut Knobs, model: &Model, direction: Direction) -> Option<()> {
    let (side, node) = follows(model, direction)?;
    if side == direction.sender() {
        knobs.sender_node = Some(node);
    } else {
        knobs.receiver_node = Some(node);
    }
    Some(())
}

/// Moves one end's threads to CPUs that have time.
fn to_other_cpus(knobs: &mut Knobs, model: &Model, direction: Direction) -> Option<()> {
    let to = elsewhere(model, direction)?;
    if to.side == direction.sender() {
        knobs.sender_cpus = to.cpus;
    } else {
        knobs.receiver_cpus = to.cpus;
    }
    Some(())
}

/// Writes below which holding pages costs more than to copy them.
//= https://docs.kernel.org/networking/msg_zerocopy.html: generally only effective over around 10 KB
const WORTH_HOLDING: u64 = 10_000;

/// The kernel sends the pages itself, where a write has enough of them.
fn without_copy(load: &Load) -> Option<Handover> {
    let copies = load.knobs.copy == Handover::Copy;
    (copies && operation(&load.senders)? >= WORTH_HOLDING).then_some(Handover::Zerocopy)
}

/// Half the segment; where nothing gets through, one that every link carries.
fn smaller_mss(load: &Load) -> Option<u32> {
    let mss = u32::try_from(load.tcp.mss?.0).ok()?;
    let half = (mss / 2).max(SMALL_MSS);
    let wanted = load.silent().map_or(half, |_| SMALL_MSS);
    (wanted < mss).then_some(wanted)
}

/// Half of what each stream carries, where enough is lost, or round trips are long enough, for the trial
/// to tell something.
fn half_pace(model: &Model, direction: Direction, load: &Load) -> Option<Rate> {
    if lost(load).is_none() && raised(model, direction).is_err() {
        return None;
    }
    let each = load.goodput.mean / f64::from(load.streams.max(1));
    // The kernel counts it in bytes.
    (each >= 16.0).then_some(Rate((each / 2.0) as u64))
}

fn buffers(model: &Model, side: crate::plan::Side) -> crate::facts::BufferLimits {
    let host = model.host(side);
    host.map(|h| h.facts.buffers).unwrap_or_default()
}

/// A congestion control that the sender may choose and that works in another way: by loss where the
/// present one paces, and the other way round.
fn other_congestion(model: &Model, direction: Direction, load: &Load) -> Option<String> {
    let present = load.made[0].congestion.as_str();
    let host = model.host(direction.sender())?;
    let wanted: &[&str] = if present == "bbr" {
        &["cubic", "reno"]
    } else {
        &["bbr"]
    };
    let may = |name: &&str| host.facts.congestion_available.iter().any(|c| c == name);
    wanted.iter().copied().find(may).map(str::to_owned)
}

/// What to ask for to get four times the memory, or as much as the host allows; `None` where that
/// is less than half as much again. The kernel doubles what is asked for.
fn larger(memory: Bytes, limit: Option<u64>) -> Option<Bytes> {
    let ask = memory.0.saturating_mul(2).min(limit?);
    (ask.saturating_mul(2) >= memory.0.saturating_add(memory.0 / 2)).then_some(Bytes(ask))
}

fn work(load: &Load, on_sender: bool) -> Option<ExtraWork> {
    let extra = (ps_per_byte(load.goodput.mean, load.streams)? * WORK_SHARE) as u64;
    let own = load.knobs.extra_work;
    Some(if on_sender {
        ExtraWork {
            sender_ps_per_byte: own.sender_ps_per_byte.saturating_add(extra),
            ..own
        }
    } else {
        ExtraWork {
            receiver_ps_per_byte: own.receiver_ps_per_byte.saturating_add(extra),
            ..own
        }
    })
}

/// Bytes of a typical operation, when there is room to halve it.
fn operation(threads: &[crate::model::Thread]) -> Option<u64> {
    let sizes: Vec<f64> = threads.iter().filter_map(|t| t.bytes_per_op).collect();
    let mean = sizes.iter().sum::<f64>() / sizes.len().max(1) as f64;
    (mean >= 2.0).then_some(mean as u64)
}

/// Time of a slice that counts.
const SLICE: Nanos = Nanos::from_millis(400);

/// Longest time of a slice that counts.
const LONGEST: f64 = 1.0;

/// Segments that should be lost in a slice at half the pace, for their number to tell something.
const LOSSES: f64 = 4.0;

/// Round trips beside the load that a slice should hold, for their median to tell something.
const ROUND_TRIPS: f64 = 8.0;

/// Time of a slice of a trial of `factor` that counts: long enough to lose some segments, or for some
/// round trips, where they are what is counted.
pub fn slice_time(load: &Load, factor: Option<Factor>) -> Nanos {
    if factor != Some(Factor::Paced) {
        return SLICE;
    }
    let losses = || {
        let segments = load.goodput.mean / 8.0 / load.tcp.mss?.0.max(1) as f64;
        Some(LOSSES / (lost(load)? * segments / 2.0))
    };
    let beside = load.latency.as_ref().and_then(|l| l.percentile(50.0));
    let trips = beside.map(|trip| trip.secs() * ROUND_TRIPS);
    let longest = losses().unwrap_or(0.0).max(trips.unwrap_or(0.0));
    Nanos((longest.clamp(SLICE.secs(), LONGEST) * 1e9) as u64)
}

/// Time that a slice leaves for queues and windows to settle. Connections of the other setting were
/// idle meanwhile: the kernel lets them start slowly again, which takes about ten round trips of the
/// empty path to a window of a thousand segments. Where a queue stands it is filled then, overrun, and
/// what was lost is sent again: four times what it adds to the round trip.
pub fn washout(tcp: &TcpShares) -> Nanos {
    let loaded = tcp.rtt.unwrap_or_default().0;
    let empty = tcp.min_rtt.map_or(loaded, |rtt| rtt.0.min(loaded));
    Nanos((empty * 12 + (loaded - empty) * 4).clamp(150_000_000, 1_500_000_000))
}
