//! Brief facts of the ports that a route uses, and of ports that it could use. They are brief because a run waits for
//! them.

use std::net::IpAddr;

use linerate_facts::nic::Nic;
use linerate_facts::parse::address::{self, Address};
use linerate_facts::parse::ethtool;
use linerate_facts::parse::link::{ETHERNET, LOOPBACK, Link};
use linerate_facts::route::{NETWORKS_MAX, OTHERS_MAX, Other, PORTS_MAX, Sibling, shares_network};

use super::{HINT, PortReader, Reader, WHAT, basic, stack};
use crate::{Ethtool, Query, gap, invalid};

impl Reader<'_> {
    /// Returns the port with this index and then the ports below it; the other ports with a link and an address that a
    /// load could use; and the ports that may answer ARP requests for `own`.
    pub(in super::super) fn stack_of(
        &mut self,
        index: u32,
        own: Option<IpAddr>,
    ) -> (Vec<Nic>, Vec<Other>, Vec<Sibling>) {
        let reply = match self.machine.query(&Query::Links) {
            Ok(reply) => reply,
            Err(error) => {
                self.miss("route.ports", WHAT, &error, HINT);
                return (Vec::new(), Vec::new(), Vec::new());
            }
        };
        let links = self.links(&reply);
        let mut nics: Vec<Nic> = links.iter().map(basic).collect();
        stack(&links, &mut nics);
        self.tunnels(&links, &mut nics);
        let mut used = below(&nics, index);
        if used.len() > PORTS_MAX {
            used.truncate(PORTS_MAX);
            let why = format!("more than {PORTS_MAX} ports are stacked on each other");
            self.gaps.push(gap("facts.route.ports", &why, "ip -d link"));
        }
        let ports = used.iter().filter_map(|index| {
            let at = nics.iter().position(|nic| nic.index == *index)?;
            Some(self.in_brief(nics[at].clone(), &links[at]))
        });
        let ports = ports.collect();
        let addresses = self.addresses();
        let siblings = own.map(|own| siblings(&links, &nics, &addresses, (own, index)));
        let others = self.others(&links, &nics, &used, &addresses);
        (ports, others, siblings.unwrap_or_default())
    }

    fn in_brief(&mut self, mut nic: Nic, link: &Link<'_>) -> Nic {
        if link.hardware == LOOPBACK {
            "loopback".clone_into(&mut nic.driver);
            return nic;
        }
        let class = self.class_folder(link);
        let mut port =
            PortReader { name: nic.name.clone(), index: nic.index, went: false, reader: self };
        if port.brief(&mut nic, link, class.as_deref()) {
            nic.pause = port.ask(Ethtool::Pause, ethtool::pause);
        }
        nic.offloads = port.ask(Ethtool::Features, ethtool::features);
        // These lists are long, and a run needs only the negotiated link mode.
        nic.link.supported.clear();
        nic.link.advertised.clear();
        nic.link.peer.clear();
        nic
    }

    fn others(
        &mut self,
        links: &[Link<'_>],
        nics: &[Nic],
        used: &[u32],
        addresses: &[Address],
    ) -> Vec<Other> {
        let mut others = Vec::new();
        for (nic, link) in nics.iter().zip(links) {
            let networks = addresses.iter().filter(|a| a.port == nic.index);
            let networks: Vec<_> = networks.map(|a| (a.ip, a.prefix)).take(NETWORKS_MAX).collect();
            let may = nic.up && nic.kind.is_empty() && link.hardware != LOOPBACK;
            if !may || networks.is_empty() || used.contains(&nic.index) {
                continue;
            }
            let nic = self.in_brief(nic.clone(), link);
            if !nic.is_virtual && others.len() < OTHERS_MAX {
                others.push(Other { name: nic.name, speed: nic.link.speed, networks });
            }
        }
        others
    }

    /// Returns all IP addresses of ports that are valid beyond their link.
    fn addresses(&mut self) -> Vec<Address> {
        const WHAT: &str = "the addresses of ports";
        let reply = match self.machine.query(&Query::Addresses) {
            Ok(reply) => reply,
            Err(error) => {
                self.miss("route.others", WHAT, &error, "ip address");
                return Vec::new();
            }
        };
        let mut all = Vec::new();
        for address in address::parse(&reply) {
            match address {
                Ok(address) if address.is_global => all.push(address),
                Ok(_) => {}
                Err(error) => self.miss("route.others", WHAT, &invalid(error), "ip address"),
            }
        }
        all
    }
}

