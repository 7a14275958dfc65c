//! Hardware and IP addresses of ports, and the ports of the default routes.

use std::collections::BTreeMap;

use linerate_facts::nic::{Nic, PortAddresses};
use linerate_facts::parse::link::{LOOPBACK, Link};
use linerate_facts::parse::{address, routes, sysfs};

use super::super::Reader;
use crate::{Query, invalid};

/// Most addresses of one port that are kept.
const ADDRESSES_MAX: usize = 64;
const ROUTES: &str = "/proc/net/route";
const HINT: &str = "ip address";

impl Reader<'_> {
    /// Reads the IP and hardware addresses of the ports of these links.
    pub(super) fn port_addresses(&mut self, links: &[Link<'_>]) -> Vec<PortAddresses> {
        let mut all: Vec<PortAddresses> = links.iter().map(of_link).collect();
        let what = "the addresses of ports";
        let reply = match self.machine.query(&Query::Addresses) {
            Ok(reply) => reply,
            Err(error) => {
                self.miss("network.addresses", what, &error, HINT);
                Vec::new()
            }
        };
        let places = all.iter().enumerate().map(|(at, port)| (port.port, at));
        let places: BTreeMap<u32, usize> = places.collect();
        for address in address::parse(&reply) {
            match address {
                Ok(address) if address.is_global => {
                    let port = places.get(&address.port).map(|at| &mut all[*at]);
                    if let Some(port) = port.filter(|port| port.ip.len() < ADDRESSES_MAX) {
                        port.ip.push(format!("{}/{}", address.ip, address.prefix));
                    }
                }
                Ok(_) => {}
                Err(error) => self.miss("network.addresses", what, &invalid(error), HINT),
            }
        }
        all.retain(|port| !port.hardware.is_empty() || !port.ip.is_empty());
        all
    }

    /// Reads the hardware addresses of ports from a directory tree, which shows no other addresses.
    pub(super) fn listed_addresses(&self, nics: &[Nic]) -> Vec<PortAddresses> {
        let read = |nic: &Nic| {
            let hardware = self.optional_line(&format!("/sys/class/net/{}/address", nic.name));
            let is_known = !is_zero(&hardware) && nic.driver != "loopback";
            is_known.then(|| PortAddresses { port: nic.index, hardware, ip: Vec::new() })
        };
        nics.iter().filter_map(read).collect()
    }

    /// Reads the ports of the default routes, if any of the ports is a Wi-Fi port.
    pub(super) fn default_ports(&mut self, nics: &[Nic]) -> Option<Vec<String>> {
        if !nics.iter().any(|nic| nic.is_wifi) {
            return None;
        }
        let read = |text: &[u8]| Ok(routes::default_ports(text));
        self.look("network.routes", ROUTES, read)
    }
}

/// Returns whether all digits of a hardware address are zero.
fn is_zero(address: &str) -> bool {
    address.chars().all(|c| "0:".contains(c))
}

fn of_link(link: &Link<'_>) -> PortAddresses {
    let hardware = sysfs::hardware_address(link.address);
    let is_known = link.hardware != LOOPBACK && !is_zero(&hardware);
    PortAddresses {
        port: link.index,
        hardware: if is_known { hardware } else { String::new() },
        ip: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, attr, link, msg, tree};
    use crate::{Live, Query, Replay, network};

    #[test]
    fn addresses_belong_to_ports_and_a_mask_replaces_them() {
        let card = link(2, "eth0", &[attr(1, &[2, 0, 0, 0, 0, 7])]);
        let bare = link(3, "tun0", &[]);
        let address = |scope: u8, ip: [u8; 4]| {
            let fixed = [&[2, 24, 0, scope][..], &2u32.to_ne_bytes()].concat();
            msg(20, &[fixed, attr(2, &ip)].concat())
        };
        let all = [address(0, [192, 0, 2, 7]), address(253, [169, 254, 0, 1])].concat();
        let mut captured = Fake::default()
            .reply(Query::Links, &[&[card, bare].concat()])
            .reply(Query::Addresses, &[&all])
            .0;
        let read = network(&Replay::new(captured.clone())).addresses;
        let reported: Vec<_> =
            read.iter().map(|a| (a.port, a.hardware.as_str(), &a.ip[..])).collect();
        assert_eq!(reported, [(2, "02:00:00:00:00:07", &["192.0.2.7/24".to_owned()][..])]);
        captured.mask();
        let masked = &network(&Replay::new(captured)).addresses[0];
        assert!(masked.hardware.starts_with("00:00:00:00:00:0"), "{masked:?}");
        assert!(masked.ip[0].starts_with("0.0.0."), "{masked:?}");
    }

    #[test]
    fn of_a_tree_hardware_addresses_and_the_way_out_are_known() {
        let route = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n\
                     wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\n";
        let root = tree(&[
            ("/proc/net/route", route),
            ("/sys/class/net/wlan0/ifindex", "3\n"),
            ("/sys/class/net/wlan0/address", "02:00:00:00:00:07\n"),
            ("/sys/class/net/wlan0/uevent", "DEVTYPE=wlan\nINTERFACE=wlan0\n"),
            ("/sys/class/net/tun0/ifindex", "4\n"),
        ]);
        let network = network(&Live::under(root.path()).unwrap());
        assert_eq!(network.default_ports, Some(vec!["wlan0".to_owned()]));
        assert_eq!(network.addresses.len(), 1);
        assert_eq!(network.addresses[0].hardware, "02:00:00:00:00:07");
        assert!(network.nics[0].is_wifi && !network.nics[1].is_wifi);
    }
}
