//! Settings of linerate's own connections that a trial changes.

use super::slice::loses_little;
use super::{SMALL_MSS, WORK_SHARE, disk, host, verbs};
use crate::causes::{ROOM, crowded, raised};
use crate::model::{Load, Model, Thread, elsewhere, follows};
use crate::signs::crowd::crowds;
use crate::signs::lossy::often_retransmitted;
use crate::signs::threads::{at_work, ps_per_byte};
use linerate_facts::BufferLimits;
use linerate_plan::factor::Factor;
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::Feature;
use linerate_plan::{ExtraWork, Handover, Knobs, Receive};
use linerate_units::{Bytes, Rate};

/// Largest number of streams that a trial uses.
const MOST_STREAMS: u32 = 64;

/// Largest number of operations that a trial keeps in flight in one stream.
pub(super) const MOST_DEPTH: u32 = 1024;

/// Twice `number`; `None` if that is more than `most`.
pub(super) fn twice(number: u32, most: u32) -> Option<u32> {
    number.checked_mul(2).filter(|twice| *twice <= most)
}

/// The settings before and after the change of a trial of `factor`; `None` if it would change nothing or is impossible.
pub(super) fn settings(
    factor: Factor,
    model: &Model,
    direction: Direction,
    load: &Load,
) -> Option<(Knobs, Knobs)> {
    if load.has(Feature::Verbs) && verbs::has(factor) {
        return verbs::settings(factor, direction, load);
    }
    if load.has(Feature::Disk) && disk::has(factor) {
        return disk::settings(factor, model, load);
    }
    common(factor, model, direction, load)
}

