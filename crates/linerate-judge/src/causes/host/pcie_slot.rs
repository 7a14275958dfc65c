//! The PCIe link of a card is full: the port could carry more.

use crate::causes::predict::{one_rate, scaled};
use crate::causes::prelude::*;
use crate::causes::rdma;
use crate::causes::rdma::port::ANY;
use crate::causes::{BUSY, FULL, wire};
use crate::model::Ceiling;
use crate::signs::threads::wanted;
use crate::signs::underlay::{may_bind, untold};
use linerate_ceiling::usb;
use linerate_facts::crossing::{Crossing, is_made_up};
use linerate_facts::nic::Nic;
use linerate_facts::pci::Address;
use linerate_facts::route::Route;
use linerate_facts::underlay::Underlay;
use linerate_record::Host;
use linerate_units::Rate;

pub(crate) static CAUSE: Cause = Cause {
    id: "pcie-slot",
    name: "the PCIe slot is full",
    needs: &[Feature::Card],
    stage: Stage::Pcie,
    proves_itself: true,
    decided_by: &[Factor::MoreStreams],
    page: include_str!("../pages/pcie-slot.md"),
    ceiling: Some(Stage::Pcie),
    check,
    predict: |model, trial| one_rate(model, trial),
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    match full(model, direction, load) {
        Ok((ceiling, crossing)) => {
            let binds = wire(model, direction).is_none_or(|wire| wire.rate > ceiling.rate);
            Ok(finding(load, ceiling, &crossing, binds))
        }
        Err(clear) => Err(open(model, direction, load).unwrap_or(NoFinding::Clear(clear))),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|d| &d.base);
    let full = load.and_then(|load| full(model, direction, load).ok());
    full.map(|(ceiling, crossing)| {
        Advice::new(format!("on {}: {}", ceiling.side.name(), remedy(&crossing)))
    })
    .into_iter()
    .collect()
}

/// The slot whose ceiling goodput nearly reaches, and its narrowest link; else why there is none.
fn full<'a>(
    model: &'a Model,
    direction: Direction,
    load: &'a Load,
) -> Result<(&'a Ceiling, Crossing<'a>), String> {
    let none = || "no port at the ends is in a slot that could limit it".to_owned();
    let dir = model.direction(direction).ok_or_else(none)?;
    let ceiling = dir.ceiling_of(Stage::Pcie).ok_or_else(none)?;
    if let Some(wire) = wire(model, direction).filter(|wire| wire.rate <= ceiling.least) {
        return Err(format!("{} carries less: {}", wire.name, wire.rate));
    }
    let of_least = ceiling.reached(load) * ceiling.rate.0 as f64 / ceiling.least.0.max(1) as f64;
    if of_least < FULL {
        return Err(format!(
            "goodput was {} of the least that {} carries: {} = {}",
            percent(of_least),
            ceiling.name,
            ceiling.formula,
            ceiling.words()
        ));
    }
    let crossing = narrowest(model, direction, load, ceiling).ok_or_else(none)?;
    Ok((ceiling, crossing))
}

/// The link that determines a ceiling: the slowest between the cards of its host and the processor.
fn narrowest<'a>(
    model: &'a Model,
    direction: Direction,
    load: &'a Load,
    ceiling: &Ceiling,
) -> Option<Crossing<'a>> {
    let host = model.hosts.iter().find(|h| Place::from(h.side) == ceiling.side)?;
    let crossings: Vec<Crossing<'_>> = if rdma::port::carries(load) {
        load.rdma(direction, host.side)?.crossings()
    } else {
        let route = host.facts.route.as_ref()?;
        let cards = route.wires()?.into_iter();
        cards.flat_map(|nic| route.crossings(nic)).collect()
    };
    crossings.into_iter().filter(|crossing| crossing.rate().is_some()).min_by_key(Crossing::rate)
}

