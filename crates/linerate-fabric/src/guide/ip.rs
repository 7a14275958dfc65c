//! Checks of IP over InfiniBand: an interface, its address and its MTU.

use super::{DevicePort, Finding, Scene, ok, unknown, wrong};
use linerate_facts::advice::{Advice, Step};
use linerate_facts::infiniband::Ipoib;
use linerate_facts::nic::Nic;
use linerate_facts::odd::infiniband::driver::load;
use linerate_facts::odd::infiniband::ipoib::connect;
use linerate_units::shell::word;

/// A private address for the advice that shows how to set one.
const EXAMPLE: &str = "192.168.66.1/24";

/// Checks whether the port has an IPoIB interface that is up and has an address.
pub(super) fn interface(scene: &Scene<'_>, own: DevicePort<'_>) -> Finding {
    let (device, port) = own;
    let all = &scene.inventory.infiniband.interfaces;
    let is_own = |own: &&Ipoib| {
        !own.pci.is_empty() && own.pci == device.pci && own.port.is_none_or(|p| p == port.number)
    };
    let mut found: Vec<&Ipoib> = all.iter().filter(is_own).collect();
    found.sort_by_key(|interface| interface.addresses.as_ref().is_none_or(Vec::is_empty));
    let Some(interface) = found.first() else {
        let what =
            format!("no interface of IP over InfiniBand for {}", super::name((device, port)));
        return wrong("ipoib-none", what, load("ib_ipoib"));
    };
    let nics = &scene.inventory.network.nics;
    let nic = nics.iter().find(|nic| nic.name == interface.name);
    judge(interface, nic)
}

fn judge(interface: &Ipoib, nic: Option<&Nic>) -> Finding {
    let name = word(&interface.name);
    if nic.is_some_and(|nic| !nic.up) {
        let set = |to: &str| format!("sudo ip link set {name} {to}");
        let advice =
            Advice::new("switch the interface on").set(None, set("up")).undo_on(None, set("down"));
        return wrong("ipoib-down", format!("{} is down", interface.name), advice);
    }
    match interface.addresses.as_deref() {
        Some([]) => {
            let set = |verb: &str| format!("sudo ip address {verb} {EXAMPLE} dev {name}");
            let step = Step::set(None, set("add"))
                .about("another number on each host, in a network that no other interface has");
            let advice = Advice::new("give it an address").step(step).undo_on(None, set("del"));
            wrong("ipoib-no-address", format!("{} has no address", interface.name), advice)
        }
        Some(addresses) => addressed(interface, addresses, nic),
        None => {
            let advice = Advice::new("see its addresses")
                .on(None, format!("ip -br address show dev {name}"));
            unknown(format!("the addresses of {} are unknown", interface.name), advice)
        }
    }
}

/// The check of an interface that works; with advice if connected mode may make it faster.
fn addressed(interface: &Ipoib, addresses: &[String], nic: Option<&Nic>) -> Finding {
    let mtu = nic.and_then(|nic| nic.mtu);
    let mut parts = vec![format!("{} has {}", interface.name, addresses.join(", "))];
    parts.extend((!interface.mode.is_empty()).then(|| format!("{} mode", interface.mode)));
    parts.extend(mtu.map(|mtu| format!("MTU {mtu}")));
    if interface.mode == "datagram" && interface.connectable == Some(false) {
        parts.push("its driver has no connected mode".to_owned());
    }
    let better = mtu.and_then(|mtu| connect(interface, mtu));
    ok(parts.join(", ")).fix(better.unwrap_or_default())
}
