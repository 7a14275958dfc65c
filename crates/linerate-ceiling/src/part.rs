//! The described parts of a path: from a case file, or from the readings of the hosts of a run.

use super::{Bounds, Cost, Input, Link, Packet, pcie};
use linerate_plan::path::{Direction, Place, Stage};
use linerate_units::Rate;

/// The description of a path, or of one end of it.
#[derive(Debug, Clone)]
pub struct Description {
    /// The directions in which payload flows.
    pub directions: Vec<Direction>,
    /// Streams on each of the parallel links. Each link has one group of streams in each direction.
    pub streams: Vec<Bounds>,
    /// The packets that are sent.
    pub packet: Packet,
    /// Payload bytes of an operation.
    pub operation: Bounds,
    /// The parts, in the order of the forward direction.
    pub parts: Vec<Part>,
}

/// A part of a path, which limits the traffic through it.
#[derive(Debug, Clone)]
pub struct Part {
    /// Name: `link`, `near slot of eth0`.
    pub name: String,
    /// The stage of the part.
    pub stage: Stage,
    /// The place of the part.
    pub side: Place,
    /// The directions that use the part.
    pub ways: Vec<Direction>,
    /// The inputs of the ceiling, to show where it comes from.
    pub inputs: Vec<Input>,
    /// The kind of the part.
    pub kind: Kind,
}

/// The kind of a part, with the parameters of its ceiling.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Parallel links, each of them full duplex.
    Links(Links),
    /// PCI Express slots, or the links of switches above them.
    Slots(Slots),
    /// The wires of USB that adapters are on.
    Usb(Usb),
    /// A part that all groups of streams share: a bus, memory, a shaper, a device.
    Shared(Shared),
    /// A limit for each stream.
    EachStream(EachStream),
}

/// Parallel links.
#[derive(Debug, Clone)]
pub struct Links {
    /// The values of each link.
    pub links: Vec<Link>,
    /// Start of the formula if there are several links: `2 x `.
    pub times: String,
}

/// The slots of cards.
#[derive(Debug, Clone)]
pub struct Slots {
    /// For each link the number of its slot, and the slot. Links with the same number share a slot.
    pub of_links: Vec<(usize, pcie::Slot)>,
    /// Start of the formula if there are several slots: `2 slots of `.
    pub times: String,
    /// Bytes that cross it for each payload byte at the most, because of the headers of packets; a card that cuts and
    /// joins packets needs fewer. `None` if headers are not counted.
    pub frame_per_byte: Option<f64>,
    /// Further inputs of the direction to memory.
    pub request_inputs: Vec<Input>,
}

/// The wires of USB that adapters are on.
#[derive(Debug, Clone)]
pub struct Usb {
    /// For each link the number of its wire, and the wire's signalling rate. Links with the same number share a
    /// wire.
    pub of_links: Vec<(usize, Rate)>,
    /// Bytes that cross it for each payload byte, because of the headers of packets.
    pub frame_per_byte: f64,
}

/// A limit that all groups of streams share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Capacity in units per second.
    pub capacity: Bounds,
    /// How much of the capacity each group uses.
    pub cost: Cost,
    /// The formula of the goodput that it allows.
    pub formula: String,
}

/// A limit for each stream.
#[derive(Debug, Clone)]
pub struct EachStream {
    /// Highest rate of a stream.
    pub rate: Rate,
    /// The bytes that count towards the limit.
    pub cost: Cost,
    /// The formula of the goodput that it allows.
    pub formula: String,
}
