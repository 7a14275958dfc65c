//! Another session loaded a host, or traffic that is not ours a port, at the same time.

use super::{Answer, Cause, Finding, base, percent};
use crate::model::Model;
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::Range;
use crate::trial::Factor;
use crate::verdict::{Advice, Place, Stage};

/// Cause `contended`.
pub(super) struct Contended;

/// Foreign bytes over ours from which they matter. Two ends read their counters up to a sample
/// apart, which is a twentieth of a short step.
pub(super) const FOREIGN: f64 = 0.2;

impl Cause for Contended {
    fn id(&self) -> &'static str {
        "contended"
    }
    fn stage(&self) -> Stage {
        Stage::Net
    }
    fn invalidates(&self) -> bool {
        true
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let load = match base(model, direction) {
            Ok(load) => load,
            Err(answer) => return answer,
        };
        let mut evidence = Vec::new();
        if load.contended {
            evidence.push("another session was measuring on a host at the same time".to_owned());
        }
        if let Some(foreign) = load.foreign.filter(|f| f.share >= FOREIGN) {
            evidence.push(format!(
                "beside this run's own bytes, the port of {} carried {} as many of others",
                foreign.side.name(),
                percent(foreign.share)
            ));
        }
        if evidence.is_empty() {
            return Answer::Clear("no other session was measuring on either host".to_owned());
        }
        Answer::Finding(Finding {
            side: Place::Path,
            share: 1.0,
            enough: true,
            reached: false,
            evidence,
        })
    }
    fn predict(&self, _: &Model, _: &TrialPlan) -> Option<Range> {
        None
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[]
    }
    fn advice(&self, _: &Model, _: Direction) -> Vec<Advice> {
        vec![Advice {
            action: "wait until the other traffic has ended, then run again".to_owned(),
            undo: String::new(),
            gain: None,
        }]
    }
    fn page(&self) -> &'static str {
        include_str!("pages/contended.md")
    }
}
