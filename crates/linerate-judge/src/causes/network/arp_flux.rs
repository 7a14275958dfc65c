//! Payload arrives by another port of the receiving host than the one that has the address (ARP flux).

use crate::causes::network::shared_rate::{self, DECIDED_BY, of_any};
use crate::causes::predict::one_rate;
use crate::causes::prelude::*;
use linerate_facts::advice::{Kept, Step};
use linerate_facts::route::{Route, Sibling};

/// Least share of the payload that the other port must receive, and largest share that the port with the address may
/// receive. Both counters cover all traffic, and some drivers update them only once a second.
const MOST: f64 = 0.5;

/// Payload that arrives by a port that does not have the address.
struct Flux<'a> {
    /// Each of the two ports, and the share of the payload that it received.
    other: (&'a Sibling, f64),
    owner: (&'a Sibling, f64),
}

pub(crate) static CAUSE: Cause = Cause {
    id: "arp-flux",
    name: "another port answers for its address",
    needs: &[Feature::Stack],
    stage: Stage::Port,
    decided_by: DECIDED_BY,
    page: include_str!("../pages/arp-flux.md"),
    // Records of older versions have no such counter.
    may_be_unread: true,
    check,
    predict: one_rate,
    predict_loss: shared_rate::predict_loss,
    decides: shared_rate::decides,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let side = direction.receiver();
    let Some(route) = route(model, side) else {
        return Err(lacks(model, "facts.route", side));
    };
    if route.siblings.is_empty() {
        let why = "no other port may answer for its address, as far as was read";
        return Err(clear(why));
    }
    // Whether a rate limits the load is judged as for any other port on the path.
    let found = of_any(model, direction)?;
    if load.arrivals.is_empty() {
        return Err(lacks(model, "arrival", side));
    }
    let Some(flux) = flux(route, load) else {
        return Err(clear("most of the payload arrived by the port that owns the address"));
    };
    Ok(Finding {
        side: Place::from(side),
        // If that port has no address of its own, it is unknown why it receives the payload.
        enough: !flux.other.0.is_bare,
        evidence: std::iter::once(words(route, &flux)).chain(found.evidence).collect(),
        ..found
    })
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let route = route(model, direction.receiver());
    let advice = route.map(|route| answer_alone(route, direction));
    advice.into_iter().collect()
}

fn route(model: &Model, side: Side) -> Option<&Route> {
    model.host(side)?.facts.route.as_ref()
}

/// The port by which most of the payload arrived, if the port that has the address received less; and that one.
fn flux<'a>(route: &'a Route, load: &Load) -> Option<Flux<'a>> {
    let payload = load.goodput.mean / 8.0;
    let share = |name: &str| {
        let port = load.arrivals.iter().find(|arrival| arrival.port == name)?;
        (payload > 0.0).then_some(port.per_sec / payload)
    };
    let siblings = route.siblings.iter();
    let read = siblings.filter_map(|port| Some((port, share(&port.name)?)));
    let (own, others): (Vec<_>, Vec<_>) = read.partition(|(port, _)| port.owns);
    let (owner, had) = own.first()?;
    let most = others.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (other, took) = most.filter(|(_, took)| *took >= MOST && *had < MOST)?;
    Some(Flux { other: (other, took), owner: (owner, *had) })
}

/// Why the network's rate is not the limit: payload arrives by a port that does not have the address.
pub(crate) fn holds(model: &Model, direction: Direction) -> Option<String> {
    let load = &model.direction(direction)?.base;
    let route = route(model, direction.receiver())?;
    flux(route, load).map(|flux| words(route, &flux))
}

fn words(route: &Route, flux: &Flux<'_>) -> String {
    let (other, took) = flux.other;
    let (owner, had) = flux.owner;
    let address = route.own.map_or("the address".to_owned(), |own| own.to_string());
    let bare = if other.is_bare { ", which has no address," } else { "" };
    format!(
        "{}{bare} took in {} of the payload, and {}, which owns {address}, {}",
        other.name,
        percent(took.min(1.0)),
        owner.name,
        percent(had.min(1.0))
    )
}

/// Advice to let each port answer ARP for its own addresses only, and to make the neighbour ask again.
fn answer_alone(route: &Route, direction: Direction) -> Advice {
    let side = direction.receiver();
    let names = ["arp_ignore", "arp_announce"].map(|name| format!("net.ipv4.conf.all.{name}"));
    let [ignore, announce] = &names;
    let kept = Kept {
        save: format!("sysctl {ignore} {announce} | tee arp-before.txt"),
        restore: "sudo sysctl -p arp-before.txt".to_owned(),
    };
    let address = route.own.map_or("ADDRESS".to_owned(), |own| own.to_string());
    let resolve = if route.gateway.is_some() {
        Step::by_hand(format!("let the router next to it ask for {address} again"))
    } else {
        let flush = format!("sudo ip neigh flush to {address} nud all");
        Step::act(direction.sender(), flush).about("ask again")
    };
    let mut owners = route.siblings.iter().filter(|port| port.owns);
    let port = owners.next().map_or("PORT", |port| &port.name);
    Advice::new(format!(
        "let each port of {} answer for its own addresses only; or give the ports different networks, or make one bond of \
         them; the answer must be the link-layer address of {port}",
        side.name()
    ))
    .keeping(side, kept, format!("sudo sysctl -w {ignore}=1 {announce}=2"))
    .step(resolve)
}
