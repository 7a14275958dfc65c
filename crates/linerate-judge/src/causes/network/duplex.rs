//! A port runs at half duplex: it cannot send and receive at once, so payload and acknowledgements collide.

use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::causes::wire;
use linerate_facts::nic::{Duplex as DuplexMode, Nic};
use linerate_facts::route::Route;
use linerate_facts::underlay::Underlay;
use linerate_record::Host;

/// Minimum number of collisions per sent packet at which they matter: two ends that both send all the time
/// collide far more often, and a full-duplex port never does.
const COLLIDED: f64 = 0.01;

/// Highest speed of a port with half duplex, in Mb/s.
//= IEEE 802.3-2022, section 44.1: operation above 1 Gb/s is full duplex only
const FASTEST: u64 = 1_000;

/// The duplex mode at one end, as far as its readings show.
enum DuplexState<'a> {
    /// The port runs at half duplex and packets collide, or only the collisions are known; the text is the
    /// evidence.
    Collides(String),
    /// The port runs at half duplex.
    Half(&'a Nic),
    /// The port runs at full duplex, or has no wire.
    Full,
    /// Neither the duplex nor the collisions of the port were read; the text is its name.
    Unknown(String),
}

pub(crate) static CAUSE: Cause = Cause {
    id: "duplex",
    name: "a port runs in half duplex",
    needs: &[Feature::Stack],
    stage: Stage::Port,
    decided_by: &[],
    page: include_str!("../pages/duplex.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let mut unread = None;
    let mut half = None;
    for side in [direction.sender(), direction.receiver()] {
        let Some(host) = model.host(side) else {
            continue;
        };
        match duplex_state(host, *load.collided.at(direction, side)) {
            DuplexState::Collides(evidence) => {
                return Ok(finding(model, direction, load, side, vec![evidence], true));
            }
            DuplexState::Half(nic) => {
                half = half.or(Some((side, format!("{} runs at half duplex", nic.name))));
            }
            DuplexState::Unknown(what) => unread = Some((side, what)),
            DuplexState::Full => {}
        }
    }
    match (half, unread) {
        (Some((side, evidence)), _) => {
            Ok(finding(model, direction, load, side, vec![evidence], false))
        }
        (None, Some((side, port))) if load.goodput.mean <= FASTEST as f64 * 1e6 => {
            Err(NoFinding::Unknown(vec![Gap {
                what: format!("the duplex of the {} port {port}", side.name()),
                why: "neither it nor the collisions were read".to_owned(),
                hint: format!("ethtool {port}"),
            }]))
        }
        (None, Some(_)) => Err(clear("no half-duplex port carries this much")),
        (None, None) => Err(clear("no port at the ends runs at half duplex")),
    }
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        // More streams collide more often, and never carry more than the wire does.
        Factor::MoreStreams => Some(Range { low: 0.5, high: 1.2 }),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, _: Direction) -> Vec<Advice> {
    let half = |host: &Host| {
        let nic = host.facts.route.as_ref()?.half_duplex()?;
        let (name, host) = (&nic.name, host.side);
        if nic.link.autoneg == Some(true) {
            let what =
                format!("turn autonegotiation on at the other end of the cable of {name}, too");
            return Some(Advice::new(what));
        }
        let what = "turn autonegotiation on, and at the other end of its cable too";
        Some(nic.negotiate(Some(host), what))
    };
    model.hosts.iter().filter_map(half).collect()
}

fn finding(
    model: &Model,
    direction: Direction,
    load: &Load,
    side: Side,
    evidence: Vec<String>,
    enough: bool,
) -> Finding {
    let share = wire(model, direction).map_or(0.5, |ceiling| 1.0 - ceiling.reached(load));
    Finding::at(side, share.clamp(0.0, 1.0), evidence).enough(enough)
}

fn duplex_state(host: &Host, collided: Option<f64>) -> DuplexState<'_> {
    let route = host.facts.route.as_ref();
    let half = route.and_then(Route::half_duplex);
    let collided = collided.filter(|_| route.is_none_or(Route::counts_wires));
    let often = collided.filter(|share| *share >= COLLIDED);
    match (half, often) {
        (Some(nic), Some(share)) => DuplexState::Collides(format!(
            "{} runs at half duplex, and {} of the packets that it sent collided",
            nic.name,
            percent(share)
        )),
        (Some(nic), None) => DuplexState::Half(nic),
        (None, often) => {
            let Some(name) = unsaid(host) else {
                return DuplexState::Full;
            };
            match (often, collided) {
                (Some(share), _) => DuplexState::Collides(format!(
                    "{} of the packets that {name} sent collided: it runs at half duplex",
                    percent(share)
                )),
                // A half-duplex port would have collisions under load.
                (None, Some(_)) => DuplexState::Full,
                (None, None) => DuplexState::Unknown(name),
            }
        }
    }
}

/// The name of a port that may be half duplex: its mode is unknown, or it is unknown whether it carries the path.
fn unsaid(host: &Host) -> Option<String> {
    let port = host.facts.port.as_ref()?;
    let slow = |mbps: Option<u64>| mbps.is_none_or(|mbps| mbps <= FASTEST);
    let slow_nic = |nic: &Nic| slow(nic.link.speed.map(|rate| rate.0 / 1_000_000));
    let found = |ports: &[&Nic], open: fn(Option<DuplexMode>) -> bool| {
        let mut ports = ports.iter();
        let nic = ports.find(|nic| open(nic.duplex()) && slow_nic(nic));
        nic.map(|nic| nic.name.clone())
    };
    match host.facts.underlay() {
        Underlay::Nothing => None,
        Underlay::Wires(wires) => found(&wires, |duplex| duplex.is_none()),
        Underlay::OneOf(ports) => found(&ports, |duplex| duplex != Some(DuplexMode::Full)),
        // A virtual port has no duplex mode, and the ports below it are unknown.
        Underlay::Hidden => {
            let may = !port.is_virtual && port.is_ethernet && slow(port.speed_mbps);
            may.then(|| port.name.clone())
        }
    }
}
