//! The ceilings of a load of a disk: the PCI Express links between the disk and the processor.

use super::{BEYOND, Ceiling, of};
use crate::model::{Load, leaves};
use linerate_ceiling::part::{Description, Kind, Part, Slots};
use linerate_ceiling::{Bounds, ethernet};
use linerate_facts::block::BlockDevice;
use linerate_facts::crossing;
use linerate_plan::path::{Direction, Place, Side, Stage};
use linerate_record::Host;

/// Ethernet packet whose payload stands for that of a disk. The links of disks are the only parts here, and they count
/// their own packets.
const PAYLOAD: u32 = 1460;

/// The most goodput that the links of the disk allow, the lowest first. Empty if its links are unknown, or if several
/// disks share the load.
pub(in crate::model) fn of_disk(hosts: &[Host], direction: Direction, load: &Load) -> Vec<Ceiling> {
    let near = hosts.iter().find(|host| host.side == Side::Near);
    let disks = near.map(|host| host.facts.disks.as_slice()).unwrap_or_default();
    let mut leaves = leaves(disks);
    let (Some(disk), None) = (leaves.next(), leaves.next()) else {
        return Vec::new();
    };
    let mut all = of(&described(disk, direction), direction);
    all.retain(|ceiling| load.goodput.mean <= ceiling.rate.0 as f64 * BEYOND);
    all.sort_by_key(|ceiling| ceiling.rate);
    all
}

fn described(disk: &BlockDevice, direction: Direction) -> Description {
    let crossings = disk.crossings();
    let payload = crossings.first().and_then(|first| first.device.payload);
    let part = |(depth, found): (usize, &crossing::Crossing<'_>)| {
        let what = match depth {
            0 => "the slot of".to_owned(),
            _ => format!("the switch {depth} above"),
        };
        let slots = Slots {
            of_links: vec![(0, crossing::slot(found.now, payload)?)],
            times: String::new(),
            frame_per_byte: None,
            request_inputs: Vec::new(),
        };
        Some(Part {
            name: format!("{what} {}", disk.name),
            stage: Stage::Pcie,
            side: Place::Far,
            ways: vec![direction],
            inputs: Vec::new(),
            kind: Kind::Slots(slots),
        })
    };
    let packet = ethernet::sized(PAYLOAD, PAYLOAD + 40, 0);
    Description {
        directions: vec![direction],
        streams: vec![Bounds::exact(1.0)],
        operation: packet.payload,
        packet,
        parts: crossings.iter().enumerate().filter_map(part).collect(),
    }
}
