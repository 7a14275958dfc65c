//! Virtual functions of cards, and the commands by which their host sets them.

use crate::advice::{Advice, Effect, Kept, Step};
use crate::board::{MELLANOX, is_virtual};
use crate::infiniband::{Guid, IbDevice, IbPort, VirtualOf};
use crate::{Inventory, pci};
use linerate_units::shell::word;

/// The PCI function behind an RDMA device.
pub(super) enum Function<'a> {
    /// Not a virtual function: it is a card, or one of the card's own functions.
    Card,
    /// A virtual function of a card of this host.
    Virtual(&'a VirtualOf),
    /// A virtual function of a card that only the host of this guest sees.
    Lent,
}

impl<'a> Function<'a> {
    pub(super) fn of(inventory: &Inventory, device: &'a IbDevice) -> Self {
        if let Some(own) = &device.virtual_of {
            return Self::Virtual(own);
        }
        let function = on_bus(inventory, &device.pci);
        let lent = function.is_some_and(|f| f.vendor == MELLANOX && is_virtual(f.device));
        if lent { Self::Lent } else { Self::Card }
    }
}

/// Driver of the PCI function that a device sits on; empty when unknown.
pub(super) fn driver<'a>(inventory: &'a Inventory, device: &IbDevice) -> &'a str {
    on_bus(inventory, &device.pci).map_or("", |function| &function.driver)
}

/// Whether a device speaks Omni-Path, whose managers and tools are others.
pub(super) fn is_omni_path(inventory: &Inventory, device: &IbDevice) -> bool {
    driver(inventory, device) == "hfi1" || device.name.starts_with("hfi1_")
}

fn on_bus<'a>(inventory: &'a Inventory, pci: &str) -> Option<&'a pci::Device> {
    let address: pci::Address = pci.parse().ok()?;
    inventory.pci.iter().find(|device| device.address == address)
}

/// Sets a function from the host that owns it, as far as that is known: `sudo ip link set dev ib0 vf 3 SETTING`.
pub(super) fn set(inventory: &Inventory, device: &IbDevice, setting: &str, old: &str) -> Advice {
    let owner = Owner::of(inventory, device);
    let set = |to: &str| owner.set(|function| format!("sudo ip link set dev {function} {to}"));
    let what = format!("set this virtual function to {setting} on the host that owns it");
    let advice = Advice::new(what).step(set(setting));
    match owner {
        Owner::Unknown(_) => advice,
        _ => advice.undo(set(old)),
    }
}

