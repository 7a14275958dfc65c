//! What carries a path below the port of its route: ports with wires, only software, or one of several ports that
//! cannot be told apart here.

use std::collections::BTreeMap;

use super::nic::{Bond, Nic};
use super::route::{PORTS_MAX, Route};

/// Modes in which a bond distributes streams over its members.
const SPREADING: [&str; 5] = ["802.3ad", "balance-rr", "balance-xor", "balance-tlb", "balance-alb"];

/// Kinds of ports that pass packets unchanged, except for a tag, to the one port below.
const THROUGH: [&str; 5] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"];

/// Kinds of ports with no port below whose packets stay in the machine: the other end is in another namespace or a
/// guest. Emulated devices have an empty kind.
const LOCAL: [&str; 6] = ["", "veth", "netkit", "vxcan", "dummy", "ifb"];

/// Kind of a port whose packets a program reads. As a member of a bridge it leads to a guest, else to a tunnel.
const TUN: &str = "tun";

/// What carries the path at one end.
#[derive(Debug, Clone, PartialEq)]
pub enum Underlay<'a> {
    /// The path uses these ports with a wire: one port, or the members of a bond that distributes streams.
    Wires(Vec<&'a Nic>),
    /// There is no wire: this host or its hypervisor emulates every port of the path.
    Nothing,
    /// One or more of the listed ports with a wire. Unknown is which of them, or how large packets are on it: a bridge
    /// may lead anywhere, and a tunnel adds headers.
    OneOf(Vec<&'a Nic>),
    /// The port below is unknown: a tunnel looks up its own route, or the port below is in another namespace.
    Hidden,
}

impl Route {
    /// What carries the path below the port of the route.
    pub fn underlay(&self) -> Underlay<'_> {
        let first = self.ports.first();
        first.map_or(Underlay::Hidden, |nic| self.below(nic, &mut BTreeMap::new()))
    }

    /// The ports with a wire that carry the path; `None` if there is no wire, or if unknown.
    pub fn wires(&self) -> Option<Vec<&Nic>> {
        match self.underlay() {
            Underlay::Wires(wires) => Some(wires),
            _ => None,
        }
    }

    /// The bond of the route that sends all packets to one host through one of its members; `None` if there is none.
    pub fn bond_by_host(&self) -> Option<&Nic> {
        let by_host = |nic: &&Nic| nic.stack.bond.as_ref().is_some_and(Bond::sends_by_one);
        let several = self.wires()?.len() > 1;
        self.carriers().into_iter().find(by_host).filter(|_| several)
    }

    /// The ports that all packets of the path certainly cross, from the port of the route downwards.
    pub fn carriers(&self) -> Vec<&Nic> {
        let mut all: Vec<&Nic> = Vec::new();
        let mut next = self.ports.first();
        while let Some(nic) = next.filter(|nic| all.iter().all(|seen| seen.index != nic.index)) {
            all.push(nic);
            next = self.only_below(nic);
        }
        all
    }

    /// The one port below `nic` that carries all of its packets; `None` if there is none, or if there are several.
    fn only_below(&self, nic: &Nic) -> Option<&Nic> {
        let below = nic.stack.below.iter().take(PORTS_MAX);
        let mut below: Vec<&Nic> = below.map(|index| self.nic(*index)).collect::<Option<_>>()?;
        if nic.kind == "bridge" {
            let leads_out = |member: &&Nic| {
                let underlay = self.below(member, &mut BTreeMap::new());
                member.up && member.kind != TUN && underlay != Underlay::Nothing
            };
            below.retain(leads_out);
        }
        match below[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// What carries the packets of a port. `known` has the ports that were visited, so that each port is visited once.
    /// If ports form a loop, their underlay is unknown.
    fn below<'a>(&'a self, nic: &'a Nic, known: &mut BTreeMap<u32, Underlay<'a>>) -> Underlay<'a> {
        if let Some(underlay) = known.get(&nic.index) {
            return underlay.clone();
        }
        known.insert(nic.index, Underlay::Hidden);
        let lower = nic.stack.below.iter().take(PORTS_MAX + 1);
        let lower: Option<Vec<&Nic>> = lower.map(|index| self.nic(*index)).collect();
        let reported = lower.filter(|all| all.len() <= PORTS_MAX && !nic.stack.below_hidden);
        let underlay = reported.map_or(Underlay::Hidden, |lower| self.over(nic, &lower, known));
        known.insert(nic.index, underlay.clone());
        underlay
    }

    /// What carries the packets of a port that is on top of the ports `lower`.
    fn over<'a>(
        &'a self,
        nic: &'a Nic,
        lower: &[&'a Nic],
        known: &mut BTreeMap<u32, Underlay<'a>>,
    ) -> Underlay<'a> {
        let mut all = |ports: &[&'a Nic]| -> Vec<Underlay<'a>> {
            ports.iter().map(|nic| self.below(nic, known)).collect()
        };
        match (nic.kind.as_str(), lower) {
            ("bond", _) => match in_use(nic, lower).as_deref() {
                Some([one]) => self.below(one, known),
                Some(many) if many.iter().all(|m| is_wire(m)) => Underlay::Wires(many.to_vec()),
                _ => any(all(lower)),
            },
            ("bridge", _) => {
                // A member of kind tun leads to a guest, which decides what it does with packets, so such members are
                // left out.
                let members = lower.iter().filter(|m| m.up && m.kind != TUN).copied();
                one(all(&members.collect::<Vec<_>>()))
            }
            (kind, [one]) if THROUGH.contains(&kind) => self.below(one, known),
            (_, []) if is_wire(nic) => Underlay::Wires(vec![nic]),
            (kind, []) if LOCAL.contains(&kind) => Underlay::Nothing,
            (_, []) => Underlay::Hidden,
            // The port is a tunnel, or a port of a hardware switch in the machine, which has its own wire.
            _ => {
                let own = (!nic.is_virtual).then(|| Underlay::Wires(vec![nic]));
                any(own.into_iter().chain(all(lower)).collect())
            }
        }
    }
}