/// Kinds of ports that receive no frames from a network: other ports answer for an address on them on purpose.
const APART: [&str; 2] = ["dummy", "ifb"];

/// Returns the ports that have an address in the IP network of `own`, one of which owns `own`. If the route leaves by
/// the owner, ports without an address follow. Empty if there is no second port, or if the owner receives no frames.
//= RFC 1122, section 3.3.4.2: in the weak model a host takes packets for any of its addresses on any port
fn siblings(
    links: &[Link<'_>],
    nics: &[Nic],
    addresses: &[Address],
    (own, index): (IpAddr, u32),
) -> Vec<Sibling> {
    let mut found: Vec<Sibling> = Vec::new();
    for (nic, link) in nics.iter().zip(links) {
        let of_port = addresses.iter().filter(|a| a.port == nic.index);
        let mut within = of_port.filter(|a| shares_network((a.ip, a.prefix), own)).peekable();
        if receives(nic, link) && within.peek().is_some() {
            found.push(Sibling { owns: within.any(|a| a.ip == own), ..sibling(nic) });
        }
    }
    let owners: Vec<u32> = found.iter().filter(|p| p.owns).map(|p| p.index).collect();
    if owners == [index] {
        let bare = bare(links, nics, addresses, index);
        found.extend(bare.take(OTHERS_MAX.saturating_sub(found.len())));
    }
    // IPv6 neighbours are answered only by the port that owns the address.
    let may = owners.len() == 1 && own.is_ipv4() && (2..=OTHERS_MAX).contains(&found.len());
    if may { found } else { Vec::new() }
}

/// Returns the ports without an IPv4 address that also answer ARP requests for the address of `owner` on their own
/// link: ports that are neither parts of another port nor stacked with `owner`. Ports that software made come last.
fn bare(
    links: &[Link<'_>],
    nics: &[Nic],
    addresses: &[Address],
    owner: u32,
) -> impl Iterator<Item = Sibling> {
    let beneath = below(nics, owner);
    let is_bare = |nic: &Nic| !addresses.iter().any(|a| a.port == nic.index && a.ip.is_ipv4());
    let is_apart = |nic: &Nic| {
        let is_part = nic.stack.above.is_some() || beneath.contains(&nic.index);
        !is_part && !below(nics, nic.index).contains(&owner)
    };
    let all = nics.iter().zip(links);
    let may = all.filter(|(nic, link)| receives(nic, link) && link.hardware == ETHERNET);
    let may = may.map(|(nic, _)| nic);
    let mut found: Vec<&Nic> = may.filter(|nic| is_bare(nic) && is_apart(nic)).collect();
    found.sort_by_key(|nic| !nic.kind.is_empty());
    let bare = |nic| Sibling { is_bare: true, ..sibling(nic) };
    found.into_iter().map(bare)
}

/// Returns whether a port receives frames from a network.
fn receives(nic: &Nic, link: &Link<'_>) -> bool {
    nic.up && link.hardware != LOOPBACK && !APART.contains(&&*nic.kind)
}

fn sibling(nic: &Nic) -> Sibling {
    Sibling { index: nic.index, name: nic.name.clone(), ..Sibling::default() }
}

/// Returns a port and the ports below it, each once and the nearest first. The list may exceed the limit of ports by
/// one.
fn below(nics: &[Nic], index: u32) -> Vec<u32> {
    let mut found = vec![index];
    let mut next = 0;
    while let Some(index) = found.get(next).copied() {
        let nic = nics.iter().find(|nic| nic.index == index);
        for lower in nic.into_iter().flat_map(|nic| &nic.stack.below) {
            if found.len() <= PORTS_MAX && !found.contains(lower) {
                found.push(*lower);
            }
        }
        next += 1;
    }
    found
}
