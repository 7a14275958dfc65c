//! The result of `linerate flows`, as text and as JSON: live connections, and what limits them.

pub mod json;
#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
mod text;

use std::time::Duration;

use linerate_explain::Headline;
use linerate_facts::Gap;
use linerate_judge::model::{DirectionModel, Model, flow, name_of};
use linerate_judge::verdict::{Answered, Limit, Verdict, entries, judge, notes, suspects};
use linerate_plan::path::{Direction, Stage};
use linerate_record::flow::{Flow, Seen};
use linerate_units::{Nanos, Rate};

pub use json::json;
pub use json::{FlowOut, flow as flow_out};
pub use text::{one, page};

/// An observation of this machine's connections, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Whether the observation lasted as long as requested.
    pub complete: bool,
    /// The length of the observation.
    pub time: Nanos,
    /// The longest time that one listing of all connections took.
    pub round: Nanos,
    /// Number of connections in the last listing.
    pub connections: usize,
    /// The connections that carry payload, the one that carries most first.
    pub flows: Vec<Judged>,
    /// The readings that failed for all connections.
    pub gaps: Vec<Gap>,
}

/// One connection with its readings and its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The connection, with its readings.
    pub flow: Flow,
    /// The model derived from the readings.
    pub model: Model,
    /// What limits the connection.
    pub verdict: Verdict,
}

impl Look {
    /// Judges an observation. A connection that was not read twice is left out.
    pub fn judge(seen: Seen, complete: bool, time: Nanos, round: Duration) -> Self {
        let judged = seen.flows.into_iter().filter_map(|one| {
            let model = flow(&one)?;
            let verdict = judge(&model);
            let flow = one;
            Some(Judged { flow, model, verdict })
        });
        Self {
            complete,
            time,
            round: Nanos(u64::try_from(round.as_nanos()).unwrap_or(u64::MAX)),
            connections: seen.connections,
            flows: judged.collect(),
            gaps: seen.gaps,
        }
    }
}

impl Look {
    /// The headline of the connection that carries most; `None` if none carried anything. It is good only if
    /// nothing limits any connection.
    pub(crate) fn headline(&self) -> Option<Headline> {
        let all = self.flows.iter().flat_map(|one| entries(&one.model, &one.verdict));
        Some(Headline::of_entries(all)?.of_part(self.complete))
    }
}

impl Judged {
    /// The model of the direction that carried more payload; the verdict is about this direction.
    fn main(&self) -> Option<&DirectionModel> {
        self.model.directions.first()
    }

    /// The mean rate of the connection in a direction, over the whole observation.
    fn carried(&self, direction: Direction) -> Rate {
        let [sent, received] = self.flow.carried().unwrap_or_default();
        match direction {
            Direction::Forward => sent,
            Direction::Reverse => received,
        }
    }

    /// The causes that may limit the connection; empty if a limit was found.
    fn suspects(&self) -> Vec<&Answered> {
        if self.verdict.limits.is_empty() { suspects(&self.verdict) } else { Vec::new() }
    }

    /// The rate at which the network limits the connection, if it is open how: there is evidence for a rate of the
    /// path and for a cap of each flow, and one flow cannot tell them apart.
    fn network_rate(&self) -> Option<Rate> {
        let suspects = self.suspects();
        let found = |id| {
            let mut all = suspects.iter();
            all.any(|s| s.cause == id && s.outcome == "finding")
        };
        (found("path-rate") && found("flow-rate-cap"))
            .then(|| self.main().map(|main| self.carried(main.direction)))
            .flatten()
    }

    /// Notes about the connection that are not part of the verdict.
    fn notes(&self) -> Vec<String> {
        notes(&self.model)
    }

    /// The command that would prove the limit with trials on the path between the two hosts. `None` if the limit is
    /// the program itself, which those trials do not run, or if both ends are on this machine.
    fn proof(&self) -> Option<String> {
        let direction = self.main()?.direction.name();
        let far = self.flow.remote.ip().to_canonical();
        let limits = &self.verdict.limits;
        let own = |limit: &Limit| matches!(limit.stage, Stage::App | Stage::Cpu);
        let tells = limits.is_empty() || !limits.iter().all(own);
        (tells && !self.model.same_machine)
            .then(|| format!("linerate run {far} --direction {direction}"))
    }

    /// Facts that only another reading would show, each listed once.
    fn unknown(&self) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        // The first unknown fact is the limit itself; the suspected causes are shown instead.
        let all = self.verdict.unknown.iter();
        for unknown in all.filter(|u| !u.what.starts_with("what limits")) {
            let gap = Gap {
                what: unknown.what.clone(),
                why: unknown.why.clone(),
                hint: unknown.hint.clone(),
            };
            if !gaps.contains(&gap) {
                gaps.push(gap);
            }
        }
        gaps
    }

    /// Address and port of the near end: `10.0.0.1:43210`.
    fn near(&self) -> String {
        name_of(self.flow.local)
    }

    /// Address and port of the far end: `10.0.0.2:22`.
    fn far(&self) -> String {
        name_of(self.flow.remote)
    }
}
