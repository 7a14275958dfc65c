//! An InfiniBand network, for people and for programs.

pub mod json;
mod path;
mod text;
pub(super) mod way;

use linerate_fabric::finding::find;
use linerate_fabric::network::Network;
use linerate_facts::finding::Finding;
use linerate_units::Nanos;

pub use json::json;
pub use path::{Pinged, Way, pinged_page, routed};
pub use text::{check, page};
pub use way::{pinged_json, routed_json};

/// A walk through a network, with what is wrong with it.
pub struct Walked {
    /// The network.
    pub network: Network,
    /// What is wrong, the most important first.
    pub findings: Vec<Finding>,
    /// Where the network was asked from, in words: `ibsim sim, as CLB`.
    pub through: String,
    /// Requests that were sent.
    pub requests: u64,
    /// The time that the walk took.
    pub took: Nanos,
    /// Whether every request was answered or given up before the time was up.
    pub whole: bool,
}

impl Walked {
    /// Judges a network.
    pub fn of(network: Network, through: String, requests: u64, took: Nanos, whole: bool) -> Self {
        let is_odd = network.gaps.iter().any(|gap| gap.why.is_odd());
        Self { findings: find(&network), network, through, requests, took, whole: whole && !is_odd }
    }

    /// Whether this host's port answered.
    pub fn knows_own_port(&self) -> bool {
        let own = self.network.own().and_then(|own| self.network.port(own));
        own.is_some_and(|port| port.info.is_some())
    }
}
