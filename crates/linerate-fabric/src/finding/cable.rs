//! Findings about links: cables that are missing, and links below their width or speed.

use std::collections::BTreeSet;

use super::super::mad::port::PortInfo;
use super::super::network::{Lanes, Network, Port, PortAt};
use super::Finding;
use linerate_ceiling::infiniband::Speed;
use linerate_facts::advice::{Advice, Step};
use linerate_facts::board;
use linerate_facts::infiniband::{Guid, LinkState, PhysicalState};
use linerate_units::Rate;

/// Finding if this host's port has no link.
pub(super) fn unplugged(network: &Network) -> Vec<Finding> {
    let found = network.own().and_then(|own| {
        let port = network.port(own)?;
        let info = port.info?;
        let (what, why, fix) = reason(network, own, port, info)?;
        // If the physical state is LinkUp, the cable works and software keeps the port down.
        let has_wire = info.physical == Some(PhysicalState::LinkUp);
        let found = if has_wire {
            Finding::new("ib-held-down", network.name(own), what)
        } else {
            Finding::new("ib-no-link", network.name(own), what)
        };
        let state = info.state.map_or("unknown", LinkState::name);
        let physical = info.physical.map_or("unknown", PhysicalState::name);
        let mut proof = vec![format!("PortInfo of this port: {state}, {physical}")];
        let others = network.nodes[own.node].ports.iter();
        let linked = others.filter(|(other, is)| **other != own.port && is.has_link());
        proof.extend(linked.map(|(other, _)| format!("port {other} of this adapter has a link")));
        Some(found.why(why).proof(proof).proved().fix(fix))
    });
    found.into_iter().collect()
}

/// What is wrong with a port without a link, the reason, and advice.
fn reason(
    network: &Network,
    own: PortAt,
    port: &Port,
    info: PortInfo,
) -> Option<(&'static str, &'static str, Advice)> {
    let is_down = info.state == Some(LinkState::Down);
    let reason = match info.physical? {
        PhysicalState::Polling => (
            "no cable, or no InfiniBand port that answers at its other end",
            "the port looks for another end and finds none: the cable is out or bad, the other end is off, disabled or set \
             to Ethernet, or both ends have no speed in common",
            Advice::new(
                "push both ends of the cable in until they click; see that the other end is on and set to InfiniBand; then \
                 try another cable",
            ),
        ),
        PhysicalState::Disabled => (
            "switched off",
            "the port is disabled, by its firmware or by a tool",
            Advice::new("enable the port, or find out who switched it off"),
        ),
        PhysicalState::LinkUp if is_down && port.guid == Some(Guid::NONE) => (
            "down, although the wire works",
            "it has no GUID: a virtual function is down until its host gives it a GUID and sets its state",
            Advice::new("set this function to state auto, and give it a GUID, on the host that owns the card")
                .step(Step::on(None, "ip link show").about("on that host: its functions")),
        ),
        PhysicalState::LinkUp if is_down && is_function(network, own) => (
            "down, although the wire works",
            "a virtual function is down until its host sets its state, or until a subnet manager that knows virtual functions \
             serves it",
            Advice::new("set this function to state auto on the host that owns the card")
                .step(Step::on(None, "ip link show").about("on that host: its functions")),
        ),
        PhysicalState::LinkUp if is_down => (
            "down, although the wire works",
            "the port is held down, by its firmware or by a tool",
            Advice::new("reset the port, or load its driver again"),
        ),
        PhysicalState::LinkUp => return None,
        PhysicalState::Sleep => (
            "its link sleeps",
            "the port saves power and looks for no other end",
            Advice::new("reset the port, or load its driver again"),
        ),
        PhysicalState::Training
        | PhysicalState::ErrorRecovery
        | PhysicalState::PhyTest => (
            "its link is not up",
            "both ends are there, and the link does not come up or recovers from errors",
            Advice::new("clean and reseat both ends of the cable; if that does not help, try another one"),
        ),
    };
    Some(reason)
}

