//! Facts of hosts about their path, to compare the rate of a sweep with hardware.

use linerate_ceiling::Link;
use linerate_ceiling::fingerprint::{Carrier, Facts, Known, Medium};
use linerate_facts::Port;
use linerate_record::Host;
use linerate_units::Rate;

/// What the ports and slots of the hosts show of a path that sockets use. A port does not show the links behind a switch,
/// and a slot may run below its maximum, so there may be slower hardware on the path.
pub fn hardware(hosts: &[Host]) -> Facts {
    let ports: Vec<&Port> = hosts.iter().filter_map(|h| h.facts.port.as_ref()).collect();
    let speed = |port: &&Port| {
        let mega = port.speed_mbps.filter(|_| !port.is_virtual)?;
        let rate = Rate(mega.checked_mul(1_000_000)?);
        port.is_ethernet.then_some(Link::Ethernet(rate))
    };
    let drivers: Vec<&str> = ports.iter().map(|port| port.driver.as_str()).collect();
    let is_ethernet = !ports.is_empty() && ports.iter().all(|port| port.is_ethernet);
    Facts {
        medium: Some(if is_ethernet { Medium::Ethernet } else { Medium::Network }),
        links: Known { parts: ports.iter().filter_map(speed).collect(), all: false },
        carrier: Some(Carrier::Sockets),
        all_drivers: !drivers.is_empty() && drivers.iter().all(|driver| !driver.is_empty()),
        card: Some(drivers.join(" ")).filter(|names| !names.trim().is_empty()),
        ..Facts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_facts::HostFacts;
    use linerate_plan::path::Side;

    fn host(port: Option<Port>) -> Host {
        Host { side: Side::Near, facts: HostFacts { port, ..HostFacts::default() } }
    }

    #[test]
    fn a_path_of_ethernet_ports_has_that_medium_and_their_speeds() {
        let port = Port {
            is_ethernet: true,
            speed_mbps: Some(10_000),
            driver: "ixgbe".to_owned(),
            ..Port::default()
        };
        let made_up = Port { is_virtual: true, ..port.clone() };
        let found = hardware(&[host(Some(port)), host(Some(made_up))]);
        assert_eq!(found.medium, Some(Medium::Ethernet));
        assert_eq!(found.links.parts, [Link::Ethernet(Rate(10_000_000_000))]);
        assert_eq!(found.card.as_deref(), Some("ixgbe ixgbe"));
        assert!(found.all_drivers);
        let ipoib = Port::default();
        assert!(!hardware(&[host(Some(ipoib.clone()))]).all_drivers);
        assert_eq!(hardware(&[host(Some(ipoib))]).medium, Some(Medium::Network));
        assert_eq!(hardware(&[host(None)]).medium, Some(Medium::Network));
    }
}
