//! The kind of an RDMA device: a card, a virtual function of one, or software.

use std::collections::BTreeMap;

use linerate_facts::infiniband::{IbDevice, VirtualOf};

use super::super::pci::DEVICES;
use super::super::{Reader, numbered};

//= torvalds/linux, include/uapi/rdma/siw-abi.h: SIW_NODE_DESC_COMMON; drivers/infiniband/sw/rxe/rxe_verbs.c
/// Descriptions (`node_desc`) of software devices.
pub(crate) const SOFTWARE: [&str; 2] = ["Software iWARP stack", "rxe"];

impl Reader<'_> {
    /// Returns the card of which the PCI function `pci` is a virtual function.
    pub(super) fn virtual_of(&self, pci: &str) -> Option<VirtualOf> {
        if pci.is_empty() {
            return None;
        }
        Some(VirtualOf { pci: self.slot_name(&format!("{DEVICES}/{pci}/physfn"))?, number: None })
    }

    /// Sets the numbers that virtual functions have on their card.
    pub(super) fn number_functions(&self, devices: &mut [IbDevice]) {
        let mut numbers: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
        for device in devices {
            if let Some(own) = &mut device.virtual_of {
                let all = numbers.entry(own.pci.clone());
                let all = all.or_insert_with(|| self.functions_of(&own.pci));
                own.number = all.get(&device.pci).copied();
            }
        }
    }

    /// Returns the virtual functions of a card by PCI address, with their numbers.
    fn functions_of(&self, card: &str) -> BTreeMap<String, u32> {
        let folder = format!("{DEVICES}/{card}");
        let names = self.machine.list(&folder).unwrap_or_default();
        let numbers = numbered(&names, "virtfn").into_iter();
        let function =
            |number| Some((self.slot_name(&format!("{folder}/virtfn{number}"))?, number));
        numbers.filter_map(function).collect()
    }

    /// Returns whether a device is a software device (rxe, siw). A card has a `device` link, a model or a board. In
    /// older kernels a software device has the `device` link of its network port; then it is identified by the file
    /// `parent` (rxe) or by its description (siw).
    pub(super) fn is_soft_device(&self, folder: &str) -> bool {
        let Ok(files) = self.machine.list(folder) else {
            return false;
        };
        let has = |name: &str| files.iter().any(|file| file == name);
        let is_card = ["device", "hca_type", "board_id"].into_iter().any(has);
        let description = self.optional_line(&format!("{folder}/node_desc"));
        !is_card || has("parent") || SOFTWARE.contains(&description.as_str())
    }
}
