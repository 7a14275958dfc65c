//! Several ports reach the far end, but one carries the whole RDMA load, and is full.

use crate::causes::FULL;
use crate::causes::predict::one_rate;
use crate::causes::prelude::*;
use crate::model::Ceiling;
use linerate_facts::rdma::OtherPort;
use linerate_facts::route::shares_network;

/// Least rate of another port, over that of the used one, at which its use is worthwhile.
const WORTH: f64 = 0.5;

/// Least rate of a slot, over that of one port, at which a second port of that card adds rate.
const BOTH: f64 = 1.5;

pub(crate) static CAUSE: Cause = Cause {
    id: "rdma-one-port",
    name: "one of several RDMA ports carries all",
    needs: &[Feature::Verbs],
    stage: Stage::Port,
    explains: &["wire-full"],
    decided_by: &[],
    page: include_str!("../pages/rdma-one-port.md"),
    check,
    predict: |model, trial| one_rate(model, trial),
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let full = full(model, direction, load);
    let Some(first) = full.first() else {
        return Err(clear("no port is full"));
    };
    if let Some(slot) = shared_slot(model, load, direction, &full) {
        return Err(clear(slot));
    }
    let mut unused = Vec::new();
    for ceiling in &full {
        let Some(side) = side(ceiling) else { continue };
        let Some(other) = other(model, load, direction, side) else {
            return Err(clear(format!(
                "{} has no other active RDMA port in the network of the far end's address",
                side.name()
            )));
        };
        unused.push(format!(
            "{} {} port {} on {} is active in the same network, and carried nothing of this load",
            side.name(),
            other.device,
            other.port,
            other.netdev
        ));
    }
    let share = first.reached(load);
    let evidence = format!("goodput was {} of what {} carries", percent(share), first.name);
    Ok(Finding::at(first.side, share.min(1.0), std::iter::once(evidence).chain(unused).collect())
        .enough(true))
}

fn advice(_: &Model, _: Direction) -> Vec<Advice> {
    vec![Advice::new(
        "spread the queue pairs over both ports: the program names them, or a bond of both ports does it for RoCE",
    )]
}

/// The ceilings of ports that the load reaches.
fn full<'a>(model: &'a Model, direction: Direction, load: &Load) -> Vec<&'a Ceiling> {
    let ceilings = model.direction(direction).map(|dir| &dir.ceilings);
    let of_ports = ceilings.into_iter().flatten().filter(|c| c.stage == Stage::Net);
    of_ports.filter(|c| c.reached(load) >= FULL).collect()
}

/// Says that the slot of a full port carries little more than that port, if the other port is on the same card.
fn shared_slot(
    model: &Model,
    load: &Load,
    direction: Direction,
    full: &[&Ceiling],
) -> Option<String> {
    let slots = &model.direction(direction)?.ceilings;
    full.iter().find_map(|port| {
        let side = side(port)?;
        let used = load.rdma(direction, side)?;
        let other = other(model, load, direction, side)?;
        let mut slots = slots.iter();
        let slot = slots.find(|slot| slot.stage == Stage::Pcie && slot.side == port.side)?;
        let holds = slot.rate.0 as f64 / port.rate.0 as f64;
        (used.shares_card(other) && holds < BOTH).then(|| {
            format!(
                "{} {} is a port of the same card, whose slot holds {} of one port",
                side.name(),
                other.device,
                percent(holds)
            )
        })
    })
}

fn side(ceiling: &Ceiling) -> Option<Side> {
    let mut sides = [Side::Near, Side::Far].into_iter();
    sides.find(|side| Place::from(*side) == ceiling.side)
}

/// Another active port of an end, with an address in the network of the other end's address.
fn other<'a>(
    model: &'a Model,
    load: &'a Load,
    direction: Direction,
    side: Side,
) -> Option<&'a OtherPort> {
    let route = model.host(side)?.facts.route.as_ref()?;
    let peer = route.peer?.to_canonical();
    let reaches = |other: &&OtherPort| {
        let mut ports = route.others.iter();
        let port = ports.find(|port| port.name == other.netdev && !port.name.is_empty());
        port.is_some_and(|port| {
            let mut networks = port.networks.iter();
            networks.any(|(own, bits)| shares_network((own.to_canonical(), *bits), peer))
        })
    };
    let used = load.rdma(direction, side)?;
    let own = used.rate.as_ref().map(|rate| rate.rate.0 as f64);
    let is_worth = |other: &&OtherPort| {
        let rate = other.rate.map(|rate| rate.0 as f64);
        own.zip(rate).is_none_or(|(own, rate)| rate >= own * WORTH)
    };
    used.others.iter().filter(is_worth).find(reaches)
}
