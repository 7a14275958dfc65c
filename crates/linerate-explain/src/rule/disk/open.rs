//! A rule for disk results that no other rule answers.

use super::super::super::{Explained, Hardware};
use super::super::{Remark, rate, usb};
use super::cache::ROTATING;
use super::rows::{At, LINK, all, are_alone};
use super::{cache, depth, latency, mounts, paths, repeated};
use linerate_ceiling::fingerprint::{Carrier, Kind, filled};
use linerate_facts::finding::Stands;
use linerate_units::Nanos;

/// Longest mean time of a request at which a disk is not slow.
const QUICK_REQUEST: Nanos = Nanos::from_millis(1);
/// Least share of the requested depth, in operations in flight, at which the depth is used.
const DEPTH_USED: f64 = 0.7;

/// The rules that may find what limits a disk.
static ANSWERS: &[fn(&Explained<'_>) -> Vec<Remark>] = &[
    cache::cached,
    cache::flushed,
    depth::submits,
    depth::depth,
    latency::latency,
    paths::failed,
    paths::idle,
    mounts::split,
    repeated::narrower,
    usb::disks,
];

pub(in crate::rule) fn open(explained: &Explained<'_>) -> Vec<Remark> {
    let is_answered = || ANSWERS.iter().any(|find| !find(explained).is_empty());
    // If the hardware is described, other rules compare the results with it.
    let is_described = explained.material.hardware != Hardware::default();
    if is_described || !are_alone(explained) || is_answered() {
        return Vec::new();
    }
    let rate = |at: &At<'_>| at.row.bytes_per_sec;
    let flight = |at: &At<'_>| at.in_flight().unwrap_or(0.0);
    let requested = all(explained).filter(|at| !at.is_device());
    let fastest = requested.max_by(|one, other| rate(one).total_cmp(&rate(other)));
    let busiest = || all(explained).max_by(|one, other| flight(one).total_cmp(&flight(other)));
    let found = fastest.or_else(busiest);
    found.map(|at| left_open(&at)).into_iter().collect()
}

fn left_open(at: &At<'_>) -> Remark {
    let moved = rate(at.row.bytes_per_sec * 8.0);
    let words = at.words();
    let mut why = String::new();
    let what = if let Some((mean, operations)) = quick(at) {
        format!("{words}: {operations:.0} requests/s of {mean} each: the disk is not slow")
    } else if at.is_copy() {
        let full = filled(at.row.bytes_per_sec * 8.0, Kind::Ethernet, Carrier::Sockets);
        let full = full.map_or(String::new(), |(name, _)| {
            format!(", as much as a full link of {name} carries")
        });
        format!(
            "a copy moved {moved}{full}: whether a disk, a program or the network limits it is not in the figures"
        )
    } else if let Some((flight, depth)) = used(at).filter(|_| at.is_direct()) {
        format!(
            "{words}: {moved} with {flight:.1} of {depth} operations in flight: the depth is used, and the rate is that of \
             the disk and its link"
        )
    } else if at.is_direct() {
        format!(
            "{words}: {moved} past the page cache: so much the disk and its link gave, and perhaps could give more"
        )
    } else {
        why = unclear(at);
        format!("{words}: {moved}: what limits the disk is not known from these figures")
    };
    let mut remark = Remark::new(Stands::Found, what);
    if !why.is_empty() {
        remark = remark.because(why);
    }
    if quick(at).is_some() {
        remark = remark.because(
            "%util says only how long at least one request was there, not that the disk is full",
        );
    }
    let (what, command) = next(at);
    remark = remark.next(what, command);
    let excluded = [
        (quick(at).is_some(), "disk-latency"),
        (used(at).is_some(), "queue-depth"),
        (at.is_direct(), "disk-page-cache"),
    ];
    let out = excluded.into_iter().filter(|(is, _)| *is);
    let out: Vec<&str> = out.map(|(_, cause)| cause).collect();
    at.shows(remark.names(&[]).rules_out(&out))
}

/// Why it is unclear how fast the disk is; empty if it is clear.
fn unclear(at: &At<'_>) -> String {
    if at.is_device() {
        let flight = at.in_flight();
        return flight
            .map_or(String::new(), |flight| format!("{flight:.1} requests were in flight"));
    }
    match at.disk.direct {
        Some(_) if at.row.bytes_per_sec > ROTATING || at.row.flushed == Some(0.0) => {
            "the page cache was not bypassed: the bytes may have come from memory, or stayed there"
                .to_owned()
        }
        Some(_) => String::new(),
        None => "whether the page cache was bypassed is not known".to_owned(),
    }
}

/// The mean time of a request and requests per second of a device, if all its requests were quick.
fn quick(at: &At<'_>) -> Option<(Nanos, f64)> {
    let is_quick = |at: At<'_>| at.row.mean.is_some_and(|mean| mean <= QUICK_REQUEST);
    let found = at.row.mean.zip(at.row.operations);
    found.filter(|_| at.is_device() && at.siblings().all(is_quick))
}

/// The operations in flight and the requested depth, if the depth is above one and is used.
fn used(at: &At<'_>) -> Option<(f64, u32)> {
    let found = at.in_flight().zip(at.row.depth);
    found.filter(|(flight, depth)| *depth > 1 && *flight >= f64::from(*depth) * DEPTH_USED)
}

/// The next step that would show more, with a command for the operating system on which the program ran.
fn next(at: &At<'_>) -> (&'static str, &'static str) {
    if at.is_windows() {
        ("compare with the data sheet of the disk, and see the width and the speed of its link", "")
    } else if at.is_copy() {
        ("measure the network alone, with `linerate serve` on the other host", "linerate run HOST")
    } else if quick(at).is_some() {
        ("see which programs wait for the disk", "pidstat -d 1 5")
    } else if at.is_device() {
        (
            "see which kind of disk it is: one that turns does about 75 to 200 requests/s",
            "lsblk -d -o NAME,ROTA,MODEL",
        )
    } else if !at.is_direct() && !unclear(at).is_empty() {
        ("measure past the page cache", at.directly())
    } else if used(at).is_some() {
        LINK
    } else {
        ("ask for more in flight", at.deeper())
    }
}
