//! What is wrong with a network, and what helps. A rule uses only what nodes answered: what is unknown is no finding.

mod cable;
mod cascade;
mod credits;
mod errors;
mod identity;
mod manager;
mod missing;
mod partition;
#[cfg(test)]
mod tests;

pub use errors::full;

use super::network::Network;
use linerate_facts::advice::Advice;
use linerate_plan::path::Certainty;

/// Something that is wrong with a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Stable id: `wrong-port`, `no-manager`.
    pub id: &'static str,
    /// The port or node that it is about, in words.
    pub subject: String,
    /// What is wrong, without the subject.
    pub what: String,
    /// Why, or what follows from it.
    pub why: String,
    /// The replies that show it, in words.
    pub proof: Vec<String>,
    /// How certain it is: proved by the replies, or only supported by them.
    pub certainty: Certainty,
    /// Whether it does harm now. Counters that have stopped to rise do none, nor does a limit that nothing reaches.
    pub now: bool,
    /// The host on which the steps are done; empty if it does not matter.
    pub host: String,
    /// What helps.
    pub fix: Advice,
}

impl Finding {
    /// A finding that the replies prove, and that goes on.
    fn new(id: &'static str, subject: String, what: impl Into<String>, fix: Advice) -> Self {
        Self {
            id,
            subject,
            what: what.into(),
            why: String::new(),
            proof: Vec::new(),
            certainty: Certainty::Proved,
            now: true,
            host: String::new(),
            fix,
        }
    }
}

/// Looks for one sort of finding.
type Rule = fn(&Network) -> Vec<Finding>;

/// All rules, in the order in which their findings are shown.
const RULES: &[Rule] = &[
    cable::unplugged,
    manager::unserved,
    manager::other_port,
    manager::several,
    manager::gone,
    identity::doubled,
    identity::doubled_ports,
    identity::doubled_lids,
    partition::isolated,
    cable::slow,
    missing::missing,
    errors::rising,
    errors::remote,
    credits::slow_receiver,
    errors::discards,
    errors::refused,
    cascade::cascades,
    identity::silent,
    identity::lossy,
    errors::past,
];

/// Returns all findings, the most important first.
pub fn find(network: &Network) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| rule(network)).collect()
}
