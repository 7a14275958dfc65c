//! The route to the other end: its ports, and the cards and PCIe bridges below them.

use linerate_facts::Gap;
use linerate_facts::nic::Nic;
use linerate_facts::parse::route;
use linerate_facts::pci::{self, Address, Device};
use linerate_facts::route::Route;

use super::Reader;
use super::pci::{DEVICES, cables};
use crate::{Toward, gap};

/// Most bridges that are read between a card and the processor; a PCIe switch has two.
const BRIDGES: usize = 16;

impl Reader<'_> {
    /// Reads the ports and PCI devices that carry a route.
    pub(super) fn route(&mut self, toward: Toward, route: &route::Route) -> Route {
        let own = toward.own.or(route.source);
        let (ports, others, siblings) = self.stack_of(route.port, own);
        let pci = self.pci_of(&ports);
        Route { own, peer: Some(toward.peer), gateway: route.gateway, ports, pci, others, siblings }
    }

    /// Returns the cards of ports, and the PCIe bridges above these cards.
    fn pci_of(&mut self, ports: &[Nic]) -> Vec<Device> {
        let (mut all, mut hidden) = (Vec::new(), Vec::new());
        // A device that a hypervisor emulates is not in a PCIe slot.
        let cards = ports.iter().filter(|nic| !nic.is_virtual && nic.device == nic.pci);
        for card in cards.filter_map(|nic| nic.pci.parse().ok()) {
            self.chain(card, &mut all, &mut hidden);
        }
        all.sort_unstable_by_key(|device: &Device| device.address);
        pci::find_parents(&mut all);
        self.gaps
            .extend(cables(&all).map(|gap| Gap { what: "facts.route.cable".to_owned(), ..gap }));
        if let Some(first) = hidden.first() {
            let why = format!("only root can read the PCIe packet sizes of {first}");
            self.lack(gap("facts.route.payload", &why, "sudo linerate ..."));
        }
        all
    }

    /// Adds a card, and each PCIe bridge above it that was not added yet.
    pub(super) fn chain(
        &mut self,
        card: Address,
        all: &mut Vec<Device>,
        hidden: &mut Vec<Address>,
    ) {
        let mut at = card;
        for _ in 0..BRIDGES {
            if all.iter().any(|device| device.address == at) {
                return;
            }
            all.push(self.pci_device(at, hidden));
            let above = self.pci_above(&format!("{DEVICES}/{at}/.."));
            // If a card is behind a controller that has its own PCI domain, that controller is the root.
            match above.parse::<Address>() {
                Ok(above) if above.domain == at.domain => at = above,
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::route::Route;
    use rustix::io::Errno;

    use super::super::pci::tests::header;
    use super::DEVICES;
    use crate::testing::{Fake, LOOPBACK, attr, link, msg, route};
    use crate::{Answer, Query, Replay, facts};

    const CARD: &str = "0000:01:00.0";
    const PORT: &str = "0000:00:01.0";

    fn device(mut fake: Fake, address: &str, width: &str) -> Fake {
        let folder = format!("{DEVICES}/{address}");
        let config = Answer::Reply(header(address == PORT));
        fake.0.files.insert(format!("{folder}/config"), vec![config]);
        for which in ["current", "max"] {
            fake = fake
                .file(&format!("{folder}/{which}_link_speed"), &["8.0 GT/s PCIe\n"])
                .file(&format!("{folder}/{which}_link_width"), &[width]);
        }
        fake
    }

    fn number(kind: u16, value: u32) -> Vec<u8> {
        attr(kind, &value.to_ne_bytes())
    }

    fn own_address(port: u32, scope: u8, address: [u8; 4]) -> Vec<u8> {
        let fixed = [&[2, 24, 0, scope][..], &port.to_ne_bytes()].concat();
        msg(20, &[fixed, attr(2, &address)].concat())
    }

    /// Makes a route to any address by port 2, from this source address.
    fn route_from(own: [u8; 4]) -> Vec<u8> {
        let attributes = [number(4, 2), attr(7, &own)].concat();
        msg(24, &[vec![2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], attributes].concat())
    }

    /// A machine with a VLAN (port 7) on a card (port 2) and two other cards, one of which has an address in another
    /// network.
    fn machine() -> Fake {
        let on = |device: &str| [attr(57, b"pci"), attr(56, device.as_bytes())].concat();
        let info = [attr(1, b"vlan"), attr(2, &attr(1, &100u16.to_ne_bytes()))].concat();
        let links = [
            link(2, "eth0", &[on(CARD)]),
            link(3, "eth1", &[on("0000:02:00.0")]),
            link(4, "eth2", &[on("0000:03:00.0")]),
            link(7, "eth0.100", &[number(5, 2), attr(18, &info)]),
        ];
        let addresses = [
            own_address(7, 0, [192, 0, 2, 7]),
            own_address(3, 0, [198, 51, 100, 7]),
            own_address(4, 253, [169, 254, 0, 7]),
        ];
        let fake = Fake::default()
            .reply(Query::Route(LOOPBACK.into()), &[&route(7)])
            .reply(Query::Link(7), &[&link(7, "eth0.100", &[attr(18, &info)])])
            .reply(Query::Links, &[&links.concat()])
            .reply(Query::Addresses, &[&addresses.concat()]);
        let fake = device(device(fake, CARD, "4\n"), PORT, "16\n");
        fake.file(
            &format!("{DEVICES}/{CARD}/../uevent"),
            &["DRIVER=pcieport\nPCI_SLOT_NAME=0000:00:01.0\n"],
        )
    }

    #[test]
    fn a_port_that_is_made_of_others_stands_where_their_card_does() {
        let irq = "/proc/irq/40";
        let fake = machine()
            .file(&format!("{DEVICES}/{CARD}/numa_node"), &["1\n"])
            .list(&format!("{DEVICES}/{CARD}/msi_irqs"), &["40"])
            .list(irq, &["eth0-rx-0"])
            .file(&format!("{irq}/effective_affinity_list"), &["6\n"]);
        let port = facts(&Replay::new(fake.0), LOOPBACK).port.unwrap();
        assert!(port.is_virtual, "a VLAN");
        assert_eq!((port.node, port.served_by), (Some(1), vec![6]));
    }

    fn read(fake: Fake) -> (Route, Vec<String>) {
        let facts = facts(&Replay::new(fake.0), LOOPBACK);
        let gaps = facts.gaps.into_iter().map(|gap| gap.what);
        let ours = gaps.filter(|what| what.starts_with("facts.route"));
        (facts.route.unwrap(), ours.collect())
    }

    #[test]
    fn a_route_is_followed_down_to_the_slot() {
        let (route, gaps) = read(machine());
        let names: Vec<_> = route.ports.iter().map(|nic| nic.name.as_str()).collect();
        assert_eq!(names, ["eth0.100", "eth0"]);
        assert_eq!((route.tags(), route.peer), (1, Some(LOOPBACK)));
        let wires = route.wires().unwrap();
        let crossings = route.crossings(wires[0]);
        let [crossing] = &crossings[..] else { panic!("one link: {:?}", route.pci) };
        assert_eq!(crossing.now.to_string(), "8 GT/s x4");
        assert_eq!(crossing.slot.address.to_string(), PORT);
        assert_eq!(gaps, ["facts.route.payload"]);
    }

    #[test]
    fn other_ports_are_told_if_they_have_an_address_for_others() {
        let (route, _) = read(machine());
        let [other] = &route.others[..] else { panic!("one other port: {:?}", route.others) };
        assert_eq!(other.name, "eth1");
        assert_eq!(other.networks, [([198, 51, 100, 7].into(), 24)]);
    }

    #[test]
    fn ports_in_the_network_of_the_own_address_are_told_if_there_are_several() {
        let result_of = |addresses: &[(u32, [u8; 4])], kind: &[u8], part_of: Option<u32>| {
            let info = attr(1, kind);
            let links = [
                link(2, "eth0", &[attr(18, &info)]),
                link(3, "eth1", &Vec::from_iter(part_of.map(|it| attr(10, &it.to_ne_bytes())))),
                link(4, "eth2", &[]),
            ];
            let addresses = addresses.iter().map(|(port, ip)| own_address(*port, 0, *ip));
            let fake = Fake::default()
                .reply(Query::Route(LOOPBACK.into()), &[&route_from([192, 0, 2, 7])])
                .reply(Query::Link(2), &[&links[0]])
                .reply(Query::Links, &[&links.concat()])
                .reply(Query::Addresses, &[&addresses.collect::<Vec<_>>().concat()]);
            let (route, _) = read(fake);
            let reported = route.siblings.into_iter();
            reported
                .map(|port| (port.name, port.index, port.owns, port.is_bare))
                .collect::<Vec<_>>()
        };
        let siblings = |addresses: &[(u32, [u8; 4])], dummy| {
            let kind: &[u8] = if dummy { b"dummy" } else { b"veth!" };
            result_of(addresses, kind, Some(4))
        };
        let own = (2, [192, 0, 2, 7]);
        let all = [own, (3, [192, 0, 2, 8]), (4, [198, 51, 100, 7])];
        let want = |bare| {
            let port = |name: &str, index, owns, bare| (name.to_owned(), index, owns, bare);
            [port("eth0", 2, true, false), port("eth1", 3, false, bare)]
        };
        assert_eq!(siblings(&all, false), want(false));
        assert_eq!(siblings(&[own, all[2]], false), [], "another network");
        let bare = |part_of| result_of(&[own, all[2]], b"veth!", part_of);
        assert_eq!(bare(None), want(true), "without an address");
        assert_eq!(bare(Some(2)), [], "a part of the owner");
        assert_eq!(siblings(&all[1..], false), [], "nobody owns it");
        assert_eq!(siblings(&all, true), [], "other ports answer for it on purpose");
    }

    #[test]
    fn what_cannot_be_asked_is_a_gap() {
        let (route, gaps) = read(machine().refusing(Query::Links, Errno::PERM));
        assert_eq!((route.ports.len(), route.pci.len()), (0, 0));
        assert_eq!(gaps, ["facts.route.ports"]);
        let (route, gaps) = read(machine().refusing(Query::Addresses, Errno::PERM));
        assert_eq!((route.ports.len(), route.others.len()), (2, 0));
        assert!(gaps.contains(&"facts.route.others".to_owned()), "{gaps:?}");
    }
}
