//! The receiver's window is smaller than the path could use.

use super::predict::{GAIN, around, bystander, per_stream, wanted};
use super::queue::mostly_queued;
use super::{Answer, Cause, Finding, base, lacks, percent};
use crate::model::{Load, Model};
use crate::plan::{Direction, Side};
use crate::record::TrialPlan;
use crate::stats::Range;
use crate::trial::Factor;
use crate::units::Bytes;
use crate::verdict::{Advice, Place, Stage};

/// Cause `receive-window`.
pub(super) struct ReceiveWindow;

/// Share of time limited by the window from which it may be the cause.
pub(super) const SUSPECT: f64 = 0.2;

/// Share of time from which the evidence is enough without a trial.
const ENOUGH: f64 = 0.5;

/// Share of its CPU from which a reader has no time to empty the window at once.
const BUSY: f64 = 0.9;

/// Unread payload, as a share of the window, from which a slow reader closes the window rather
/// than its size.
pub(super) const UNREAD: f64 = 0.3;

impl Cause for ReceiveWindow {
    fn id(&self) -> &'static str {
        "receive-window"
    }
    fn stage(&self) -> Stage {
        Stage::Socket
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let load = match base(model, direction) {
            Ok(load) => load,
            Err(answer) => return answer,
        };
        let Some(limited) = load.tcp.rwnd_limited else {
            return lacks(model, "tcp", direction.sender());
        };
        if limited < SUSPECT {
            return Answer::Clear(format!(
                "the receive window held the sender only {} of the time",
                percent(limited)
            ));
        }
        let Some(unread) = unread_share(load) else {
            return lacks(model, "socket", direction.receiver());
        };
        if unread > UNREAD {
            return Answer::Clear(format!(
                "{} of the window was payload that the application had not read",
                percent(unread)
            ));
        }
        Answer::Finding(Finding {
            side: Place::from(direction.receiver()),
            share: limited,
            // A reader that has no time closes the window too.
            // What stands in a queue on the way would fill any.
            enough: !mostly_queued(model, load)
                && limited >= ENOUGH
                && wanted(&load.receivers).is_some_and(|w| w < BUSY),
            reached: false,
            evidence: evidence(load, limited),
        })
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        let load = &model.direction(trial.direction)?.base;
        match trial.factor()? {
            Factor::MoreStreams => Some(per_stream(trial)),
            // As much more as the buffer is larger, or less where the next limit comes in between.
            Factor::LargerWindow => {
                let ratio = trial.after.recv_buffer?.0 as f64 * 2.0 / load.recv_memory?.0 as f64;
                Some(Range {
                    low: GAIN,
                    high: ratio * 1.25,
                })
            }
            Factor::HalfWindow => {
                let ratio = trial.after.window_clamp?.0 as f64 / load.tcp.in_flight?.0 as f64;
                Some(around(ratio, 0.2))
            }
            // A reader that is done sooner opens the window sooner.
            Factor::Discard => None,
            _ => bystander(model, trial),
        }
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[
            Factor::LargerWindow,
            Factor::HalfWindow,
            Factor::MoreStreams,
        ]
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        advice(model, direction).into_iter().collect()
    }
    fn page(&self) -> &'static str {
        include_str!("pages/receive-window.md")
    }
}

/// Unread payload as a share of what one stream could have outstanding: in flight and unread. What
/// one read takes does not count: a reader may let so much gather before it wakes (`SO_RCVLOWAT`).
pub(super) fn unread_share(load: &Load) -> Option<f64> {
    let a_read = load
        .receivers
        .iter()
        .filter_map(|t| t.bytes_per_op)
        .fold(0.0, f64::max);
    let unread = (load.unread? - a_read).max(0.0);
    let flight = load.tcp.in_flight?.0 as f64;
    let outstanding = unread + flight;
    Some(if outstanding > 0.0 {
        unread / outstanding
    } else {
        0.0
    })
}

fn evidence(load: &Load, limited: f64) -> Vec<String> {
    let mut all = vec![format!(
        "the receive window held the sender {} of the time",
        percent(limited)
    )];
    if let (Some(flight), Some(window), Some(rtt)) =
        (load.tcp.in_flight, load.tcp.window, load.tcp.rtt)
    {
        all.push(format!(
            "{flight} in flight of a window of {window}, and a round trip of {rtt}"
        ));
    }
    all
}

fn advice(model: &Model, direction: Direction) -> Option<Advice> {
    let load = &model.direction(direction)?.base;
    if load.knobs.recv_buffer.is_some() || load.knobs.window_clamp.is_some() {
        return Some(Advice {
            action: "run without --recv-buffer: the kernel then sizes the buffer itself".to_owned(),
            undo: String::new(),
            gain: None,
        });
    }
    let host = model
        .hosts
        .iter()
        .find(|h| h.side == direction.receiver())?;
    let wanted = Wanted::of(model, direction, Factor::LargerWindow, load.recv_memory?);
    wanted.advice(
        "net.ipv4.tcp_rmem",
        direction.receiver(),
        host.facts.buffers.tcp_rmem?,
    )
}

/// A larger buffer: its memory, as `SO_RCVBUF` and `SO_SNDBUF` count it, and what it gained.
pub(super) struct Wanted {
    memory: u64,
    gain: Option<f64>,
}

impl Wanted {
    /// What was tried, or twice what is in use where nothing larger could be tried.
    pub(super) fn of(model: &Model, direction: Direction, factor: Factor, now: Bytes) -> Self {
        match measured_gain(model, direction, factor) {
            Some((ratio, gain)) => Self {
                memory: (now.0 as f64 * ratio) as u64,
                gain: Some(gain),
            },
            None => Self {
                memory: now.0.saturating_mul(2),
                gain: None,
            },
        }
    }

    /// How to let autotuning go so far; `None` where it may already, and something else keeps it
    /// from doing so.
    pub(super) fn advice(&self, sysctl: &str, side: Side, limits: [u64; 3]) -> Option<Advice> {
        let [min, default, max] = limits;
        (self.memory > max).then(|| Advice {
            action: format!(
                "on the {} host: sysctl -w {sysctl}=\"{min} {default} {}\"   (a buffer of {})",
                side.name(),
                self.memory,
                Bytes(self.memory)
            ),
            undo: format!("sysctl -w {sysctl}=\"{min} {default} {max}\""),
            gain: self.gain,
        })
    }
}

/// How much larger a trial's buffer was, and what it gained.
fn measured_gain(model: &Model, direction: Direction, factor: Factor) -> Option<(f64, f64)> {
    let load = &model.direction(direction)?.base;
    let trial = model
        .trials
        .iter()
        .find(|t| t.plan.direction == direction && t.plan.factor() == Some(factor))?;
    let (asked, memory) = match factor {
        Factor::LargerWindow => (trial.plan.after.recv_buffer?, load.recv_memory?),
        _ => (trial.plan.after.send_buffer?, load.tcp.send_memory?),
    };
    // The kernel doubles what is asked for.
    Some((
        asked.0 as f64 * 2.0 / memory.0.max(1) as f64,
        trial.effect?.mid,
    ))
}
