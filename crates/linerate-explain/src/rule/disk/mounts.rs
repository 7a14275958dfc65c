//! A rule about network mounts whose requests are small: larger operations of programs are split into several.

use super::super::super::{Explained, facts, side_name};
use super::super::Remark;
use super::paths::shown;
use super::rows::{At, all};
use linerate_ceiling::fingerprint::{Carrier, Kind, filled};
use linerate_facts::block::FileSystem;
use linerate_facts::finding::Stands;
use linerate_plan::path::Side;
use linerate_record::reported::Does;
use linerate_units::Bytes;

/// Size of requests below which a mount is slow over any network except the nearest.
//= Linux, nfs(5): the largest rsize and wsize are 1,048,576 bytes; client and server agree on the largest that both have
const SMALL: Bytes = Bytes(64 << 10);
/// Most mounts that are examined.
const MOUNTS: usize = 64;
/// Least number of counted requests per second that is a load.
const LOAD: f64 = 100.0;
/// Range of a counted request's size over the mount's option at which requests have the option's full size: counted
/// sizes include headers.
const WHOLE: std::ops::RangeInclusive<f64> = 0.95..=1.1;
/// Least ratio of the network's rate to the rate of a file at which the network is not full.
const MORE: f64 = 1.3;

/// The mount options that set the size of requests, each with the operation that it applies to.
const OPTIONS: [(&str, Does); 2] = [("rsize", Does::Read), ("wsize", Does::Write)];

pub(in crate::rule) fn split(explained: &Explained<'_>) -> Vec<Remark> {
    let mounts = explained
        .material
        .hosts()
        .into_iter()
        .flat_map(|(side, host)| host.storage.filesystems.iter().map(move |fs| (side, fs)));
    let report = mounts.take(MOUNTS).filter_map(|(side, fs)| small(explained, side, fs));
    report.chain(counted(explained)).collect()
}

/// The requests of one mount: the option that sets their size, and the size in bytes.
struct Requests<'a> {
    side: Side,
    point: &'a str,
    option: &'a str,
    does: Does,
    size: Bytes,
}

/// Remark on an NFS mount whose requests are smaller than the operations of programs, or just small if no program's
/// operations are known.
fn small(explained: &Explained<'_>, side: Side, fs: &FileSystem) -> Option<Remark> {
    // Other network filesystems have other limits for their options.
    if !fs.kind.starts_with("nfs") {
        return None;
    }
    let requests = |name: &str| {
        let mut values = fs.options.iter().filter_map(|option| option.split_once('='));
        let (_, value) = values.find(|(key, _)| *key == name)?;
        let bytes = value.parse().ok().map(Bytes);
        bytes.filter(|bytes| bytes.0 > 0 && *bytes < SMALL)
    };
    let found = OPTIONS.into_iter().filter_map(|(option, does)| {
        let one = Requests { side, point: &fs.point, option, does, size: requests(option)? };
        Some(one)
    });
    let found: Vec<_> = found.collect();
    // Results that were measured elsewhere are not explained by the mount. Programs that copy files read large blocks.
    let is_bare = explained.material.runs().next().is_none();
    let is_open = is_bare || all(explained).any(|at| at.is_copy() && on(&at, side, &fs.point));
    let larger = |one: &&Requests<'_>| larger(explained, one).is_some();
    let whole = |one: &&Requests<'_>| {
        all(explained).any(|at| {
            let each = at.row.block.map_or(0.0, |block| block.0 as f64);
            is_counted(&at, one) && WHOLE.contains(&(each / one.size.0 as f64))
        })
    };
    let one = found.iter().find(larger);
    let one = one.or_else(|| found.first().filter(|_| is_open));
    remark(explained, one.or_else(|| found.iter().find(whole))?, is_open)
}

/// Remarks on small requests that the kernel counted, at mounts whose options are unknown.
fn counted<'a>(explained: &'a Explained<'_>) -> impl Iterator<Item = Remark> + use<'a> {
    let of = move |at: At<'a>| {
        let known = &at.host(explained).storage.filesystems;
        let is_known = known.iter().any(|fs| fs.point == at.disk.target);
        let size = at.row.block.filter(|size| *size < SMALL)?;
        let is_load = at.row.operations.is_some_and(|rate| rate >= LOAD);
        if !at.is_mount() || is_known || !is_load {
            return None;
        }
        let one = Requests {
            side: at.source.side.unwrap_or(Side::Near),
            point: &at.disk.target,
            option: "counted",
            does: at.row.does,
            size,
        };
        remark(explained, &one, false)
    };
    all(explained).filter_map(of).take(MOUNTS)
}

