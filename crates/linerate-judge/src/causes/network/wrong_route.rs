//! The traffic uses a slower port, although a faster one reaches the other host too.

use crate::causes::prelude::*;
use linerate_units::shell::word;
use std::net::IpAddr;

use crate::causes::network::wire_full::unread;
use crate::causes::{FULL, wire};
use crate::model::Ceiling;
use linerate_facts::route::{Other, Route, shares_network};
use linerate_units::Rate;

/// Minimum speed of another route at which it is reported, in multiples of the used route's speed.
const FASTER: f64 = 1.1;

/// Another route between the two hosts.
struct Detour<'a> {
    /// The port of this route at each end; `None` for a port that is already in use.
    near: Option<&'a Other>,
    far: Option<&'a Other>,
    /// The speeds of the route's two ports, if they are known.
    speeds: [Option<Rate>; 2],
    /// Addresses for the new route: the own one of the end that has to change its route, and the one of the other end.
    via: (IpAddr, IpAddr),
}

/// Whether there is a faster route between the two hosts.
enum Alternative<'a> {
    /// There is no faster route.
    None,
    /// A faster route, and the speed of the slower of its two ports.
    Faster(Detour<'a>, Rate),
    /// A route that may be faster: the speed of one of its ports is unknown.
    Unknown(Detour<'a>),
}

pub(crate) static CAUSE: Cause = Cause {
    id: "wrong-route",
    name: "the route uses the slower port",
    needs: &[Feature::Stack],
    stage: Stage::Port,
    explains: &["wire-full"],
    decided_by: &[],
    page: include_str!("../pages/wrong-route.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let full = full_wire(model, direction, load);
    if let Err(clear @ NoFinding::Clear(_)) = full {
        return Err(clear);
    }
    let Some([near, far]) = routes(model) else {
        return Err(unknown(
            "other routes between the hosts",
            "the routes of both hosts were not read",
        ));
    };
    if near.gateway.is_some() || far.gateway.is_some() {
        let why = "the other end is behind a router: the two networks with the same address may be different ones";
        return Err(clear(why));
    }
    match (alternative(near, far), full) {
        (Alternative::None, _) => Err(clear("no faster port is in a network with the other end")),
        (_, Err(open)) => Err(open),
        (Alternative::Unknown(detour), Ok(_)) => Err(speed_unknown(&detour)),
        (Alternative::Faster(detour, speed), Ok(ceiling)) => Ok(Finding::at(
            place(&detour),
            1.0 - (used(near, far).0 as f64 / speed.0 as f64).min(1.0),
            vec![
                format!(
                    "goodput was {} of all that {} carries",
                    percent(ceiling.reached(load)),
                    ceiling.name
                ),
                words(&detour, speed),
            ],
        )
        .enough(true)),
    }
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    // A wrong route predicts what the full wire predicts, which it explains.
    crate::causes::cause("wire-full")?.predict(model, trial)
}

fn advice(model: &Model, _: Direction) -> Vec<Advice> {
    let Some([near, far]) = routes(model) else {
        return Vec::new();
    };
    match alternative(near, far) {
        Alternative::Faster(detour, _) => vec![remedy(&detour)],
        Alternative::Unknown(_) | Alternative::None => Vec::new(),
    }
}

/// The wire that is full; else the result that another port would not help, or that it is unknown whether a wire is
/// full.
fn full_wire<'a>(
    model: &'a Model,
    direction: Direction,
    load: &Load,
) -> Result<&'a Ceiling, NoFinding> {
    let ceiling = wire(model, direction);
    if let Some(full) = ceiling.filter(|ceiling| ceiling.reached(load) >= FULL) {
        return Ok(full);
    }
    let clear = || match ceiling {
        None => "no port in use has a wire that could be full".to_owned(),
        Some(ceiling) => format!(
            "goodput was {} of what {} carries: another port would not help",
            percent(ceiling.reached(load)),
            ceiling.name
        ),
    };
    Err(unread(model, direction, load).unwrap_or_else(|| NoFinding::Clear(clear())))
}

fn routes(model: &Model) -> Option<[&Route; 2]> {
    let of = |side| {
        let host = model.host(side)?;
        host.facts.route.as_ref()
    };
    Some([of(Side::Near)?, of(Side::Far)?])
}

/// Speed of the slower one of the two ports in use; zero if no speed is known.
fn used(near: &Route, far: &Route) -> Rate {
    let of = |route: &Route| Some(route.speed()?.0);
    Rate(of(near).into_iter().chain(of(far)).min().unwrap_or(0))
}

