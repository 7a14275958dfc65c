//! Rule about tunnels whose packets, headers included, do not fit the port below.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::nic::set_mtu;
use super::{Finding, Inventory};
use crate::advice::Advice;
use crate::nic::{Network, Nic, Overflow, overflow};

/// Kinds of ports that pass packets unchanged, except for a tag, to the one port below.
const THROUGH: [&str; 5] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"];

/// Largest number of ports that are followed downwards in a stack.
const DEPTH: usize = 16;

const WHY: &str = "larger packets are cut into fragments or lost, until path MTU discovery has made their \
                   senders use smaller ones";

/// Tunnels, and VLANs on tunnels, whose packets with the added headers are larger than the port below allows.
pub(super) fn mtu(inventory: &Inventory) -> Vec<Finding> {
    let ports = Ports::of(&inventory.network);
    let up = inventory.network.nics.iter().filter(|nic| nic.up);
    up.filter_map(|nic| too_large(&ports, nic)).collect()
}

/// The ports of a host by index, and which port is on top of which. There may be thousands of ports.
struct Ports<'a> {
    network: &'a Network,
    by_index: BTreeMap<u32, &'a Nic>,
    /// The ports directly on top of each port, by the index of the lower port.
    above: BTreeMap<u32, Vec<u32>>,
    /// Ports that may carry a tunnel whose lower port is unknown, the smallest MTU first.
    carriers: OnceCell<Vec<&'a Nic>>,
}

impl<'a> Ports<'a> {
    fn of(network: &'a Network) -> Self {
        let mut above: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for nic in &network.nics {
            for below in &nic.stack.below {
                above.entry(*below).or_default().push(nic.index);
            }
        }
        Self {
            network,
            by_index: network.nics.iter().map(|nic| (nic.index, nic)).collect(),
            above,
            carriers: OnceCell::new(),
        }
    }

    fn nic(&self, index: u32) -> Option<&'a Nic> {
        self.by_index.get(&index).copied()
    }

    /// The indices in `open`, and the indices of all ports on top of those ports.
    fn up_from(&self, mut open: Vec<u32>) -> BTreeSet<u32> {
        let mut seen = BTreeSet::new();
        while let Some(index) = open.pop() {
            if seen.insert(index) {
                open.extend(self.above.get(&index).into_iter().flatten());
            }
        }
        seen
    }

    /// The ports that may carry a tunnel: those with a device and those made of them; on a host without any, all ports
    /// that are not tunnels.
    fn carriers(&self) -> &[&'a Nic] {
        self.carriers.get_or_init(|| {
            let nics = self.network.nics.iter();
            let is_card = |nic: &&Nic| nic.stack.below.is_empty() && !nic.device.is_empty();
            let cards = nics.clone().filter(is_card).map(|nic| nic.index).collect();
            let on_cards = self.up_from(cards);
            let may = |nic: &&Nic| {
                let is_last = nic.stack.above.is_none() && nic.driver != "loopback";
                is_last && nic.up && nic.mtu.is_some() && !nic.is_tunnel()
            };
            let mut all: Vec<&Nic> = nics.filter(may).collect();
            if all.iter().any(|nic| on_cards.contains(&nic.index)) {
                all.retain(|nic| on_cards.contains(&nic.index));
            }
            all.sort_by_key(|nic| nic.mtu);
            all
        })
    }
}

fn too_large<'a>(ports: &Ports<'a>, nic: &'a Nic) -> Option<Finding> {
    let chain = chain(ports, nic);
    if chain.iter().any(|nic| nic.is_led() != Some(false)) {
        return None;
    }
    let own = nic.mtu?;
    let Some(over) = overflow(&chain, own) else {
        return nowhere(ports, nic);
    };
    // If the tunnel itself has the fault, it is reported for the tunnel, not for the port on top.
    let tunnel = over.tunnel;
    let below = chain.iter().position(|other| other.index == tunnel.index)?;
    if below > 0 && overflow(&chain[below..], tunnel.mtu?).is_some() {
        return None;
    }
    Some(oddity(ports.network, nic, &over))
}

