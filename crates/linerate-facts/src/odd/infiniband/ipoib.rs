//! Rule about interfaces of IP over InfiniBand that send small packets.

use super::super::Finding;
use crate::Inventory;
use crate::advice::{Advice, Effect, Step};
use crate::infiniband::Ipoib;
use linerate_units::shell::word;

/// Largest MTU in connected mode, in bytes.
//= torvalds/linux, Documentation/infiniband/ipoib.rst: "the MTU can be increased up to the maximum IP packet size of 64K"
const CONNECTED_MTU: u32 = 65_520;

/// Interfaces that are up and send smaller packets than connected mode allows, where their driver supports that mode.
pub(in super::super) fn small_packets(inventory: &Inventory) -> Vec<Finding> {
    let all = inventory.infiniband.interfaces.iter();
    let found = all.filter_map(|interface| {
        let mut nics = inventory.network.nics.iter();
        let nic = nics.find(|nic| nic.name == interface.name && nic.up)?;
        let mtu = nic.mtu?;
        let fix = connect(interface, mtu)?;
        let what = format!(
            "{} mode with packets of {mtu} bytes; connected mode carries {CONNECTED_MTU}",
            interface.mode
        );
        let why = "each packet costs the CPU the same, whatever it carries";
        Some(Finding::new("ipoib-mtu", &interface.name, what).why(why).fix(fix))
    });
    found.collect()
}

/// Advice to use the large packets of connected mode. `None` if they are in use, or if it is unknown whether the driver
/// supports that mode.
pub fn connect(interface: &Ipoib, mtu: u32) -> Option<Advice> {
    let name = word(&interface.name);
    let mode = |to: &str| format!("echo {to} | sudo tee /sys/class/net/{name}/mode");
    let size = |to: u32| Step::set(None, format!("sudo ip link set {name} mtu {to}"));
    let what = format!(
        "packets of up to {CONNECTED_MTU} bytes, where the other hosts are set like this too"
    );
    if mtu >= CONNECTED_MTU {
        return None;
    }
    match (interface.mode.as_str(), interface.connectable) {
        ("connected", _) => Some(Advice::new(what).step(size(CONNECTED_MTU)).undo(size(mtu))),
        ("datagram", Some(true)) => {
            // Return to datagram mode also restores the MTU of the network.
            let set = |to: &str| Step { effect: Effect::Set, ..Step::on(None, mode(to)) };
            let advice = Advice::new(what).step(set("connected")).step(size(CONNECTED_MTU));
            Some(advice.undo(set("datagram")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::Nic;

    fn host(mode: &str, connectable: Option<bool>, mtu: u32, up: bool) -> Inventory {
        let mut host = Inventory::default();
        host.infiniband.interfaces = vec![Ipoib {
            name: "ib0".to_owned(),
            mode: mode.to_owned(),
            connectable,
            ..Ipoib::default()
        }];
        host.network.nics =
            vec![Nic { name: "ib0".to_owned(), mtu: Some(mtu), up, ..Nic::default() }];
        host
    }

    #[test]
    fn datagram_mode_is_odd_where_connected_mode_can_be_set() {
        let [odd] = &small_packets(&host("datagram", Some(true), 2044, true))[..] else {
            panic!("one oddity");
        };
        assert_eq!(
            odd.what,
            "datagram mode with packets of 2044 bytes; connected mode carries 65520"
        );
        assert!(odd.to_do().contains("mtu 65520") && odd.to_do().contains("undo: "));
        // An interface in connected mode with an MTU below the largest.
        assert_eq!(small_packets(&host("connected", None, 65_519, true)).len(), 1);
    }

    #[test]
    fn what_cannot_be_larger_is_not_odd() {
        for silent in [
            // Drivers with their own data path have no connected mode.
            host("datagram", Some(false), 2044, true),
            host("datagram", None, 2044, true),
            host("connected", None, 65_520, true),
            host("datagram", Some(true), 2044, false),
            host("", Some(true), 2044, true),
        ] {
            assert_eq!(small_packets(&silent), []);
        }
    }
}