/// The fastest other route, if it is faster than the one in use; else one that may be faster.
///
/// The two hosts are neighbours through the ports in use. So if an address of one host is in a network of the other,
/// the hosts are most likely neighbours in that network too. Whether the same host answers there was not tested:
/// therefore this cause is never more than supported.
fn alternative<'a>(near: &'a Route, far: &'a Route) -> Alternative<'a> {
    let now = used(near, far).0 as f64;
    let is_faster = |speed: Rate| now > 0.0 && speed.0 as f64 >= now * FASTER;
    let mut open = None;
    let mut best: Option<(Detour<'_>, Rate)> = None;
    for detour in detours(near, far) {
        let speed = detour.slower();
        let slow = now > 0.0 && speed.is_some_and(|speed| !is_faster(speed));
        let faster = speed.filter(|speed| is_faster(*speed));
        match faster {
            _ if slow => {}
            Some(speed) if !detour.speeds.contains(&None) => {
                let best_yet = best.as_ref().is_none_or(|(_, most)| speed >= *most);
                best = if best_yet { Some((detour, speed)) } else { best };
            }
            _ => open = open.or(Some(detour)),
        }
    }
    match (best, open) {
        (Some((detour, speed)), _) => Alternative::Faster(detour, speed),
        (None, Some(detour)) => Alternative::Unknown(detour),
        (None, None) => Alternative::None,
    }
}

/// Every other route between the two hosts, whatever its speed.
fn detours<'a>(near: &'a Route, far: &'a Route) -> Vec<Detour<'a>> {
    let mut found: Vec<Detour<'a>> = Vec::new();
    for a in &near.others {
        found.extend(far.others.iter().filter_map(|b| pair(a, b)));
        found.extend(one_sided(a, near).map(|via| Detour {
            near: Some(a),
            far: None,
            speeds: [a.speed, far.speed()],
            via,
        }));
    }
    for b in &far.others {
        found.extend(one_sided(b, far).map(|via| Detour {
            near: None,
            far: Some(b),
            speeds: [b.speed, near.speed()],
            via,
        }));
    }
    found
}

impl Detour<'_> {
    /// The slower one of the route's known speeds.
    fn slower(&self) -> Option<Rate> {
        self.speeds.iter().flatten().min().copied()
    }
}

/// Whether a network contains an address, and membership shows that the two hosts are neighbours. In link-local
/// networks and in the network of all addresses every host is a member.
//= RFC 3927, section 2.1; RFC 4291, section 2.5.6
fn meets(network: (IpAddr, u8), address: IpAddr) -> bool {
    let of_link = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    };
    network.1 > 0 && !of_link && shares_network(network, address)
}

/// The route between two ports with addresses in one network; `None` if they share none.
fn pair<'a>(a: &'a Other, b: &'a Other) -> Option<Detour<'a>> {
    let both = a.networks.iter().flat_map(|x| b.networks.iter().map(move |y| (x, y)));
    let mut meet = both.filter(|(x, y)| x.0 != y.0 && x.1 == y.1 && meets(**x, y.0));
    let (own, other) = meet.next()?;
    Some(Detour { near: Some(a), far: Some(b), speeds: [a.speed, b.speed], via: (own.0, other.0) })
}

/// The address of `port` in the network of the address at which the other end is reached, and that address of the other
/// end.
fn one_sided(port: &Other, own: &Route) -> Option<(IpAddr, IpAddr)> {
    let peer = own.peer?;
    let mut within = port.networks.iter();
    let found = within.find(|network| meets(**network, peer))?;
    Some((found.0, peer))
}

/// The gap for a route that may be faster: the speed of a port was not read.
fn speed_unknown(detour: &Detour<'_>) -> NoFinding {
    let ends = [("near", detour.near), ("far", detour.far)];
    let mut unread = ends
        .into_iter()
        .filter_map(|(side, port)| Some((side, port.filter(|port| port.speed.is_none())?)));
    let (what, port) = unread.next().map_or_else(
        || ("the ports in use".to_owned(), "PORT"),
        |(side, port)| (format!("{side} {}", port.name), port.name.as_str()),
    );
    NoFinding::Unknown(vec![Gap {
        what: format!("the speed of {what}"),
        why: "there is another route between the hosts, and it may be faster than the full one"
            .to_owned(),
        hint: format!("ethtool {port}"),
    }])
}

fn place(detour: &Detour<'_>) -> Place {
    match (detour.near, detour.far) {
        (Some(_), None) => Place::Near,
        (None, Some(_)) => Place::Far,
        _ => Place::Path,
    }
}

fn words(detour: &Detour<'_>, speed: Rate) -> String {
    let (own, other) = detour.via;
    match (detour.near, detour.far) {
        (Some(near), Some(far)) => format!(
            "near {} ({own}) and far {} ({other}) have addresses of one network, and the slower of them \
             has {speed}",
            near.name, far.name
        ),
        (near, far) => {
            let side = if near.is_some() { "near" } else { "far" };
            let name = near.or(far).map_or("", |port| &port.name);
            format!("{side} {name} ({own}) is in the network of {other} too, and could use {speed}")
        }
    }
}

fn remedy(detour: &Detour<'_>) -> Advice {
    let (own, other) = detour.via;
    let (near, far) = (detour.near, detour.far);
    if near.is_some() && far.is_some() {
        let what = format!("measure the route over {other}, and use that address if it is faster");
        return Advice::new(what).on(Side::Near, format!("linerate run {other}"));
    }
    let side = if near.is_some() { Side::Near } else { Side::Far };
    let name = near.or(far).map_or("", |port| &port.name);
    let bits = if other.is_ipv4() { 32 } else { 128 };
    let port = word(name);
    Advice::new(format!("send packets to {other} through {name}"))
        .set(side, format!("sudo ip route add {other}/{bits} dev {port} src {own}"))
        .undo_on(side, format!("sudo ip route del {other}/{bits} dev {port}"))
}
