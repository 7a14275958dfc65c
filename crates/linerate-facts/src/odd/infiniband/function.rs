//! Virtual functions of cards, and the commands by which the host that owns them changes their settings.

use crate::advice::{Advice, Effect, Kept, Step};
use crate::board::{MELLANOX, is_virtual};
use crate::infiniband::{Guid, IbDevice, IbPort, VirtualOf};
use crate::{Inventory, pci};
use linerate_units::shell::word;

/// What the PCI function of an RDMA device is.
pub(super) enum Function<'a> {
    /// A card, or a physical function of a card.
    Card,
    /// A virtual function of a card in this host.
    Virtual(&'a VirtualOf),
    /// A virtual function in a guest. Only the guest's host sees the card.
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

/// Driver of the PCI function that belongs to an RDMA device; empty when unknown.
pub(super) fn driver<'a>(inventory: &'a Inventory, device: &IbDevice) -> &'a str {
    on_bus(inventory, &device.pci).map_or("", |function| &function.driver)
}

/// Whether a device speaks Omni-Path, which has other managers and tools.
pub(super) fn is_omni_path(inventory: &Inventory, device: &IbDevice) -> bool {
    driver(inventory, device) == "hfi1" || device.name.starts_with("hfi1_")
}

fn on_bus<'a>(inventory: &'a Inventory, pci: &str) -> Option<&'a pci::Device> {
    let address: pci::Address = pci.parse().ok()?;
    inventory.pci.iter().find(|device| device.address == address)
}

/// Advice to set a virtual function on the host that owns it, as far as the host is known: `sudo ip link set dev ib0 vf
/// 3 SETTING`.
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

/// How `ip link` identifies a virtual function on the host that owns it.
enum Owner<'a> {
    /// By the network port and the function's number: `ib0 vf 3`.
    Port(&'a str, u32),
    /// By the PCI address of the card and the function's number. The network port is unknown.
    Card(&'a str, u32),
    /// The function cannot be named. The step shows how to find it.
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

    /// A step that changes a setting of the function; if the function is unknown, the step that finds it.
    fn set(&self, command: impl Fn(&str) -> String) -> Step {
        let effect = match self {
            Self::Unknown(_) => Effect::Look,
            _ => Effect::Set,
        };
        Step { effect, ..self.step(command) }
    }

    /// A step with a command for the function; if the function is unknown, the step that finds it.
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

/// Advice to give a device a GUID, by what its PCI function is.
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

/// Advice for virtual functions of mlx4: let the subnet manager choose a GUID.
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
    // Entry 0 belongs to the card itself, so the function's entry is one higher.
    let entry = format!("{entries}/{}", u64::from(number).saturating_add(1));
    let kept = Kept::files(&entry, "guid-before.txt");
    Advice::new("have the manager choose a GUID for it").keeping(
        None,
        kept,
        format!("echo 0 | sudo tee {entry}"),
    )
}

/// Advice for virtual functions of mlx5: the host gives the function a unique GUID, and attaches it again.
fn by_host(inventory: &Inventory, device: &IbDevice, port: &IbPort) -> Advice {
    const WHAT: &str =
        "give it a GUID that no other port on the network has, on the host that owns it";
    // The first byte (02) marks a locally administered GUID.
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
    let attach_again = "then attach the function to its driver again";
    let is_known = !matches!(owner, Owner::Unknown(_));
    let advice = if is_known { advice.undo(back) } else { advice };
    if device.pci.is_empty() {
        return advice.step(Step::by_hand(attach_again));
    }
    let attach = |verb: &str| {
        let file = format!("/sys/bus/pci/drivers/mlx5_core/{verb}");
        Step::act(None, format!("echo {} | sudo tee {file}", word(&device.pci)))
    };
    let attached = [attach("unbind").about(attach_again), attach("bind").about("and")];
    let undo = attached.iter().filter(|_| is_known);
    let advice = undo.cloned().fold(advice, Advice::undo);
    attached.into_iter().fold(advice, Advice::step)
}
