//! Checks of the card and its driver.

use super::{Finding, Scene, infiniband_ports, ok, unknown, wrong};
use linerate_facts::Inventory;
use linerate_facts::advice::{Advice, Step};
use linerate_facts::board::{self, Switched};
use linerate_facts::infiniband::{IbDevice, Layer};
use linerate_facts::odd::infiniband::driver::{load, messages};
use linerate_facts::pci::Device;
use linerate_units::shell::word;

/// The kernel module that makes RDMA devices for the cards of a driver. Other drivers make them themselves.
//= torvalds/linux, drivers/infiniband/hw/mlx4/Kconfig and mlx5/Kconfig: MLX4_INFINIBAND selects MLX4_CORE; MLX5_INFINIBAND
//= depends on MLX5_CORE
const RDMA: [(&str, &str); 2] = [("mlx4_core", "mlx4_ib"), ("mlx5_core", "mlx5_ib")];

/// Checks whether the PCI bus has a card that may speak InfiniBand.
pub(super) fn seen(scene: &Scene<'_>) -> Finding {
    let cards = candidates(scene);
    if scene.inventory.pci.is_empty() && cards.is_empty() {
        let look = Step::on(None, "lspci -nn").about("the cards");
        let advice = Advice::new("see whether the bus lists a card").step(look);
        return unknown("the PCI bus could not be read", advice);
    }
    let able: Vec<&&Device> = cards.iter().filter(|card| may_speak(card)).collect();
    if !able.is_empty() {
        let words: Vec<String> = able.iter().map(|card| in_words(scene, card)).collect();
        return ok(words.join("; "));
    }
    if let Some(card) = cards.first() {
        let what = format!("{} has Ethernet ports only", in_words(scene, card));
        let advice = Advice::new(
            "RoCE needs no subnet manager and none of these checks; use a card with InfiniBand",
        );
        return wrong("ib-no-card", what, advice);
    }
    let software = scene.inventory.infiniband.devices.iter().find(|d| d.software);
    let what = match software {
        Some(device) => {
            format!("no card for InfiniBand; {} is made by software on Ethernet", device.name)
        }
        None => "no card for InfiniBand on the PCI bus".to_owned(),
    };
    let look = "lspci -nn | grep -i -e infiniband -e mellanox";
    let advice = match scene.inventory.machine.platform.guest {
        Some(true) => {
            "this is a virtual machine: hand it a card of its host, or a virtual function of one (PCI passthrough), or \
             take a type of machine that has one; then look again"
        }
        Some(false) => "seat the card in its slot, or try another slot; then look again",
        None => {
            "seat the card in its slot, or try another slot; a virtual machine is handed a card by its host (PCI \
             passthrough); then look again"
        }
    };
    wrong("ib-no-card", what, Advice::new(advice).on(None, look))
}

/// The functions on the PCI bus that may be InfiniBand cards, by their class, maker or RDMA device.
fn candidates<'a>(scene: &Scene<'a>) -> Vec<&'a Device> {
    let rdma = &scene.inventory.infiniband.devices;
    let has_ports = |function: &Device| {
        let address = function.address.to_string();
        rdma.iter().any(|device| device.pci == address && speaks_infiniband(device))
    };
    let all = scene.inventory.pci.iter();
    all.filter(|function| board::is_candidate(function) || has_ports(function)).collect()
}

fn speaks_infiniband(device: &IbDevice) -> bool {
    device.ports.iter().any(|port| port.layer == Some(Layer::InfiniBand))
}

/// Whether a card belongs to a family that has InfiniBand, or to an unknown one.
fn may_speak(card: &Device) -> bool {
    board::family(card.vendor, card.device).is_none_or(|family| family.has_infiniband)
}

/// A card in words: `0000:03:00.0 ConnectX-3 (MCX354A-FCBT)`.
fn in_words(scene: &Scene<'_>, card: &Device) -> String {
    let mut words = vec![card.address.to_string()];
    words.extend(board::family(card.vendor, card.device).map(|family| family.name.to_owned()));
    let device = device_of(scene, card);
    let part = device.and_then(|device| board::of(&device.board));
    words.extend(part.map(|board| format!("({})", board.part)));
    if words.len() == 1 {
        words.push(card.function().to_owned());
    }
    words.join(" ")
}

fn device_of<'a>(scene: &Scene<'a>, card: &Device) -> Option<&'a IbDevice> {
    let address = card.address.to_string();
    scene.inventory.infiniband.devices.iter().find(|device| device.pci == address)
}

