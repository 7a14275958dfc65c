//! Trials that change a setting of a host, where nothing that the tool owns could be asked for as much.

use super::{buffers, larger, window_memory};
use crate::change::{HostChange, Setting};
use crate::model::Model;
use crate::plan::{Direction, Knobs, Side};
use crate::units::Bytes;

/// Setting B of a trial with a higher limit of the receiving host's buffers.
pub(super) fn window(model: &Model, direction: Direction) -> Option<Knobs> {
    let load = &model.direction(direction)?.base;
    let side = direction.receiver();
    let limits = buffers(model, side);
    let buffer = Buffer {
        side,
        memory: window_memory(load)?,
        asked: load.knobs.recv_buffer.is_some(),
        autotuning: (Setting::TcpRmem, limits.tcp_rmem.map(|[.., most]| most)),
        asking: (Setting::RmemMax, limits.rmem_max),
    };
    let (host, recv_buffer) = buffer.lifted(model)?;
    Some(Knobs {
        host: Some(host),
        recv_buffer,
        ..load.knobs.clone()
    })
}

/// The same of the sending host's.
pub(super) fn send_buffer(model: &Model, direction: Direction) -> Option<Knobs> {
    let load = &model.direction(direction)?.base;
    let side = direction.sender();
    let limits = buffers(model, side);
    let buffer = Buffer {
        side,
        memory: load.tcp.send_memory?,
        asked: load.knobs.send_buffer.is_some(),
        autotuning: (Setting::TcpWmem, limits.tcp_wmem.map(|[.., most]| most)),
        asking: (Setting::WmemMax, limits.wmem_max),
    };
    let (host, send_buffer) = buffer.lifted(model)?;
    Some(Knobs {
        host: Some(host),
        send_buffer,
        ..load.knobs.clone()
    })
}

/// One end's buffer, and what limits it: a setting and its value.
struct Buffer {
    side: Side,
    memory: Bytes,
    /// Its size was asked for, which turns autotuning off.
    asked: bool,
    autotuning: (Setting, Option<u64>),
    asking: (Setting, Option<u64>),
}

impl Buffer {
    /// The change that lets it have four times its memory, and what is to be asked for then. `None`
    /// where that may be asked for as it is, or where the limit is not what keeps it small.
    fn lifted(&self, model: &Model) -> Option<(HostChange, Option<Bytes>)> {
        if larger(self.memory, self.asking.1).is_some() {
            return None;
        }
        // The kernel doubles what is asked for.
        let ((setting, limit), used, value) = if self.asked {
            let half = self.memory.0 / 2;
            (self.asking, half, half.saturating_mul(4))
        } else {
            (
                self.autotuning,
                self.memory.0,
                self.memory.0.saturating_mul(4),
            )
        };
        let (limit, value) = (limit?, value.min(setting.row().bounds.1));
        // The mean over a ramp is a little less than where the buffer ended.
        let held = used.saturating_add(used / 3) >= limit;
        if !held || value < limit.saturating_add(limit / 2) {
            return None;
        }
        let change = allowed(model, self.side, setting, value)?;
        Some((change, self.asked.then_some(Bytes(value))))
    }
}

/// The offloads of the sending host's port switched on, else of the receiving host's, where some
/// are off.
pub(super) fn offloads(model: &Model, direction: Direction) -> Option<HostChange> {
    let on = |side, setting| allowed(model, side, setting, 1);
    on(direction.sender(), Setting::SendOffloads)
        .or_else(|| on(direction.receiver(), Setting::ReceiveOffloads))
}

fn allowed(model: &Model, side: Side, setting: Setting, value: u64) -> Option<HostChange> {
    let host = model.hosts.iter().find(|h| h.side == side)?;
    host.facts.may_change(setting).then_some(HostChange {
        side,
        setting,
        value,
    })
}
