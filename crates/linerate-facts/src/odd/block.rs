//! Rules about disks with fewer working or used paths than possible.

use super::{Finding, few};
use crate::Inventory;
use crate::advice::{Advice, Step};
use crate::block::{BlockDevice, Layer, Namespace, Path};

/// The oddities that `odd` finds in block devices, checked one by one.
fn devices(inventory: &Inventory, odd: impl Fn(&BlockDevice) -> Option<Finding>) -> Vec<Finding> {
    inventory.storage.devices.iter().filter_map(odd).collect()
}

/// Disks with paths that failed.
pub(super) fn failed_paths(inventory: &Inventory) -> Vec<Finding> {
    let odd = |device: &BlockDevice| {
        let dead = device.paths.iter();
        let dead = dead.filter(|path| path.is_live() == Some(false));
        let dead: Vec<_> = dead.map(|path| format!("{} is {}", path.name, trouble(path))).collect();
        (!dead.is_empty()).then(|| {
            Finding::new(
                "disk-path-failed",
                &device.name,
                format!("of {} paths, {}", device.paths.len(), dead.join(", ")),
            )
            .why("fewer paths carry the same load, and none may be left when the next one fails")
            .fix(match device.layer {
                Layer::Multipath => Advice::new("check the cable and the target of that disk")
                    .step(Step::on(None, "sudo multipath -ll").about("its paths")),
                _ => Advice::new("check the network and the target of that address")
                    .step(Step::on(None, "sudo nvme list-subsys").about("its paths")),
            })
        })
    };
    devices(inventory, odd)
}

/// The failed path's state, in words.
fn trouble(path: &Path) -> String {
    match path.ana_state.as_str() {
        "persistent-loss" => "in ANA state persistent-loss".to_owned(),
        _ => path.state.clone(),
    }
}

/// The NVMe subsystem of a disk whose path policy is `numa`; `None` for other disks.
fn subsystem_of(disk: &BlockDevice) -> Option<String> {
    let namespace = Namespace::of(&disk.name).filter(|_| disk.policy == "numa")?;
    Some(format!("nvme-subsys{}", namespace.subsystem))
}

/// Disks with several usable paths and the policy `numa`, which uses one path for each NUMA node. All disks of a
/// subsystem share its policy.
pub(super) fn idle_paths(inventory: &Inventory) -> Vec<Finding> {
    let mut found: Vec<(String, usize, Vec<&str>)> = Vec::new();
    for disk in &inventory.storage.devices {
        let ways = disk.usable_ways();
        let Some(subsystem) = subsystem_of(disk).filter(|_| ways > 1) else {
            continue;
        };
        match found.iter_mut().find(|(s, w, _)| *s == subsystem && *w == ways) {
            Some((_, _, disks)) => disks.push(&disk.name),
            None => found.push((subsystem, ways, vec![&disk.name])),
        }
    }
    let odd = |(subsystem, ways, disks): (String, usize, Vec<&str>)| {
        let file = format!("/sys/class/nvme-subsystem/{subsystem}/iopolicy");
        Finding::new(
            "disk-path-idle",
            few(&disks),
            format!("{ways} usable paths, but each NUMA node uses only one"),
        )
        .why("policy numa: from one node, several links give the speed of one")
        .fix(
            Advice::new("use all paths in turn")
                .set(None, format!("echo round-robin | sudo tee {file}"))
                .undo_on(None, format!("echo numa | sudo tee {file}")),
        )
    };
    found.into_iter().map(odd).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Finding, find};
    use crate::Inventory;
    use crate::block::{BlockDevice, Path};

    /// A disk with one path for each pair of a state and an ANA state in `ways`.
    fn disk(name: &str, policy: &str, ways: &[(&str, &str)]) -> BlockDevice {
        let path = |(at, (state, ana)): (usize, &(&str, &str))| Path {
            name: format!("nvme{at}"),
            state: (*state).to_owned(),
            ana_state: (*ana).to_owned(),
            ..Path::default()
        };
        BlockDevice {
            name: name.to_owned(),
            policy: policy.to_owned(),
            paths: ways.iter().enumerate().map(path).collect(),
            ..BlockDevice::default()
        }
    }

    fn odd(devices: &[BlockDevice]) -> Vec<Finding> {
        let mut machine = Inventory::default();
        machine.storage.devices = devices.to_vec();
        find(&machine)
    }

    fn whats(name: &str, policy: &str, ways: &[(&str, &str)]) -> Vec<String> {
        let found = odd(&[disk(name, policy, ways)]).into_iter();
        found.map(|o| o.what).collect()
    }

    const LIVE: (&str, &str) = ("live", "optimized");
    const IDLE: &str = "2 usable paths, but each NUMA node uses only one";

    #[test]
    fn ways_that_are_dead_or_idle_are_odd() {
        let whats = |policy: &str, ways: &[(&str, &str)]| whats("nvme0n1", policy, ways);
        assert_eq!(whats("numa", &[LIVE]), [""; 0]);
        assert_eq!(whats("numa", &[("live", ""); 2]), [IDLE]);
        assert_eq!(whats("numa", &[LIVE; 2]), [IDLE]);
        for policy in ["round-robin", "queue-depth", ""] {
            assert_eq!(whats(policy, &[LIVE; 2]), [""; 0], "{policy}");
        }
        assert_eq!(
            whats("numa", &[LIVE, ("connecting", "optimized")]),
            ["of 2 paths, nvme1 is connecting"]
        );
        assert_eq!(whats("numa", &[("", ""); 2]), [""; 0]);
        let scsi = |ways: &[(&str, &str)]| super::tests::whats("dm-0", "", ways);
        assert_eq!(scsi(&[("running", ""); 2]), [""; 0]);
        assert_eq!(scsi(&[("running", ""), ("offline", "")]), ["of 2 paths, nvme1 is offline"]);
    }

    #[test]
    fn ways_that_no_policy_would_use_are_not_idle() {
        let whats = |ways: &[(&str, &str)]| whats("nvme0n1", "numa", ways);
        for other in ["non-optimized", "inaccessible", "change"] {
            assert_eq!(whats(&[LIVE, ("live", other)]), [""; 0], "{other}");
            assert_eq!(whats(&[LIVE, LIVE, ("live", other)]), [IDLE], "{other}");
        }
        assert_eq!(whats(&[("live", "non-optimized"); 2]), [IDLE]);
        assert_eq!(whats(&[("live", "inaccessible"); 2]), [""; 0]);
        assert_eq!(
            whats(&[LIVE, ("live", "persistent-loss")]),
            ["of 2 paths, nvme1 is in ANA state persistent-loss"]
        );
    }

    #[test]
    fn the_policy_is_changed_once_for_all_disks_of_a_subsystem() {
        let found = odd(&[
            disk("nvme0n1", "numa", &[LIVE; 2]),
            disk("nvme0n2", "numa", &[LIVE; 2]),
            disk("nvme12n1", "numa", &[LIVE; 2]),
        ]);
        let subjects: Vec<_> = found.iter().map(|o| o.subject.as_str()).collect();
        assert_eq!(subjects, ["nvme0n1, nvme0n2", "nvme12n1"]);
        assert_eq!(
            found[1].to_do(),
            "use all paths in turn: echo round-robin | sudo tee /sys/class/nvme-subsystem/nvme-subsys12/iopolicy \
             (undo: echo numa | sudo tee /sys/class/nvme-subsystem/nvme-subsys12/iopolicy)"
        );
    }
}
