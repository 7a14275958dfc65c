//! Disks that fewer ways lead to than could.

use super::Oddity;
use crate::facts::Inventory;
use crate::facts::block::{BlockDevice, Layer};

/// What `odd` finds of each device.
fn devices(inventory: &Inventory, odd: impl Fn(&BlockDevice) -> Option<Oddity>) -> Vec<Oddity> {
    inventory.storage.devices.iter().filter_map(odd).collect()
}

/// Ways that are not in use because something on them failed.
pub(super) fn dead_ways(inventory: &Inventory) -> Vec<Oddity> {
    let odd = |device: &BlockDevice| {
        let dead = device.paths.iter();
        let dead = dead.filter(|path| path.is_live() == Some(false));
        let dead: Vec<_> = dead
            .map(|path| format!("{} is {}", path.name, path.state))
            .collect();
        (!dead.is_empty()).then(|| Oddity {
            id: "disk-way-dead",
            subject: device.name.clone(),
            what: format!("of {} ways, {}", device.paths.len(), dead.join(", ")),
            why: "fewer ways carry the same load, and none may be left when the next one fails",
            fix: match device.layer {
                Layer::Multipath => "sudo multipath -ll; then the cable or target of that disk",
                _ => "sudo nvme list-subsys; then the network or the target of that address",
            }
            .to_owned(),
        })
    };
    devices(inventory, odd)
}

/// Several ways of which the policy uses one for each node.
pub(super) fn idle_ways(inventory: &Inventory) -> Vec<Oddity> {
    let odd = |device: &BlockDevice| {
        let live = device.paths.iter().filter(|p| p.is_live() == Some(true));
        let live = live.count();
        (live > 1 && device.policy == "numa").then(|| Oddity {
            id: "disk-way-idle",
            subject: device.name.clone(),
            what: format!("{live} ways, of which each node uses one"),
            why: "policy numa: from one node, several links give the speed of one",
            fix: "echo round-robin into /sys/class/nvme-subsystem/SUBSYSTEM/iopolicy (undo: echo \
                  numa)"
                .to_owned(),
        })
    };
    devices(inventory, odd)
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use crate::facts::Inventory;
    use crate::facts::block::{BlockDevice, Path};

    #[test]
    fn ways_that_are_dead_or_idle_are_odd() {
        let whats = |states: &[&str], policy: &str| {
            let path = |state: &&str| Path {
                name: "nvme0".to_owned(),
                state: (*state).to_owned(),
                ..Path::default()
            };
            let mut machine = Inventory::default();
            machine.storage.devices = vec![BlockDevice {
                name: "nvme0n1".to_owned(),
                policy: policy.to_owned(),
                paths: states.iter().map(path).collect(),
                ..BlockDevice::default()
            }];
            let found = find(&machine).into_iter();
            found.map(|o| o.what).collect::<Vec<_>>()
        };
        assert_eq!(whats(&["live"], "numa"), [""; 0]);
        assert_eq!(whats(&["live", "live"], "round-robin"), [""; 0]);
        assert_eq!(
            whats(&["live", "live"], "numa"),
            ["2 ways, of which each node uses one"]
        );
        assert_eq!(
            whats(&["live", "connecting"], "numa"),
            ["of 2 ways, nvme0 is connecting"]
        );
        assert_eq!(whats(&["", ""], "numa"), [""; 0]);
        assert_eq!(whats(&["running", "running"], ""), [""; 0]);
        assert_eq!(
            whats(&["running", "offline"], ""),
            ["of 2 ways, nvme0 is offline"]
        );
    }
}
