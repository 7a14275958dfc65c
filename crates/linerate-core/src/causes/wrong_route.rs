//! Traffic leaves by a slower port than one that reaches the other end too.

use std::net::IpAddr;

use super::{Answer, Cause, FULL, Finding, WIRE_FULL, base, percent, wire};
use crate::facts::Gap;
use crate::facts::route::{Other, Route, shares_network};
use crate::model::Model;
use crate::plan::{Direction, Side};
use crate::record::{Host, TrialPlan};
use crate::stats::Range;
use crate::trial::Factor;
use crate::units::Rate;
use crate::verdict::{Advice, Place, Stage};

/// Cause `wrong-route`.
pub(super) struct WrongRoute;

/// Another way must be so many times faster to be worth a word.
const FASTER: f64 = 1.1;

/// Another way between the two hosts.
struct Detour<'a> {
    /// The ports that it would use in place of those in use; one of them may stay.
    near: Option<&'a Other>,
    far: Option<&'a Other>,
    /// What the slower of its two ports carries.
    speed: Rate,
    /// Own and other address of the end that has to change its route.
    via: (IpAddr, IpAddr),
}

impl Cause for WrongRoute {
    fn id(&self) -> &'static str {
        "wrong-route"
    }
    fn stage(&self) -> Stage {
        Stage::Port
    }
    fn explains(&self) -> &'static [&'static str] {
        &[WIRE_FULL]
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let load = match base(model, direction) {
            Ok(load) => load,
            Err(answer) => return answer,
        };
        let Some(ceiling) = wire(model, direction) else {
            return Answer::Clear("no port in use has a wire that could be full".to_owned());
        };
        let share = ceiling.reached(load);
        if share < FULL {
            return Answer::Clear(format!(
                "goodput was {} of what {} carries: another port would not help",
                percent(share),
                ceiling.name
            ));
        }
        let Some([near, far]) = routes(model) else {
            return Answer::Unknown(vec![Gap {
                what: "other ways between the hosts".to_owned(),
                why: "the routes of both hosts were not read".to_owned(),
                hint: String::new(),
            }]);
        };
        if near.gateway.is_some() || far.gateway.is_some() {
            let why = "the other end is behind a router: networks of one name may be two";
            return Answer::Clear(why.to_owned());
        }
        match detour(near, far) {
            Some(detour) => Answer::Finding(Finding {
                side: place(&detour),
                share: 1.0 - (used(near, far).0 as f64 / detour.speed.0 as f64).min(1.0),
                enough: true,
                reached: false,
                evidence: vec![
                    format!(
                        "goodput was {} of all that {} carries",
                        percent(share),
                        ceiling.name
                    ),
                    words(&detour),
                ],
            }),
            None => Answer::Clear("no faster port is in a network with the other end".to_owned()),
        }
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        // As the full wire that it explains.
        super::cause(WIRE_FULL)?.predict(model, trial)
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[]
    }
    fn advice(&self, model: &Model, _: Direction) -> Vec<Advice> {
        let Some([near, far]) = routes(model) else {
            return Vec::new();
        };
        detour(near, far)
            .map(|detour| advice(&detour))
            .into_iter()
            .collect()
    }
    fn page(&self) -> &'static str {
        include_str!("pages/wrong-route.md")
    }
}

fn routes(model: &Model) -> Option<[&Route; 2]> {
    let of = |side| {
        let host = model.hosts.iter().find(|h: &&Host| h.side == side)?;
        host.facts.route.as_ref()
    };
    Some([of(Side::Near)?, of(Side::Far)?])
}

/// What the slower of the two ports in use carries; nothing where that is not known.
fn used(near: &Route, far: &Route) -> Rate {
    let of = |route: &Route| Some(route.speed()?.0);
    Rate(of(near).into_iter().chain(of(far)).min().unwrap_or(0))
}

/// The fastest other way, if it is faster than the one in use.
///
/// The two hosts are neighbours by the ports in use, so that an address of one in a network of the
/// other is most likely a neighbour there too. Who answers there was not asked: that is why this is
/// never more than supported.
fn detour<'a>(near: &'a Route, far: &'a Route) -> Option<Detour<'a>> {
    let mut found: Vec<Detour<'a>> = Vec::new();
    for a in &near.others {
        for b in &far.others {
            found.extend(pair(a, b));
        }
        found.extend(one_sided(a, near, far).map(|(speed, via)| Detour {
            near: Some(a),
            far: None,
            speed,
            via,
        }));
    }
    for b in &far.others {
        found.extend(one_sided(b, far, near).map(|(speed, via)| Detour {
            near: None,
            far: Some(b),
            speed,
            via,
        }));
    }
    let best = found.into_iter().max_by_key(|detour| detour.speed)?;
    let now = used(near, far).0;
    (now > 0 && best.speed.0 as f64 >= now as f64 * FASTER).then_some(best)
}

/// Two ports that are in a network with each other.
fn pair<'a>(a: &'a Other, b: &'a Other) -> Option<Detour<'a>> {
    let speed = a.speed?.min(b.speed?);
    let both = a
        .networks
        .iter()
        .flat_map(|x| b.networks.iter().map(move |y| (x, y)));
    let mut meet =
        both.filter(|(x, y)| x.0 != y.0 && x.1 == y.1 && x.1 > 0 && shares_network(**x, y.0));
    let (own, other) = meet.next()?;
    Some(Detour {
        near: Some(a),
        far: Some(b),
        speed,
        via: (own.0, other.0),
    })
}

/// A port in a network with the address that the other end is reached by.
fn one_sided(port: &Other, own: &Route, other: &Route) -> Option<(Rate, (IpAddr, IpAddr))> {
    let peer = own.peer?;
    let mut within = port.networks.iter();
    let found = within.find(|network| network.1 > 0 && shares_network(**network, peer))?;
    Some((port.speed?.min(other.speed()?), (found.0, peer)))
}

fn place(detour: &Detour<'_>) -> Place {
    match (detour.near, detour.far) {
        (Some(_), None) => Place::Near,
        (None, Some(_)) => Place::Far,
        _ => Place::Path,
    }
}

fn words(detour: &Detour<'_>) -> String {
    let (own, other) = detour.via;
    match (detour.near, detour.far) {
        (Some(near), Some(far)) => format!(
            "near {} ({own}) and far {} ({other}) have addresses of one network, and the slower of them \
             has {}",
            near.name, far.name, detour.speed
        ),
        (near, far) => {
            let side = if near.is_some() { "near" } else { "far" };
            let name = near.or(far).map_or("", |port| &port.name);
            format!(
                "{side} {name} ({own}) is in the network of {other} too, and could use {}",
                detour.speed
            )
        }
    }
}

fn advice(detour: &Detour<'_>) -> Advice {
    let (own, other) = detour.via;
    let (near, far) = (detour.near, detour.far);
    if near.is_some() && far.is_some() {
        return Advice {
            action: format!("linerate run {other}, and use that address if it is faster"),
            undo: String::new(),
            gain: None,
        };
    }
    let side = if near.is_some() { "near" } else { "far" };
    let name = near.or(far).map_or("", |port| &port.name);
    let bits = if other.is_ipv4() { 32 } else { 128 };
    Advice {
        action: format!("on {side}: ip route add {other}/{bits} dev {name} src {own}"),
        undo: format!("ip route del {other}/{bits} dev {name}"),
        gain: None,
    }
}