/// Whether the adapter of a port is a virtual function, by its vendor and device id.
fn is_function(network: &Network, at: PortAt) -> bool {
    const MAKER: u32 = 0x2c9;
    let of = &network.nodes[at.node].info;
    of.vendor == MAKER && board::is_virtual(of.device)
}

/// Links that run slower than both ends support. A link that is configured to be slower is reported only if it has one
/// lane, or is slower than most links of the network.
pub(super) fn slow(network: &Network) -> Vec<Finding> {
    let links: Vec<(PortAt, PortAt, Link)> =
        network.links().filter_map(|(a, b)| Some((a, b, Link::of(network, a, b)?))).collect();
    let mut rates: Vec<Rate> = links.iter().map(|(_, _, link)| link.is.rate()).collect();
    rates.sort_unstable();
    let usual = rates.get(rates.len() / 2).copied().unwrap_or(Rate(0));
    let sort = |at: &PortAt| network.nodes[at.node].info.device;
    let best_of_its_sort = |a: &PortAt, b: &PortAt| {
        let own = BTreeSet::from([sort(a), sort(b)]);
        let alike = links.iter().filter(|(a, b, _)| BTreeSet::from([sort(a), sort(b)]) == own);
        alike.map(|(_, _, link)| link.is.rate()).max()
    };
    let odd = links.iter().filter(|(a, b, link)| {
        let may_be_all = link.may_be_all() && best_of_its_sort(a, b) <= Some(link.is.rate());
        link.is_odd(usual) && !may_be_all
    });
    odd.map(|(a, b, link)| link.finding(network, *a, *b)).collect()
}

/// A link: the lanes in use, those that both ports are configured for, and those that both support.
#[derive(Debug, Clone, Copy)]
struct Link {
    is: Lanes,
    set: Lanes,
    most: Lanes,
}

impl Link {
    fn of(network: &Network, a: PortAt, b: PortAt) -> Option<Self> {
        let (near, far) = (network.port(a)?.info?, network.port(b)?.info?);
        let lanes =
            |width: Option<u32>, speed: Option<Speed>| Some(Lanes { width: width?, speed: speed? });
        let most_width = near.width.supported.and(far.width.supported);
        let most_speed = near.speed.supported.and(far.speed.supported);
        let set_width = near.width.enabled.and(far.width.enabled);
        let set_speed = near.speed.enabled.and(far.speed.enabled);
        Some(Self {
            is: lanes(near.width.active, near.speed.active)?,
            set: lanes(set_width.widest(), set_speed.fastest())?,
            most: lanes(most_width.widest(), most_speed.fastest())?,
        })
    }

    fn is_odd(self, usual: Rate) -> bool {
        let has_one = self.is.width == 1 && self.most.width > 1;
        self.is.is_below(self.set)
            || self.is.is_below(self.most) && (has_one || self.is.rate() < usual)
    }

    /// Whether the lanes in use may be all that an end can do: an adapter of 100 or 200 Gb/s has the widest link or the
    /// fastest lanes, but not both at once. Adapters with this limit have HDR or faster.
    fn may_be_all(self) -> bool {
        let is_half = self.is.rate().0 * 2 >= self.most.rate().0;
        self.is.width == 2 || is_half && self.most.speed.lane() >= Speed::Hdr.lane()
    }

    fn finding(self, network: &Network, a: PortAt, b: PortAt) -> Finding {
        let (why, fix) = if self.is.is_below(self.set) {
            (
                "both ports may use more: a lane of the cable or a contact may be bad, the cable may be made for less, or a switch \
                 may save power",
                "clean and reseat both ends of the cable; if that does not help, try another one",
            )
        } else {
            (
                "a port of this link is set to less than it has",
                "allow all widths and speeds of both ports, then let the link negotiate again",
            )
        };
        let found = Finding::new(
            "ib-slow-link",
            format!("{} to {}", network.name(a), network.name(b)),
            format!("runs at {}; both ports have {}", self.is, self.most),
        )
        .why(why)
        .because(format!("PortInfo of both ports: they may use {}", self.set))
        .fix(Advice::new(fix));
        if self.may_be_all() { found } else { found.proved() }
    }
}
