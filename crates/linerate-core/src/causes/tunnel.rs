//! The route goes through a tunnel: headers for each packet, and a CPU that makes them.

use super::predict::{one_rate, threads, wanted};
use super::{Answer, BUSY, Cause, Finding, base, percent};
use crate::facts::nic::Nic;
use crate::facts::route::Route;
use crate::model::{Load, Model};
use crate::plan::{Direction, Side};
use crate::record::{Host, TrialPlan};
use crate::stats::Range;
use crate::trial::Factor;
use crate::verdict::{Advice, Place, Stage};

/// Cause `tunnel`.
pub(super) struct Tunnel;

/// Kinds of ports that put packets into packets, and the bytes that each of these grows by between
/// the inner and the outer IP packet, over IPv4; `None` where a program decides.
//= RFC 7348, 8926, 2784, 2003, 4213, 2473; the WireGuard white paper, section 5.4.6
const KINDS: [(&str, Option<u32>); 11] = [
    ("vxlan", Some(50)),
    ("geneve", Some(50)),
    ("gre", Some(24)),
    ("gretap", Some(38)),
    ("ip6gre", Some(44)),
    ("ip6gretap", Some(58)),
    ("ipip", Some(20)),
    ("sit", Some(20)),
    ("ip6tnl", Some(40)),
    ("wireguard", Some(60)),
    ("tun", None),
];

/// A tunnel on the route of one end.
struct Through<'a> {
    side: Side,
    nic: &'a Nic,
    grows: Option<u32>,
    /// The port below it, where that is known.
    below: Option<&'a Nic>,
}

impl Cause for Tunnel {
    fn id(&self) -> &'static str {
        "tunnel"
    }
    fn stage(&self) -> Stage {
        Stage::Net
    }
    fn explains(&self) -> &'static [&'static str] {
        &["sender-core", "receiver-core", "softirq-core", "path-rate"]
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let load = match base(model, direction) {
            Ok(load) => load,
            Err(answer) => return answer,
        };
        let tunnels: Vec<Through<'_>> = model.hosts.iter().filter_map(through).collect();
        let Some(first) = tunnels.first() else {
            return Answer::Clear("the route goes through no tunnel".to_owned());
        };
        let split = |t: &Through<'_>| Some((Place::Path, true, fragments(load, t)?));
        let costs = |t: &Through<'_>| costly(load, direction, t.side);
        let found = tunnels.iter().find_map(|t| Some((t, split(t)?)));
        match found.or_else(|| tunnels.iter().find_map(|t| Some((t, costs(t)?)))) {
            Some((tunnel, (side, enough, why))) => Answer::Finding(Finding {
                side,
                share: 0.5,
                enough,
                reached: false,
                evidence: vec![words(tunnel), why],
            }),
            None => Answer::Clear(format!(
                "{}, and no CPU of that host was full",
                words(first)
            )),
        }
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        let found = self.check(model, trial.direction);
        let sender = Place::from(trial.direction.sender());
        let id = match found {
            Answer::Finding(f) if f.side == Place::Path => return one_rate(model, trial),
            Answer::Finding(f) if f.side == sender => "sender-core",
            Answer::Finding(_) => "receiver-core",
            _ => return one_rate(model, trial),
        };
        super::cause(id)?.predict(model, trial)
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[]
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        let load = model.direction(direction).map(|dir| &dir.base);
        let tunnels = model.hosts.iter().filter_map(through);
        let told = tunnels.map(|tunnel| {
            let Through { side, nic, .. } = &tunnel;
            let fits = tunnel.grows.and_then(|grows| {
                fragments(load?, &tunnel)?;
                Some((tunnel.below?.mtu?.checked_sub(grows)?, nic.mtu?))
            });
            match fits {
                Some((fits, now)) => Advice {
                    action: format!(
                        "on {}: sudo ip link set dev {} mtu {fits}",
                        side.name(),
                        nic.name
                    ),
                    undo: format!("sudo ip link set dev {} mtu {now}", nic.name),
                    gain: None,
                },
                None => Advice {
                    action: format!(
                        "measure beside {}: linerate run to an address of the other host that is \
                         reached without it",
                        nic.name
                    ),
                    undo: String::new(),
                    gain: None,
                },
            }
        });
        told.take(1).collect()
    }
    fn page(&self) -> &'static str {
        include_str!("pages/tunnel.md")
    }
}

/// The tunnel that the route of a host goes through, if it does.
fn through(host: &Host) -> Option<Through<'_>> {
    let route: &Route = host.facts.route.as_ref()?;
    let of = |nic: &Nic| KINDS.iter().find(|(kind, _)| nic.kind == *kind);
    let mut carriers = route.carriers().into_iter();
    let (nic, grows) = carriers.find_map(|nic| Some((nic, of(nic)?.1)))?;
    let below = nic.stack.below.first().and_then(|index| route.nic(*index));
    Some(Through {
        side: host.side,
        nic,
        grows,
        below,
    })
}

/// Packets that no longer fit into one of the port below: each is sent as two. A sender that has learnt what fits
/// sends smaller ones than its port takes.
fn fragments(load: &Load, tunnel: &Through<'_>) -> Option<String> {
    let (mtu, below) = (tunnel.nic.mtu?, tunnel.below?);
    let sent = load
        .tcp
        .packet
        .and_then(|packet| u32::try_from(packet.0).ok());
    let inner = sent.map_or(mtu, |sent| mtu.min(sent));
    let outer = inner.checked_add(tunnel.grows?)?;
    let mtu = below.mtu.filter(|mtu| outer > *mtu)?;
    Some(format!(
        "its packets of {inner} bytes become {outer}, and {} below carries {mtu}: each is sent as two",
        below.name
    ))
}

/// A CPU of an end that has no time left: one of our threads', which tells enough, or one that others keep busy, which
/// may be those that make the packets.
fn costly(load: &Load, direction: Direction, side: Side) -> Option<(Place, bool, String)> {
    let ours = threads(load, direction, side);
    if let Some(share) = wanted(ours).filter(|w| *w > BUSY) {
        let why = format!("a {} thread needed its CPU {}", side.name(), percent(share));
        return Some((Place::from(side), true, why));
    }
    let cpus = &load.cpus[usize::from(side != direction.sender())];
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
    let grows = tunnel.grows.map_or(String::new(), |bytes| {
        format!(", which adds {bytes} bytes to each packet")
    });
    format!(
        "the route of the {} host goes through {} ({}{mtu}){grows}",
        side.name(),
        nic.name,
        nic.kind
    )
}
