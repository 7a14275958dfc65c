//! The resources of a path, and the demand of each group of streams on them.

use schemars::JsonSchema;
use serde::Serialize;

use super::Bounds;
use linerate_plan::path::{Direction, Place, Stage};

/// Where an input of a ceiling comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The input was given.
    Given,
    /// The input was not given; its value is assumed.
    Assumed,
}

impl Source {
    /// Name of the source in text and JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Assumed => "assumed",
        }
    }
}

/// An input value that a ceiling was computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Name of the input's key: `near.port.mps`.
    pub key: String,
    /// The input's value in words: `128 B`, `128 to 512 B`.
    pub value: String,
    /// Where the value comes from.
    pub source: Source,
}

/// A resource that limits the bytes through it, and its capacity.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Name: `link`, `near slot`. Resources with the same name are upgraded together: the members of a bond, the
    /// two directions of a slot.
    pub name: String,
    /// Stage of the path that the resource belongs to.
    pub stage: Stage,
    /// Where the resource is: at the near end, at the far end, or between them.
    pub side: Place,
    /// Capacity per second, in the unit that the resource limits: bytes, packets or operations.
    pub capacity: Bounds,
    /// The inputs that the capacity and the demands were computed from.
    pub inputs: Vec<Input>,
}

/// How much of a resource a group of streams uses, in units of the resource's capacity.
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
    /// A cost for each payload byte, without any cost for packets and operations.
    pub fn bytes(per_byte: Bounds) -> Self {
        Self { per_byte, ..Self::default() }
    }
}

/// The demand of a group of streams on one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// Index of the resource in [`Path::resources`].
    pub resource: usize,
    /// Cost of a payload byte, of a packet and of an operation.
    pub cost: Cost,
    /// The formula of the goodput that the resource allows, with its numbers: `1 Gb/s x 1460/1538`.
    pub formula: String,
}

/// Streams in one direction that have equal shares of the path.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamGroup {
    /// Direction of the streams.
    pub direction: Direction,
    /// The number of streams.
    pub streams: Bounds,
    /// Payload bytes of a packet.
    pub packet: Bounds,
    /// Payload bytes of an operation (a read, write or message).
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

/// A packet and the bytes that it takes on the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    /// Payload bytes in the packet.
    pub payload: Bounds,
    /// Bytes on the wire for each payload byte.
    pub wire_per_byte: Bounds,
    /// Payload over bytes on the wire, as a fraction: `1448/1538`, or `1448/1538 to 1460/1538`.
    pub words: String,
}

impl Packet {
    /// A packet with `payload` bytes of payload and `wire` bytes on the wire.
    pub(super) fn sized(payload: u32, wire: u32) -> Self {
        let payload_bytes = f64::from(payload);
        Self {
            payload: Bounds::exact(payload_bytes),
            wire_per_byte: Bounds::exact(f64::from(wire) / payload_bytes),
            words: format!("{payload}/{wire}"),
        }
    }

    /// A packet that may be any of `kinds`, each with its payload bytes and its bytes on the wire. `None` if
    /// `kinds` is empty or has one without payload.
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
