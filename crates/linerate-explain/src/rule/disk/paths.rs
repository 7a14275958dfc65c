//! Rules about the paths to a disk, by the facts of a host.

use std::collections::BTreeSet;

use super::super::super::Explained;
use super::super::{Remark, Stands, rate};
use super::rows::{At, all};
use linerate_facts::block::{BlockDevice, Layer, Path};
use linerate_plan::path::Side;
use linerate_units::Bytes;

/// Paths that are named.
const NAMED: usize = 4;
/// Longest name that is shown.
const LONGEST: usize = 60;

/// A name from a paste.
pub(super) fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}

/// The multipath disks of both hosts.
fn devices<'a>(explained: &'a Explained<'_>) -> impl Iterator<Item = (Side, &'a BlockDevice)> {
    explained.material.hosts().into_iter().flat_map(|(side, host)| {
        let several = host.storage.devices.iter().filter(|device| device.layer == Layer::Multipath);
        several.map(move |device| (side, device))
    })
}

/// Disks of which paths failed.
pub(in crate::rule) fn failed(explained: &Explained<'_>) -> Vec<Remark> {
    devices(explained).filter_map(|(side, device)| fewer(side, device)).collect()
}

/// Disks whose paths are each a group of its own, so that one carries all.
pub(in crate::rule) fn idle(explained: &Explained<'_>) -> Vec<Remark> {
    let whole = devices(explained).filter(|(side, device)| fewer(*side, device).is_none());
    whole.filter_map(|(side, device)| apart(explained, side, device)).collect()
}

fn label(device: &BlockDevice) -> String {
    shown(if device.label.is_empty() { &device.name } else { &device.label })
}

fn fewer(side: Side, device: &BlockDevice) -> Option<Remark> {
    let is_dead = |path: &&Path| path.is_live() == Some(false);
    let (used, idle): (Vec<&Path>, Vec<&Path>) =
        device.paths.iter().partition(|path| path.in_use != Some(false));
    let dead: Vec<&Path> = used.iter().copied().filter(is_dead).collect();
    let has_group = used.iter().any(|path| path.in_use == Some(true));
    let label = label(device);
    let (dead, what) = if has_group && !dead.is_empty() {
        let left = used.len() - dead.len();
        let what = format!(
            "{label}: {left} of {} paths of the group that carries the requests are left",
            used.len()
        );
        (dead, what)
    } else if is_worse(&used) && !idle.is_empty() && idle.iter().all(is_dead) {
        let what = format!(
            "{label}: all {} paths of the better group failed: requests go by paths that the target does not prefer",
            idle.len()
        );
        (idle, what)
    } else {
        return None;
    };
    let named = dead.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|path| {
            format!("{} ({}) is {}", shown(&path.name), shown(&path.address), shown(&path.state))
        })
        .collect();
    let remark = Remark::new(Stands::Found, what)
        .because(named.join(", "))
        .because("the others carry its share as well, and none may be left when the next one fails")
        .names(&["disk-path-failed"])
        .at(side)
        .next(
            "the port, the cable and the target of the failed path: what the kernel says of it",
            "sudo dmesg -T",
        );
    Some(remark)
}

/// Bytes in a second of the ports that paths usually go by: Ethernet of 1, 10 and 25 Gb/s, and Fibre Channel of 8, 16 and 32.
//= INCITS FC-PI-5 and FC-PI-6: 800, 1600 and 3200 MB/s in each direction
const PORTS: [f64; 6] = [125e6, 1.25e9, 3.125e9, 0.8e9, 1.6e9, 3.2e9];
/// Share of such a port that iSCSI and Fibre Channel leave to the data, at least and at most.
const FILLS: std::ops::RangeInclusive<f64> = 0.88..=1.0;
/// Smallest operations that may fill a path.
const LARGE: Bytes = Bytes(128 << 10);

/// A disk of which each path is a group of its own, and all are alike: one of them carries all requests.
fn apart(explained: &Explained<'_>, side: Side, device: &BlockDevice) -> Option<Remark> {
    let live: Vec<&Path> =
        device.paths.iter().filter(|path| path.is_live() == Some(true)).collect();
    let groups: BTreeSet<u32> = device.paths.iter().filter_map(|path| path.group).collect();
    let priorities: BTreeSet<Option<u32>> = live.iter().map(|path| path.priority).collect();
    let is_alike = priorities.len() == 1 && !priorities.contains(&None);
    let mut used = live.iter().filter(|path| path.in_use == Some(true));
    let (one, None) = (used.next()?, used.next()) else {
        return None;
    };
    if live.len() < 2 || groups.len() != device.paths.len() || !is_alike {
        return None;
    }
    let own = |at: &At<'_>| at.source.side.unwrap_or(Side::Near) == side;
    let counted = |path: &&Path| {
        all(explained).any(|at| at.is_device() && own(&at) && at.disk.target == path.name)
    };
    let carry = live.iter().copied().filter(counted).count();
    if carry > 1 {
        return None;
    }
    let what = format!(
        "{}: each of its {} paths is a group of its own, and all have one priority: only {} carries requests",
        label(device),
        live.len(),
        shown(&one.name)
    );
    let mut remark = Remark::new(Stands::Found, what).next(
        "all paths in one group, if the target serves all alike: path_grouping_policy multibus or group_by_prio in \
         /etc/multipath.conf, then see the groups",
        "sudo multipath -ll",
    );
    if carry == 1 {
        remark = remark.because("the kernel counted requests of no other path");
    }
    let rows = || all(explained).filter(|at| own(at) && is_of(at, device, one));
    let best = rows().map(|at| at.row.bytes_per_sec).reduce(f64::max);
    let port = best.and_then(|best| PORTS.into_iter().find(|port| FILLS.contains(&(best / port))));
    let is_large = rows().any(|at| at.row.block.is_some_and(|block| block >= LARGE));
    let causes: &[&'static str] = match port {
        Some(port) => {
            let words = format!(
                "{} is what one port of {} carries",
                rate(best.unwrap_or(0.0) * 8.0),
                rate(port * 8.0)
            );
            remark = remark.because(words);
            &["disk-path-idle"]
        }
        None if !explained.material.has_results() => &["disk-path-idle"],
        None if is_large => &["disk-path-idle", "queue-depth"],
        // Beside the question: small operations do not fill a path, nor do those of other disks.
        None => return Some(remark),
    };
    Some(remark.names(causes).at(side))
}

/// Whether a row is of the disk, or of the path that carries its requests.
fn is_of(at: &At<'_>, device: &BlockDevice, path: &Path) -> bool {
    let target = at.disk.target.as_str();
    let name = target.strip_prefix("/dev/").unwrap_or(target);
    let name = name.strip_prefix("mapper/").unwrap_or(name);
    !name.is_empty() && [&device.name, &device.label, &path.name].iter().any(|known| *known == name)
}

/// Whether the paths in use are those that the target does not prefer.
fn is_worse(used: &[&Path]) -> bool {
    !used.is_empty() && used.iter().all(|path| path.ana_state == "non-optimized")
}
