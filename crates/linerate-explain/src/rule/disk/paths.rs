//! Rules about multipath disks: paths that failed, and paths without traffic, by the facts of a host.

use std::collections::BTreeSet;

use super::super::super::Explained;
use super::super::{Remark, rate};
use super::rows::{At, all};
use linerate_facts::block::{BlockDevice, Layer, Path};
use linerate_facts::finding::Stands;
use linerate_plan::path::Side;
use linerate_units::Bytes;

/// Most paths that are named in a remark.
const NAMED: usize = 4;
/// Most characters of a name that are shown.
const LONGEST: usize = 60;

/// A name from pasted output, made safe to print: without control characters, and not too long.
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

/// Remarks on multipath disks with failed paths.
pub(in crate::rule) fn failed(explained: &Explained<'_>) -> Vec<Remark> {
    devices(explained).filter_map(|(side, device)| fewer(side, device)).collect()
}

/// Remarks on multipath disks whose paths each form a group of their own, so that one path carries all requests.
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

/// Bytes per second of the ports that paths usually use: Ethernet of 1, 10 and 25 Gb/s, and Fibre Channel of 8, 16 and
/// 32 (GFC).
//= INCITS FC-PI-5 and FC-PI-6: 800, 1600 and 3200 MB/s in each direction
const PORTS: [f64; 6] = [125e6, 1.25e9, 3.125e9, 0.8e9, 1.6e9, 3.2e9];
/// Range of payload over the rate of such a port that iSCSI and Fibre Channel reach.
const FILLS: std::ops::RangeInclusive<f64> = 0.88..=1.0;
/// Smallest payload of an operation that may fill a path.
const LARGE: Bytes = Bytes(128 << 10);

/// Remark on a multipath disk whose paths each form a group of their own with equal priority: one path carries all
/// requests.
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
        // No answer: small operations do not fill a path, and those of other disks do not use it.
        None => return Some(remark),
    };
    Some(remark.names(causes).at(side))
}

/// Whether a row is about this disk, or about the path that carries its requests.
fn is_of(at: &At<'_>, device: &BlockDevice, path: &Path) -> bool {
    let target = at.disk.target.as_str();
    let name = target.strip_prefix("/dev/").unwrap_or(target);
    let name = name.strip_prefix("mapper/").unwrap_or(name);
    !name.is_empty() && [&device.name, &device.label, &path.name].iter().any(|known| *known == name)
}

/// Whether all paths in use are ones that the target reports as non-optimized.
fn is_worse(used: &[&Path]) -> bool {
    !used.is_empty() && used.iter().all(|path| path.ana_state == "non-optimized")
}
