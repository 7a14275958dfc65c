//! The route passes a tunnel, which adds headers to each packet: they cost bytes and CPU time.

use crate::causes::BUSY;
use crate::causes::predict::one_rate;
use crate::causes::prelude::*;
use crate::signs::threads::wanted_at;
use linerate_facts::nic::{Nic, Overflow, overflow};
use linerate_facts::route::Route;
use linerate_plan::path::ByRole;
use linerate_record::Host;
use linerate_units::shell::word;

/// Minimum number of fragments for each packet of a load, at which packets are split: at least half of them are.
const CUT: f64 = 1.0;

/// A tunnel on the route of one host.
struct Through<'a> {
    side: Side,
    nic: &'a Nic,
    /// The ports that all packets pass, from the port of the route down to the physical one.
    chain: Vec<&'a Nic>,
}

/// Whether the packets of a load fit into the port below a tunnel.
enum Fit {
    /// The packets fit, as far as is known.
    Fits,
    /// The packets do not fit; the text is the evidence.
    Cut(String),
    /// Packets are fragmented on this host, and the bytes that the tunnel adds are unknown.
    MayBeCut(String),
    /// Packets of the port's size would not fit, but path MTU discovery has made them smaller.
    Mended(String),
}

pub(crate) static CAUSE: Cause = Cause {
    id: "tunnel",
    name: "a tunnel slows the path",
    needs: &[Feature::Stack],
    stage: Stage::Net,
    explains: &["sender-core", "receiver-core", "softirq-core", "path-rate"],
    decided_by: &[],
    page: include_str!("../pages/tunnel.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let tunnels = tunnels(model, direction);
    let Some(first) = tunnels.first() else {
        return Err(clear("the route goes through no tunnel"));
    };
    let split = |t: &Through<'_>| match fit(load, direction, t) {
        Fit::Cut(why) => Some((Place::Path, true, why)),
        Fit::MayBeCut(why) => Some((Place::Path, false, why)),
        Fit::Fits | Fit::Mended(_) => None,
    };
    let costs = |t: &Through<'_>| costly(load, direction, t.side);
    let found = tunnels.iter().find_map(|t| Some((t, split(t)?)));
    match found.or_else(|| tunnels.iter().find_map(|t| Some((t, costs(t)?)))) {
        Some((tunnel, (side, enough, why))) => {
            Ok(Finding::at(side, 0.5, vec![words(tunnel), why]).enough(enough))
        }
        None => Err(clear(match fit(load, direction, first) {
            Fit::Mended(why) => format!("{}; {why}", words(first)),
            _ => format!("{}, and no CPU of that host was full", words(first)),
        })),
    }
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let found = check(model, trial.direction);
    let sender = Place::from(trial.direction.sender());
    let id = match found {
        Ok(f) if f.side == Place::Path => return one_rate(model, trial),
        Ok(f) if f.side == sender => "sender-core",
        Ok(_) => "receiver-core",
        _ => return one_rate(model, trial),
    };
    crate::causes::cause(id)?.predict(model, trial)
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|dir| &dir.base);
    let reported = tunnels(model, direction).into_iter().map(|tunnel| {
        let Through { side, nic, chain } = &tunnel;
        let top = chain.first().copied().unwrap_or(nic);
        let cut = matches!(fit(load?, direction, &tunnel), Fit::Cut(_));
        let too_large = overflow(chain, top.mtu?).filter(|_| cut);
        let fits = too_large.and_then(|over| over.fits).zip(top.mtu);
        Some(match fits {
            Some((fits, now)) => {
                let set = |mtu| format!("sudo ip link set dev {} mtu {mtu}", word(&top.name));
                let advice = Advice::new(format!("let packets of {} fit into the tunnel", top.name));
                advice.set(*side, set(fits)).undo_on(*side, set(now))
            }
            None => Advice::new(format!(
                "measure without {}: run to an address of the other host that is reached without it",
                nic.name
            )),
        })
    });
    reported.flatten().take(1).collect()
}

/// A remark that path MTU discovery has reduced the packet size, because the tunnel's own MTU exceeds what the port
/// below carries, with the setting that avoids this. It is shown with any verdict.
pub(crate) fn mended(model: &Model, direction: Direction) -> Option<String> {
    let load = &model.direction(direction)?.base;
    tunnels(model, direction).iter().find_map(|tunnel| match fit(load, direction, tunnel) {
        Fit::Mended(why) => Some(why),
        _ => None,
    })
}

/// The tunnels on the routes of both hosts, the sender's first, as the sender makes the load's packets.
fn tunnels(model: &Model, direction: Direction) -> Vec<Through<'_>> {
    let mut all: Vec<Through<'_>> = model.hosts.iter().filter_map(through).collect();
    all.sort_by_key(|tunnel| tunnel.side != direction.sender());
    all
}

/// The tunnel on the route of a host, if there is one.
fn through(host: &Host) -> Option<Through<'_>> {
    let route: &Route = host.facts.route.as_ref()?;
    let chain = route.carriers();
    let nic = *chain.iter().find(|nic| nic.is_tunnel())?;
    Some(Through { side: host.side, nic, chain })
}

