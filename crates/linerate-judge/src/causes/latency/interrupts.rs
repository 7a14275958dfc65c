//! A port delays its interrupts, so that arrived packets wait in its ring.

use crate::causes::latency::raised;
use crate::causes::port_of;
use crate::causes::prelude::*;
use linerate_facts::advice::Joined;
use linerate_facts::nic::Nic;
use linerate_facts::route::Route;
use linerate_plan::path::Slowness;
use linerate_units::Nanos;
use linerate_units::shell::word;

/// Minimum share of the round trip that the ports' interrupt delays must explain, and their minimum sum: a smaller
/// delay is a fair price for fewer interrupts.
const SUSPECT: f64 = 0.3;
const NOTABLE: Nanos = Nanos::from_micros(10);

/// Minimum share of the round trip at which the delay of interrupts is a limit without a trial.
const MOST: f64 = 0.5;

pub(crate) static CAUSE: Cause = Cause {
    id: "latency-interrupts",
    name: "the card delays its interrupts",
    needs: &[Feature::Stack],
    stage: Stage::Port,
    slows: Slowness::Latency,
    is_once: true,
    decided_by: &[],
    page: include_str!("../pages/latency-interrupts.md"),
    check: waits,
    advice,
    ..Cause::BASE
};

fn advice(model: &Model, _: Direction) -> Vec<Advice> {
    let held = [Side::Near, Side::Far].map(|side| (side, held(model, side).ok().flatten()));
    let of = |(side, held): (Side, Option<Held>)| {
        let Held { port, micros } = held.filter(|held| held.micros > 0)?;
        let set = |micros| format!("sudo ethtool -C {} rx-usecs {micros}", word(port));
        let advice = Advice::new(format!(
            "let {port} interrupt without a delay; each packet then costs an interrupt"
        ));
        let advice = advice.set(side, set(0)).undo_on(side, set(micros));
        Some(advice.joined(Joined::And))
    };
    held.into_iter().filter_map(of).collect()
}

/// How long a port delays interrupts after a packet arrived.
#[derive(Clone, Copy)]
struct Held<'a> {
    port: &'a str,
    micros: u32,
}

/// The finding of interrupt delays that make round trips on the idle path long; else why there are none, or which
/// reading is missing.
fn waits(model: &Model, direction: Direction) -> Result<Finding, NoFinding> {
    let idle = raised::idle(model, direction)?;
    let (near, far) = (held(model, Side::Near)?, held(model, Side::Far)?);
    let micros = |held: Option<Held<'_>>| held.map_or(0, |held| u64::from(held.micros));
    let all = Nanos::from_micros(micros(near).saturating_add(micros(far)));
    let share = all.0 as f64 / idle.0.max(1) as f64;
    let words = format!(
        "a round trip took {idle} on the idle path (p50), and the ports are set to delay interrupts for {all} of it"
    );
    // A port whose delay is longer than the whole round trip did not apply it.
    if share < SUSPECT || all < NOTABLE || share >= 1.0 {
        return Err(clear(words));
    }
    let (side, worst) =
        if micros(near) >= micros(far) { (Side::Near, near) } else { (Side::Far, far) };
    let reported = worst.map(|held| {
        format!(
            "{} of {} waits {} us after a packet for more packets; together that is {} of the round \
             trip",
            held.port,
            side.name(),
            held.micros,
            percent(share)
        )
    });
    Ok(Finding::at(side, share, [Some(words), reported].into_iter().flatten().collect())
        .enough(share >= MOST))
}

/// The card on the path to the other end with the longest fixed interrupt delay; `None` if no card has one, as where
/// the driver adapts it to the load.
fn held(model: &Model, side: Side) -> Result<Option<Held<'_>>, NoFinding> {
    let facts = model.host(side).map(|host| &host.facts);
    let route = facts.and_then(|facts| facts.route.as_ref());
    let wires = route.and_then(Route::wires);
    let Some(wires) = wires else {
        let none = facts.is_some_and(|facts| !facts.has_card());
        return if none { Ok(None) } else { Err(unread(model, side)) };
    };
    let reported: Option<Vec<Held<'_>>> = wires.into_iter().map(fixed).collect();
    let reported = reported.ok_or_else(|| unread(model, side))?;
    Ok(reported.into_iter().max_by_key(|held| held.micros))
}

/// Drivers of cards for which `rx-usecs` is the least time between two interrupts: a single packet interrupts
/// at once.
//= Intel 82599 and X710 datasheets, "interrupt throttling" (ITR)
const THROTTLE: [&str; 9] =
    ["e1000", "e1000e", "igb", "igbvf", "ixgbe", "ixgbevf", "i40e", "iavf", "ice"];

/// The fixed interrupt delay of one card; `None` if it has none, or it was not read.
fn fixed(card: &Nic) -> Option<Held<'_>> {
    let set = card.coalesce?;
    let at_once = set.adaptive_rx == Some(true)
        || set.rx_frames == Some(1)
        || THROTTLE.contains(&card.driver.as_str());
    Some(Held { port: &card.name, micros: set.rx_usecs.filter(|_| !at_once).unwrap_or(0) })
}

fn unread(model: &Model, side: Side) -> NoFinding {
    NoFinding::Unknown(vec![Gap {
        what: format!("interrupt coalescing of {}", side.name()),
        why: "it was not read".to_owned(),
        hint: format!("ethtool -c {}", port_of(model, side)),
    }])
}
