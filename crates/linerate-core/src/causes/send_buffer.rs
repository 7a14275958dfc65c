//! The send buffer is smaller than the path could use.

use super::predict::{GAIN, around, bystander, per_stream};
use super::queue::mostly_queued;
use super::receive_window::Wanted;
use super::{Answer, Cause, Finding, base, lacks, percent};
use crate::model::{Load, Model};
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::Range;
use crate::trial::Factor;
use crate::verdict::{Advice, Place, Stage};

/// Cause `send-buffer`.
pub(super) struct SendBuffer;

/// Share of time limited by the buffer from which it may be the cause.
pub(super) const SUSPECT: f64 = 0.2;

/// Share of time from which the evidence is enough without a trial.
const ENOUGH: f64 = 0.5;

impl Cause for SendBuffer {
    fn id(&self) -> &'static str {
        "send-buffer"
    }
    fn stage(&self) -> Stage {
        Stage::Socket
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let load = match base(model, direction) {
            Ok(load) => load,
            Err(answer) => return answer,
        };
        let Some(limited) = load.tcp.sndbuf_limited else {
            return lacks(model, "tcp", direction.sender());
        };
        if limited < SUSPECT {
            return Answer::Clear(format!(
                "the send buffer held the sender only {} of the time",
                percent(limited)
            ));
        }
        Answer::Finding(Finding {
            side: Place::from(direction.sender()),
            share: limited,
            // What stands in a queue on the way would fill any.
            enough: !mostly_queued(model, load) && limited >= ENOUGH,
            reached: false,
            evidence: evidence(load, limited),
        })
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        let load = &model.direction(trial.direction)?.base;
        match trial.factor()? {
            Factor::MoreStreams => Some(per_stream(trial)),
            Factor::LargerSendBuffer => {
                let ratio =
                    trial.after.send_buffer?.0 as f64 * 2.0 / load.tcp.send_memory?.0 as f64;
                Some(Range {
                    low: GAIN,
                    high: ratio * 1.25,
                })
            }
            Factor::HalfSendBuffer => {
                let ratio =
                    trial.after.send_buffer?.0 as f64 * 2.0 / load.tcp.send_memory?.0 as f64;
                Some(around(ratio, 0.2))
            }
            _ => bystander(model, trial),
        }
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[
            Factor::LargerSendBuffer,
            Factor::HalfSendBuffer,
            Factor::MoreStreams,
        ]
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        advice(model, direction).into_iter().collect()
    }
    fn page(&self) -> &'static str {
        include_str!("pages/send-buffer.md")
    }
}

fn evidence(load: &Load, limited: f64) -> Vec<String> {
    let mut all = vec![format!(
        "the send buffer held the sender {} of the time",
        percent(limited)
    )];
    if let (Some(flight), Some(memory), Some(rtt)) =
        (load.tcp.in_flight, load.tcp.send_memory, load.tcp.rtt)
    {
        all.push(format!(
            "{flight} in flight from a buffer of {memory} of memory, and a round trip of {rtt}"
        ));
    }
    all
}

fn advice(model: &Model, direction: Direction) -> Option<Advice> {
    let load = &model.direction(direction)?.base;
    if load.knobs.send_buffer.is_some() {
        return Some(Advice {
            action: "run without --send-buffer: the kernel then sizes the buffer itself".to_owned(),
            undo: String::new(),
            gain: None,
        });
    }
    let host = model.hosts.iter().find(|h| h.side == direction.sender())?;
    let wanted = Wanted::of(
        model,
        direction,
        Factor::LargerSendBuffer,
        load.tcp.send_memory?,
    );
    wanted.advice(
        "net.ipv4.tcp_wmem",
        direction.sender(),
        host.facts.buffers.tcp_wmem?,
    )
}