/// The finding of a slot. `binds`: the wire carries more than the slot, even at the upper end of the slot's interval.
fn finding(load: &Load, ceiling: &Ceiling, crossing: &Crossing<'_>, binds: bool) -> Finding {
    let share = ceiling.reached(load);
    let reached = binds && share >= FULL;
    let how = if reached {
        format!("was {} of all that", percent(share))
    } else {
        "lies inside of what".to_owned()
    };
    let mut evidence = vec![format!(
        "goodput of {} {how} {} carries: {} = {}",
        Rate(load.goodput.mean as u64),
        ceiling.name,
        ceiling.formula,
        ceiling.words()
    )];
    evidence.push(origin(crossing));
    let payload = crossing.device.payload;
    if payload.is_none() {
        evidence.push("the payload of its packets was not read: 128 to 512 bytes".to_owned());
    }
    // If the ceiling is an estimate, a thread without spare time may be the limit as well. A polling thread is busy
    // however little it carries.
    let busy = !load.knobs.busy_poll
        && [&load.senders, &load.receivers]
            .into_iter()
            .any(|threads| wanted(threads).is_none_or(|w| w > BUSY));
    Finding::at(ceiling.side, share.min(1.0), evidence)
        .enough(reached || (binds && payload.is_some() && !busy))
        .reached(reached)
}

/// The reason for the link's speed and width, in words.
pub(crate) fn origin(crossing: &Crossing<'_>) -> String {
    let (card, slot) = (crossing.device.address, crossing.slot.address);
    let now = crossing.now;
    match (crossing.best(), crossing.device.max, crossing.slot.max) {
        (Some(best), _, _) if best.rate() > now.rate() => {
            format!("the link of {card} runs at {now}, and both its ends could do {best}")
        }
        (Some(best), Some(own), _) if own.rate() > best.rate() => {
            format!("{card} could use {own}, and its slot (port {slot}) leaves it {best} at most")
        }
        (_, Some(own), Some(_)) => format!("{card} itself can do no more than {own}"),
        _ => format!("the link of {card} runs at {now}; its ends do not report what they support"),
    }
}

pub(crate) fn remedy(crossing: &Crossing<'_>) -> String {
    let card = crossing.device.address;
    match (crossing.best(), crossing.device.max, crossing.slot.max) {
        (Some(best), _, _) if best.rate() > crossing.now.rate() => format!(
            "seat the card {card} anew, clean its contacts, look for a limit of its slot in the \
             firmware's setup: {best} is possible"
        ),
        (Some(best), Some(own), _) if own.rate() > best.rate() => {
            format!("move the card {card} to a slot of {own}")
        }
        _ => format!("use a card with a faster link than that of {card}, in a slot that has it"),
    }
}

/// Whether the path leaves an end by more than one wire.
fn bonded(model: &Model) -> bool {
    let routes = model.hosts.iter().filter_map(|h| h.facts.route.as_ref());
    routes.filter_map(Route::wires).any(|wires| wires.len() > 1)
}

/// The result if no slot is known to be full, but one that was not read may be; `None` if no slot can be full.
fn open(model: &Model, direction: Direction, load: &Load) -> Option<NoFinding> {
    if rdma::port::carries(load) {
        let gap = rdma::port::unread_slot(load, direction)?;
        return Some(NoFinding::Unknown(vec![gap]));
    }
    let of = |host| match usb_gap(host, load) {
        None if load.goodput.mean >= ANY => gap(host, direction, load),
        usb => usb,
    };
    let gap = model.hosts.iter().find_map(of)?;
    // More streams over a bond may have used more slots.
    let scaled = scaled(model, direction, "slots").filter(|_| !bonded(model));
    Some(scaled.map_or_else(|| NoFinding::Unknown(vec![gap]), NoFinding::Clear))
}

