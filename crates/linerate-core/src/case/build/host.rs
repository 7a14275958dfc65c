//! Memory and slots of a host.

use super::{Builder, input};
use crate::case::{Host, Slot};
use crate::ceiling::memory::{self, Channels};
use crate::ceiling::{Bounds, Cost, Input, pci, pcie};
use crate::path::{Direction, Side, Stage};

/// The slot of a port, unless it has none or shares a bus: all that it may be.
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

/// The channels of a host's memory, where they are known.
pub(in crate::case) fn channels(host: &Host) -> Option<Channels> {
    let (count, speed) = (host.memory.channels?, host.memory.speed?);
    Some(Channels { count, speed })
}

impl Builder<'_> {
    /// Memory and slots of a host.
    pub(super) fn host(&mut self, side: Side, host: &Host) {
        self.memory(side, host);
        match (host.port.pcie, express(host)) {
            (Some(Slot::Bus(bus)), _) => self.bus(side, bus),
            (_, Some(slot)) => self.slots(side, host, &slot),
            (_, None) => {}
        }
    }

    fn memory(&mut self, side: Side, host: &Host) {
        let (Some(channels), Some(false)) = (channels(host), host.memory.direct_cache) else {
            return;
        };
        let name = format!("{} memory", side.name());
        let memory = self.add(&name, (Stage::Memory, side.into()), channels.capacity());
        let key = |k: &str| format!("{}.memory.{k}", side.name());
        self.note(
            memory,
            vec![
                input(&key("channels"), Some(channels.count), ""),
                input(&key("speed"), Some(format!("{} MT/s", channels.speed)), ""),
                input(&key("direct-cache"), Some(false), ""),
            ],
        );
        let crossings = memory::fewest(self.case.protocol.copies());
        let cost = Cost::bytes(Bounds::exact(f64::from(crossings)));
        for way in Direction::ALL.into_iter().filter(|w| w.receiver() == side) {
            self.ask_all(way, memory, cost, &channels.words(crossings));
        }
    }

    /// A bus is one for both directions and all cards of the host.
    fn bus(&mut self, side: Side, bus: pci::Bus) {
        let name = format!("{} slot", side.name());
        let index = self.add(&name, (Stage::Pcie, side.into()), bus.capacity());
        let key = format!("{}.port.pcie", side.name());
        self.note(index, vec![input(&key, Some(bus.name), "")]);
        for way in Direction::ALL {
            let cost = Cost::bytes(Bounds::exact(1.0));
            self.ask_all(way, index, cost, &bus.words());
        }
    }

    /// Each card has a slot, with a direction to the card and one to memory.
    fn slots(&mut self, side: Side, host: &Host, slot: &pcie::Slot) {
        let cards = host.port.cards.unwrap_or(1).min(self.links);
        for card in 0..cards {
            let name = format!("{} slot", side.name());
            let place = (Stage::Pcie, side.into());
            let [to_card, to_memory] = [0, 1].map(|_| self.add(&name, place, slot.capacity()));
            let mut inputs = slot_inputs(side, host);
            self.note(to_card, inputs.clone());
            let key = format!("{}.port.mrrs", side.name());
            inputs.push(input(&key, host.port.mrrs, "128 to 4096"));
            self.note(to_memory, inputs);
            let each = if cards > 1 {
                format!("{cards} slots of ")
            } else {
                String::new()
            };
            let read = format!("{each}{}", slot.read_words());
            let write = format!("{each}{}", slot.write_words());
            for link in (0..self.links).filter(|link| link % cards == card) {
                for way in Direction::ALL {
                    if way.sender() == side {
                        self.ask(way, link, to_card, slot.read(), &read);
                        self.ask(way, link, to_memory, slot.request(), "requests to read");
                    } else {
                        self.ask(way, link, to_memory, slot.write(), &write);
                    }
                }
            }
        }
    }
}

/// What is known of a slot, and what is not.
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
