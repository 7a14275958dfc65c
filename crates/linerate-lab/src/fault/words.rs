//! Words for the parts of faults, for their descriptions.

use std::fmt;

use linerate_plan::application::{Burden, Role};
use linerate_plan::path::Direction;

use super::{FaultDirection, Manner, Origin, Rhythm};

impl fmt::Display for FaultDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forward => "forward",
            Self::Reverse => "in reverse",
            Self::Both => "in each direction",
        })
    }
}

impl fmt::Display for Rhythm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once(after) => write!(f, "after {after}"),
            Self::Every(period) => write!(f, "every {period}"),
        }
    }
}

impl Manner {
    /// Returns the verb for what the network does to packets above the rate.
    pub(super) const fn verb(self) -> &'static str {
        match self {
            Self::Shaped => "queues",
            Self::Policed => "drops",
        }
    }
}

/// Returns words for the number of packets that are lost in a row; empty if it is 1.
pub(super) fn in_a_row(burst: u32) -> String {
    if burst == 1 { String::new() } else { format!(", {burst} in a row") }
}

/// Returns words for the destination of background traffic.
pub(super) const fn goal(direction: Direction, origin: Origin) -> &'static str {
    match (origin, direction) {
        (Origin::Ends, Direction::Forward) => "forward",
        (Origin::Ends, Direction::Reverse) => "in reverse",
        (Origin::Elsewhere, Direction::Forward) => "through the router to far",
        (Origin::Elsewhere, Direction::Reverse) => "through the router to near",
    }
}

/// Returns the word for the threads that have a burden.
pub(super) const fn bearer(role: Option<Role>) -> &'static str {
    match role {
        None => "application",
        Some(Role::Sender) => "sender",
        Some(Role::Receiver) => "receiver",
    }
}

/// Returns words for what a burden makes an application do.
pub(super) fn effect(burden: Burden) -> String {
    match burden {
        Burden::Work { ps_per_byte } => format!("works {ps_per_byte} ps for each byte"),
        Burden::Pause { per_operation } => format!("pauses {per_operation} at each operation"),
    }
}
