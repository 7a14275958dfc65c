//! The remark of a rule: what it found, and the answer that this gives.

use super::super::side_name;
use linerate_facts::advice::{Advice, Step};
use linerate_facts::finding::{Finding, Stands};
use linerate_plan::path::{Direction, Side};
use linerate_record::reported::{Outcome, Source};
use schemars::JsonSchema;
use serde::Serialize;

/// Something that the figures show. Each of its next steps would show more.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    /// The finding. Its id is that of the rule, or of the oddity that the rule repeats.
    pub finding: Finding,
    /// The remark's answer to "why is it slow"; `None` if it does not answer the question.
    pub answer: Option<Answer>,
}

/// The answer to "why is it slow" that a remark gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Ids of causes. A single one is the limit; of several, one is the limit and it is unknown which. Empty if the
    /// path is as it should be.
    pub causes: Vec<&'static str>,
    /// Ids of causes that the figures rule out.
    pub ruled_out: Vec<&'static str>,
    /// The direction that the answer is about; `None` if it is about no direction, or both.
    pub direction: Option<Direction>,
    /// The host at which the limit is; `None` if it is at no host, or unknown.
    pub side: Option<Side>,
    /// The run that shows the answer; `None` if no single run does.
    pub run: Option<Run>,
}

/// The place of a run in the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Run {
    /// Name of the file, without its folder.
    pub file: String,
    /// The line at which the run's result begins, counted from 1.
    pub line: u64,
}

/// A step that the user can take next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Next {
    /// The purpose of the step, as a sentence without a full stop.
    pub what: String,
    /// The command to type. Null if the step is not a command.
    pub command: Option<String>,
    /// The host on which to take the step. Null if any host will do, or there is only one.
    pub host: Option<String>,
}

impl Next {
    /// A next step. An empty `command` means that the step is not a command.
    pub fn new(what: &str, command: &str) -> Self {
        let command = Some(command.to_owned()).filter(|command| !command.is_empty());
        Self { what: what.to_owned(), command, host: None }
    }

    /// The first step of an advice, with the purpose of the advice; `None` if the advice is empty. `host` is used where
    /// the step names no host; it is empty if the host does not matter.
    pub(crate) fn of(advice: &Advice, host: &str) -> Option<Self> {
        let step = advice.steps.first();
        let about = step.map_or("", |step| step.about.as_str());
        let what = [advice.what.as_str(), about].into_iter().filter(|text| !text.is_empty());
        let own = step.and_then(|step| step.host).map(Side::name);
        let host = own.or(Some(host)).filter(|host| !host.is_empty()).map(str::to_owned);
        let what = what.collect::<Vec<_>>().join(": ");
        let next = Self::new(&what, step.map_or("", |step| &step.command));
        (!advice.is_empty()).then_some(Self { host, ..next })
    }
}

impl Remark {
    /// The remark that repeats an oddity of a host.
    pub(super) fn of_oddity(side: Side, odd: &Finding) -> Self {
        let what = format!("{} of the {}: {}", odd.subject, side_name(side), odd.what);
        let finding = Finding { what, subject: String::new(), brief: String::new(), ..odd.clone() };
        Self { finding, answer: None }
    }

    pub(super) fn new(stands: Stands, what: impl Into<String>) -> Self {
        Self { finding: Finding::new("", "", what).stands(stands), answer: None }
    }

    /// Makes these causes the answer of the remark.
    pub(super) fn names(mut self, causes: &[&'static str]) -> Self {
        self.answer.get_or_insert_default().causes = causes.to_vec();
        self
    }

    /// Adds the causes that the answer rules out.
    pub(super) fn rules_out(mut self, causes: &[&'static str]) -> Self {
        self.answer.get_or_insert_default().ruled_out = causes.to_vec();
        self
    }

    /// Sets the direction that the answer is about.
    pub(super) fn of(mut self, direction: Direction) -> Self {
        self.answer.get_or_insert_default().direction = Some(direction);
        self
    }

    /// Sets the host at which the limit is.
    pub(super) fn at(mut self, side: Side) -> Self {
        self.answer.get_or_insert_default().side = Some(side);
        self
    }

    /// Sets the run that shows the answer.
    pub(super) fn shown_by(mut self, source: &Source, result: &Outcome) -> Self {
        self.answer.get_or_insert_default().run =
            Some(Run { file: source.file.clone(), line: result.line });
        self
    }

    /// Sets the host at which the limit is, but only if the remark has an answer.
    pub(super) fn at_if(self, side: Side) -> Self {
        if self.answer.is_some() { self.at(side) } else { self }
    }

    pub(super) fn because(self, proof: impl Into<String>) -> Self {
        Self { finding: self.finding.because(proof), ..self }
    }

    /// Adds a step that would show more. An empty `command` means that the step is not a command.
    pub(super) fn next(mut self, what: &str, command: &str) -> Self {
        let fix = std::mem::take(&mut self.finding.fix);
        let step = Step::on(None, command);
        self.finding.fix = match (fix.is_empty(), command.is_empty()) {
            (true, true) => Advice::new(what),
            (true, false) => Advice::new(what).step(step),
            (false, _) => fix.step(step.about(what)),
        };
        self
    }
}