/// The members of a bond that carry its traffic; `None` if that is unknown.
fn in_use<'a>(nic: &Nic, members: &[&'a Nic]) -> Option<Vec<&'a Nic>> {
    let bond = nic.stack.bond.as_ref()?;
    if bond.mode == "active-backup" {
        let active = bond.active?;
        return Some(vec![members.iter().copied().find(|m| m.index == active)?]);
    }
    if !SPREADING.contains(&bond.mode.as_str()) {
        return None;
    }
    let carries = |member: &&Nic| member.up && bond.aggregates(member);
    let up: Vec<&Nic> = members.iter().copied().filter(carries).collect();
    (!up.is_empty()).then_some(up)
}

/// What carries the packets of a bridge: the only member that is more than software. If there are several, one of their
/// ports.
fn one(mut members: Vec<Underlay<'_>>) -> Underlay<'_> {
    members.retain(|underlay| *underlay != Underlay::Nothing);
    // Two VLANs on the same port have the same underlay.
    members.dedup();
    match members.len() {
        1 => members.remove(0),
        _ => any(members),
    }
}

fn any(all: Vec<Underlay<'_>>) -> Underlay<'_> {
    let mut ports = Vec::new();
    for underlay in all {
        match underlay {
            Underlay::Nothing => {}
            Underlay::Wires(found) | Underlay::OneOf(found) => ports.extend(found),
            Underlay::Hidden => return Underlay::Hidden,
        }
    }
    ports.sort_by_key(|nic| nic.index);
    ports.dedup_by_key(|nic| nic.index);
    if ports.is_empty() {
        return Underlay::Nothing;
    }
    Underlay::OneOf(ports)
}

fn is_wire(nic: &Nic) -> bool {
    !nic.is_virtual && nic.stack.below.is_empty() && nic.stack.bond.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::Stack;

    fn nic(index: u32, kind: &str, below: &[u32]) -> Nic {
        Nic {
            name: format!("p{index}"),
            index,
            kind: kind.to_owned(),
            is_virtual: !kind.is_empty(),
            up: true,
            stack: Stack { below: below.to_vec(), ..Stack::default() },
            ..Nic::default()
        }
    }

    fn card(index: u32) -> Nic {
        nic(index, "", &[])
    }

    fn bond(mode: &str, active: Option<u32>, members: &[u32]) -> Nic {
        let mut bond = nic(5, "bond", members);
        bond.stack.bond = Some(Bond { mode: mode.to_owned(), active, ..Bond::default() });
        bond
    }

    /// The underlay of the first port, as text: `wires 1 2`, `nothing`, `one of 1 2`, `hidden`.
    fn underlay(ports: Vec<Nic>) -> String {
        let route = Route { ports, ..Route::default() };
        let names = |what: &str, all: Vec<&Nic>| {
            let numbers = all.iter().map(|nic| format!(" {}", nic.index));
            what.to_owned() + &numbers.collect::<String>()
        };
        match route.underlay() {
            Underlay::Wires(all) => names("wires", all),
            Underlay::OneOf(all) => names("one of", all),
            Underlay::Nothing => "nothing".to_owned(),
            Underlay::Hidden => "hidden".to_owned(),
        }
    }

    #[test]
    fn a_stack_is_followed_to_its_wires() {
        assert_eq!(underlay(vec![card(1)]), "wires 1");
        assert_eq!(underlay(vec![nic(2, "vlan", &[1]), card(1)]), "wires 1");
        let two = |bond: Nic| underlay(vec![nic(9, "vlan", &[5]), bond, card(1), card(2)]);
        assert_eq!(two(bond("802.3ad", None, &[1, 2])), "wires 1 2");
        assert_eq!(two(bond("active-backup", Some(2), &[1, 2])), "wires 2");
        assert_eq!(two(bond("active-backup", None, &[1, 2])), "one of 1 2");
        assert_eq!(two(bond("broadcast", None, &[1, 2])), "one of 1 2");
        assert_eq!(underlay(Vec::new()), "hidden");
    }

    #[test]
    fn a_bridge_is_its_one_card_and_one_of_several() {
        let bridge = |below: &[u32]| {
            let mut down = card(6);
            down.up = false;
            underlay(vec![
                nic(3, "bridge", below),
                card(1),
                card(2),
                nic(4, "tun", &[]),
                nic(5, "veth", &[]),
                down,
                nic(7, "vxlan", &[1]),
                nic(8, "vlan", &[1]),
                nic(9, "vlan", &[1]),
                nic(10, "vxlan", &[]),
            ])
        };
        for (members, want) in [
            (&[1][..], "wires 1"),
            (&[1, 4, 5], "wires 1"),
            (&[1, 6], "wires 1"),
            (&[1, 2], "one of 1 2"),
            (&[8, 9], "wires 1"),
            (&[5, 7], "one of 1"),
            (&[2, 7], "one of 1 2"),
            (&[5, 10], "hidden"),
            (&[1, 77], "hidden"),
            (&[4, 5], "nothing"),
            (&[6], "nothing"),
            (&[], "nothing"),
        ] {
            assert_eq!(bridge(members), want, "{members:?}");
        }
    }

    #[test]
    fn a_tunnel_is_not_taken_for_a_port_without_a_wire() {
        let stack = |kind: &str, below: &[u32]| underlay(vec![nic(4, kind, below), card(1)]);
        assert_eq!(stack("vxlan", &[1]), "one of 1");
        for kind in ["wireguard", "tun", "gre", "vxlan", "openvswitch", "unheard"] {
            assert_eq!(stack(kind, &[]), "hidden", "{kind}");
        }
        for kind in LOCAL.into_iter().skip(1) {
            assert_eq!(stack(kind, &[]), "nothing", "{kind}");
        }
        let mut paravirtual = card(1);
        paravirtual.is_virtual = true;
        assert_eq!(underlay(vec![paravirtual]), "nothing");
        let over_veth = vec![nic(4, "vxlan", &[5]), nic(5, "veth", &[])];
        assert_eq!(underlay(over_veth), "nothing");
        let mut elsewhere = nic(4, "macvlan", &[]);
        elsewhere.stack.below_hidden = true;
        assert_eq!(underlay(vec![elsewhere]), "hidden");
        let mut inner = card(4);
        inner.stack.below = vec![1];
        assert_eq!(underlay(vec![inner, card(1)]), "one of 1 4", "a switch");
    }

    #[test]
    fn loops_end_and_lists_are_bounded() {
        let looped = vec![nic(1, "vlan", &[2]), nic(2, "vlan", &[1])];
        assert_eq!(underlay(looped), "hidden");
        let bridges = vec![nic(1, "bridge", &[2, 2]), nic(2, "bridge", &[1, 1])];
        assert_eq!(underlay(bridges), "hidden");
        let many = |count| underlay(vec![nic(9, "bridge", &vec![1; count]), card(1)]);
        assert_eq!(many(PORTS_MAX), "wires 1");
        assert_eq!(many(PORTS_MAX + 1), "hidden");
    }

    #[test]
    fn a_member_of_another_aggregator_carries_nothing() {
        let carried = |aggregators: [u16; 2], mode: &str| {
            let mut bond = bond(mode, None, &[1, 2]);
            bond.stack.bond.as_mut().unwrap().aggregator = Some(1);
            let mut members = [card(1), card(2)];
            for (member, aggregator) in members.iter_mut().zip(aggregators) {
                member.stack.aggregator = Some(aggregator);
            }
            let [one, two] = members;
            underlay(vec![bond, one, two])
        };
        assert_eq!(carried([1, 1], "802.3ad"), "wires 1 2");
        assert_eq!(carried([1, 2], "802.3ad"), "wires 1");
        assert_eq!(carried([1, 2], "balance-xor"), "wires 1 2");
    }

    #[test]
    fn a_member_without_carrier_carries_nothing() {
        let mut down = card(2);
        down.up = false;
        let ports = vec![bond("802.3ad", None, &[1, 2]), card(1), down];
        assert_eq!(underlay(ports), "wires 1");
    }
}