/// The gap for unknown properties of an end's slots; `None` if all are known.
fn gap(host: &Host, direction: Direction, load: &Load) -> Option<Gap> {
    let port = host.facts.port.as_ref();
    match host.facts.underlay() {
        Underlay::Nothing => None,
        Underlay::OneOf(ports) => {
            let read =
                are_read(host, &ports) && !may_bind(host, &ports, direction, load, Stage::Pcie);
            (!read).then(|| untold(host, "slot", &ports))
        }
        Underlay::Hidden if port.is_some_and(|port| port.is_virtual) => {
            Some(untold(host, "slot", &[]))
        }
        // The size of packets on a slot is known only for Ethernet ports.
        Underlay::Wires(wires)
            if are_read(host, &wires) && port.is_some_and(|port| port.is_ethernet) =>
        {
            None
        }
        Underlay::Wires(wires) => Some(
            tunnel(host, &wires)
                .map_or_else(|| unread_link(host), |cable| unknown_cable(host, cable)),
        ),
        Underlay::Hidden => Some(unread_link(host)),
    }
}

/// Whether the speeds of the ports' slots are known, or the ports have no slots.
fn are_read(host: &Host, wires: &[&Nic]) -> bool {
    let known = |route: &Route, nic: &Nic| {
        let links = route.crossings(nic);
        let all = !links.is_empty() && links.iter().all(|link| link.rate().is_some());
        all || is_made_up(&links, nic.link.speed.unwrap_or_default())
    };
    let route = host.facts.route.as_ref();
    route.is_some_and(|route| {
        let mut wires = wires.iter();
        wires.all(|nic| nic.pci.is_empty() || known(route, nic))
    })
}

/// The device at the end of a Thunderbolt or USB4 cable, if one is between `wires` and the processor.
fn tunnel(host: &Host, wires: &[&Nic]) -> Option<Address> {
    let route = host.facts.route.as_ref()?;
    let links = wires.iter().flat_map(|nic| route.crossings(nic));
    let tunnel = links.into_iter().find(|link| link.is_tunnel)?;
    Some(tunnel.device.address)
}

/// The gap for unknown facts of a USB port, if goodput reaches a rate that the port may have.
fn usb_gap(host: &Host, load: &Load) -> Option<Gap> {
    let wires = host.facts.route.as_ref()?.wires()?;
    let slow = |nic: &&Nic| {
        let (hub, signals) = nic.slowest_usb()?;
        let may_bind = load.goodput.at_most() >= usb::leaves(signals).low();
        may_bind.then(|| (nic.name.clone(), hub.map(ToOwned::to_owned), signals))
    };
    let (name, hub, signals) = wires.iter().find_map(slow)?;
    let hub = hub.map_or_else(String::new, |hub| format!(" at the hub {hub}"));
    Some(Gap {
        what: format!("the USB capacity of the {} port {name}", host.side.name()),
        why: format!("it signals {signals}{hub}, of which controllers leave half or more"),
        hint: "lsusb -t; the same adapter in a faster socket".to_owned(),
    })
}

fn slot_of(host: &Host) -> String {
    match &host.facts.port {
        Some(port) => format!("the slot of the {} port {}", host.side.name(), port.name),
        None => format!("the slot of the {} port", host.side.name()),
    }
}

fn unknown_cable(host: &Host, cable: Address) -> Gap {
    Gap {
        what: slot_of(host),
        why: format!(
            "{cable} is attached by Thunderbolt or USB4; its link figures are placeholders, so the capacity is \
             unknown"
        ),
        hint: "cat /sys/bus/thunderbolt/devices/*/rx_speed; the same card in a slot of the board"
            .to_owned(),
    }
}

fn unread_link(host: &Host) -> Gap {
    Gap {
        what: slot_of(host),
        why: "its link was not read, or its port is not Ethernet: its capacity is unknown"
            .to_owned(),
        hint: match host.side {
            Side::Near => "lspci -vv".to_owned(),
            Side::Far => "lspci -vv, on the far host".to_owned(),
        },
    }
}
