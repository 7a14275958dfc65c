//! Tunnels: the size of their headers, and the ports that carry their packets.

use linerate_facts::nic::Nic;
use linerate_facts::parse::link::Link;
use linerate_facts::parse::tunnel::Ends;

use super::super::Reader;
use crate::route::route_toward;
use crate::{Toward, invalid};

/// Most tunnels for which the route to the other end is queried.
const ASKED_MAX: usize = 64;

impl Reader<'_> {
    /// Sets for each tunnel how many bytes it adds to a packet, and the port below it: the port that it is bound to, or
    /// the port of the route to its other end.
    pub(super) fn tunnels(&mut self, links: &[Link<'_>], nics: &mut [Nic]) {
        let mut left = ASKED_MAX;
        for nic in nics {
            let link = links.iter().find(|link| link.index == nic.index);
            let Some(link) = link.filter(|_| nic.is_tunnel()) else {
                continue;
            };
            let ends = match link.tunnel() {
                Ok(Some(ends)) => ends,
                Ok(None) => continue,
                Err(error) => {
                    let hint = format!("ip -d link show {}", nic.name);
                    self.miss("nic.tunnel", &nic.name, &invalid(error), &hint);
                    continue;
                }
            };
            self.stand_on(nic, ends, link.lower_elsewhere, &mut left);
        }
    }

    /// Finds the port below a tunnel. If `elsewhere`, its outer packets leave from another network namespace, whose
    /// routes are unknown here.
    fn stand_on(&self, nic: &mut Nic, ends: Ends, elsewhere: bool, left: &mut usize) {
        let mut tunnel = ends.tunnel;
        let asks = ends.remote.filter(|ip| !ip.is_multicast() && !elsewhere && *left > 0);
        let route = asks.and_then(|remote| {
            *left -= 1;
            let own = ends.local.filter(|own| own.is_ipv4() == remote.is_ipv4());
            // If there is no route, the tunnel carries no packets, so that this is not a gap.
            route_toward(self.machine, Toward { peer: remote, own }).ok()
        });
        let carrier = ends.link.or(route.map(|route| route.port));
        let carrier = carrier.filter(|&port| port != nic.index && !elsewhere);
        tunnel.route_mtu =
            route.filter(|route| Some(route.port) == carrier).and_then(|route| route.mtu);
        nic.stack.tunnel = Some(tunnel);
        nic.stack.below_hidden |= elsewhere;
        if let Some(carrier) = carrier.filter(|port| !nic.stack.below.contains(port)) {
            nic.stack.below.push(carrier);
            nic.stack.below.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::nic::{Network, Nic};

    use crate::testing::{Fake, attr, link, msg};
    use crate::{Captured, Query, Replay, Toward, network};

    const REMOTE: [u8; 4] = [192, 0, 2, 1];

    /// Makes the link message of a tunnel of this kind, with index 9.
    fn tunnel(kind: &str, details: &[Vec<u8>], more: &[Vec<u8>]) -> Vec<u8> {
        let info = [attr(1, kind.as_bytes()), attr(2, &details.concat())].concat();
        let attributes = [&[attr(4, &1450u32.to_ne_bytes()), attr(18, &info)], more].concat();
        link(9, "tun0", &attributes)
    }

    /// Makes the reply with a route to any address, by this port and with this MTU.
    fn route(port: u32, mtu: u32) -> Vec<u8> {
        let metrics = attr(8, &attr(2, &mtu.to_ne_bytes()));
        msg(24, &[vec![0; 12], attr(4, &port.to_ne_bytes()), metrics].concat())
    }

    fn machine(tunnel: &[u8]) -> Fake {
        let card = link(2, "eth0", &[attr(4, &1500u32.to_ne_bytes())]);
        let toward = Toward { peer: REMOTE.into(), own: None };
        Fake::default()
            .reply(Query::Links, &[&[card, tunnel.to_vec()].concat()])
            .reply(Query::Route(toward), &[&route(2, 1400)])
    }

    fn read(captured: Captured) -> Nic {
        let Network { nics, .. } = network(&Replay::new(captured));
        nics.into_iter().find(|nic| nic.index == 9).unwrap()
    }

    #[test]
    fn a_tunnel_stands_on_the_port_that_its_route_leaves_by() {
        for (kind, number) in [("vxlan", 2), ("geneve", 2), ("gre", 7), ("ipip", 3)] {
            let nic = read(machine(&tunnel(kind, &[attr(number, &REMOTE)], &[])).0);
            assert_eq!(nic.stack.below, [2], "{kind}");
            let reported = nic.stack.tunnel.unwrap();
            assert_eq!((reported.version, reported.route_mtu), (Some(4), Some(1400)), "{kind}");
        }
        let bound = [attr(2, &REMOTE), attr(3, &5u32.to_ne_bytes())];
        let nic = read(machine(&tunnel("vxlan", &bound, &[])).0);
        assert_eq!(nic.stack.below, [5], "it is bound to another port");
        assert_eq!(nic.stack.tunnel.unwrap().route_mtu, None);
    }

    #[test]
    fn without_an_end_or_a_route_nothing_is_below() {
        for details in [vec![], vec![attr(2, &[239, 1, 1, 1])], vec![attr(2, &[192, 0, 2, 9])]] {
            let nic = read(machine(&tunnel("vxlan", &details, &[])).0);
            assert_eq!(nic.stack.below, [0; 0]);
            assert!(nic.stack.tunnel.is_some() && !nic.stack.below_hidden);
        }
        let elsewhere = [attr(37, &0u32.to_ne_bytes())];
        let nic = read(machine(&tunnel("vxlan", &[attr(2, &REMOTE)], &elsewhere)).0);
        assert!(nic.stack.below.is_empty() && nic.stack.below_hidden);
    }

    #[test]
    fn a_masked_tunnel_is_the_same_without_its_address() {
        let fake = machine(&tunnel("vxlan", &[attr(2, &REMOTE)], &[])).0;
        let whole = read(fake.clone());
        let mut masked = fake;
        masked.mask();
        let text = format!("{:?}", masked.queries);
        for address in ["192.0.2.1", "192, 0, 2, 1"] {
            assert!(!text.contains(address), "{text}");
        }
        assert_eq!(read(masked), whole);
    }
}
