//! Words for the path: its ends, its two directions, the stages that bytes cross, and the quantities that are judged.
//!
//! Plans, models, causes and verdicts use these words. This module depends on none of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One end of the path.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The host where linerate was started.
    Near,
    /// The other host.
    Far,
}

/// The direction in which payload flows.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From near to far.
    Forward,
    /// From far to near.
    Reverse,
}

impl Direction {
    /// Both directions, in the order in which they are measured and listed.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Reverse];

    /// The opposite direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }

    /// The access to a file that moves payload in this direction: the disk is the far end.
    pub const fn access(self) -> &'static str {
        match self {
            Self::Forward => "write",
            Self::Reverse => "read",
        }
    }

    /// The end that sends payload in this direction.
    pub const fn sender(self) -> Side {
        match self {
            Self::Forward => Side::Near,
            Self::Reverse => Side::Far,
        }
    }

    /// The end that receives payload in this direction.
    pub const fn receiver(self) -> Side {
        match self {
            Self::Forward => Side::Far,
            Self::Reverse => Side::Near,
        }
    }

    /// Name of the direction in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }
}

impl Side {
    /// Both ends, near first.
    pub const ALL: [Self; 2] = [Self::Near, Self::Far];

    /// Whether `text` contains the name of this side as a whole word.
    pub fn is_named_in(self, text: &str) -> bool {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        words.any(|word| word == self.name())
    }

    /// Name of the side in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }
}

/// Two values of a load: one for the sender, one for the receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ByRole<T> {
    /// The value for the sender.
    pub sender: T,
    /// The value for the receiver.
    pub receiver: T,
}

impl<T> ByRole<T> {
    /// The value for the end `side`, which is sender or receiver by the `direction`.
    pub fn at(&self, direction: Direction, side: Side) -> &T {
        if side == direction.sender() { &self.sender } else { &self.receiver }
    }
}

impl<T> From<[T; 2]> for ByRole<T> {
    /// Makes the pair from the value for the sender and the value for the receiver, in this order.
    fn from([sender, receiver]: [T; 2]) -> Self {
        Self { sender, receiver }
    }
}

/// A part of the path that bytes cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// The program that sends or receives payload.
    App,
    /// Socket buffers and windows.
    Socket,
    /// CPUs.
    Cpu,
    /// The memory of a host.
    Memory,
    /// The PCI Express link of the port.
    Pcie,
    /// The network port.
    Port,
    /// Everything between the two ports.
    Net,
    /// The file or the disk that the load uses.
    Device,
}

impl Stage {
    /// Name of the stage in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Socket => "socket",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pcie => "pcie",
            Self::Port => "port",
            Self::Net => "net",
            Self::Device => "device",
        }
    }
}

/// The place where a limit acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// At the near host.
    Near,
    /// At the far host.
    Far,
    /// Between the hosts, or at both hosts together.
    Path,
}

impl From<Side> for Place {
    fn from(side: Side) -> Self {
        match side {
            Side::Near => Self::Near,
            Side::Far => Self::Far,
        }
    }
}

impl Place {
    /// Name of the place in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::Path => "path",
        }
    }
}

/// The way in which a path is slow. A cause of a low rate and a cause of high latency are not rivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slowness {
    /// The path carries too few bytes or operations per second.
    Rate,
    /// Round trips on the path take too long.
    Latency,
}

impl Slowness {
    /// Both kinds, in the order in which they are judged.
    pub const ALL: [Self; 2] = [Self::Rate, Self::Latency];
}

/// The quantities of a path that are measured and judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Payload per second.
    Goodput,
    /// Operations per second.
    Operations,
    /// Round-trip time.
    Latency,
}

impl Measure {
    /// Name of the quantity in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Operations => "operations",
            Self::Latency => "latency",
        }
    }

    /// The kind of slowness that shows in this quantity.
    pub const fn slowness(self) -> Slowness {
        match self {
            Self::Goodput | Self::Operations => Slowness::Rate,
            Self::Latency => Slowness::Latency,
        }
    }
}

/// How certain it is that a limit holds goodput or latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// A trial had the effect that only this cause predicts.
    Proved,
    /// Counters speak for the cause, and no trial decided.
    Supported,
}

impl Certainty {
    /// Name of the certainty in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Supported => "supported",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_one_role_in_a_direction() {
        let both = ByRole::from(["sends", "receives"]);
        let of = |direction| [Side::Near, Side::Far].map(|side| *both.at(direction, side));
        assert_eq!(of(Direction::Forward), ["sends", "receives"]);
        assert_eq!(of(Direction::Reverse), ["receives", "sends"]);
    }

    /// Text uses `name()`, and JSON the name that serde derives.
    #[test]
    fn words_are_the_same_in_text_and_in_json() {
        fn same(word: impl Serialize, name: &str) {
            assert_eq!(serde_json::to_value(word).unwrap(), name);
        }
        for side in [Side::Near, Side::Far] {
            same(side, side.name());
        }
        for direction in Direction::ALL {
            same(direction, direction.name());
        }
        for place in [Place::Near, Place::Far, Place::Path] {
            same(place, place.name());
        }
        for stage in [
            Stage::App,
            Stage::Socket,
            Stage::Cpu,
            Stage::Memory,
            Stage::Pcie,
            Stage::Port,
            Stage::Net,
            Stage::Device,
        ] {
            same(stage, stage.name());
        }
        for measure in [Measure::Goodput, Measure::Operations, Measure::Latency] {
            same(measure, measure.name());
        }
    }
}
