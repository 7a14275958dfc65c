//! Finds what is wrong with a network, and what helps. A rule uses only what nodes answered: what is unknown is no
//! finding.

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
use linerate_facts::finding::Finding;

/// A rule: finds one kind of fault in a network.
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
