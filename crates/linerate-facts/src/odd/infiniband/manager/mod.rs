//! Rule about InfiniBand ports with a working wire and without an address: does a subnet manager serve their network,
//! and why has it not set them up?
//!
//! A second manager on a network can replace the first. So the advice is to start one only if there is no sign of
//! another.

use super::super::Finding;
use super::function::{Function, driver, give_guid, is_omni_path};
use super::{Odd, all, at, is_infiniband, limiting, ports};
use crate::Inventory;
use crate::advice::{Advice, Step, save};
use crate::infiniband::{Guid, IbDevice, IbPort, LinkState, PhysicalState, commands_of_manager};
use linerate_units::shell::word;

/// An RDMA device and one of its ports.
type DevicePort<'a> = (&'a IbDevice, &'a IbPort);

/// Ports with a working wire that no subnet manager has set up. RoCE and iWARP have no subnet manager.
pub(in crate::odd) fn not_set_up(inventory: &Inventory) -> Vec<Finding> {
    limiting(ports(inventory, "unserved-port", |device, port| {
        if !is_wired(port) {
            return None;
        }
        match port.state? {
            LinkState::Initializing => Some(initializing(inventory, device, port)),
            LinkState::Armed => Some((
                "Armed: the port was set up but not started".to_owned(),
                "the subnet manager stopped half-way, or no packet has arrived yet",
                Advice::new("read the log of the subnet manager on the host where it runs"),
            )),
            _ => None,
        }
    }))
}

/// Whether a port speaks InfiniBand or Omni-Path and its wire works.
fn is_wired(port: &IbPort) -> bool {
    port.physical == Some(PhysicalState::LinkUp) && is_infiniband(port)
}

/// Whether there is a sign that a subnet manager serves a port's network.
fn is_served(port: &IbPort) -> bool {
    is_wired(port) && (port.is_active() || port.manager().is_some())
}

/// Whether two ports share one wire, as a port of a card and the same port of its virtual functions do.
fn share_a_wire(a: DevicePort<'_>, b: DevicePort<'_>) -> bool {
    wire(a).is_some_and(|own| wire(b) == Some(own))
}

/// What identifies a port's wire: PCI address of the card, and number of the port.
fn wire((device, port): DevicePort<'_>) -> Option<(&str, u32)> {
    let own = device.virtual_of.as_ref();
    let card = own.map_or(&device.pci, |own| &own.pci);
    (!card.is_empty()).then_some((card, port.number))
}

/// Whether `a` and `b` are the same port of the same device.
fn is_same(a: DevicePort<'_>, b: DevicePort<'_>) -> bool {
    a.0.name == b.0.name && a.1.number == b.1.number
}

fn name((device, port): DevicePort<'_>) -> String {
    format!("{} port {}", device.name, port.number)
}

/// The sign that a manager serves the network of a port, and an active port through which the manager can be queried.
fn manager_of<'a>(
    inventory: &'a Inventory,
    own: DevicePort<'_>,
) -> Option<(String, Option<DevicePort<'a>>)> {
    let served = |port: &DevicePort<'_>| is_served(port.1) && share_a_wire(own, *port);
    let active = all(inventory).filter(served).max_by_key(|(_, port)| port.is_active());
    let requested = active.filter(|(_, port)| port.is_active());
    match (own.1.manager(), active) {
        (Some(lid), _) => Some((format!("LID {lid}"), requested)),
        (None, Some(port)) => {
            Some((format!("{} on the same wire is served", name(port)), requested))
        }
        (None, None) => None,
    }
}

/// A port on another wire of this host whose network a manager serves.
fn other_served_port<'a>(inventory: &'a Inventory, own: DevicePort<'_>) -> Option<DevicePort<'a>> {
    let mut others = all(inventory).filter(|port| !share_a_wire(own, *port) && is_served(port.1));
    others.find(|port| !is_same(*port, own))
}

/// A port on another wire of this host that has a subnet manager bound to it. This manager serves only the network of
/// that port.
pub fn managed_beside<'a>(inventory: &'a Inventory, own: DevicePort<'_>) -> Option<DevicePort<'a>> {
    let mut others =
        all(inventory).filter(|port| !share_a_wire(own, *port) && port.1.manages == Some(true));
    others.find(|port| !is_same(*port, own))
}

