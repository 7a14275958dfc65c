//! The port's wire is full: the best possible verdict.

use crate::causes::predict::one_rate;
use crate::causes::prelude::*;
use crate::causes::rdma;
use crate::causes::{FULL, port_at, wire};
use crate::model::Ceiling;
use crate::signs::underlay::{goes_elsewhere, may_bind, untold};
use linerate_facts::underlay::Underlay;
use linerate_record::Host;
use linerate_units::shell::word;

pub(crate) static CAUSE: Cause = Cause {
    id: "wire-full",
    name: "full speed, the wire is full",
    needs: &[Feature::Card],
    stage: Stage::Net,
    proves_itself: true,
    full_speed: true,
    decided_by: &[Factor::MoreStreams],
    page: include_str!("../pages/wire-full.md"),
    ceiling: Some(Stage::Net),
    check,
    predict: |model, trial| one_rate(model, trial),
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let ceiling = wire(model, direction);
    let Some(full) = ceiling.filter(|ceiling| ceiling.reached(load) >= FULL) else {
        return Err(
            unread(model, direction, load).unwrap_or_else(|| not_full(load, direction, ceiling))
        );
    };
    let share = full.reached(load);
    let evidence = vec![format!(
        "goodput was {} of all that {} carries: {} = {}",
        percent(share),
        full.name,
        full.formula,
        full.rate
    )];
    Ok(Finding::at(Place::Path, share.min(1.0), evidence).enough(true).reached(true))
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let spread = spread(model, direction);
    wire(model, direction)
        .map(|ceiling| {
            Advice::new(format!(
                "nothing: the path is as fast as {} is; a faster port, or a second one, carries more",
                ceiling.name
            ))
        })
        .into_iter()
        .chain(spread)
        .collect()
}

/// Advice to include TCP or UDP ports in the hash of a bond, so that streams spread over its members. Only for bonding
/// modes that use a hash policy.
fn spread(model: &Model, direction: Direction) -> Option<Advice> {
    let side = direction.sender();
    let full = wire(model, direction).filter(|full| full.side == side.into());
    let route = full.and_then(|_| model.host(side)?.facts.route.as_ref())?;
    let nic = route.bond_by_host()?;
    let bond = nic.stack.bond.as_ref()?;
    let set = |hash: &str| {
        format!("sudo ip link set dev {} type bond xmit_hash_policy {hash}", word(&nic.name))
    };
    ["802.3ad", "balance-xor"]
        .contains(&bond.mode.as_str())
        .then(|| {
            let advice = Advice::new(format!(
                "spread several streams over the members of {}, which sends all to one host by one member now",
                nic.name
            ));
            let advice = advice.set(side, set("layer3+4"));
            advice.undo_on(side, set(&word(&bond.hash)))
        })
}

fn not_full(load: &Load, direction: Direction, ceiling: Option<&Ceiling>) -> NoFinding {
    clear(match ceiling {
        Some(ceiling) => format!(
            "goodput was {} of what {} carries, {} = {}",
            percent(ceiling.reached(load)),
            ceiling.name,
            ceiling.formula,
            ceiling.rate
        ),
        None if rdma::port::carries(load) => rdma::port::without_wire(load, direction),
        None => "no port at the ends has a wire of its own".to_owned(),
    })
}

/// The result where a wire may be full: its speed is unknown, or it is unknown whether the path crosses it.
pub(crate) fn unread(model: &Model, direction: Direction, load: &Load) -> Option<NoFinding> {
    let known = wire(model, direction).is_some();
    if rdma::port::carries(load) {
        let gaps = rdma::port::unread_links(load, direction);
        return (!gaps.is_empty()).then_some(NoFinding::Unknown(gaps));
    }
    let hosts = model.hosts.iter();
    let gaps: Vec<Gap> = hosts.filter_map(|host| gap(host, direction, load, known)).collect();
    (!gaps.is_empty()).then_some(NoFinding::Unknown(gaps))
}

/// The gap for an unknown fact about the wire of a host. `known`: whether the ceiling of the wire at one end is known.
fn gap(host: &Host, direction: Direction, load: &Load, known: bool) -> Option<Gap> {
    let port = host.facts.port.as_ref();
    match host.facts.underlay() {
        Underlay::Nothing => None,
        Underlay::OneOf(ports) => {
            let open = may_bind(host, &ports, direction, load, Stage::Net);
            open.then(|| untold(host, "wire", &ports))
        }
        Underlay::Hidden if port.is_some_and(|port| port.is_virtual) => {
            Some(untold(host, "wire", &[]))
        }
        Underlay::Wires(wires) if goes_elsewhere(host, &wires, load) => None,
        Underlay::Wires(_) | Underlay::Hidden => {
            let open = port.is_none_or(|port| port.is_ethernet) && !(known && tells_speed(host));
            open.then(|| Gap {
                what: format!("the speed of the {} port", host.side.name()),
                why: "without it the capacity of the wire is unknown".to_owned(),
                hint: format!("ethtool {}", port_at(host)),
            })
        }
    }
}

fn tells_speed(host: &Host) -> bool {
    let port = host.facts.port.as_ref().filter(|port| !port.is_virtual);
    let nominal = port.and_then(|port| port.speed_mbps);
    let route = host.facts.route.as_ref();
    nominal.is_some() || route.is_some_and(|route| route.speed().is_some())
}
