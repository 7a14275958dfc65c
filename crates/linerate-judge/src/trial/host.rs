//! Trials that change a setting of a host, where no setting of linerate's own connections could have that effect.

use super::settings::{buffers, larger, window_memory};
use crate::causes::{full_of_packets, most_dropped};
use crate::model::{LocalEvent, Model, idle};
use linerate_plan::Knobs;
use linerate_plan::change::{HostChange, Setting};
use linerate_plan::path::{Direction, Side};
use linerate_units::Bytes;

/// Seconds of the load that a queue limited in bytes must hold, besides two round trips: as much as bursts and
/// loss-based congestion control can use.
const QUEUED: f64 = 0.1;

/// The changed setting of a trial that raises the limit of the receiving host's buffers.
pub(super) fn window(model: &Model, direction: Direction) -> Option<Knobs> {
    let load = &model.direction(direction)?.base;
    let side = direction.receiver();
    let limits = buffers(model, side);
    let buffer = Buffer {
        side,
        memory: window_memory(load)?,
        requested: load.knobs.recv_buffer.is_some(),
        autotuning: (Setting::TcpRmem, limits.tcp_rmem.map(|[.., most]| most)),
        asking: (Setting::RmemMax, limits.rmem_max),
    };
    let (host, recv_buffer) = buffer.lifted(model)?;
    Some(Knobs { host: Some(host), recv_buffer, ..load.knobs.clone() })
}

/// The changed setting of a trial that raises the limit of the sending host's buffers.
pub(super) fn send_buffer(model: &Model, direction: Direction) -> Option<Knobs> {
    let load = &model.direction(direction)?.base;
    let side = direction.sender();
    let limits = buffers(model, side);
    let buffer = Buffer {
        side,
        memory: load.tcp.send_room()?,
        requested: load.knobs.send_buffer.is_some(),
        autotuning: (Setting::TcpWmem, limits.tcp_wmem.map(|[.., most]| most)),
        asking: (Setting::WmemMax, limits.wmem_max),
    };
    let (host, send_buffer) = buffer.lifted(model)?;
    Some(Knobs { host: Some(host), send_buffer, ..load.knobs.clone() })
}

/// The buffer of one end, and the two settings that may limit it, each with its value.
struct Buffer {
    side: Side,
    memory: Bytes,
    /// Whether a program requested the size of the buffer, which turns autotuning off.
    requested: bool,
    autotuning: (Setting, Option<u64>),
    asking: (Setting, Option<u64>),
}

impl Buffer {
    /// The change of the host that allows four times the buffer's memory, and the size to request then. `None` if that
    /// size is allowed already, or if the limit is not why the buffer is small.
    fn lifted(&self, model: &Model) -> Option<(HostChange, Option<Bytes>)> {
        if larger(self.memory, self.asking.1).is_some() {
            return None;
        }
        // The kernel doubles the size that is requested.
        let ((setting, limit), used, value) = if self.requested {
            let half = self.memory.0 / 2;
            (self.asking, half, half.saturating_mul(4))
        } else {
            (self.autotuning, self.memory.0, self.memory.0.saturating_mul(4))
        };
        let (limit, value) = (limit?, value.min(setting.row().bounds.1));
        // The mean over a ramp is a little less than the final size of the buffer.
        let held = used.saturating_add(used / 3) >= limit;
        if !held || value < limit.saturating_add(limit / 2) {
            return None;
        }
        let change = allowed(model, self.side, setting, value)?;
        Some((change, self.requested.then_some(Bytes(value))))
    }
}

/// The change that switches on the offloads of the sending host's port, else those of the receiving host's port; `None`
/// if no offload is off.
pub(super) fn offloads(model: &Model, direction: Direction) -> Option<HostChange> {
    let on = |side, setting| allowed(model, side, setting, 1);
    on(direction.sender(), Setting::SendOffloads)
        .or_else(|| on(direction.receiver(), Setting::ReceiveOffloads))
}

/// The change that gives more room to the queue which drops most of the payload, at one of the hosts.
pub(super) fn room(model: &Model, direction: Direction) -> Option<HostChange> {
    let load = &model.direction(direction)?.base;
    let local = most_dropped(model, load, direction)?;
    let mut words = local.subject.split(' ');
    let (port, kind) = (words.next()?, words.next());
    let own = || model.host(local.side)?.facts.port.as_ref();
    let here = || own().is_some_and(|own| own.name == port);
    let setting = match (local.what, kind) {
        (LocalEvent::Backlog, _) => Setting::Backlog,
        (LocalEvent::Queue, Some("tbf")) if here() => Setting::QueueBytes,
        (LocalEvent::Queue, Some("pfifo")) if here() => Setting::QueuePackets,
        _ => return None,
    };
    let (least, most) = setting.row().bounds;
    let value = match setting {
        Setting::QueueBytes => {
            let trips = load.tcp.min_rtt.map_or(0.0, |rtt| rtt.secs() * 2.0);
            let bytes = load.goodput.mean / 8.0 * (QUEUED + trips);
            (bytes as u64).clamp(least, most)
        }
        _ => most,
    };
    allowed(model, local.side, setting, value)
}

/// The change that hands packets of a port to the host's idle CPUs, if the port's CPU is full of packets.
pub(super) fn spread(model: &Model, direction: Direction) -> Option<HostChange> {
    let side = full_of_packets(model, direction)?;
    let idle = idle(model, direction, side);
    let mask = idle.iter().filter(|cpu| **cpu < u32::BITS);
    let mask = mask.fold(0, |mask, cpu| mask | 1_u64 << cpu);
    let (least, most) = Setting::PacketCpus.row().bounds;
    let some = (least..=most).contains(&mask);
    some.then(|| allowed(model, side, Setting::PacketCpus, mask))?
}

fn allowed(model: &Model, side: Side, setting: Setting, value: u64) -> Option<HostChange> {
    let host = model.hosts.iter().find(|h| h.side == side)?;
    host.facts.may_change(setting).then_some(HostChange { side, setting, value })
}