fn initializing(inventory: &Inventory, device: &IbDevice, port: &IbPort) -> Odd {
    const WHAT: &str = "Initializing: the wire works, but the port has no address yet";
    let own = (device, port);
    let manager = manager_of(inventory, own);
    if device.node_guid == Some(Guid::NONE) || port.guid() == Some(Guid::NONE) {
        let served = manager.map_or(String::new(), |(by, _)| {
            format!(". A subnet manager serves this network ({by})")
        });
        return (
            format!("Initializing: the wire works, but this function has no GUID{served}"),
            "a subnet manager does not set up a port without a GUID",
            give_guid(inventory, device, port),
        );
    }
    if let Some((by, requested)) = manager {
        let what = format!("{WHAT}. A subnet manager serves this network ({by})");
        return (what, PASSED_OVER, ask(inventory, device, requested));
    }
    if let Function::Lent = Function::of(inventory, device) {
        let why =
            "the subnet manager has not reached this virtual function, or its network has none";
        let fix = Advice::new("see whether the card's own port is active")
            .step(Step::on(None, "ibstat").about("on the host of this guest"));
        return (WHAT.to_owned(), why, fix);
    }
    if let Some(other) = other_served_port(inventory, own) {
        let what = format!("{WHAT}. A subnet manager serves the network of {}", name(other));
        return (what, BESIDE, bind(inventory, device, port));
    }
    if let Some(other) = managed_beside(inventory, own) {
        let what = format!("{WHAT}. A subnet manager of this host is bound to {}", name(other));
        return (what, BOUND, bind(inventory, device, port));
    }
    (WHAT.to_owned(), NONE, start(inventory, device, port))
}

const PASSED_OVER: &str = "the manager has not reached this port yet, ignores it, or has stopped since; a second manager on the same \
                           network would do damage";
const BESIDE: &str = "this port's network has no manager, or the manager runs on this host and is bound to the other \
                      port: it serves the network of one port only";
const BOUND: &str =
    "a manager serves the network of one port only, and the cable is in another one";
const NONE: &str = "no subnet manager runs on this fabric, or it does not reach this port";

/// Advice to find out why a subnet manager does not set up a port.
fn ask(inventory: &Inventory, device: &IbDevice, requested: Option<DevicePort<'_>>) -> Advice {
    let step = if is_omni_path(inventory, device) {
        Step::on(None, "opafabricinfo")
    } else {
        match requested {
            Some((device, port)) => Step::on(None, format!("sudo sminfo {}", at(device, port))),
            None => Step::on(None, "sudo sminfo").about("on a host whose port is active"),
        }
    };
    let is_virtual = !matches!(Function::of(inventory, device), Function::Card);
    let what = if is_virtual && driver(inventory, device) == "mlx5_core" {
        "see where the manager runs, read its log there, and see whether it supports virtual functions (virt_enabled 2, \
         NVIDIA's manager only)"
    } else {
        "see where the manager runs, and read its log there"
    };
    Advice::new(what).step(step)
}

/// The port that a manager of this network is bound to: for a virtual function, the port of its card.
fn bound_to<'a>(inventory: &'a Inventory, own: DevicePort<'a>) -> DevicePort<'a> {
    let (device, port) = own;
    let card = all(inventory)
        .filter(|(card, _)| device.virtual_of.as_ref().is_some_and(|own| own.pci == card.pci))
        .find(|(_, other)| other.number == port.number);
    card.unwrap_or(own)
}

/// Adds a command that starts a manager for the network of one port, and a command that ends it. If the GUID is
/// unknown, the commands read it. Without a GUID neither command runs, since the second one would end all managers.
fn manage(advice: Advice, (device, port): DevicePort<'_>, about: &str) -> Advice {
    let known = port.guid().filter(|guid| *guid != Guid::NONE);
    let (read, guid) = if let Some(guid) = known {
        (String::new(), guid.to_string())
    } else {
        let (name, number) = (word(&device.name), port.number);
        let read = format!(
            "guid=$(ibstat {name} {number} | awk '/Port GUID/ {{print $3}}'); [ -n \"$guid\" ] && "
        );
        (read, "$guid".to_owned())
    };
    let [start, end] = commands_of_manager(&guid);
    advice
        .step(Step::set(None, format!("{read}{start}")).about(about))
        .undo_on(None, format!("{read}{end}"))
}

/// Start of the device names that WinOF, the Windows driver, uses.
const OF_WINDOWS: &str = "ibv_device";

