//! The ceilings of a host's memory and slots.

use super::{input, part};
use crate::case::{Case, Host, Slot};
use linerate_ceiling::memory::{self, Channels};
use linerate_ceiling::part::{Kind, Part, Shared, Slots};
use linerate_ceiling::{Bounds, Cost, Input, pci, pcie};
use linerate_plan::path::{Direction, Side, Stage};

/// The slot of a port, with all possible values of its unknown inputs; `None` if the port has no slot or
/// shares a bus.
pub(in crate::case) fn express(host: &Host) -> Option<pcie::Slot> {
    let (generation, lanes) = match host.port.pcie {
        Some(Slot::NoSlot | Slot::Bus(_)) => return None,
        Some(Slot::Express { generation, lanes }) => (generation, lanes),
        None => (None, None),
    };
    let all = |known: Option<u32>, all: &[u32]| known.map_or(all.to_vec(), |k| vec![k]);
    Some(pcie::Slot {
        generations: all(generation, &pcie::GENERATIONS),
        lanes: all(lanes, &pcie::WIDTHS),
        payloads: all(host.port.mps, &pcie::USUAL_PAYLOADS),
        requests: all(host.port.mrrs, &pcie::SIZES),
    })
}

/// The memory channels of a host; `None` if their number or speed is unknown.
pub(in crate::case) fn channels(host: &Host) -> Option<Channels> {
    let (count, speed) = (host.memory.channels?, host.memory.speed?);
    Some(Channels { count, speed })
}

/// Memory and slots of the host at one end, as parts with ceilings.
pub(super) fn parts(case: &Case, side: Side, links: u32) -> Vec<Part> {
    let host = match side {
        Side::Near => &case.near,
        Side::Far => &case.far,
    };
    let slots = match (host.port.pcie, express(host)) {
        (Some(Slot::Bus(shared)), _) => Some(bus(side, shared)),
        (_, Some(slot)) => Some(slots(side, host, &slot, links)),
        (_, None) => None,
    };
    let memory = memory(side, host, case.protocol.copies());
    memory.into_iter().chain(slots).collect()
}

/// The memory of a host as a part. It is a ceiling only for what the host receives, and only if cards cannot write into
/// the cache.
fn memory(side: Side, host: &Host, copied: bool) -> Option<Part> {
    let channels = channels(host).filter(|_| host.memory.direct_cache == Some(false))?;
    let key = |k: &str| format!("{}.memory.{k}", side.name());
    let inputs = vec![
        input(&key("channels"), Some(channels.count), ""),
        input(&key("speed"), Some(format!("{} MT/s", channels.speed)), ""),
        input(&key("direct-cache"), Some(false), ""),
    ];
    let crossings = memory::fewest(copied);
    let shared = Shared {
        capacity: channels.capacity(),
        cost: Cost::bytes(Bounds::exact(f64::from(crossings))),
        formula: channels.words(crossings),
    };
    let ways = Direction::ALL.into_iter().filter(|w| w.receiver() == side);
    Some(part(
        &format!("{} memory", side.name()),
        (Stage::Memory, side.into()),
        ways.collect(),
        inputs,
        Kind::Shared(shared),
    ))
}

/// The bus of a host as one part: both directions and all cards share it.
fn bus(side: Side, bus: pci::Bus) -> Part {
    let key = format!("{}.port.pcie", side.name());
    let shared = Shared {
        capacity: bus.capacity(),
        cost: Cost::bytes(Bounds::exact(1.0)),
        formula: bus.words(),
    };
    let inputs = vec![input(&key, Some(bus.name), "")];
    of_slot(side, inputs, Kind::Shared(shared))
}

/// The slots of a host's cards as one part: each card has its own slot.
fn slots(side: Side, host: &Host, slot: &pcie::Slot, links: u32) -> Part {
    let cards = host.port.cards.unwrap_or(1).min(links);
    let key = format!("{}.port.mrrs", side.name());
    let slots = Slots {
        of_links: (0..links as usize).map(|link| (link % cards as usize, slot.clone())).collect(),
        times: if cards > 1 { format!("{cards} slots of ") } else { String::new() },
        frame_per_byte: None,
        request_inputs: vec![input(&key, host.port.mrrs, "128 to 4096")],
    };
    of_slot(side, slot_inputs(side, host), Kind::Slots(slots))
}

fn of_slot(side: Side, inputs: Vec<Input>, kind: Kind) -> Part {
    part(
        &format!("{} slot", side.name()),
        (Stage::Pcie, side.into()),
        Direction::ALL.to_vec(),
        inputs,
        kind,
    )
}

/// The inputs of a slot's ceiling: known values, and ranges for the unknown ones.
fn slot_inputs(side: Side, host: &Host) -> Vec<Input> {
    let key = |k: &str| format!("{}.port.{k}", side.name());
    let port = &host.port;
    let assumed = |what: &str| input(&key("pcie"), None::<Slot>, what);
    let mut inputs = vec![input(&key("pcie"), port.pcie, "gen1x1 to gen7x16")];
    if let Some(Slot::Express { generation, lanes }) = port.pcie {
        inputs.extend(generation.is_none().then(|| assumed("gen1 to gen7")));
        inputs.extend(lanes.is_none().then(|| assumed("x1 to x16")));
    }
    inputs.push(input(&key("mps"), port.mps, "128 to 512"));
    inputs
}
