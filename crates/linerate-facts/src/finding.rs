//! What was found: of a host, of a network, of reported figures, in a check.

use schemars::JsonSchema;
use serde::Serialize;

use super::advice::Advice;
use linerate_plan::path::Certainty;

/// How a finding is meant. The order is that of a list: what must be read first comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stands {
    /// Two figures cannot both hold.
    Contradiction,
    /// Something is wrong, explains what is slow, or excludes a reason.
    #[default]
    Found,
    /// Something that does no harm now: counters that stopped to rise, a limit that nothing reaches.
    Harmless,
    /// A claim or a figure that the results do not support.
    Doubt,
    /// As it should be.
    Good,
    /// It could not be judged.
    Unknown,
    /// It was not judged, because an earlier check failed.
    NotJudged,
}

/// Something that was found, with what shows it and what helps.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(into = "Document")]
#[schemars(with = "Document")]
pub struct Finding {
    /// Stable id, the same for the same fault wherever it is found: a row of [`super::ids::IDS`].
    pub id: &'static str,
    /// How it is meant.
    pub stands: Stands,
    /// What it is about: a port, a node, a disk, CPUs. Empty if `what` names it.
    pub subject: String,
    /// What was found, with numbers and without the subject.
    pub what: String,
    /// The same in a few words. Empty where `what` has few words.
    pub brief: String,
    /// Why it matters, or what it comes from. Empty if `what` says it.
    pub why: String,
    /// What shows it: numbers and replies, in sentences without a full stop.
    pub proof: Vec<String>,
    /// How certain it is.
    pub certainty: Certainty,
    /// Ports that cannot reach their full rate because of it.
    pub limits: Vec<String>,
    /// The host on which the steps are done. Empty if it is the only one, or any.
    pub host: String,
    /// What helps, or what would tell more. Its sentence is empty if there is nothing to do.
    pub fix: Advice,
}

impl Finding {
    /// Something that readings show and no trial has proved.
    pub fn new(id: &'static str, subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            id,
            stands: Stands::Found,
            subject: subject.into(),
            what: what.into(),
            brief: String::new(),
            why: String::new(),
            proof: Vec::new(),
            certainty: Certainty::Supported,
            limits: Vec::new(),
            host: String::new(),
            fix: Advice::default(),
        }
    }

    /// Says how it is meant.
    #[must_use]
    pub fn stands(self, stands: Stands) -> Self {
        Self { stands, ..self }
    }

    /// Adds a shorter sentence.
    #[must_use]
    pub fn brief(self, brief: impl Into<String>) -> Self {
        Self { brief: brief.into(), ..self }
    }

    /// Adds why it matters, or what it comes from.
    #[must_use]
    pub fn why(self, why: impl Into<String>) -> Self {
        Self { why: why.into(), ..self }
    }

    /// Adds one thing that shows it.
    #[must_use]
    pub fn because(mut self, proof: impl Into<String>) -> Self {
        self.proof.push(proof.into());
        self
    }

    /// Says all that shows it.
    #[must_use]
    pub fn proof(self, proof: Vec<String>) -> Self {
        Self { proof, ..self }
    }

    /// Says that what was read proves it.
    #[must_use]
    pub fn proved(self) -> Self {
        Self { certainty: Certainty::Proved, ..self }
    }

    /// Adds the ports that it limits.
    #[must_use]
    pub fn limits(self, limits: Vec<String>) -> Self {
        Self { limits, ..self }
    }

    /// Says that its subject is a port that it limits.
    #[must_use]
    pub fn limiting_itself(self) -> Self {
        Self { limits: vec![self.subject.clone()], ..self }
    }

    /// Adds the host on which the remedy is done.
    #[must_use]
    pub fn host(self, host: impl Into<String>) -> Self {
        Self { host: host.into(), ..self }
    }

    /// Adds what helps, or what would tell more.
    #[must_use]
    pub fn fix(self, fix: Advice) -> Self {
        Self { fix, ..self }
    }

    /// What was found, in a few words.
    pub fn in_brief(&self) -> &str {
        if self.brief.is_empty() { &self.what } else { &self.brief }
    }

    /// Whether it does harm now.
    pub fn is_now(&self) -> bool {
        self.stands == Stands::Found
    }
}

/// A finding as JSON has it. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct Document {
    /// Stable id, the same for the same fault in all documents: `pcie-slot`, `clock-lowest`.
    id: &'static str,
    /// How it is meant.
    stands: Stands,
    /// What it is about: a port, a node, a disk, CPUs. Empty if `what` names it.
    subject: String,
    /// What was found, with numbers and without the subject.
    what: String,
    /// The same in a few words.
    brief: String,
    /// Why it matters, or what it comes from. Empty if `what` says it.
    why: String,
    /// What shows it: numbers and replies, in sentences.
    proof: Vec<String>,
    /// How certain it is. Null if it is no fault.
    certainty: Option<Certainty>,
    /// Ports that cannot reach their full rate because of it.
    limits: Vec<String>,
    /// The host on which the steps are done. Null if it is the only one, or any.
    host: Option<String>,
    /// What helps, or what would tell more. Null if there is nothing to do.
    fix: Option<Advice>,
}

impl From<Finding> for Document {
    fn from(found: Finding) -> Self {
        let is_fault = found.stands <= Stands::Harmless;
        Self {
            brief: found.in_brief().to_owned(),
            id: found.id,
            stands: found.stands,
            subject: found.subject,
            what: found.what,
            why: found.why,
            proof: found.proof,
            certainty: Some(found.certainty).filter(|_| is_fault),
            limits: found.limits,
            host: Some(found.host).filter(|host| !host.is_empty()),
            fix: Some(found.fix).filter(|fix| !fix.is_empty()),
        }
    }
}

#[cfg(test)]
impl Finding {
    /// The remedy with its commands and how to undo them, in one line.
    pub(crate) fn to_do(&self) -> String {
        let mut text = self.fix.what.clone();
        if !self.fix.steps.is_empty() {
            text = format!("{text}: {}", self.fix.text());
        }
        match self.fix.undo_text() {
            undo if undo.is_empty() => text,
            undo => format!("{text} (undo: {undo})"),
        }
    }
}