/// Checks whether a driver has made InfiniBand ports for the card, and whether programs may use them.
pub(super) fn driven(scene: &Scene<'_>) -> Finding {
    let ports = infiniband_ports(scene.inventory);
    let Some((device, _)) = ports.first() else {
        return no_ports(scene);
    };
    let rdma = &scene.inventory.infiniband;
    for (module, users, use_) in [
        ("ib_umad", &rdma.managed, "subnet managers and their tools"),
        ("ib_uverbs", &rdma.opened, "programs"),
    ] {
        let Some(users) = users else {
            let advice = Advice::new("see whether the module is loaded")
                .on(None, format!("lsmod | grep {module}"));
            return unknown(format!("whether {module} is loaded is unknown"), advice);
        };
        if !users.contains(&device.name) {
            let what = format!(
                "{} is there, but {module} is not loaded: {use_} cannot open it",
                device.name
            );
            return wrong("ib-no-module", what, load(module));
        }
    }
    let driver = driver_of(scene, device);
    ok(format!("{driver} has {}; ib_umad and ib_uverbs are loaded", device.name))
}

fn driver_of<'a>(scene: &Scene<'a>, device: &IbDevice) -> &'a str {
    let function = scene.inventory.pci.iter().find(|d| d.address.to_string() == device.pci);
    match function.map(|function| function.driver.as_str()) {
        None | Some("") => "a driver",
        Some(driver) => driver,
    }
}

/// The check if no port of the host speaks InfiniBand: explains why.
fn no_ports(scene: &Scene<'_>) -> Finding {
    let able: Vec<&Device> = candidates(scene).into_iter().filter(|card| may_speak(card)).collect();
    let hardware =
        able.iter().filter_map(|card| device_of(scene, card)).find(|d| !d.ports.is_empty());
    if let Some(device) = hardware {
        return other_layer(scene, device);
    }
    let undriven = able.first().and_then(|card| {
        let address = card.address.to_string();
        let mut odd = scene.oddities.iter();
        odd.find(|odd| odd.id == "ib-no-driver" && odd.subject == address)
    });
    if let Some(odd) = undriven {
        return odd.clone();
    }
    able.first().map_or_else(
        || {
            let advice = Advice::new("see which devices there are").on(None, "linerate host");
            unknown("no card is known", advice)
        },
        |card| no_device(card),
    )
}

/// The check of a device none of whose ports is InfiniBand: all are Ethernet, or unknown.
fn other_layer(scene: &Scene<'_>, device: &IbDevice) -> Finding {
    if device.ports.iter().any(|port| port.layer.is_none()) {
        let layers =
            format!("grep . /sys/class/infiniband/{}/ports/*/link_layer", word(&device.name));
        let advice = Advice::new("see what its ports are").on(None, layers);
        return unknown(format!("the link layer of {} is unknown", device.name), advice);
    }
    let what =
        format!("the ports of {} are Ethernet (RoCE), which needs no subnet manager", device.name);
    let advice = switch(scene.inventory, device, Layer::InfiniBand).unwrap_or_else(|| {
        let look = format!("sudo mstconfig -d {} query", word(&device.pci));
        Advice::new("see whether this board has InfiniBand (LINK_TYPE_P1)").on(None, look)
    });
    wrong("ib-ethernet", what, advice)
}

/// Advice that sets the first port of a device to the link layer `to`; `None` if the board is not known to have both
/// layers.
pub(crate) fn switch(inventory: &Inventory, device: &IbDevice, to: Layer) -> Option<Advice> {
    board::of(&device.board)?;
    // A virtual function has the link layer of its card, and cannot be switched by itself.
    let family =
        board::family_of(&inventory.pci, device).filter(|_| device.virtual_of.is_none())?;
    let (pci, port) = (word(&device.pci), device.ports.first()?.number);
    Some(match family.switched {
        Switched::Driver => {
            let word = |layer| {
                if layer == Layer::InfiniBand { "ib" } else { "eth" }
            };
            let other = if to == Layer::InfiniBand { Layer::Ethernet } else { Layer::InfiniBand };
            let set = |layer| {
                format!(
                    "echo {} | sudo tee /sys/bus/pci/devices/{pci}/mlx4_port{port}",
                    word(layer)
                )
            };
            Advice::new("set the port, until the driver is loaded again")
                .set(None, set(to))
                .undo_on(None, set(other))
        }
        Switched::Firmware => {
            let [to, back] = if to == Layer::InfiniBand { [1, 2] } else { [2, 1] };
            let set = |layer| {
                Step::act(None, format!("sudo mstconfig -d {pci} set LINK_TYPE_P{port}={layer}"))
            };
            Advice::new("set the port in the firmware; it changes at the next boot")
                .step(set(to))
                .undo(set(back).about("and boot again"))
        }
    })
}

/// The check of a card that has a driver, but no RDMA device.
fn no_device(card: &Device) -> Finding {
    let (address, driver) = (card.address, card.driver.as_str());
    if driver == "vfio-pci" {
        let what = format!("vfio-pci has {address}: the card is for a virtual machine");
        return wrong("ib-no-driver", what, Advice::new("run the checks in that virtual machine"));
    }
    let what = format!("{driver} has {address}, but made no RDMA device of it");
    let advice = match RDMA.iter().find(|(name, _)| *name == driver) {
        Some((_, module)) => load(module).step(messages()),
        None => Advice::new("read what the driver says").step(messages()),
    };
    wrong("ib-no-driver", what, advice)
}
