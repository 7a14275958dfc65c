//! The receiving program does not read, although data wait and it has spare CPU time.

use crate::causes::host::core_bound::kept_from_its_cpu;
use crate::causes::host::cpu_contention;
use crate::causes::host::cpu_steal;
use crate::causes::network::held::{LARGER_WINDOW, SUSPECT, without_gain};
use crate::causes::predict::{added_work, around, bystander, per_stream};
use crate::causes::prelude::*;
use crate::causes::tcp::buffer_bound::{UNREAD, unread_share};
use crate::causes::udp::datagrams::{AS_MANY, at_the_socket, has_room, words};
use crate::model::Datagrams;
use crate::signs::threads::wanted;
use linerate_units::Bytes;
use linerate_units::stats::EQUAL;

/// Minimum share of its CPU that a thread must use to count as busy, not idle.
pub(crate) const BUSY: f64 = 0.8;

/// Minimum share of a CPU's time, at which the programs that use it are named.
const NAMED: f64 = 0.01;

/// Minimum ratio of payload that stays unread to payload read, at which the reader is slower than the network. It
/// corresponds to the least gain that counts when a limit is removed.
const BEHIND: f64 = GAIN - 1.0;

/// Minimum share of samples with an empty receive queue at which a program is woken late rather than slow. A
/// program that pauses between reads hardly ever has an empty queue while the window is full.
const CAUGHT_UP: f64 = 0.25;

pub(crate) static CAUSE: Cause = Cause {
    id: "receiver-app",
    name: "the receiving program reads too slowly",
    needs: &[Feature::Stack],
    stage: Stage::App,
    decided_by: &[Factor::SmallerReads],
    page: include_str!("../pages/receiver-app.md"),
    check,
    predict,
    predict_loss,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let Some(busy) = wanted(&load.receivers) else {
        return Err(lacks(model, "thread", direction.receiver()));
    };
    if let Some(reported) = &load.datagrams {
        return of_datagrams(model, direction, (load, reported), busy);
    }
    let Some(limited) = load.tcp.rwnd_limited else {
        return Err(lacks(model, "tcp", direction.sender()));
    };
    let Some(behind) = load.behind else {
        return Err(lacks(model, "socket", direction.receiver()));
    };
    // A reader that is too slow closes the window at some time; a large buffer only delays that.
    if limited < SUSPECT && behind < BEHIND {
        return Err(clear(format!(
            "the receive window held the sender only {} of the time, and payload did not gather \
             unread",
            percent(limited)
        )));
    }
    if busy >= BUSY {
        return Err(clear(format!("the receiving thread was busy {}", percent(busy))));
    }
    if let Some(id) = kept_from_its_cpu(model, direction, direction.receiver()) {
        return Err(clear(format!("the receiving thread does not get its CPU: {id}")));
    }
    let (share, seen) = match waits(model, load, direction, behind) {
        Err(NoFinding::Clear(why)) => in_a_larger_window(model, direction).ok_or(clear(why)),
        answer => answer,
    }?;
    let idle = Idle { side: direction.receiver(), busy, share, seen };
    Ok(idle.finding(model, load, direction))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    match trial.factor()? {
        Factor::SmallerReads => halved(wanted(&load.receivers)),
        Factor::ReceiverWork => Some(around(1.0 / (1.0 + added_work(model, trial, false)?), 0.06)),
        // The receiver still pauses. Discarding payload saves only some of the time in which it works.
        Factor::Discard => {
            Some(Range { high: EQUAL.high / (1.0 - wanted(&load.receivers)?), ..EQUAL })
        }
        Factor::MoreStreams => Some(per_stream(trial)),
        _ => bystander(model, trial),
    }
}

fn predict_loss(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let load = &model.direction(trial.direction)?.base;
    let larger = load.has(Feature::Datagrams) && trial.factor()? == Factor::LargerWindow;
    larger.then_some(AS_MANY)
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    operation(model, direction, |l| &l.receivers)
        .map(|size| Advice::new(format!(
            "let the receiving program read more at a time than {size}, or keep it from waiting between reads"
        )))
        .into_iter()
        .collect()
}

