//! The tree of PCI devices, where not all devices may be known.

use linerate_facts::pci::{Device, at, find_parents};

/// Finds the bridge right above each device of a sorted list. A bridge whose own bus is another one is not right
/// above: the one between is missing from the text.
pub(crate) fn link_up(all: &mut [Device]) {
    find_parents(all);
    let direct: Vec<bool> = all.iter().map(|device| is_direct(all, device)).collect();
    for (device, direct) in all.iter_mut().zip(direct) {
        if !direct {
            device.parent = None;
        }
    }
}

fn is_direct(all: &[Device], device: &Device) -> bool {
    let parent = device.parent.and_then(|address| at(all, address));
    let bus = parent.and_then(|parent| parent.buses).map(|buses| buses.secondary);
    // The functions of a card that are virtual may have a bus of their own.
    device.is_virtual || bus.is_none_or(|bus| bus == device.address.bus)
}
