//! Reads the tree of devices in /sys. Several kinds of facts use these functions.

use linerate_facts::parse::{sysctl, sysfs};
use linerate_facts::usb::{self, Hub};
use linerate_units::Rate;

use super::Reader;
use crate::read;

/// Most levels of the tree between a device and the PCI function above it.
const LEVELS: usize = 16;

impl Reader<'_> {
    /// Returns the address of the PCI function that is the device in `folder`, or is above it in the tree; empty if
    /// there is none. If `folder` ends in a symbolic link, the kernel resolves `..` from the link's target.
    pub(super) fn pci_above(&self, folder: &str) -> String {
        let mut place = folder.to_owned();
        for _ in 0..LEVELS {
            if let Some(slot) = self.slot_name(&place) {
                return slot;
            }
            place.push_str("/..");
        }
        String::new()
    }

    /// Returns the address of the PCI function in `folder`; `None` if it is not a PCI function.
    pub(super) fn slot_name(&self, folder: &str) -> Option<String> {
        let name = read(self.machine, &format!("{folder}/uevent"), |text| {
            Ok(sysctl::value_text(text, "PCI_SLOT_NAME"))
        });
        name.ok().flatten()
    }

    /// Returns the signalling rate of a USB device, from its file `speed` in Mb/s. `folder` is that of one of its
    /// interfaces.
    pub(super) fn usb_speed(&self, folder: &str) -> Option<Rate> {
        let path = format!("{folder}/../speed");
        let mbps = read(self.machine, &path, sysfs::number_or_none).ok()??;
        mbps.checked_mul(1_000_000).map(Rate)
    }

    /// Returns the USB hubs between an adapter's USB interface and the controller, the nearest to the adapter first.
    pub(super) fn usb_hubs(&self, interface: &str) -> Vec<Hub> {
        let hub = |name: String| {
            let path = format!("/sys/bus/usb/devices/{name}/speed");
            let mbps = read(self.machine, &path, sysfs::number_or_none).ok().flatten();
            Hub { name, speed: mbps.and_then(|m| m.checked_mul(1_000_000)).map(Rate) }
        };
        usb::hubs_above(interface).into_iter().map(hub).collect()
    }

    /// Returns the NUMA node of a PCI function; `None` if it has no node or the node is unknown.
    pub(super) fn node_of(&self, pci: &str) -> Option<u32> {
        if pci.is_empty() {
            return None;
        }
        let path = format!("/sys/bus/pci/devices/{pci}/numa_node");
        let node = read(self.machine, &path, sysfs::number_or_none).ok()??;
        u32::try_from(node).ok()
    }

    /// Returns the first line of a file that some devices lack; empty if it cannot be read.
    pub(super) fn optional_line(&self, path: &str) -> String {
        let line = read(self.machine, path, |text| Ok(sysctl::line(text)));
        line.unwrap_or_default()
    }
}
