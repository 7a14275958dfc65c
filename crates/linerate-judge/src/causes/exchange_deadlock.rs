//! Both programs of a connection send, and neither reads: nothing moves.

use super::{Answer, Cause, CauseInfo, Finding, NoFinding, base, lacks};
use crate::model::Model;
use linerate_facts::advice::Advice;
use linerate_plan::path::{Direction, Place, Side, Stage};
use linerate_plan::transport::Scope;
use linerate_record::TrialPlan;
use linerate_units::stats::Range;

/// Cause `exchange-deadlock`.
pub(super) struct ExchangeDeadlock;

static INFO: CauseInfo = CauseInfo {
    id: "exchange-deadlock",
    name: "both programs send and neither reads",
    scope: Scope::Tcp,
    stage: Stage::App,
    page: include_str!("pages/exchange-deadlock.md"),
    ..CauseInfo::BASE
};

impl Cause for ExchangeDeadlock {
    fn info(&self) -> &'static CauseInfo {
        &INFO
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let load = base(model, direction)?;
        let Some(stuck) = load.deadlock else {
            // Without the length of the send queue it is unknown why nothing moves.
            if model.watched && !load.arrived() && load.tcp.not_sent.is_none() {
                return Err(lacks(model, "tcp", Side::Near));
            }
            let why = "something moved, or a queue had room";
            return Err(NoFinding::Clear(why.to_owned()));
        };
        Ok(Finding {
            side: Place::from(Side::Near),
            share: 1.0,
            enough: true,
            reached: false,
            evidence: vec![
                "nothing moved either way, and all that was sent had arrived".to_owned(),
                format!(
                    "{} wait at this end to be sent: the far end takes none, because its program does not read",
                    stuck.unsent
                ),
                format!(
                    "{} wait at this end to be read, and leave no room: this program does not read either",
                    stuck.unread
                ),
            ],
        })
    }
    /// It is found only on connections of other programs, on which no trial runs.
    fn predict(&self, _: &Model, _: &TrialPlan) -> Option<Range> {
        None
    }
    fn advice(&self, _: &Model, _: Direction) -> Vec<Advice> {
        vec![Advice::new(
            "let at least one of the two programs read while it sends: a thread for each direction, or writes that do not \
             block, with poll; or let one of them read first. Larger buffers only hide it",
        )]
    }
}
