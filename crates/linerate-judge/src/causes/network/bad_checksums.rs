//! Packets arrive with a wrong checksum, and the receiving host discards them.

use crate::causes::network::loss;
use crate::causes::port_of;
use crate::causes::prelude::*;
use crate::causes::udp::datagrams::{DAMAGED, surely, words};
use crate::signs::LOSSY;
use crate::signs::dropped::MOST;
use linerate_facts::advice::Step;
use linerate_units::shell::word;

pub(crate) static CAUSE: Cause = Cause {
    id: "bad-checksums",
    name: "packets arrive with a bad checksum",
    needs: &[Feature::Stack],
    stage: Stage::Net,
    decided_by: &[Factor::Paced, Factor::OtherCongestion],
    page: include_str!("../pages/bad-checksums.md"),
    // Records of older versions do not have this counter. The loss that they show is real all the same.
    may_be_unread: true,
    of_delivery: true,
    check,
    is_last: loss::is_last,
    predict: loss::predict,
    predict_loss: loss::predict_loss,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    if load.datagrams.is_some() {
        return of_datagrams(model, direction, load);
    }
    // Whether so much loss limits the load is judged as for any other loss.
    let found = loss::found(model, direction)?;
    let counted = load.netstat.receiver;
    let Some(damaged) = counted.damaged else {
        return Err(lacks(model, "netstat", direction.receiver()));
    };
    let damaged = damaged + counted.damaged_tunnel.unwrap_or_default();
    let Some(damaged) = of_segments(load) else {
        return Err(clear(format!(
            "{damaged:.0} packets in a second arrived with a bad checksum: not most of those that were lost"
        )));
    };
    Ok(Finding {
        enough: true,
        evidence: std::iter::once(damaged).chain(found.evidence).collect(),
        ..found
    })
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let sender = direction.sender();
    computed(model, sender).into_iter().chain([search(model)]).collect()
}

/// The result for datagrams: the receiver counted how many it discarded.
fn of_datagrams(model: &Model, direction: Direction, load: &Load) -> Answer {
    let Some(reported) = load.datagrams.filter(|reported| reported.lost >= LOSSY) else {
        return Err(clear("hardly a datagram was lost"));
    };
    let Some(damaged) = reported.damaged else {
        return Err(lacks(model, "netstat", direction.receiver()));
    };
    let share = surely(&reported, damaged, DAMAGED)?;
    Ok(Finding::at(
        Place::Path,
        share,
        vec![words(&reported, share, DAMAGED) + " (UdpInCsumErrors)"],
    )
    .enough(true))
}

/// The segments with a wrong checksum, in words, if they are most of the retransmitted ones.
pub(crate) fn of_segments(load: &Load) -> Option<String> {
    let counted = load.netstat.receiver;
    let (damaged, retransmitted) = counted.damaged.zip(load.tcp.repeated)?;
    let outside = counted.damaged_tunnel.unwrap_or_default();
    let all = damaged + outside;
    let words = || {
        if outside > damaged {
            format!(
                "{outside:.0} datagrams of the tunnel in a second arrived with a bad checksum (UdpInCsumErrors), and {retransmitted:.0} \
                 segments were retransmitted"
            )
        } else {
            format!(
                "{damaged:.0} segments in a second arrived with a bad checksum (TcpInCsumErrors), and {retransmitted:.0} were \
                 retransmitted"
            )
        }
    };
    (all > 0.0 && all >= retransmitted * MOST).then(words)
}

/// Advice to compute the checksums on the sender's CPU. `None` if the CPU computes them already.
fn computed(model: &Model, side: Side) -> Option<Advice> {
    let route = model.host(side).and_then(|host| host.facts.route.as_ref());
    let name = port_of(model, side);
    let nic = route.and_then(|route| route.ports.iter().find(|nic| nic.name == name));
    let offloads = nic.and_then(|nic| nic.offloads.as_ref());
    let is_on = |offload: &String| offload.starts_with("tx-checksum-ip");
    if offloads.is_some_and(|offloads| !offloads.on.iter().any(is_on)) {
        return None;
    }
    let port = word(name);
    let set = |to: &str| format!("sudo ethtool -K {port} tx {to}");
    Some(
        Advice::new(format!(
            "let the CPU of {} compute the checksums instead of {name}: where the bad ones stop, the card or its driver \
             computes them wrongly, and a newer driver or firmware mends it; it costs CPU time, so undo it if they go on",
            side.name()
        ))
        .step(Step::on(side, format!("ethtool -k {port} | grep tx-checksum")).about("look first"))
        .set(side, set("off"))
        .undo_on(side, set("on")),
    )
}

/// Advice to look for the place where packets are damaged, since it is unknown.
fn search(model: &Model) -> Advice {
    let count = |side: Side| {
        let port = word(port_of(model, side));
        Step::on(side, format!("ethtool -S {port} | grep -iE 'err|csum|crc'"))
    };
    Advice::new(
        "find the device that damages packets: one that rewrites them without a new checksum (NAT, a tunnel, a firewall), \
         or one with bad memory; a bad cable shows as CRC errors of a port instead",
    )
    .step(count(Side::Near))
    .step(count(Side::Far))
}