/// Advice to start a subnet manager on Windows, which has no Linux commands; `None` for a device of another system.
fn on_windows(device: &IbDevice, port: &IbPort) -> Option<Advice> {
    let guid = port.guid().filter(|guid| *guid != Guid::NONE);
    let command =
        guid.map_or_else(|| "opensm -g GUID".to_owned(), |guid| format!("opensm -g {guid}"));
    let about = "in a console with the rights of an administrator, with the GUID that ibstat shows for the port";
    let advice = Advice::new(
        "start a subnet manager for this port, if none serves the network on its cable",
    );
    let is_windows = device.name.starts_with(OF_WINDOWS);
    is_windows.then(|| advice.step(Step::act(None, command).about(about)))
}

/// Advice to make a subnet manager serve the network of one more port.
fn bind(inventory: &Inventory, device: &IbDevice, port: &IbPort) -> Advice {
    if let Some(advice) = on_windows(device, port) {
        return advice;
    }
    let own = bound_to(inventory, (device, port));
    if is_omni_path(inventory, device) {
        let guid = own.1.guid().filter(|guid| *guid != Guid::NONE);
        let guid = guid.map_or_else(|| "the GUID of this port".to_owned(), |g| g.to_string());
        return add_instance(&guid);
    }
    let seen = format!("sudo linerate fabric --device {}:{}", word(&device.name), port.number);
    let seen = Step::on(None, seen);
    let advice =
        Advice::new("start a manager for this port, if none serves the network on its cable")
            .step(seen.about("the network on the cable, and whether a manager serves it"));
    manage(advice, own, "if no manager is there")
}

/// Advice to add an instance to the Omni-Path manager, which reads its file when it starts.
fn add_instance(guid: &str) -> Advice {
    const FILE: &str = "/etc/opa-fm/opafm.xml";
    // If the copy fails there is no saved file: then the undo fails too, and does not empty the original.
    let saved = Step::on(None, format!("sudo cp {FILE} opafm-before.xml"));
    let back = format!("sudo cp opafm-before.xml {FILE}");
    let was = "if grep -qx active opafm-before.txt; then sudo systemctl restart opafm; else sudo systemctl stop opafm; fi";
    Advice::new("let the manager serve this port too, if none serves what its cable leads to")
        .on(None, "opafabricinfo")
        .step(saved.about("save the old file"))
        .step(save("systemctl is-active opafm", "opafm-before.txt").about("and whether it runs"))
        .step(Step::by_hand(format!("then add an instance with PortGUID {guid} to {FILE}")))
        .step(Step::act(None, "sudo systemctl restart opafm").about("then"))
        .undo(Step::act(None, back).about("in the same directory"))
        .undo(Step::act(None, was).about("then"))
}

/// Advice to start the first subnet manager of a network.
fn start(inventory: &Inventory, device: &IbDevice, port: &IbPort) -> Advice {
    if let Some(advice) = on_windows(device, port) {
        return advice;
    }
    let (service, seen) = if is_omni_path(inventory, device) {
        ("opafm", "opafabricinfo".to_owned())
    } else {
        ("opensm", format!("sudo sminfo {}", at(device, port)))
    };
    let look = Advice::new("start a subnet manager on one host, if the fabric has none")
        .step(Step::on(None, seen).about("see whether one answers already"));
    let own = (device, port);
    let others =
        || all(inventory).filter(|other| !share_a_wire(own, *other) && !is_same(*other, own));
    let has_wired = others().any(|other| is_wired(other.1));
    if service == "opensm" && !has_wired && is_behind_another(inventory, own) {
        let about = "only if none answers: without a GUID it serves the first port";
        return manage(look, bound_to(inventory, own), about);
    }
    let advice = look
        .step(
            Step::set(None, format!("sudo systemctl start {service}"))
                .about("only if none answers; then look again"),
        )
        .undo_on(None, format!("sudo systemctl stop {service}"));
    if service == "opensm" && has_wired {
        let port = bound_to(inventory, own);
        return manage(advice, port, "it serves one port of a host; for this one");
    }
    advice
}

/// Whether the device has another InfiniBand port before this one.
fn is_behind_another(inventory: &Inventory, own: DevicePort<'_>) -> bool {
    let mut card = all(inventory).filter(|other| other.0.name == own.0.name);
    let first = card.find(|other| is_infiniband(other.1));
    first.is_some_and(|first| !is_same(first, own))
}

#[cfg(test)]
mod tests;
