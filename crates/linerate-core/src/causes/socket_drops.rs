//! Datagrams reach the receiving host and find no room at the socket, although its reader has time.

use super::core_bound::kept_from_its_cpu;
use super::datagrams::{FEWER, at_the_socket, has_room, reader, words};
use super::predict::bystander;
use super::{Answer, BUSY, Cause, CauseInfo, Finding, NoFinding, base, lacks};
use crate::advice::{Advice, Kept};
use crate::factor::Factor;
use crate::facts::BufferLimits;
use crate::model::{Load, Model};
use crate::path::{Direction, Place, Side, Stage};
use crate::record::TrialPlan;
use crate::signs::percent;
use crate::signs::threads::wanted;
use crate::stats::Range;
use crate::transport::Scope;
use crate::units::Bytes;

/// Cause `socket-drops`.
pub(super) struct SocketDrops;

/// Share of its CPU below which a reader has time for certain: what is dropped is dropped for want of room.
const IDLE: f64 = 0.5;

/// Receive buffer to ask for, which holds some milliseconds of any rate that one thread can read. A few times a small one
/// is no more room where one group of joined datagrams fills that.
pub(crate) const ROOM: u64 = 8 << 20;

static INFO: CauseInfo = CauseInfo {
    id: "socket-drops",
    name: "the receive buffer overflows",
    scope: Scope::Udp,
    stage: Stage::Socket,
    decided_by: &[Factor::LargerWindow],
    page: include_str!("pages/socket-drops.md"),
    ..CauseInfo::BASE
};

impl Cause for SocketDrops {
    fn info(&self) -> &'static CauseInfo {
        &INFO
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let load = base(model, direction)?;
        let Some(told) = &load.datagrams else {
            return Err(NoFinding::Clear(
                "a connection does not send what has no room".to_owned(),
            ));
        };
        let dropped = at_the_socket(model, direction, told)?;
        let side = direction.receiver();
        let Some(busy) = wanted(&load.receivers) else {
            return Err(lacks(model, "thread", side));
        };
        if busy >= BUSY {
            return Err(NoFinding::Clear(format!(
                "the receiving thread needed its CPU {} of the time: no room makes it faster",
                percent(busy)
            )));
        }
        if let Some(id) = kept_from_its_cpu(model, direction, side) {
            return Err(NoFinding::Clear(format!(
                "the receiving thread does not get its CPU: {id}"
            )));
        }
        let memory = load.recv_memory;
        Ok(Finding {
            side: Place::from(side),
            share: dropped,
            enough: busy < IDLE,
            reached: false,
            evidence: std::iter::once(words(told, dropped, "dropped at the receiver's socket"))
                .chain(reader(load))
                .chain(memory.map(|bytes| format!("its receive buffer holds {bytes} of memory")))
                .collect(),
        })
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        let load = &model.direction(trial.direction)?.base;
        match trial.factor()? {
            // What was lost comes, or some of it.
            Factor::LargerWindow => Some(Range {
                low: 0.97,
                high: 1.1 / (1.0 - load.datagrams?.lost).max(0.01),
            }),
            // Each has a socket of its own.
            Factor::MoreStreams => Some(Range {
                low: 0.6,
                high: trial.stream_ratio() * 1.1 / (1.0 - load.datagrams?.lost).max(0.01),
            }),
            _ => bystander(model, trial),
        }
    }
    fn predict_loss(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        let load = &model.direction(trial.direction)?.base;
        (trial.factor()? == Factor::LargerWindow && has_room(load, trial)).then_some(FEWER)
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        let load = model.direction(direction).map(|d| &d.base);
        load.map(|load| room(model, load, direction.receiver()))
            .into_iter()
            .collect()
    }
}

/// More room: the program asks for it as long as the host allows more, else the host is to allow it.
fn room(model: &Model, load: &Load, side: Side) -> Advice {
    let most = model
        .host(side)
        .and_then(|host| host.facts.buffers.rmem_max);
    let asked = load.recv_memory.map(|memory| memory.0 / 2);
    match most.zip(asked) {
        Some((most, asked)) if most > asked => Advice::new(format!(
            "let the receiving program ask for more room (SO_RCVBUF), up to the {} that {} allows",
            Bytes(most),
            side.name()
        )),
        _ => {
            let name = "net.core.rmem_max";
            let set = |most: u64| format!("sudo sysctl -w {name}={most}");
            let room = most.map_or(ROOM, |most| {
                ROOM.max(most.saturating_mul(2)).min(BufferLimits::MOST)
            });
            let advice = Advice::new(format!(
                "allow receive buffers of {}, and let the receiving program ask for as much (SO_RCVBUF)",
                Bytes(room)
            ));
            match most {
                Some(most) => advice.set(side, set(room)).undo_on(side, set(most)),
                None => advice.keeping(side, Kept::sysctl(name), set(room)),
            }
        }
    }
}
