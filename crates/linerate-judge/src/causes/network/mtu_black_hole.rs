//! Large packets vanish on the path, and no message asks the sender for smaller ones.

use crate::causes::prelude::*;
use std::net::IpAddr;

use crate::causes::network::local_drops;
use crate::causes::port_of;
use crate::causes::predict::bystander;
use crate::signs::own_loss::{self, own_loss};
use linerate_facts::advice::{Joined, Kept, Step};
use linerate_units::shell::word;

/// Least ratio of goodput by smaller packets: all of the payload arrives instead of none.
const FLOWS: f64 = 10.0;

pub(crate) static CAUSE: Cause = Cause {
    id: "mtu-black-hole",
    name: "full packets vanish",
    needs: &[Feature::Stack],
    stage: Stage::Net,
    decided_by: &[Factor::SmallerMss],
    page: include_str!("../pages/mtu-black-hole.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let Some(silent) = load.silent() else {
        return Err(clear("payload arrived"));
    };
    if let Some(own) = own_loss(load, direction) {
        let why = own_loss::words(own);
        return Err(clear(format!("the sender's own port loses it: {why}")));
    }
    // A connection without progress may count a drop per second for any reason.
    let holds = || local_drops::holds(model, load, direction);
    let datagrams = load.has(Feature::Datagrams);
    if let Some(own) = datagrams.then(holds).flatten() {
        return Err(clear(format!("the hosts themselves drop the missing packets: {own}")));
    }
    let Some(small) = model.idle.as_ref().filter(|idle| idle.samples > 0) else {
        return Err(unknown(
            "round trips of the idle path",
            "without them it is unknown whether small packets pass",
        ));
    };
    if load.has(Feature::Connections) {
        let Some(retransmitted) = load.tcp.retransmitted else {
            return Err(lacks(model, "tcp", direction.sender()));
        };
        if retransmitted <= 0.0 {
            return Err(clear("nothing was retransmitted"));
        }
    }
    let timeouts = load
        .tcp
        .timeouts
        .map_or(String::new(), |n| format!(", after {n:.0} timeouts of the sender"));
    Ok(Finding {
        side: Place::Path,
        share: silent,
        // Now and then a large packet arrives while others are lost. Only smaller packets prove the cause.
        enough: !load.arrived() || flow(model, direction),
        reached: false,
        evidence: vec![
            format!("no payload arrived in {} of the samples{timeouts}", percent(silent)),
            format!("{} round trips of 64 bytes passed before", small.samples),
        ],
    })
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::SmallerMss => Some(Range { low: FLOWS, high: f64::MAX }),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let datagrams = model.direction(direction).is_some_and(|d| d.base.has(Feature::Datagrams));
    let sender = model.host(direction.sender());
    let until = if datagrams {
        Advice::new("let the program send smaller datagrams")
    } else if sender.is_some_and(|host| host.facts.probes_mtu == Some(true)) {
        Advice::new(format!(
            "let long connections go on: each one is silent for about 3 s, until TCP of {} finds the size that passes \
             (net.ipv4.tcp_mtu_probing is set already), and then sends smaller segments",
            direction.sender().name()
        ))
    } else {
        let name = "net.ipv4.tcp_mtu_probing";
        Advice::new("let TCP find the size that passes").keeping(
            direction.sender(),
            Kept::sysctl(name),
            format!("sudo sysctl -w {name}=1"),
        )
    };
    vec![find(model, direction), until.joined(Joined::Until)]
}

/// Bytes of the IP and ICMP headers before the payload of an echo request.
//= RFC 791, section 3.1, and RFC 792; RFC 8200, section 3, and RFC 4443, section 2.1
const ECHO_V4: u64 = 20 + 8;
const ECHO_V6: u64 = 40 + 8;

/// Bytes of a full packet, for a port whose MTU was not read.
//= RFC 894: 1500 bytes
const USUAL: u64 = 1500;

/// A command to find the hop that drops large packets: the ping is as large as both ports allow, and so exceeds
/// any smaller MTU on the path.
fn find(model: &Model, direction: Direction) -> Advice {
    let sender = direction.sender();
    let route = model.host(sender).and_then(|host| host.facts.route.as_ref());
    let peer = route.and_then(|route| route.peer);
    let headers =
        if peer.is_some_and(|peer| peer.to_canonical().is_ipv6()) { ECHO_V6 } else { ECHO_V4 };
    let payload = full_packet(model, direction).saturating_sub(headers);
    let advice = Advice::new(
        "find what drops large packets, and let routers and firewalls forward ICMP \"fragmentation needed\" and \
         \"packet too big\"",
    );
    let Some(peer) = peer else {
        return advice;
    };
    let peer = word(&match peer.to_canonical() {
        // Without the name of the port, a link-local address cannot be reached.
        IpAddr::V6(local) if local.is_unicast_link_local() => {
            format!("{local}%{}", port_of(model, sender))
        }
        peer => peer.to_string(),
    });
    advice.on(sender, format!("tracepath {peer}")).step(
        Step::on(sender, format!("ping -c 3 -M do -s {payload} {peer}"))
            .about("this one gets no answer until it is mended"),
    )
}

/// Bytes of the largest packet that both ports support, and that the sender assumes to fit the path.
fn full_packet(model: &Model, direction: Direction) -> u64 {
    let mtu = |side| model.host(side)?.facts.port.as_ref()?.mtu;
    let ports = [direction.sender(), direction.receiver()].map(mtu);
    let base = model.direction(direction).map(|dir| &dir.base);
    let path = base.and_then(|load| load.packets?.path_mtu);
    let ports = ports.into_iter().flatten().map(u64::from);
    ports.chain(path.map(|mtu| mtu.0)).min().unwrap_or(USUAL)
}

/// Whether smaller packets arrived in a trial.
fn flow(model: &Model, direction: Direction) -> bool {
    let effect = model.tried(direction, Factor::SmallerMss).and_then(|trial| trial.effect);
    effect.is_some_and(|effect| effect.low >= FLOWS)
}
