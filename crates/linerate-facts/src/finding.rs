//! Findings: what was found in a host, a network, reported figures or a check.

use schemars::JsonSchema;
use serde::Serialize;

use super::advice::Advice;
use linerate_plan::path::Certainty;

/// What a finding says about a fault. A list of findings has this order: what must be read first comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stands {
    /// Two figures contradict each other.
    Contradiction,
    /// Something is wrong, explains what is slow, or rules out a reason.
    #[default]
    Found,
    /// Something that does no harm now, such as counters that no longer rise, or a limit that nothing reaches.
    Harmless,
    /// The results do not support a claim or a figure.
    Doubt,
    /// All is as it should be.
    Good,
    /// The point could not be judged.
    Unknown,
    /// The point was not judged, because an earlier check failed.
    NotJudged,
}

/// Something that was found, with its proof and what helps.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(into = "Document")]
#[schemars(with = "Document")]
pub struct Finding {
    /// Stable id of the fault, a row of [`super::ids::IDS`]. It is the same wherever the fault is found.
    pub id: &'static str,
    /// What the finding says about the fault, such as found, harmless or unknown.
    pub stands: Stands,
    /// What the finding is about: a port, a node, a disk, CPUs. Empty if `what` names it.
    pub subject: String,
    /// What was found, with numbers and without the subject.
    pub what: String,
    /// The finding in a few words. Empty where `what` is short.
    pub brief: String,
    /// Why the finding matters, or what caused it. Empty if `what` says it.
    pub why: String,
    /// The proof: numbers and replies, in sentences without a full stop.
    pub proof: Vec<String>,
    /// How certain the finding is.
    pub certainty: Certainty,
    /// Ports that cannot reach their full rate because of the finding.
    pub limits: Vec<String>,
    /// The host on which the steps of `fix` are done. Empty if there is only one host, or if any host will do.
    pub host: String,
    /// What helps, or how to find out more. Its sentence is empty if there is nothing to do.
    pub fix: Advice,
}

impl Finding {
    /// A finding that readings support and no trial has proved.
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

    /// Sets what the finding says about the fault.
    #[must_use]
    pub fn stands(self, stands: Stands) -> Self {
        Self { stands, ..self }
    }

    /// Sets the finding in a few words.
    #[must_use]
    pub fn brief(self, brief: impl Into<String>) -> Self {
        Self { brief: brief.into(), ..self }
    }

    /// Sets why the finding matters, or what caused it.
    #[must_use]
    pub fn why(self, why: impl Into<String>) -> Self {
        Self { why: why.into(), ..self }
    }

    /// Adds one sentence to the proof.
    #[must_use]
    pub fn because(mut self, proof: impl Into<String>) -> Self {
        self.proof.push(proof.into());
        self
    }

    /// Sets the whole proof.
    #[must_use]
    pub fn proof(self, proof: Vec<String>) -> Self {
        Self { proof, ..self }
    }

    /// Sets that the finding is proved by what was read.
    #[must_use]
    pub fn proved(self) -> Self {
        Self { certainty: Certainty::Proved, ..self }
    }

    /// Sets the ports that the finding keeps from their full rate.
    #[must_use]
    pub fn limits(self, limits: Vec<String>) -> Self {
        Self { limits, ..self }
    }

    /// Sets that the finding keeps its own subject, a port, from its full rate.
    #[must_use]
    pub fn limiting_itself(self) -> Self {
        Self { limits: vec![self.subject.clone()], ..self }
    }

    /// Sets the host on which the remedy is done.
    #[must_use]
    pub fn host(self, host: impl Into<String>) -> Self {
        Self { host: host.into(), ..self }
    }

    /// Sets what helps, or how to find out more.
    #[must_use]
    pub fn fix(self, fix: Advice) -> Self {
        Self { fix, ..self }
    }

    /// The finding in a few words.
    pub fn in_brief(&self) -> &str {
        if self.brief.is_empty() { &self.what } else { &self.brief }
    }

    /// Whether the finding does harm now.
    pub fn is_now(&self) -> bool {
        self.stands == Stands::Found
    }
}

/// A finding as it is written to JSON. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct Document {
    /// Stable id of the fault, the same in all documents: `pcie-slot`, `clock-lowest`.
    id: &'static str,
    /// What the finding says about the fault, such as found, harmless or unknown.
    stands: Stands,
    /// What the finding is about: a port, a node, a disk, CPUs. Empty if `what` names it.
    subject: String,
    /// What was found, with numbers and without the subject.
    what: String,
    /// The finding in a few words.
    brief: String,
    /// Why the finding matters, or what caused it. Empty if `what` says it.
    why: String,
    /// The proof: numbers and replies, in sentences.
    proof: Vec<String>,
    /// How certain the finding is. Null if it is no fault.
    certainty: Option<Certainty>,
    /// Ports that cannot reach their full rate because of the finding.
    limits: Vec<String>,
    /// The host on which the steps of `fix` are done. Null if there is only one host, or if any host will do.
    host: Option<String>,
    /// What helps, or how to find out more. Null if there is nothing to do.
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
    /// The remedy with its commands, and how to undo them, in one line.
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