/// The port `nic` and the ports below it, down to the first that has not exactly one port below.
fn chain<'a>(ports: &Ports<'a>, nic: &'a Nic) -> Vec<&'a Nic> {
    let mut all = vec![nic];
    while let Some(last) = all.last().filter(|_| all.len() < DEPTH) {
        let follows = THROUGH.contains(&last.kind.as_str()) || last.is_tunnel();
        let next = match last.stack.below[..] {
            [one] if follows => ports.nic(one),
            _ => None,
        };
        match next.filter(|next| all.iter().all(|seen| seen.index != next.index)) {
            Some(next) => all.push(next),
            None => break,
        }
    }
    all
}

fn oddity(network: &Network, nic: &Nic, over: &Overflow<'_>) -> Finding {
    let own = nic.mtu.unwrap_or_default();
    let headers = over.tunnel.tunnel().and_then(|t| t.words(&over.tunnel.kind));
    let headers = headers.unwrap_or_default();
    let tag = if nic.index == over.tunnel.index { "" } else { " and a tag" };
    let what = format!(
        "MTU {own} and {headers}{tag} make {}, {} carries {}",
        over.outer, over.carrier.name, over.room
    );
    Finding::new("port-mtu", &nic.name, what + &fragments(network))
        .brief(format!(
            "MTU {own} and the headers of its tunnel are too large for {}",
            over.carrier.name
        ))
        .why(WHY)
        .fix(fix(nic, over, own))
}

/// Advice to set the largest MTU that certainly fits.
fn fix(nic: &Nic, over: &Overflow<'_>, own: u32) -> Advice {
    if let Some(fits) = over.fits {
        return set_mtu(nic, own, fits);
    }
    let excess = over.outer.saturating_sub(over.room);
    Advice::new(format!(
        "give it an MTU of {} or less: the options of its headers need some bytes more",
        own.saturating_sub(excess)
    ))
}

/// Text about the fragments that this host has created since boot; empty if there are none.
fn fragments(network: &Network) -> String {
    let created = network.fragments.map(|counted| counted.created);
    let created = created.filter(|created| *created > 0);
    created.map_or(String::new(), |n| format!("; this host made {n} fragments since boot"))
}