/// The largest block that a program used in files of the mount, if it is larger than the mount's requests.
fn larger(explained: &Explained<'_>, one: &Requests<'_>) -> Option<Bytes> {
    let rows = all(explained).filter(|at| on(at, one.side, one.point) && at.row.does == one.does);
    rows.filter_map(|at| at.row.block).filter(|block| *block > one.size).max()
}

/// Whether a row holds the kernel's counts of these requests.
fn is_counted(at: &At<'_>, one: &Requests<'_>) -> bool {
    let side = at.source.side.unwrap_or(Side::Near);
    at.is_mount() && side == one.side && at.disk.target == one.point && at.row.does == one.does
}

fn remark(explained: &Explained<'_>, one: &Requests<'_>, is_open: bool) -> Option<Remark> {
    let Requests { option, size, .. } = one;
    let block = larger(explained, one);
    let rows = all(explained).filter(|at| on(at, one.side, one.point) || is_counted(at, one));
    let best = rows.map(|at| at.row.bytes_per_sec * 8.0).reduce(f64::max);
    // A full network is the limit, whatever the size of requests.
    let full = best.map_or(Some(false), |bits| is_full(explained, bits));
    let causes: &[&'static str] = match full {
        Some(true) => return None,
        None => &["nfs-io-size", "wire-full"],
        // Programs may not request more than one block at a time: the depth stays a possible cause.
        Some(false) if block.is_none() && !is_open => &["nfs-io-size", "queue-depth"],
        Some(false) => &["nfs-io-size"],
    };
    let head =
        format!("{} ({}): requests of {size} ({option})", shown(one.point), side_name(one.side));
    let what = match block {
        Some(block) => format!(
            "{head} beside operations of {block}: each is split into {}",
            block.0.div_ceil(size.0)
        ),
        None if causes.len() > 1 => format!("{head}: programs may ask for more"),
        None => format!("{head}: larger operations are split"),
    };
    let mut remark = Remark::new(Stands::Found, what);
    remark.finding.proof.extend(in_flight(explained, one));
    if full.is_none() {
        remark = remark.because("a link that is full carries as much: its speed is not known");
    }
    let next = if full.is_none() {
        ("the speed of the ports of both hosts", "ethtool PORT")
    } else {
        (
            "mount it anew with rsize and wsize of 1 MiB, and see what the server agrees to",
            "nfsstat -m",
        )
    };
    Some(
        remark
            .because("each request waits for its answer over the network; a mount may have up to 1 MiB, if the server has it too")
            .names(causes)
            .at(one.side)
            .next(next.0, next.1),
    )
}

/// The number of requests in flight by the kernel's counts, in words.
fn in_flight(explained: &Explained<'_>, one: &Requests<'_>) -> Option<String> {
    let at = all(explained).find(|at| is_counted(at, one))?;
    let (rate, wait) = (at.row.operations?, at.row.mean?);
    let flight = rate * wait.secs();
    Some(format!("{rate:.0} requests in a second of {wait} each: {flight:.1} in flight"))
}

/// Whether a rate in bits per second fills the network; `None` if it equals that of a full link and the host's links
/// are unknown.
fn is_full(explained: &Explained<'_>, bits: f64) -> Option<bool> {
    let carries_more = |rate: f64| rate >= bits * MORE;
    let mut transfers = explained.material.transfers();
    if filled(bits, Kind::Ethernet, Carrier::Sockets).is_none()
        || transfers.any(|(_, one)| carries_more(one.goodput.0 as f64))
    {
        return Some(false);
    }
    let links = facts::links_of(explained.material);
    let is_more = links.iter().all(|link| carries_more(link.capacity().high() * 8.0));
    (!links.is_empty()).then_some(!is_more)
}

/// Whether a row may be about files of the mount.
fn on(at: &At<'_>, side: Side, point: &str) -> bool {
    let target = at.disk.target.as_str();
    let is_below = || {
        target
            .strip_prefix(point.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // A file name without its folder does not tell on which mount the file is.
    at.source.side.unwrap_or(Side::Near) == side
        && !at.is_device()
        && (target.is_empty() || is_below())
}