/// Whether the packets of a load fit the port below a tunnel. At the sender, the packet size decides, and the fragments
/// that its host made, if they were counted; at the receiver, the fragments that both hosts counted.
fn fit(load: &Load, direction: Direction, tunnel: &Through<'_>) -> Fit {
    let ByRole { sender: made, receiver: received } = load.fragments;
    let is_cut = |per_sec| each(load, per_sec).map(|n| n >= CUT);
    if tunnel.side != direction.sender() {
        let words = || {
            let rate = received.unwrap_or_default();
            format!("{rate:.0} fragments per second were received")
        };
        // The kernel counts the fragments of the whole host. They certainly belong to this load only if its
        // sender made as many.
        return match (is_cut(received), is_cut(made)) {
            (Some(true), Some(true)) => Fit::Cut(words()),
            (Some(true), _) => Fit::MayBeCut(words()),
            _ => Fit::Fits,
        };
    }
    let top = tunnel.chain.first().copied().unwrap_or(tunnel.nic);
    let Some(mtu) = top.mtu else {
        return Fit::Fits;
    };
    let in_use = load.in_use.and_then(|packet| u32::try_from(packet.0).ok());
    let inner = in_use.map_or(mtu, |packet| packet.min(mtu));
    let cut = is_cut(made);
    let rate = made.unwrap_or_default();
    match (overflow(&tunnel.chain, inner), overflow(&tunnel.chain, mtu)) {
        (Some(_), _) if cut == Some(false) => Fit::Fits,
        (Some(over), _) => Fit::Cut(cut_up(inner, &over, made)),
        (None, Some(over)) => Fit::Mended(too_large(top, mtu, inner, &over)),
        (None, None) if cut == Some(true) && !knows(tunnel) => Fit::MayBeCut(format!(
            "its host makes {rate:.0} fragments in a second: packets may not fit into the port below"
        )),
        (None, None) => Fit::Fits,
    }
}

/// Number of fragments for each packet of a load.
fn each(load: &Load, per_sec: Option<f64>) -> Option<f64> {
    let payload = load.packets.map(|sizes| sizes.payload.0 as f64);
    let payload = payload.filter(|bytes| *bytes > 0.0);
    let packets = payload.map(|bytes| load.goodput.mean / 8.0 / bytes);
    Some(per_sec? / packets.filter(|packets| *packets > 0.0)?)
}

/// Whether the header sizes of all tunnels of a host, and the MTUs of the ports below them, are known.
fn knows(tunnel: &Through<'_>) -> bool {
    let mut ports = tunnel.chain.iter().enumerate();
    ports.all(|(at, nic)| {
        nic.tunnel().is_none_or(|tunnel_of| {
            let below = tunnel.chain.get(at + 1).and_then(|below| below.mtu);
            tunnel_of.most.is_some() && below.is_some()
        })
    })
}

fn cut_up(inner: u32, over: &Overflow<'_>, made: Option<f64>) -> String {
    let made = made.map_or(String::new(), |rate| format!(", and {rate:.0} fragments in a second"));
    format!(
        "its packets of {inner} bytes become {}, and {} below carries {}: each is sent as two{made}",
        over.outer, over.carrier.name, over.room
    )
}

fn too_large(top: &Nic, mtu: u32, inner: u32, over: &Overflow<'_>) -> String {
    let fits =
        over.fits.map_or(String::new(), |fits| format!("; an MTU of {fits} fits from the start"));
    format!(
        "{} takes packets of {mtu} bytes, which become {}, and {} below carries {}; path MTU discovery has corrected this: \
         packets of {inner} bytes are sent{fits}",
        top.name, over.outer, over.carrier.name, over.room
    )
}

/// A CPU of an end without spare time, because of the tunnel. A CPU of the load's threads is enough evidence; a CPU
/// busy with other work may be the one that handles the tunnel's packets.
fn costly(load: &Load, direction: Direction, side: Side) -> Option<(Place, bool, String)> {
    if let Some(share) = wanted_at(load, direction, side).filter(|w| *w > BUSY) {
        let why = format!("a {} thread needed its CPU {}", side.name(), percent(share));
        return Some((Place::from(side), true, why));
    }
    let cpus = load.cpus.at(direction, side);
    let full = cpus.iter().find(|cpu| cpu.busy > BUSY)?;
    let why = format!(
        "CPU {} of the {} host was busy {}, and no thread of ours was",
        full.number,
        side.name(),
        percent(full.busy)
    );
    Some((Place::Path, false, why))
}

fn words(tunnel: &Through<'_>) -> String {
    let Through { side, nic, .. } = tunnel;
    let mtu = nic.mtu.map_or(String::new(), |mtu| format!(", MTU {mtu}"));
    let adds = nic.tunnel().and_then(|tunnel| {
        let least = tunnel.least?;
        Some(match tunnel.most {
            Some(most) if most > least => format!("{least} to {most}"),
            Some(_) => least.to_string(),
            None => format!("at least {least}"),
        })
    });
    let grows =
        adds.map_or(String::new(), |bytes| format!(", which adds {bytes} bytes to each packet"));
    format!(
        "the route of the {} host goes through {} ({}{mtu}){grows}",
        side.name(),
        nic.name,
        nic.kind
    )
}