/// A tunnel whose lower port is unknown, and whose packets fit none of the ports that could carry it.
fn nowhere(ports: &Ports<'_>, nic: &Nic) -> Option<Finding> {
    let hidden = !nic.stack.below.is_empty() || nic.stack.below_hidden;
    let tunnel = nic.tunnel().filter(|_| !hidden)?;
    let (own, least) = (nic.mtu?, tunnel.least?);
    // Ports on top of the tunnel cannot carry it.
    let upon = ports.up_from(vec![nic.index]);
    let mut carriers = ports.carriers().iter().rev();
    let carrier = carriers.find(|carrier| !upon.contains(&carrier.index))?;
    let room = carrier.mtu?;
    let over = Overflow {
        tunnel: nic,
        carrier,
        outer: own.checked_add(least)?,
        room,
        fits: tunnel.most.and_then(|most| room.checked_sub(most)),
    };
    (over.outer > room).then(|| oddity(ports.network, nic, &over))
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;
    use crate::nic::tests::nic;
    use crate::nic::{Fragments, TunnelKind};

    /// A port that is up, with this MTU, on top of the ports `below`.
    fn port(index: u32, kind: &str, mtu: u32, below: &[u32]) -> Nic {
        let mut nic = nic(index, below);
        kind.clone_into(&mut nic.kind);
        (nic.up, nic.mtu) = (true, Some(mtu));
        nic
    }

    /// A tunnel over this version of IP, as the kernel reports it.
    fn tunnel(kind: &str, mtu: u32, version: Option<u8>, below: &[u32]) -> Nic {
        let mut nic = port(9, kind, mtu, below);
        let kind = TunnelKind::named(kind).unwrap();
        nic.stack.tunnel = Some(kind.tunnel(version, kind.frames, Some(0)));
        nic
    }

    /// The text of each finding, and the MTU that its advice sets.
    fn result_of(nics: &[Nic]) -> Vec<(String, String)> {
        let mut machine = Inventory::default();
        machine.network.nics = nics.to_vec();
        let all = find(&machine).into_iter();
        let mtu = |fix: &str| {
            let set = fix.split(" mtu ").nth(1).unwrap_or_default();
            set.split(' ').next().unwrap_or_default().to_owned()
        };
        all.inspect(|odd| assert_eq!(odd.id, "port-mtu"))
            .map(|odd| (odd.what.clone(), mtu(&odd.to_do())))
            .collect()
    }

    #[test]
    fn headers_count_and_what_is_said_to_fit_fits() {
        for (kind, version, adds) in [
            ("vxlan", 4, 50),
            ("vxlan", 6, 70),
            ("geneve", 4, 50),
            ("gre", 4, 24),
            ("gretap", 4, 38),
            ("ipip", 4, 20),
            ("sit", 4, 20),
            ("ip6tnl", 6, 40),
            ("wireguard", 4, 60),
            ("wireguard", 6, 80),
            ("macsec", 4, 32),
        ] {
            let at =
                |mtu| result_of(&[tunnel(kind, mtu, Some(version), &[2]), port(2, "", 1450, &[])]);
            let fits = 1450 - adds;
            assert_eq!(at(fits), [], "{kind} {version} fits");
            let [(what, mtu)] = &at(fits + 1)[..] else {
                panic!("{kind} {version}: one byte more")
            };
            assert!(what.contains("make 1451, eth2 carries 1450"), "{what}");
            assert_eq!(*mtu, fits.to_string(), "{kind} {version}");
        }
        let what = &result_of(&[tunnel("vxlan", 1450, Some(4), &[2]), port(2, "", 1450, &[])])[0].0;
        assert_eq!(
            what,
            "MTU 1450 and 50 bytes of headers (vxlan over IPv4) make 1500, eth2 carries 1450"
        );
    }

    #[test]
    fn fragments_of_the_host_stand_beside_it() {
        let mut machine = Inventory::default();
        machine.network.nics = vec![tunnel("vxlan", 1500, Some(4), &[2]), port(2, "", 1500, &[])];
        machine.network.fragments = Some(Fragments { created: 10, ..Fragments::default() });
        let what = &find(&machine)[0].what;
        assert!(what.ends_with("; this host made 10 fragments since boot"), "{what}");
        machine.network.fragments = Some(Fragments::default());
        assert!(!find(&machine)[0].what.contains("fragments"));
        machine.network.nics.truncate(1);
        assert_eq!(find(&machine), [], "what is below is not among the ports");
    }

    #[test]
    fn a_tunnel_that_is_down_or_that_others_lead_is_not_judged() {
        let mut down = tunnel("vxlan", 1500, Some(4), &[2]);
        down.up = false;
        assert_eq!(result_of(&[down, port(2, "", 1500, &[])]), []);
        let mut external = tunnel("vxlan", 65_000, None, &[]);
        external.stack.tunnel.as_mut().unwrap().external = true;
        assert_eq!(result_of(&[external.clone(), port(2, "", 1500, &[])]), []);
        external.stack.below = vec![2];
        assert_eq!(result_of(&[external, port(2, "", 1500, &[])]), []);
        assert_eq!(result_of(&[tunnel("xfrm", 1500, None, &[2]), port(2, "", 1500, &[])]), []);
    }

    #[test]
    fn a_tunnel_that_others_may_lead_is_not_judged() {
        let at = |name: &str, is_read: bool| {
            let mut vxlan = tunnel("vxlan", 1500, Some(4), &[2]);
            name.clone_into(&mut vxlan.name);
            vxlan.stack.tunnel = vxlan.stack.tunnel.filter(|_| is_read);
            let tagged = port(6, "vlan", 1500, &[9]);
            result_of(&[tagged, vxlan, port(2, "", 1500, &[])]).len()
        };
        assert_eq!(at("vx0", true), 1);
        assert_eq!(at("vx0", false), 0, "a tree of files");
        assert_eq!(at("vxlan_sys_4789", true), 0, "Open vSwitch");
    }

    #[test]
    fn without_a_port_below_it_must_fit_into_none() {
        let mut card = port(2, "", 1500, &[]);
        "virtio0".clone_into(&mut card.device);
        let bridge = port(3, "bridge", 9000, &[]);
        let at =
            |mtu| result_of(&[tunnel("wireguard", mtu, None, &[]), card.clone(), bridge.clone()]);
        assert_eq!(at(1440), [], "over IPv4 it fits");
        let [(what, mtu)] = &at(1441)[..] else { panic!("one byte more") };
        assert!(what.contains("60 to 80 bytes of headers (wireguard)"), "{what}");
        assert_eq!(mtu, "1420", "over either version");
        let lone =
            |mtu| result_of(&[tunnel("wireguard", mtu, None, &[]), port(4, "veth", 1500, &[])]);
        assert_eq!((lone(1440).len(), lone(1441).len()), (0, 1), "no card at all");
        let mut hidden = tunnel("wireguard", 9000, None, &[]);
        hidden.stack.below_hidden = true;
        assert_eq!(result_of(&[hidden, port(4, "veth", 1500, &[])]), []);
        assert_eq!(result_of(&[tunnel("wireguard", 9000, None, &[])]), [], "no other port");
        let over = [port(6, "vlan", 1500, &[9]), tunnel("vxlan", 1500, None, &[])];
        assert_eq!(result_of(&over), [], "what stands on it does not carry it");
        // The largest port is on top of the tunnel, so that it cannot carry it: the next one is used.
        let smaller = port(4, "veth", 1400, &[]);
        let both = |mtu| {
            let tunnel = tunnel("vxlan", mtu, Some(4), &[]);
            result_of(&[port(6, "vlan", 9000, &[9]), tunnel, smaller.clone()]).len()
        };
        assert_eq!((both(1350), both(1351)), (1, 2));
    }

    #[test]
    fn thousands_of_tunnels_are_held_against_the_cards_that_they_do_not_carry() {
        // Each tunnel carries a VLAN. For every second tunnel no card is large enough.
        let mut nics = vec![port(1, "", 1500, &[])];
        "0000:01:00.0".clone_into(&mut nics[0].device);
        for at in 0..3_000 {
            let mut tunnel = tunnel("vxlan", 1450 + at % 2, Some(4), &[]);
            tunnel.index = 10 + 2 * at;
            nics.push(port(11 + 2 * at, "vlan", 1400, &[tunnel.index]));
            nics.push(tunnel);
        }
        let found = result_of(&nics);
        assert_eq!(found.len(), 1_500);
        assert!(found.iter().all(|(_, mtu)| mtu == "1450"));
    }

    #[test]
    fn a_vlan_on_a_tunnel_has_four_bytes_less() {
        let vlan = |mtu| port(6, "vlan", mtu, &[9]);
        let at = |own, mtu| {
            let below = port(2, "", 1500, &[]);
            result_of(&[vlan(own), tunnel("vxlan", mtu, Some(4), &[2]), below])
        };
        assert_eq!(at(1446, 1450), []);
        let [(what, mtu)] = &at(1447, 1450)[..] else { panic!("one byte more") };
        assert!(what.contains("(vxlan over IPv4) and a tag make 1501"), "{what}");
        assert_eq!(mtu, "1446");
        let both = at(1451, 1451);
        assert_eq!(both.len(), 1, "told of the tunnel alone: {both:?}");
        let below = [
            tunnel("vxlan", 1450, Some(4), &[6]),
            port(6, "vlan", 1500, &[2]),
            port(2, "", 1500, &[]),
        ];
        assert_eq!(result_of(&below), [], "on a VLAN there is room for its tag");
    }

    #[test]
    fn a_tunnel_in_a_tunnel_is_held_against_the_one_below() {
        let mut inner = tunnel("vxlan", 1450, Some(4), &[5]);
        inner.index = 9;
        let mut outer = tunnel("wireguard", 1420, None, &[]);
        outer.index = 5;
        let card = port(2, "", 1500, &[]);
        let [(what, mtu)] = &result_of(&[inner.clone(), outer.clone(), card.clone()])[..] else {
            panic!("the inner one")
        };
        assert!(what.ends_with("make 1500, eth9 carries 1420"), "{what}");
        assert_eq!(mtu, "1370");
        inner.mtu = Some(1370);
        assert_eq!(result_of(&[inner, outer, card]), []);
    }
}
