//! The ceiling of the wire: what the two ports leave of their speed.

use super::{Ceiling, TcpShares};
use crate::ceiling::{Bounds, Cost, Demand, Flow, Path, Resource, ethernet};
use crate::facts::Port;
use crate::plan::Direction;
use crate::record::Host;
use crate::units::Rate;
use crate::verdict::{Place, Stage};

/// The most goodput of a direction that the ports at its ends allow, from their speeds and from the
/// packets that were sent. `None` where no port with a speed of its own is known: no ceiling is better
/// than a false one.
pub(super) fn ceiling(hosts: &[Host], direction: Direction, tcp: &TcpShares) -> Option<Ceiling> {
    let payload = tcp.mss?.0.max(1);
    let wire = ethernet::wire(u32::try_from(tcp.path_mtu?.0).ok()?, 0);
    let ports: Vec<(&Host, &Port, u64)> = hosts.iter().filter_map(wired).collect();
    let path = Path {
        resources: ports.iter().map(resource).collect(),
        flows: vec![Flow {
            direction,
            // However many they are, they share the ports.
            streams: Bounds::exact(1.0),
            packet: Bounds::exact(payload as f64),
            operation: Bounds::exact(payload as f64),
            demands: (0..ports.len())
                .map(|at| Demand {
                    resource: at,
                    cost: Cost::bytes(Bounds::exact(f64::from(wire) / payload as f64)),
                    formula: format!("{} x {payload}/{wire}", Rate(ports[at].2)),
                })
                .collect(),
        }],
    };
    let lowest = path
        .ceilings(direction)
        .into_iter()
        .min_by(|a, b| a.goodput.high().total_cmp(&b.goodput.high()))?;
    Some(Ceiling {
        rate: Rate(lowest.goodput.high() as u64),
        stage: lowest.resource.stage,
        name: lowest.resource.name.clone(),
        formula: lowest.formula.to_owned(),
    })
}

/// The port of a host, if it has a wire of Ethernet, and its speed in bits per second.
fn wired(host: &Host) -> Option<(&Host, &Port, u64)> {
    let port = host.facts.port.as_ref()?;
    let speed = port.speed_mbps?.checked_mul(1_000_000)?;
    (port.is_ethernet && !port.is_virtual && speed > 0).then_some((host, port, speed))
}

fn resource((host, port, speed): &(&Host, &Port, u64)) -> Resource {
    Resource {
        name: format!("{} port {}", host.side.name(), port.name),
        stage: Stage::Net,
        side: Place::from(host.side),
        capacity: ethernet::capacity(*speed as f64),
        inputs: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::HostFacts;
    use crate::plan::Side;
    use crate::units::Bytes;

    fn host(side: Side, mbps: Option<u64>, change: fn(&mut Port)) -> Host {
        let mut port = Port {
            name: "eth0".to_owned(),
            speed_mbps: mbps,
            is_ethernet: true,
            ..Port::default()
        };
        change(&mut port);
        let facts = HostFacts {
            port: Some(port),
            ..HostFacts::default()
        };
        Host { side, facts }
    }

    fn of(hosts: &[Host]) -> Option<(u64, String, String)> {
        let tcp = TcpShares {
            mss: Some(Bytes(1448)),
            path_mtu: Some(Bytes(1500)),
            ..TcpShares::default()
        };
        let ceiling = ceiling(hosts, Direction::Forward, &tcp)?;
        Some((ceiling.rate.0, ceiling.name, ceiling.formula))
    }

    #[test]
    fn the_slower_port_gives_the_ceiling() {
        let hosts = [
            host(Side::Near, Some(25_000), |_| {}),
            host(Side::Far, Some(10_000), |_| {}),
        ];
        let (rate, name, formula) = of(&hosts).unwrap();
        assert_eq!(rate / 1_000_000, 9_414);
        assert_eq!(name, "far port eth0");
        assert_eq!(formula, "10 Gb/s x 1448/1538");
    }

    #[test]
    fn a_port_without_a_known_wire_gives_none() {
        let known = || host(Side::Far, Some(1_000), |_| {});
        for unknown in [
            host(Side::Near, None, |_| {}),
            host(Side::Near, Some(0), |_| {}),
            host(Side::Near, Some(10), |p| p.is_virtual = true),
            host(Side::Near, Some(10), |p| p.is_ethernet = false),
            host(Side::Near, Some(u64::MAX), |_| {}),
        ] {
            assert_eq!(of(std::slice::from_ref(&unknown)), None, "{unknown:?}");
            let (rate, name, _) = of(&[unknown, known()]).unwrap();
            assert_eq!((rate / 1_000_000, name.as_str()), (941, "far port eth0"));
        }
    }
}