/// Changes the settings of `factor`, if it is not an option of one transport.
fn common(
    factor: Factor,
    model: &Model,
    direction: Direction,
    load: &Load,
) -> Option<(Knobs, Knobs)> {
    let mut before = load.knobs.clone();
    let mut after = before.clone();
    match factor {
        Factor::MoreStreams => after.streams = twice(before.streams, MOST_STREAMS)?,
        Factor::MoreDepth => after.depth = twice(before.depth, MOST_DEPTH)?,
        Factor::Crowd => [before.streams, after.streams] = crowds(model, direction)?,
        Factor::LargerWindow => {
            let limit = buffers(model, direction.receiver()).rmem_max;
            let larger = larger(window_memory(load)?, limit)?;
            after.recv_buffer = Some(if load.has(Feature::Datagrams) {
                larger.max(Bytes(ROOM.min(limit?)))
            } else {
                larger
            });
        }
        Factor::LargerSendBuffer => {
            let limit = buffers(model, direction.sender()).wmem_max;
            after.send_buffer = Some(larger(load.tcp.send_room()?, limit)?);
        }
        Factor::HostWindow => after = host::window(model, direction)?,
        Factor::HostSendBuffer => after = host::send_buffer(model, direction)?,
        Factor::HostOffloads => after.host = Some(host::offloads(model, direction)?),
        Factor::HostRoom => after.host = Some(host::room(model, direction)?),
        Factor::HostSpread => after.host = Some(host::spread(model, direction)?),
        Factor::HalfWindow => after.window_clamp = Some(half_window(load)?),
        Factor::HalfSendBuffer => after.send_buffer = Some(half_send_buffer(load)?),
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
        // A datagram is as large as one write of the program.
        Factor::SmallerMss if load.has(Feature::Datagrams) => {
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
        // Options of one transport.
        _ => return None,
    }
    Some((before, after))
}

/// Memory of the receive buffer, if more memory makes the window larger; `None` for a window without scaling.
pub(super) fn window_memory(load: &Load) -> Option<Bytes> {
    let scaled = load.tcp.window_scaling != Some(false);
    load.recv_memory.filter(|_| scaled)
}

/// Smallest window that a trial requests: the kernel gives no window below about one segment.
//= Linux, tcp_set_window_clamp(): SOCK_MIN_RCVBUF / 2
const WINDOW_MIN: u64 = 4096;

/// A window of half of the bytes in flight. The option's value is not halved: buffers count memory, not payload.
fn half_window(load: &Load) -> Option<Bytes> {
    let used = load.tcp.in_flight?.0.min(load.tcp.window?.0);
    Some(Bytes(used / 2)).filter(|half| half.0 >= WINDOW_MIN)
}

/// Moves one end's threads to the NUMA node that receives the port's interrupts.
fn to_near_interrupts(knobs: &mut Knobs, model: &Model, direction: Direction) -> Option<()> {
    let (side, node) = follows(model, direction)?;
    if side == direction.sender() {
        knobs.sender_node = Some(node);
    } else {
        knobs.receiver_node = Some(node);
    }
    Some(())
}

/// Moves one end's threads to CPUs with spare time.
fn to_other_cpus(knobs: &mut Knobs, model: &Model, direction: Direction) -> Option<()> {
    let to = elsewhere(model, direction)?;
    if to.side == direction.sender() {
        knobs.sender_cpus = to.cpus;
    } else {
        knobs.receiver_cpus = to.cpus;
    }
    Some(())
}

/// Smallest write at which holding pages costs less than copying them.
//= https://docs.kernel.org/networking/msg_zerocopy.html: generally only effective over around 10 KB
const WORTH_HOLDING: u64 = 10_000;

/// The zero-copy setting, by which the kernel sends the program's own pages, if writes are large enough.
fn without_copy(load: &Load) -> Option<Handover> {
    let copies = load.knobs.copy == Handover::Copy;
    (copies && operation(&load.senders)? >= WORTH_HOLDING).then_some(Handover::Zerocopy)
}

/// Half the segment size; if no payload arrives, a size that every link carries.
fn smaller_mss(load: &Load) -> Option<u32> {
    let mss = u32::try_from(load.packets?.payload.0).ok()?;
    let half = (mss / 2).max(SMALL_MSS);
    let wanted = load.silent().map_or(half, |_| SMALL_MSS);
    (wanted < mss).then_some(wanted)
}

/// Half the rate of each stream, if enough is lost, or round trips are long enough, for the trial to show something. If
/// little is lost, another congestion control that may gain is tried first: goodput shows its effect.
fn half_pace(model: &Model, direction: Direction, load: &Load) -> Option<Rate> {
    let long = || raised(model, direction).is_ok();
    if often_retransmitted(load).is_none() && !long() {
        return None;
    }
    let gains = || other_congestion(model, direction, load).as_deref() == Some("bbr");
    let untried = || model.tried(direction, Factor::OtherCongestion).is_none();
    if loses_little(load) && load.has(Feature::Connections) && !long() && gains() && untried() {
        return None;
    }
    let each = load.goodput.mean / f64::from(load.streams.max(1));
    // The kernel counts the pace in bytes per second.
    (each >= 16.0).then_some(Rate((each / 2.0) as u64))
}

pub(super) fn buffers(model: &Model, side: Side) -> BufferLimits {
    let host = model.host(side);
    host.map(|h| h.facts.buffers).unwrap_or_default()
}

/// A congestion control that the sender may use and that works in another way: one that paces instead of one that
/// follows loss, and the other way round.
fn other_congestion(model: &Model, direction: Direction, load: &Load) -> Option<String> {
    let present = load.made.sender.congestion.as_str();
    let host = model.host(direction.sender())?;
    let wanted: &[&str] = if present == "bbr" { &["cubic", "reno"] } else { &["bbr"] };
    let may = |name: &&str| host.facts.congestion_available.iter().any(|c| c == name);
    wanted.iter().copied().find(may).map(str::to_owned)
}

/// The buffer size to request for four times the memory, or for as much as the host allows; `None` if the memory would
/// grow by less than half. The kernel doubles the size that is requested.
pub(super) fn larger(memory: Bytes, limit: Option<u64>) -> Option<Bytes> {
    let ask = memory.0.saturating_mul(2).min(limit?);
    (ask.saturating_mul(2) >= memory.0.saturating_add(memory.0 / 2)).then_some(Bytes(ask))
}

/// Minimum memory of a send buffer that can be halved: below, half the memory would not hold half the payload, since
/// the kernel takes whole groups of segments.
const GROUPS: u64 = 4 << 16;

/// The buffer size to request for half the memory; the kernel doubles the size that is requested.
fn half_send_buffer(load: &Load) -> Option<Bytes> {
    let memory = load.tcp.send_memory?;
    (memory.0 >= GROUPS).then_some(Bytes(memory.0 / 4))
}

fn work(load: &Load, on_sender: bool) -> Option<ExtraWork> {
    let threads = if on_sender { &load.senders } else { &load.receivers };
    let threads = at_work(threads, load.streams);
    let extra = (ps_per_byte(load.goodput.mean, threads)? * WORK_SHARE) as u64;
    let own = load.knobs.extra_work;
    Some(if on_sender {
        ExtraWork { sender_ps_per_byte: own.sender_ps_per_byte.saturating_add(extra), ..own }
    } else {
        ExtraWork { receiver_ps_per_byte: own.receiver_ps_per_byte.saturating_add(extra), ..own }
    })
}

/// Bytes of a typical operation, if it is large enough to be halved.
fn operation(threads: &[Thread]) -> Option<u64> {
    let sizes: Vec<f64> = threads.iter().filter_map(|t| t.bytes_per_op).collect();
    let mean = sizes.iter().sum::<f64>() / sizes.len().max(1) as f64;
    (mean >= 2.0).then_some(mean as u64)
}
