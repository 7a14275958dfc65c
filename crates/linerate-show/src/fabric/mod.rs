//! An InfiniBand network, as text and as JSON.

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

/// The result of a walk through an InfiniBand network.
pub struct Walked {
    /// The network as it was read.
    pub network: Network,
    /// What is wrong with the network, the most important first.
    pub findings: Vec<Finding>,
    /// From where the requests were sent, in words: `ibsim sim, as CLB`.
    pub through: String,
    /// Number of requests that were sent.
    pub requests: u64,
    /// Time that the walk took.
    pub took: Nanos,
    /// Whether every request was answered or given up before the time was up.
    pub whole: bool,
}

impl Walked {
    /// Judges a network that was read.
    pub fn of(network: Network, through: String, requests: u64, took: Nanos, whole: bool) -> Self {
        let is_odd = network.gaps.iter().any(|gap| gap.why.is_odd());
        Self { findings: find(&network), network, through, requests, took, whole: whole && !is_odd }
    }

    /// Whether this host's port replied.
    pub fn knows_own_port(&self) -> bool {
        let own = self.network.own().and_then(|own| self.network.port(own));
        own.is_some_and(|port| port.info.is_some())
    }
}
