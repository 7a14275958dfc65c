//! The parts of a path as they are described in a case file, or by the readings of the hosts of a run.

use super::{Bounds, Cost, Input, Link, Packet, pcie};
use linerate_plan::path::{Direction, Place, Stage};
use linerate_units::Rate;

/// The description of a path, or of one end of it.
#[derive(Debug, Clone)]
pub struct Description {
    /// The directions in which payload flows.
    pub directions: Vec<Direction>,
    /// Number of streams on each of the parallel links. Each link has one group of streams in each direction.
    pub streams: Vec<Bounds>,
    /// Size and payload of the packets that are sent.
    pub packet: Packet,
    /// Payload bytes of an operation (a read, write or message).
    pub operation: Bounds,
    /// The parts, in the order of the forward direction.
    pub parts: Vec<Part>,
}

/// A part of a path, which limits the traffic through it.
#[derive(Debug, Clone)]
pub struct Part {
    /// Name: `link`, `near slot of eth0`.
    pub name: String,
    /// The stage of the path that the part belongs to.
    pub stage: Stage,
    /// Where the part is: at the near end, at the far end, or between them.
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
    /// The USB links that network adapters are attached to.
    Usb(Usb),
    /// A part that all groups of streams share: a bus, memory, a shaper, a device.
    Shared(Shared),
    /// A rate limit for each single stream.
    EachStream(EachStream),
}

/// Parallel links.
#[derive(Debug, Clone)]
pub struct Links {
    /// The rate of each link.
    pub links: Vec<Link>,
    /// Start of the formula if there are several links, such as `2 x `; else empty.
    pub times: String,
}

/// The slots of cards.
#[derive(Debug, Clone)]
pub struct Slots {
    /// For each link, the number of its slot and the slot itself. Links with the same number share a slot.
    pub of_links: Vec<(usize, pcie::Slot)>,
    /// Start of the formula if there are several slots, such as `2 slots of `; else empty.
    pub times: String,
    /// Largest number of bytes, packet headers included, that cross the slot for each payload byte; a card that
    /// cuts and joins packets needs fewer. `None` if headers are not counted.
    pub frame_per_byte: Option<f64>,
    /// Further inputs of the ceiling in the direction to memory.
    pub request_inputs: Vec<Input>,
}

/// The USB links that network adapters are attached to.
#[derive(Debug, Clone)]
pub struct Usb {
    /// For each network link, the number of its USB link, and the signalling rate of the USB link. Network links
    /// with the same number share a USB link.
    pub of_links: Vec<(usize, Rate)>,
    /// Bytes, packet headers included, that cross the USB link for each payload byte.
    pub frame_per_byte: f64,
}

/// A limit that all groups of streams share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Capacity in units per second: bytes, packets or operations.
    pub capacity: Bounds,
    /// How much of the capacity each group uses for a payload byte, a packet or an operation.
    pub cost: Cost,
    /// The formula of the goodput that the limit allows.
    pub formula: String,
}

/// A rate limit for each single stream.
#[derive(Debug, Clone)]
pub struct EachStream {
    /// Highest rate of a stream.
    pub rate: Rate,
    /// How many bytes count towards the limit for each payload byte, packet or operation.
    pub cost: Cost,
    /// The formula of the goodput that the limit allows.
    pub formula: String,
}
