//! The names of both hosts, and of the directions between them.

use linerate_core::model::Model;
use linerate_core::path::{Direction, Side};

/// The names of both hosts, for people; near first.
#[derive(Debug, Clone)]
pub(super) struct Names(pub(super) [String; 2]);

impl Names {
    /// The names of the hosts, if they differ; `near` and `far` otherwise.
    pub(super) fn of_hosts(model: &Model) -> Self {
        let name = |side| model.host(side).map_or("", |host| host.facts.name.as_str());
        match [Side::Near, Side::Far].map(name) {
            [near, far] if near != far && !near.is_empty() && !far.is_empty() => {
                Self([near, far].map(str::to_owned))
            }
            _ => Self::sides(),
        }
    }

    /// The names `near` and `far`, for hosts without known names.
    pub(super) fn sides() -> Self {
        Self([Side::Near, Side::Far].map(|side| side.name().to_owned()))
    }

    /// A sentence that explains near, far and forward for these hosts.
    pub(super) fn explained(&self) -> String {
        let [near, far] = &self.0;
        if near == Side::Near.name() {
            return "near: where linerate ran, far: the other end; forward: from near to far"
                .to_owned();
        }
        format!("near: {near}, far: {far}; forward: from near to far")
    }

    /// The hosts of a direction, from the sender to the receiver: `ripple -> brook`.
    pub(super) fn way(&self, direction: Direction) -> String {
        let [from, to] = [direction.sender(), direction.receiver()].map(|side| self.of(side));
        format!("{from} -> {to}")
    }

    pub(super) fn of(&self, side: Side) -> &str {
        &self.0[usize::from(side == Side::Far)]
    }
}