/// The arguments by which `ip link` finds a virtual function.
enum Owner<'a> {
    /// Network port and number of the function: `ib0 vf 3`.
    Port(&'a str, u32),
    /// A port of this card, with this number; the network port is unknown.
    Card(&'a str, u32),
    /// The function has no known name; the step shows how to find it.
    Unknown(Step),
}

impl<'a> Owner<'a> {
    fn of(inventory: &'a Inventory, device: &'a IbDevice) -> Self {
        let Some(own) = &device.virtual_of else {
            let step =
                Step::on(None, "ip link show").about("on the host of this guest, its functions");
            return Self::Unknown(step);
        };
        let is_known = !own.pci.is_empty();
        let nics = inventory.network.nics.iter();
        let ports = nics.filter(|nic| is_known && nic.pci == own.pci);
        let port = ports.min_by_key(|nic| nic.kind != "ipoib");
        match (port, own.number) {
            (Some(port), Some(number)) => Self::Port(&port.name, number),
            (None, Some(number)) if is_known => Self::Card(&own.pci, number),
            _ => {
                let card = if is_known { &own.pci } else { "the card" };
                let about = format!("the functions of the IPoIB port of {card}");
                Self::Unknown(Step::on(None, "ip link show").about(about))
            }
        }
    }

    /// A command that changes the function, or the one that finds it.
    fn set(&self, command: impl Fn(&str) -> String) -> Step {
        let effect = match self {
            Self::Unknown(_) => Effect::Look,
            _ => Effect::Set,
        };
        Step { effect, ..self.step(command) }
    }

    /// A command for the function.
    fn step(&self, command: impl Fn(&str) -> String) -> Step {
        match self {
            Self::Port(port, number) => {
                Step::on(None, command(&format!("{} vf {number}", word(port))))
            }
            Self::Card(pci, number) => Step::on(
                None,
                format!(
                    "for port in $(ls /sys/bus/pci/devices/{}/net); do {}; done",
                    word(pci),
                    command(&format!("$port vf {number}"))
                ),
            ),
            Self::Unknown(step) => step.clone(),
        }
    }
}

/// Advice that gives a function a GUID.
pub(super) fn give_guid(inventory: &Inventory, device: &IbDevice, port: &IbPort) -> Advice {
    match Function::of(inventory, device) {
        Function::Virtual(own) if driver(inventory, device) == "mlx4_core" => {
            by_manager(inventory, own, port)
        }
        Function::Virtual(_) | Function::Lent => by_host(inventory, device, port),
        Function::Card => {
            let query = format!("sudo mstflint -d {} query", word(&device.pci));
            Advice::new("see which GUIDs its firmware has").on(None, query)
        }
    }
}

/// Advice for mlx4: lets the subnet manager choose a GUID.
fn by_manager(inventory: &Inventory, own: &VirtualOf, port: &IbPort) -> Advice {
    let devices = &inventory.infiniband.devices;
    let card = devices.iter().find(|card| card.pci == own.pci);
    let card = card.map_or("mlx4_0", |card| card.name.as_str());
    let entries =
        format!("/sys/class/infiniband/{}/iov/ports/{}/admin_guids", word(card), port.number);
    let Some(number) = own.number else {
        return Advice::new(
            "write 0 to the entry of this function: the manager chooses a GUID then",
        )
        .step(Step::on(None, format!("grep -H . {entries}/*")).about("the entries"));
    };
    // Entry 0 is the card's own.
    let entry = format!("{entries}/{}", u64::from(number).saturating_add(1));
    let kept = Kept::files(&entry, "guid-before.txt");
    Advice::new("have the manager choose a GUID for it").keeping(
        None,
        kept,
        format!("echo 0 | sudo tee {entry}"),
    )
}

/// Advice for mlx5: the host gives the function a unique GUID, and attaches it again.
fn by_host(inventory: &Inventory, device: &IbDevice, port: &IbPort) -> Advice {
    const WHAT: &str =
        "give it a GUID that no other port on the network has, on the host that owns it";
    // The first byte marks a GUID that is administered locally.
    const RANDOM: &str = "guid=02:00$(od -An -N6 -tx1 /dev/urandom | tr ' ' :)";
    let owner = Owner::of(inventory, device);
    let set = |to: &str| owner.set(|function| format!("sudo ip link set dev {function} {to}"));
    let give = owner.set(|function| {
        format!("{RANDOM}; sudo ip link set dev {function} node_guid $guid port_guid $guid")
    });
    let old = |guid: Option<Guid>| guid.unwrap_or(Guid::NONE).bytes();
    let [node, own] = [device.node_guid, port.guid()].map(old);
    let back = set(&format!("node_guid {node} port_guid {own}"));
    let advice = Advice::new(WHAT).step(give);
    let again = "then attach the function to its driver again";
    let is_known = !matches!(owner, Owner::Unknown(_));
    let advice = if is_known { advice.undo(back) } else { advice };
    if device.pci.is_empty() {
        return advice.step(Step::by_hand(again));
    }
    let attach = |verb: &str| {
        let file = format!("/sys/bus/pci/drivers/mlx5_core/{verb}");
        Step::act(None, format!("echo {} | sudo tee {file}", word(&device.pci)))
    };
    let attached = [attach("unbind").about(again), attach("bind").about("and")];
    let undo = attached.iter().filter(|_| is_known);
    let advice = undo.cloned().fold(advice, Advice::undo);
    attached.into_iter().fold(advice, Advice::step)
}
