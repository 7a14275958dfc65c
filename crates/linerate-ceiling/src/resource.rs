//! The resources of a path, and the demand of each group of streams on them.

use schemars::JsonSchema;
use serde::Serialize;

use super::Bounds;
use linerate_plan::path::{Direction, Place, Stage};

/// The source of an input of a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// It was given.
    Given,
    /// The input was not given; the value is the assumption.
    Assumed,
}

impl Source {
    /// The word used in text and JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Assumed => "assumed",
        }
    }
}

/// An input of a ceiling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The name of its key: `near.port.mps`.
    pub key: String,
    /// The input's value in words: `128 B`, `128 to 512 B`.
    pub value: String,
    /// The source of the value.
    pub source: Source,
}

/// A resource that carries bytes, and its capacity.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Name: `link`, `near slot`. Resources of one name are replaced together: the members of a
    /// bond, the two directions of a slot.
    pub name: String,
    /// Stage that it belongs to.
    pub stage: Stage,
    /// The place of the resource.
    pub side: Place,
    /// Units per second: bytes, unless packets or operations are limited.
    pub capacity: Bounds,
    /// The inputs that the capacity and the demands were computed from.
    pub inputs: Vec<Input>,
}

/// How much of a resource a group uses, in units of its capacity.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Units of the capacity that each payload byte uses.
    pub per_byte: Bounds,
    /// Units of the capacity that each packet uses.
    pub per_packet: Bounds,
    /// Units of the capacity that each operation uses.
    pub per_operation: Bounds,
}

impl Cost {
    /// A cost that only payload has.
    pub fn bytes(per_byte: Bounds) -> Self {
        Self { per_byte, ..Self::default() }
    }
}

/// The demand of a group on one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// Index of the resource in its path.
    pub resource: usize,
    /// The demand per byte, packet and operation.
    pub cost: Cost,
    /// The formula of the goodput that the resource allows, with its numbers: `1 Gb/s x 1460/1538`.
    pub formula: String,
}

/// Streams of one direction that are treated alike.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamGroup {
    /// Direction of the streams.
    pub direction: Direction,
    /// The number of streams.
    pub streams: Bounds,
    /// Payload bytes of a packet.
    pub packet: Bounds,
    /// Payload bytes of an operation.
    pub operation: Bounds,
    /// The demands of the streams on the resources.
    pub demands: Vec<Demand>,
}

/// Everything that bytes cross between two hosts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    /// The resources of the path, in the order of the forward direction.
    pub resources: Vec<Resource>,
    /// The groups of streams that use the path, in both directions.
    pub groups: Vec<StreamGroup>,
}

/// A packet as the wire sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    /// Payload bytes in the packet.
    pub payload: Bounds,
    /// Bytes on the wire for each payload byte.
    pub wire_per_byte: Bounds,
    /// The efficiency as a fraction: `1448/1538`, or `1448/1538 to 1460/1538`.
    pub words: String,
}

impl Packet {
    /// A packet with its payload and its bytes on the wire.
    pub(super) fn sized(payload: u32, wire: u32) -> Self {
        let payload_bytes = f64::from(payload);
        Self {
            payload: Bounds::exact(payload_bytes),
            wire_per_byte: Bounds::exact(f64::from(wire) / payload_bytes),
            words: format!("{payload}/{wire}"),
        }
    }

    /// A packet that could be any of `kinds`, each a payload and the bytes of the packet on the wire. `None`
    /// when there is none, or one without payload.
    pub(super) fn any(kinds: &[(u32, u32)]) -> Option<Self> {
        let share = |&(payload, wire): &(u32, u32)| f64::from(wire) / f64::from(payload);
        let worst = kinds.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
        let best = kinds.iter().min_by(|a, b| share(a).total_cmp(&share(b)))?;
        if kinds.iter().any(|(payload, _)| *payload == 0) {
            return None;
        }
        let fraction = |(payload, wire): &(u32, u32)| format!("{payload}/{wire}");
        Some(Self {
            payload: Bounds::of(kinds.iter().map(|(payload, _)| f64::from(*payload))),
            wire_per_byte: Bounds::new(share(best), share(worst)),
            words: if worst == best {
                fraction(best)
            } else {
                format!("{} to {}", fraction(worst), fraction(best))
            },
        })
    }
}
