//! The sender's congestion control paces below what path and hosts could carry.

use super::lossy::sent_again;
use super::path_rate::{held_by_network, of_each_stream, scales};
use super::predict::{GAIN, bystander, per_stream};
use super::queue::standing_queue;
use super::{Answer, Cause, Finding, bbr, lacks, percent};
use crate::facts::Gap;
use crate::model::{Load, Model};
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::Range;
use crate::trial::Factor;
use crate::verdict::{Advice, Place, Stage};

/// Cause `congestion-control`.
pub(super) struct CongestionControl;

/// Its id.
pub(crate) const ID: &str = "congestion-control";

impl Cause for CongestionControl {
    fn id(&self) -> &'static str {
        ID
    }
    fn stage(&self) -> Stage {
        Stage::Socket
    }
    fn is_of_connections(&self) -> bool {
        true
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let held = match held_by_network(model, direction) {
            Ok(held) => held,
            Err(answer) => return answer,
        };
        if let Some(queue) = standing_queue(model, held.load) {
            return Answer::Clear(format!("it has a reason: {queue}"));
        }
        if model.idle.is_none() {
            return Answer::Unknown(vec![Gap {
                what: "idle latency".to_owned(),
                why: "without it nobody knows whether a queue stands on the way".to_owned(),
                hint: String::new(),
            }]);
        }
        if held.load.tcp.retransmitted.is_none() {
            return lacks(model, "tcp", direction.sender());
        }
        if let Some(again) = sent_again(held.load) {
            return Answer::Clear(format!(
                "it has a reason: {} of the bytes had to be sent again",
                percent(again)
            ));
        }
        let clamped = is_clamped(held.load);
        let mut evidence = vec![if clamped {
            stood(held.load)
        } else if held.lifted {
            held.why
        } else {
            format!(
                "{} held the sender {} of the time, although nothing queued and nothing was lost",
                name(model, direction),
                percent(held.share)
            )
        }];
        let scaled = model.direction(direction).and_then(scales);
        evidence
            .extend(scaled.map(|(n, gain)| format!("{n} streams carried {gain:.2} times as much")));
        Answer::Finding(Finding {
            side: Place::from(direction.sender()),
            share: held.share * of_each_stream(model, direction),
            // A cap for each flow that queues nothing looks the same, unless the window shows that nothing is
            // asked of the path.
            enough: clamped,
            reached: false,
            evidence,
        })
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        let clamped = model
            .direction(trial.direction)
            .is_some_and(|dir| is_clamped(&dir.base));
        match trial.factor()? {
            // What clamps one window clamps that of another congestion control, or does not.
            Factor::OtherCongestion if clamped => None,
            // A gain of any size, up to whatever binds next.
            Factor::OtherCongestion => Some(Range {
                low: GAIN,
                high: f64::MAX,
            }),
            Factor::MoreStreams => Some(Range {
                low: 1.03,
                ..per_stream(trial)
            }),
            _ => bystander(model, trial),
        }
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[Factor::OtherCongestion, Factor::MoreStreams]
    }
    fn is_about(&self, model: &Model, trial: &TrialPlan) -> bool {
        // More streams have a window each; only of one that is clamped they tell that it is what held.
        let dir = model.direction(trial.direction);
        match trial.factor() {
            Some(Factor::MoreStreams) => dir.is_some_and(|dir| is_clamped(&dir.base)),
            factor => factor == Some(Factor::OtherCongestion),
        }
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        if model
            .direction(direction)
            .is_some_and(|dir| is_clamped(&dir.base))
        {
            return vec![Advice {
                action: format!(
                    "on the {} host: look for what clamps the congestion window: `ip route show` (`cwnd lock N`), \
                     or the congestion control's own parameters",
                    direction.sender().name()
                ),
                undo: String::new(),
                gain: None,
            }];
        }
        let tried = model.trials.iter().find(|t| {
            t.plan.direction == direction && t.plan.factor() == Some(Factor::OtherCongestion)
        });
        let Some((other, effect)) =
            tried.and_then(|t| t.plan.after.congestion.clone().zip(t.effect))
        else {
            return Vec::new();
        };
        vec![Advice {
            action: format!("use another congestion control: --congestion {other}"),
            undo: String::new(),
            gain: Some(effect.mid),
        }]
    }
    fn page(&self) -> &'static str {
        include_str!("pages/congestion-control.md")
    }
}

/// Whether the congestion window stood still although nothing asked it to, and was full: one that may grow
/// does. That of a congestion control which goes by rates may stand.
pub(super) fn is_clamped(load: &Load) -> bool {
    load.tcp.cwnd_stands == Some(true) && !bbr::sends(load) && sent_again(load).is_none()
}

/// That it stood, in words.
pub(super) fn stood(load: &Load) -> String {
    let size = load.tcp.cwnd.unwrap_or_default();
    format!(
        "the congestion window stood at {size} and was full, although nothing queued and nothing was lost"
    )
}

/// The sender's congestion control, as it was read.
fn name(model: &Model, direction: Direction) -> &str {
    model
        .direction(direction)
        .map(|d| d.base.made[0].congestion.as_str())
        .filter(|name| !name.is_empty())
        .unwrap_or("congestion control")
}
