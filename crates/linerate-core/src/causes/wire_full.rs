//! The port's wire is full: the best verdict there is.

use super::predict::one_rate;
use super::{Answer, Cause, FULL, Finding, base, percent, wire};
use crate::facts::Gap;
use crate::model::Model;
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::Range;
use crate::trial::Factor;
use crate::verdict::{Advice, Place, Stage};

/// Id of the cause that stands for the ceiling of the wire.
pub(crate) const ID: &str = "wire-full";

/// Cause `wire-full`.
pub(super) struct WireFull;

impl Cause for WireFull {
    fn id(&self) -> &'static str {
        ID
    }
    fn stage(&self) -> Stage {
        Stage::Net
    }
    fn is_ceiling(&self) -> bool {
        true
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let load = match base(model, direction) {
            Ok(load) => load,
            Err(answer) => return answer,
        };
        let Some(ceiling) = wire(model, direction) else {
            return without_ceiling(model);
        };
        let share = ceiling.reached(load);
        if share < FULL {
            return Answer::Clear(format!(
                "goodput was {} of what {} carries, {} = {}",
                percent(share),
                ceiling.name,
                ceiling.formula,
                ceiling.rate
            ));
        }
        Answer::Finding(Finding {
            side: Place::Path,
            share: share.min(1.0),
            enough: true,
            reached: true,
            evidence: vec![format!(
                "goodput was {} of all that {} carries: {} = {}",
                percent(share),
                ceiling.name,
                ceiling.formula,
                ceiling.rate
            )],
        })
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        one_rate(model, trial)
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[Factor::MoreStreams]
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        wire(model, direction)
            .map(|ceiling| Advice {
                action: format!(
                    "nothing: the path is as fast as {} is; a faster port, or a second one, carries \
                     more",
                    ceiling.name
                ),
                undo: String::new(),
                gain: None,
            })
            .into_iter()
            .collect()
    }
    fn page(&self) -> &'static str {
        include_str!("pages/wire-full.md")
    }
}

/// Ports that a host made up have no wire that could be full; of a real one the speed is missing.
fn without_ceiling(model: &Model) -> Answer {
    let real = model.hosts.iter().find(|h| {
        let port = h.facts.port.as_ref();
        port.is_none_or(|p| p.is_ethernet && !p.is_virtual)
    });
    let Some(host) = real else {
        return Answer::Clear("no port at the ends has a wire of its own".to_owned());
    };
    Answer::Unknown(vec![Gap {
        what: format!("the speed of the {} port", host.side.name()),
        why: "without it nobody knows what the wire carries".to_owned(),
        hint: "ethtool PORT".to_owned(),
    }])
}
