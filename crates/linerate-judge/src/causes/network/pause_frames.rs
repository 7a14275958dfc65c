//! The device at the other end of the wire sends pause frames that stop the port.

use crate::causes::port_of;
use crate::causes::predict::one_rate;
use crate::causes::prelude::*;
use crate::model::Paused;
use linerate_facts::nic::Nic;
use linerate_facts::route::Route;
use linerate_plan::path::ByRole;
use linerate_units::Rate;
use linerate_units::shell::word;

/// Minimum share of time for which a port is paused, at which the pauses matter.
const STOPPED: f64 = 0.05;

/// Minimum share of time that pauses may have stopped a port, if each lasted as long as possible. It is used where
/// their duration is not counted.
const OFTEN: f64 = 0.5;

/// Longest time that one pause frame stops a port, in bit times.
//= IEEE 802.3-2022, annex 31B: 65535 quanta of 512 bit times
const LONGEST: f64 = 65_535.0 * 512.0;

pub(crate) static CAUSE: Cause = Cause {
    id: "pause-frames",
    name: "pause frames stop the port",
    needs: &[Feature::Stack],
    stage: Stage::Port,
    explains: &["path-rate", "pcie-slot", "receiver-core", "softirq-core"],
    decided_by: &[],
    page: include_str!("../pages/pause-frames.md"),
    check,
    predict: |model, trial| one_rate(model, trial),
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let sender = direction.sender();
    let Some(nic) = wire(model, sender) else {
        return Err(clear("the sender's port has no wire of its own"));
    };
    let ByRole { sender: Some(paused), receiver: there } = load.paused else {
        return Err(uncounted(sender, nic));
    };
    let Some((share, how)) = stopped(&paused, nic.link.speed) else {
        return Err(uncounted(sender, nic));
    };
    if share < STOPPED {
        return Err(clear(format!("pauses stopped {} {} {how}", nic.name, percent(share))));
    }
    // The receiver's port sent the pause frames that the sender's port received, unless a switch did.
    let requested = there.is_some_and(|there| there.sent * 2.0 >= paused.received);
    let origin = if requested {
        format!("the {} port sent them", direction.receiver().name())
    } else {
        "the network between the hosts sent them".to_owned()
    };
    let evidence = vec![
        format!(
            "{} received {:.0} pause frames in a second, which stopped it {} {how}",
            nic.name,
            paused.received,
            percent(share)
        ),
        origin,
    ];
    Ok(Finding::at(
        if requested { Place::from(direction.receiver()) } else { Place::Path },
        share,
        evidence,
    )
    .enough(paused.stopped.is_some() || share >= OFTEN))
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let nic = wire(model, direction.sender());
    let (sender, receiver) = (direction.sender(), direction.receiver());
    let Some(nic) = nic else {
        return Vec::new();
    };
    let set = |to: &str| {
        let also = if negotiates_all(nic) { format!("autoneg {to} ") } else { String::new() };
        format!("sudo ethtool -A {} {also}rx {to}", word(&nic.name))
    };
    let find = Advice::new(
        "find out which device requests pauses, and why it cannot keep up: the counters of the receiver and of the switch",
    );
    let count = format!("ethtool -S {} | grep -i pause", word(port_of(model, receiver)));
    let ignore =
        Advice::new("ignore pause requests; the device that requests them then drops packets");
    vec![find.on(receiver, count), ignore.set(sender, set("off")).undo_on(sender, set("on"))]
}

/// Whether a driver ignores which pause frames to obey while the port negotiates pauses. Other drivers obey, and some
/// refuse to change both settings at once.
//= torvalds/linux, drivers/net/ethernet/intel: e1000_set_pauseparam, igb_set_pauseparam, igc_ethtool_set_pauseparam and
//= ixgbe_set_pauseparam; i40e_set_pauseparam and ice_set_pauseparam refuse
fn negotiates_all(nic: &Nic) -> bool {
    const IGNORE: [&str; 5] = ["e1000", "e1000e", "igb", "igc", "ixgbe"];
    let negotiates = nic.pause.is_some_and(|pause| pause.autoneg == Some(true));
    negotiates && IGNORE.contains(&nic.driver.as_str())
}

fn wire(model: &Model, side: Side) -> Option<&Nic> {
    let host = model.hosts.iter().find(|h| h.side == side)?;
    let wires = host.facts.route.as_ref().and_then(Route::wires)?;
    wires.first().copied()
}

/// Share of time that a port was paused, and how the share is known, in words.
fn stopped(paused: &Paused, speed: Option<Rate>) -> Option<(f64, &'static str)> {
    if let Some(share) = paused.stopped {
        return Some((share, "of the time"));
    }
    let longest = paused.received * LONGEST / (speed?.0 as f64).max(1.0);
    Some((longest.min(1.0), "of the time at the most"))
}

/// The result where the driver counts no pauses: there may have been some if the port obeys pause frames.
fn uncounted(side: Side, nic: &Nic) -> NoFinding {
    let obeys = nic.pause.is_some_and(|pause| pause.rx == Some(true));
    if !obeys {
        return clear(format!("{} does not obey pauses, or has none", nic.name));
    }
    NoFinding::Unknown(vec![Gap {
        what: format!("pauses of the {} port {}", side.name(), nic.name),
        why: "it obeys them, and its driver does not count them".to_owned(),
        hint: format!("ethtool -S {}; the counters of the switch", nic.name),
    }])
}