/// Share of the arrived payload that waits for the program, and a sentence that describes it.
fn waits(
    model: &Model,
    load: &Load,
    direction: Direction,
    behind: f64,
) -> Result<(f64, String), NoFinding> {
    if behind >= BEHIND {
        let more = percent(behind);
        let gathered = format!("{more} more arrived than the program read, and gathered unread");
        return Ok((1.0, gathered));
    }
    let Some(unread) = unread_share(load) else {
        return Err(lacks(model, "socket", direction.receiver()));
    };
    if unread <= UNREAD {
        return Err(clear(format!(
            "the program kept up: only {} of the outstanding payload was unread",
            percent(unread)
        )));
    }
    if let Some(caught_up) = load.caught_up.filter(|share| *share >= CAUGHT_UP) {
        return Err(clear(format!(
            "the program had read everything in {} of the samples",
            percent(caught_up)
        )));
    }
    let mean = Bytes(load.unread.unwrap_or_default() as u64);
    let waited = format!("{mean} of payload waited for the program on average");
    Ok((unread, waited))
}

/// Share of unread payload in a trial whose larger window gained nothing, and a sentence that describes it. A window
/// just large enough for the path has little room for unread payload, however slow the program is; in a larger window
/// it piles up.
fn in_a_larger_window(model: &Model, direction: Direction) -> Option<(f64, String)> {
    let larger = without_gain(model, direction, &LARGER_WINDOW)?;
    let changed = larger.changed.as_ref()?;
    let (share, seen) = waits(model, changed, direction, changed.behind?).ok()?;
    Some((share, format!("with a larger window, {seen}")))
}

/// The result for a load of datagrams: those that arrive while the program does other things are dropped at its socket,
/// and a larger buffer is full a moment later.
fn of_datagrams(
    model: &Model,
    direction: Direction,
    (load, reported): (&Load, &Datagrams),
    busy: f64,
) -> Answer {
    let dropped = at_the_socket(model, direction, reported)?;
    if busy >= BUSY {
        return Err(clear(format!("the receiving thread was busy {}", percent(busy))));
    }
    if let Some(id) = kept_from_its_cpu(model, direction, direction.receiver()) {
        return Err(clear(format!("the receiving thread does not get its CPU: {id}")));
    }
    let idle = Idle {
        side: direction.receiver(),
        busy,
        share: dropped,
        seen: words(reported, dropped, "dropped at its socket"),
    };
    let found = idle.finding(model, load, direction);
    // A buffer that is too small for a burst looks like a slow program.
    Ok(Finding { enough: found.enough && room_did_not_help(model, load, direction), ..found })
}

/// Whether as many datagrams were lost with a larger receive buffer.
fn room_did_not_help(model: &Model, load: &Load, direction: Direction) -> bool {
    let larger = model.tried(direction, Factor::LargerWindow);
    let larger = larger.filter(|t| has_room(load, &t.plan));
    let loss = larger.and_then(|t| t.loss);
    loss.is_some_and(|loss| AS_MANY.contains(loss))
}

/// A program that did not read or write, although its thread had spare time.
pub(crate) struct Idle {
    pub(crate) side: Side,
    /// Share of its CPU that the program's thread needed.
    pub(crate) busy: f64,
    /// Share of the time, or of the payload, in which the program did not read or write.
    pub(crate) share: f64,
    /// How the program did not read or write, in words.
    pub(crate) seen: String,
}

impl Idle {
    /// The finding of an idle program. If a hypervisor or other programs took the rest of the CPU, the program may have
    /// waited for the CPU.
    pub(crate) fn finding(self, model: &Model, load: &Load, direction: Direction) -> Finding {
        let idle = format!("its thread used its CPU only {} of the time", percent(self.busy));
        let stolen = cpu_steal::most(model, load, direction, self.side);
        let crowded = cpu_contention::most(model, load, direction, self.side);
        let enough = self.busy + stolen + crowded < BUSY;
        let takers = [("the hypervisor", stolen), ("other programs", crowded)];
        let taken = takers.into_iter().filter(|(_, share)| !enough && *share >= NAMED);
        let taken = taken.map(|(who, share)| {
            format!("{who} took {} of a CPU, which it may have waited for", percent(share))
        });
        Finding::at(
            self.side,
            (1.0 - self.busy) * self.share,
            [self.seen, idle].into_iter().chain(taken).collect(),
        )
        .enough(enough)
    }
}

/// The predicted ratio of goodput with half the bytes in each operation, if the thread pauses between operations: half,
/// and a little more for the time that the operation itself took.
pub(crate) fn halved(busy: Option<f64>) -> Option<Range> {
    let busy = busy?;
    Some(around(0.5 / (1.0 - 0.5 * busy), 0.12))
}

/// Bytes of a typical operation of the base load.
pub(crate) fn operation(
    model: &Model,
    direction: Direction,
    threads: impl Fn(&Load) -> &Vec<crate::model::Thread>,
) -> Option<Bytes> {
    let load = &model.direction(direction)?.base;
    threads(load).first()?.bytes_per_op.map(|b| Bytes(b as u64))
}
