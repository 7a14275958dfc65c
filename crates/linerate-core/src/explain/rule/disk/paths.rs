//! Rules about the way to a disk, by the facts of a host: paths that failed, and requests that are split.

use super::super::super::{Explained, side_name};
use super::super::{Remark, Stands};
use super::rows::{At, all};
use crate::ceiling::fingerprint::{Carrier, Kind, filled};
use crate::facts::block::{BlockDevice, FileSystem, Layer, Path};
use crate::path::Side;
use crate::reported::Does;
use crate::units::Bytes;

/// Requests below which a mount is slow over any network but the nearest.
//= Linux, nfs(5): the largest rsize and wsize are 1,048,576 bytes; client and server agree on the largest that both have
const SMALL: Bytes = Bytes(64 << 10);
/// Most mounts that are judged.
const MOUNTS: usize = 64;
/// Paths that are named.
const NAMED: usize = 4;
/// Longest name that is shown.
const LONGEST: usize = 60;

/// A name from a paste.
fn shown(name: &str) -> String {
    name.chars()
        .filter(|c| !c.is_control())
        .take(LONGEST)
        .collect()
}

pub(in crate::explain::rule) fn lost(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let hosts = [
        (Side::Near, &explained.material.near),
        (Side::Far, &explained.material.far),
    ];
    let devices = hosts.into_iter().flat_map(|(side, host)| {
        let several = host
            .storage
            .devices
            .iter()
            .filter(|device| device.layer == Layer::Multipath);
        several.map(move |device| (side, device))
    });
    devices
        .filter_map(|(side, device)| fewer(side, device, id))
        .collect()
}

fn fewer(side: Side, device: &BlockDevice, id: &'static str) -> Option<Remark> {
    let is_dead = |path: &&Path| path.is_live() == Some(false);
    let (used, idle): (Vec<&Path>, Vec<&Path>) = device
        .paths
        .iter()
        .partition(|path| path.in_use != Some(false));
    let dead: Vec<&Path> = used.iter().copied().filter(is_dead).collect();
    let has_group = used.iter().any(|path| path.in_use == Some(true));
    let label = if device.label.is_empty() {
        &device.name
    } else {
        &device.label
    };
    let label = shown(label);
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
            format!(
                "{} ({}) is {}",
                shown(&path.name),
                shown(&path.address),
                shown(&path.state)
            )
        })
        .collect();
    let remark = Remark::new(id, Stands::Finding, what)
        .because(named.join(", "))
        .because("the others carry its share as well, and none may be left when the next one fails")
        .names(&["disk-one-path"])
        .at(side)
        .next(
            "the port, the cable and the target of the failed path: what the kernel says of it",
            "sudo dmesg -T",
        );
    Some(remark)
}

/// Whether the paths in use are those that the target does not prefer.
fn is_worse(used: &[&Path]) -> bool {
    !used.is_empty() && used.iter().all(|path| path.ana_state == "non-optimized")
}

pub(in crate::explain::rule) fn split(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let hosts = [
        (Side::Near, &explained.material.near),
        (Side::Far, &explained.material.far),
    ];
    let mounts = hosts
        .into_iter()
        .flat_map(|(side, host)| host.storage.filesystems.iter().map(move |fs| (side, fs)));
    mounts
        .take(MOUNTS)
        .filter_map(|(side, fs)| small(explained, side, fs, id))
        .collect()
}

/// A mount whose requests are smaller than the operations that programs do, or small at all if no program is known.
fn small(
    explained: &Explained<'_>,
    side: Side,
    fs: &FileSystem,
    id: &'static str,
) -> Option<Remark> {
    let request = |name: &str| {
        let mut values = fs
            .options
            .iter()
            .filter_map(|option| option.split_once('='));
        let (_, value) = values.find(|(key, _)| *key == name)?;
        value
            .parse()
            .ok()
            .map(Bytes)
            .filter(|size| size.0 > 0 && *size < SMALL)
    };
    let kinds = [("rsize", Does::Read), ("wsize", Does::Write)];
    let found = kinds
        .into_iter()
        .filter_map(|(name, does)| Some((name, does, request(name)?)));
    let found: Vec<_> = found.collect();
    // A full network is the limit, whatever the requests.
    let is_full = |at: &At<'_>| {
        filled(at.row.bytes_per_sec * 8.0, Kind::Ethernet, Carrier::Sockets).is_some()
    };
    let of = |at: &At<'_>| on(at, side, fs) && !is_full(at);
    // What was measured elsewhere is not explained by it. Programs that copy files read large blocks.
    let is_bare = explained.material.runs().next().is_none();
    let is_open = is_bare || all(explained).any(|at| at.is_copy() && of(&at));
    let larger = |does: Does, size: Bytes| {
        let rows = all(explained).filter(|at| of(at) && at.row.does == does);
        rows.filter_map(|at| at.row.block)
            .filter(|block| *block > size)
            .max()
    };
    let (option, least, block) =
        found
            .into_iter()
            .find_map(|(name, does, size)| match larger(does, size) {
                Some(block) => Some((name, size, Some(block))),
                None => is_open.then_some((name, size, None)),
            })?;
    let point = shown(&fs.point);
    let what = match block {
        Some(block) => format!(
            "{point} ({}): requests of {least} ({option}) beside operations of {block}: each is split into {}",
            side_name(side),
            block.0.div_ceil(least.0)
        ),
        None => format!(
            "{point} ({}): requests of {least} ({option}): larger operations are split",
            side_name(side)
        ),
    };
    let remark = Remark::new(id, Stands::Finding, what)
        .because("each request waits for its answer over the network; a mount may have up to 1 MiB, if the server has it too")
        .names(&["nfs-io-size"])
        .at(side)
        .next("mount it anew with rsize and wsize of 1 MiB, and see what the server agrees to", "nfsstat -m");
    Some(remark)
}

/// Whether a row may be of files of the mount.
fn on(at: &At<'_>, side: Side, fs: &FileSystem) -> bool {
    let target = at.disk.target.as_str();
    let is_below = || {
        target
            .strip_prefix(fs.point.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_other = target.starts_with("/dev/") || target.starts_with('/') && !is_below();
    at.source.side.unwrap_or(Side::Near) == side && !at.is_device() && !is_other
}
