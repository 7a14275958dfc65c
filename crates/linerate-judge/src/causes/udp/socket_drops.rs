//! Datagrams arrive at the receiving host, but its socket has no room for them, although the reader has spare time.

use crate::causes::BUSY;
use crate::causes::host::core_bound::kept_from_its_cpu;
use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::causes::udp::datagrams::{AT_SOCKET, FEWER, at_the_socket, has_room, reader, words};
use crate::signs::threads::wanted;
use linerate_facts::BufferLimits;
use linerate_facts::advice::Kept;
use linerate_units::Bytes;

/// CPU utilization below which a reader certainly has spare time: drops are then due to a full buffer.
const IDLE: f64 = 0.5;

/// The receive buffer to request: it holds some milliseconds of any rate that one thread can read. A buffer that is a
/// few times larger is no improvement if one group of coalesced datagrams fills it.
pub(crate) const ROOM: u64 = 8 << 20;

pub(crate) static CAUSE: Cause = Cause {
    id: "socket-drops",
    name: "the receive buffer overflows",
    needs: &[Feature::Datagrams],
    stage: Stage::Socket,
    decided_by: &[Factor::LargerWindow],
    page: include_str!("../pages/socket-drops.md"),
    check,
    predict,
    predict_loss,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let Some(reported) = &load.datagrams else {
        return Err(clear("a connection sends only as much as the buffer has room for"));
    };
    let dropped = at_the_socket(model, direction, reported)?;
    let side = direction.receiver();
    let Some(busy) = wanted(&load.receivers) else {
        return Err(lacks(model, "thread", side));
    };
    if busy >= BUSY {
        return Err(clear(format!(
            "the receiving thread needed its CPU {} of the time: no room makes it faster",
            percent(busy)
        )));
    }
    if let Some(id) = kept_from_its_cpu(model, direction, side) {
        return Err(clear(format!("the receiving thread does not get its CPU: {id}")));
    }
    let memory = load.recv_memory;
    let evidence = std::iter::once(words(reported, dropped, AT_SOCKET))
        .chain(reader(load))
        .chain(memory.map(|bytes| format!("its receive buffer has {bytes} of memory")))
        .collect();
    Ok(Finding::at(side, dropped, evidence).enough(busy < IDLE))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    match trial.factor()? {
        // With a larger receive buffer, all or some of the lost datagrams arrive.
        Factor::LargerWindow => {
            Some(Range { low: 0.97, high: 1.1 / (1.0 - load.datagrams?.lost).max(0.01) })
        }
        // Each stream has its own socket.
        Factor::MoreStreams => Some(Range {
            low: 0.6,
            high: trial.stream_ratio() * 1.1 / (1.0 - load.datagrams?.lost).max(0.01),
        }),
        _ => bystander(model, trial),
    }
}

fn predict_loss(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    (trial.factor()? == Factor::LargerWindow && has_room(load, trial)).then_some(FEWER)
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|d| &d.base);
    load.map(|load| room(model, load, direction.receiver())).into_iter().collect()
}

/// Advice for a larger buffer: the program can request one up to the host's limit; beyond, the limit must be raised.
fn room(model: &Model, load: &Load, side: Side) -> Advice {
    let most = model.host(side).and_then(|host| host.facts.buffers.rmem_max);
    let requested = load.recv_memory.map(|memory| memory.0 / 2);
    match most.zip(requested) {
        Some((most, requested)) if most > requested => Advice::new(format!(
            "let the receiving program set a larger buffer (SO_RCVBUF), up to the {} that {} allows",
            Bytes(most),
            side.name()
        )),
        _ => {
            let name = "net.core.rmem_max";
            let set = |most: u64| format!("sudo sysctl -w {name}={most}");
            let room =
                most.map_or(ROOM, |most| ROOM.max(most.saturating_mul(2)).min(BufferLimits::MOST));
            let advice = Advice::new(format!(
                "allow receive buffers of {}, and let the receiving program set that size (SO_RCVBUF)",
                Bytes(room)
            ));
            match most {
                Some(most) => advice.set(side, set(room)).undo_on(side, set(most)),
                None => advice.keeping(side, Kept::sysctl(name), set(room)),
            }
        }
    }
}
