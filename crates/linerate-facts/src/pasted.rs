//! The facts of a host, where only pasted output of commands is known.

use super::nic::Nic;
use super::route::Route;
use super::{HostFacts, Inventory, Port};

/// The facts of a host as a run records them, from an incomplete inventory. The port of the path is the one with the
/// name `port`; else the only port that is up with a wire and a known speed. If there is neither, the port is unknown.
pub fn host_of(inventory: &Inventory, name: &str, port: Option<&str>) -> HostFacts {
    let nics = &inventory.network.nics;
    let chosen = match port {
        Some(name) => nics.iter().find(|nic| nic.name == name),
        None => only(nics.iter().filter(|nic| carries(nic))),
    };
    let mut facts = HostFacts {
        name: name.to_owned(),
        nodes: inventory.processors.nodes.len() as u32,
        ..HostFacts::default()
    };
    if let Some(nic) = chosen {
        facts.port = Some(port_of(nic));
        facts.route = Some(Route {
            ports: vec![Nic { index: nic.index.max(1), ..nic.clone() }],
            pci: inventory.pci.clone(),
            ..Route::default()
        });
    }
    facts
}

fn carries(nic: &Nic) -> bool {
    !nic.is_virtual && nic.link.speed.is_some() && nic.down.is_empty()
}

fn only<'a>(mut nics: impl Iterator<Item = &'a Nic>) -> Option<&'a Nic> {
    let first = nics.next();
    first.filter(|_| nics.next().is_none())
}

fn port_of(nic: &Nic) -> Port {
    Port {
        name: nic.name.clone(),
        driver: nic.driver.clone(),
        speed_mbps: nic.link.speed.map(|speed| speed.0 / 1_000_000),
        mtu: nic.mtu,
        is_ethernet: nic.kind != "ipoib",
        is_virtual: nic.is_virtual,
        node: nic.node,
        served_by: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Rate;

    fn nic(name: &str, speed: Option<u64>) -> Nic {
        let mut nic = Nic { name: name.to_owned(), ..Nic::default() };
        nic.link.speed = speed.map(Rate);
        nic
    }

    fn chosen(nics: Vec<Nic>, port: Option<&str>) -> Option<String> {
        let mut inventory = Inventory::default();
        inventory.network.nics = nics;
        host_of(&inventory, "a", port).port.map(|port| port.name)
    }

    #[test]
    fn the_port_is_the_only_one_that_can_carry_or_the_named_one() {
        let fast = || nic("eth0", Some(10_000_000_000));
        let slow = || nic("eth1", Some(1_000_000_000));
        assert_eq!(chosen(vec![fast(), nic("eth2", None)], None).as_deref(), Some("eth0"));
        assert_eq!(chosen(vec![fast(), slow()], None), None);
        assert_eq!(chosen(vec![fast(), slow()], Some("eth1")).as_deref(), Some("eth1"));
        assert_eq!(chosen(vec![fast()], Some("eth7")), None);
        assert_eq!(chosen(Vec::new(), None), None);
    }
}
