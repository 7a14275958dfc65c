//! Virtual functions of cards, and the commands by which their host sets them.

use crate::facts::Inventory;
use crate::facts::infiniband::{IbDevice, IbPort, VirtualOf};
use crate::facts::pci;

//= torvalds/linux, mlx5_core_pci_table and mlx4_pci_table: the rows marked MLX5_PCI_DEV_IS_VF, MLX4_PCI_DEV_IS_VF
/// Devices of Mellanox that are virtual functions: a guest sees no other sign of it.
const VIRTUAL: [u16; 10] = [
    0x1002, 0x1004, 0x1012, 0x1014, 0x1016, 0x1018, 0x101a, 0x101c, 0x101e, 0xa2d3,
];
const MELLANOX: u16 = 0x15b3;

/// What an RDMA device is a part of.
pub(super) enum Function<'a> {
    /// Of nothing: it is a card, or one of the card's own functions.
    Card,
    /// Of a card of this host.
    Virtual(&'a VirtualOf),
    /// Of a card that only the host of this guest sees.
    Lent,
}

impl<'a> Function<'a> {
    pub(super) fn of(inventory: &Inventory, device: &'a IbDevice) -> Self {
        if let Some(own) = &device.virtual_of {
            return Self::Virtual(own);
        }
        let function = on_bus(inventory, &device.pci);
        let lent = function.is_some_and(|f| f.vendor == MELLANOX && VIRTUAL.contains(&f.device));
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
    inventory
        .pci
        .iter()
        .find(|device| device.address == address)
}

/// `on the host: sudo ip link set dev ib0 vf 3 SETTING`, and what stands for a name that is not known.
pub(super) fn set(inventory: &Inventory, device: &IbDevice, setting: &str) -> String {
    let own = match Function::of(inventory, device) {
        Function::Virtual(own) => own,
        _ => &VirtualOf::default(),
    };
    let ports = inventory
        .network
        .nics
        .iter()
        .filter(|nic| nic.pci == own.pci);
    let port = ports
        .filter(|_| !own.pci.is_empty())
        .min_by_key(|nic| nic.kind != "ipoib");
    let (name, number) = (port.map(|nic| nic.name.as_str()), own.number);
    let number_or_n = number.map_or("N".to_owned(), |number| number.to_string());
    let mut legend = Vec::new();
    if name.is_none() {
        let card = if own.pci.is_empty() {
            "the card"
        } else {
            &own.pci
        };
        legend.push(format!("PF: the IPoIB port of {card}"));
    }
    if number.is_none() {
        legend.push("N: this function in `ip link show dev PF`".to_owned());
    }
    let legend = match legend.as_slice() {
        [] => String::new(),
        legend => format!(" ({})", legend.join("; ")),
    };
    let name = name.unwrap_or("PF");
    format!("on the host: sudo ip link set dev {name} vf {number_or_n} {setting}{legend}")
}

/// How a function gets a GUID.
pub(super) fn give_guid(inventory: &Inventory, device: &IbDevice, port: &IbPort) -> String {
    const UNIQUE: &str = "a GUID that nobody else on the network has";
    let pci = &device.pci;
    match Function::of(inventory, device) {
        Function::Virtual(own) if driver(inventory, device) == "mlx4_core" => {
            let devices = &inventory.infiniband.devices;
            let card = devices.iter().find(|card| card.pci == own.pci);
            let card = card.map_or("mlx4_0", |card| card.name.as_str());
            // Entry 0 is the card's own.
            let entry = own.number.map_or("N+1".to_owned(), |n| {
                u64::from(n).saturating_add(1).to_string()
            });
            format!(
                "on the host: echo GUID | sudo tee /sys/class/infiniband/{card}/iov/ports/{}/admin_guids/{entry}, \
                 with {UNIQUE} (0x02...), or 0 to have the manager choose one",
                port.number
            )
        }
        Function::Virtual(_) | Function::Lent => {
            let setting = "node_guid GUID port_guid GUID";
            let set = set(inventory, device, setting);
            format!(
                "{set}, with {UNIQUE} (as 02:00:00:00:00:00:00:01); then unbind and bind the function {pci} in \
                 /sys/bus/pci/drivers/mlx5_core"
            )
        }
        Function::Card => {
            format!("see which GUIDs its firmware holds: sudo mstflint -d {pci} query")
        }
    }
}
