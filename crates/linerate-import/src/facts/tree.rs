//! The tree of PCI devices, some of which may be missing from the text.

use linerate_facts::pci::{Device, at, find_parents};

/// Finds the bridge directly above each device of a sorted list. If the bridge that is found leads to another bus,
/// the bridge between is missing from the text, and the device gets no parent.
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
    // The virtual functions of a card may have another bus number than the card.
    device.is_virtual || bus.is_none_or(|bus| bus == device.address.bus)
}
