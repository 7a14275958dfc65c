//! The path gives each stream one rate, and more to more streams.

use super::path_rate::{held_by_network, scales};
use super::predict::{around, bystander};
use super::{Answer, Cause, Finding, LOSSY, percent};
use crate::facts::Gap;
use crate::model::Model;
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::{EQUAL, Range};
use crate::trial::Factor;
use crate::verdict::{Advice, Place, Stage};

/// Cause `flow-rate-cap`.
pub(super) struct FlowRateCap;

impl Cause for FlowRateCap {
    fn id(&self) -> &'static str {
        "flow-rate-cap"
    }
    fn stage(&self) -> Stage {
        Stage::Net
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let held = match held_by_network(model, direction) {
            Ok(held) => held,
            Err(answer) => return answer,
        };
        if let Some(again) = held.load.tcp.retransmitted.filter(|r| *r > LOSSY) {
            // Each stream by itself slows down at random loss too.
            return Answer::Unknown(vec![Gap {
                what: format!("a cap for each stream {}", direction.name()),
                why: format!(
                    "{} of the bytes had to be sent again, and random loss slows each stream too",
                    percent(again)
                ),
                hint: String::new(),
            }]);
        }
        let mut evidence = vec![held.why.clone()];
        let scaled = model.direction(direction).and_then(scales);
        // One short look at more streams is no experiment: it stays a rival until a trial parts it
        // from a rate that all streams share.
        evidence
            .extend(scaled.map(|(n, gain)| format!("{n} streams carried {gain:.2} times as much")));
        Answer::Finding(Finding {
            side: Place::Path,
            share: held.share / 2.0,
            enough: false,
            reached: false,
            evidence,
        })
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        match trial.factor()? {
            Factor::OtherCongestion => Some(Range {
                low: 0.3,
                high: EQUAL.high,
            }),
            Factor::MoreStreams => Some(around(trial.stream_ratio(), 0.12)),
            _ => bystander(model, trial),
        }
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[Factor::MoreStreams]
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        let knee = model.direction(direction).map(|d| (d.knee(), &d.base));
        knee.filter(|(knee, base)| knee.streams > base.streams)
            .map(|(knee, base)| Advice {
                action: format!("use {} streams: --streams {}", knee.streams, knee.streams),
                undo: String::new(),
                gain: Some(knee.goodput.mean / base.goodput.mean),
            })
            .into_iter()
            .collect()
    }
    fn page(&self) -> &'static str {
        include_str!("pages/flow-rate-cap.md")
    }
}
