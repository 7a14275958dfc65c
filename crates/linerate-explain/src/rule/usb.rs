//! Rules about disks and network ports that are attached to USB 2, whose bus is slower than they are.

use super::super::{Explained, side_name};
use super::disk::rows::{At, all, of};
use super::transfers::transfers;
use super::{Remark, rate};
use linerate_ceiling::usb::leaves;
use linerate_facts::Inventory;
use linerate_facts::finding::Stands;
use linerate_facts::usb::Function;
use linerate_plan::path::Side;
use linerate_record::reported::{Access, Carrier, Counted, Does};
use linerate_units::{Bytes, Rate};

/// The signalling rate of USB 2 in bits per second.
//= Universal Serial Bus Specification 2.0, section 7.1.11: high speed
const HIGH_SPEED: Rate = Rate(480_000_000);
/// Share of the rate that every controller carries, from which the bus may limit a port: adapters of 1 Gb/s on USB 2
/// are published with 200 to 330 Mb/s.
const NEAR_BUS: f64 = 0.8;
/// Largest ratio of a measured rate to the capacity of the bus: programs round.
const ROUNDED: f64 = 1.02;
/// Linux drivers of network adapters that are attached to USB.
//= Linux, drivers/net/usb
const ADAPTERS: [&str; 12] = [
    "ax88179_178a",
    "asix",
    "aqc111",
    "cdc_eem",
    "cdc_ether",
    "cdc_ncm",
    "lan78xx",
    "r8152",
    "r8153_ecm",
    "rtl8150",
    "smsc75xx",
    "smsc95xx",
];
/// Range of the rate of a disk on USB 2, in bytes per second.
//= Universal Serial Bus Specification 2.0, section 5.8.4: at most 53.2 MB/s, of which usual bridges leave 30 to 45 MB/s
const DISK: std::ops::RangeInclusive<f64> = 30e6..=45e6;
/// Least payload of an operation whose rate shows the bus.
const LARGE: Bytes = Bytes(128 << 10);
/// Number of operations in flight that hides the latency of a disk.
const DEEP_QUEUE: u32 = 8;
/// Largest ratio of the rate of small operations to that of large ones at which small ones are far slower.
const FAR_BELOW: f64 = 0.6;

/// Starts of names of disks that are not on USB; then starts of names of disks that may be, or of their mount points.
const OTHERS: [&str; 5] = ["/dev/nvme", "/dev/mmcblk", "/dev/vd", "/dev/xvd", "/dev/md"];
const OWN: [&str; 3] = ["/dev/sd", "/media/", "/run/media/"];

fn is_storage(one: &Function) -> bool {
    one.class == "Mass Storage"
}

fn is_adapter(one: &Function) -> bool {
    ADAPTERS.contains(&one.driver.as_str())
}

pub(super) fn ports(explained: &Explained<'_>) -> Vec<Remark> {
    let hosts = explained.material.hosts();
    hosts.into_iter().filter_map(|(side, host)| port(explained, side, host)).collect()
}

/// Remark on a transfer at the rate of USB 2, if the host has a network adapter on USB 2.
fn port(explained: &Explained<'_>, side: Side, host: &Inventory) -> Option<Remark> {
    let adapters = host.usb.iter().filter(|one| is_adapter(one));
    let slow = adapters.clone().find(|one| one.speed == HIGH_SPEED)?;
    let counts = |carrier: Carrier, counted: Counted| {
        carrier == Carrier::Tcp || carrier == Carrier::Udp && counted != Counted::Sender
    };
    let all = transfers(explained)
        .filter(|(_, _, one)| counts(one.carrier, one.counted) && one.local != Some(true));
    let (source, outcome, best) = all.max_by_key(|(_, _, one)| one.goodput)?;
    let bus = leaves(HIGH_SPEED);
    let bits = best.goodput.0 as f64;
    if !(bus.low() * NEAR_BUS..=bus.high() * ROUNDED).contains(&bits) || best.requested.is_some() {
        return None;
    }
    // Another port of the host may have carried the transfer.
    let is_only = host.network.nics.len() < 2 && adapters.count() == 1;
    let causes: &[&'static str] = if is_only { &["usb"] } else { &["usb", "path-rate"] };
    let what = format!(
        "{}: {} is what USB 2 leaves of {HIGH_SPEED}: the network adapter ({}) hangs on it",
        side_name(side),
        rate(bits),
        slow.driver
    );
    Some(
        Remark::new(Stands::Found, what)
            .because(carries())
            .names(causes)
            .at(side)
            .shown_by(source, outcome)
            .next("whether it runs at 5000M in another port, without a hub", "lsusb -t"),
    )
}

/// The rates that the USB 2 bus carries, in words.
fn carries() -> String {
    let bus = leaves(HIGH_SPEED);
    format!(
        "the bus carries {} to {}, both ways together, by the controller",
        rate(bus.low()),
        rate(bus.high())
    )
}

pub(super) fn disks(explained: &Explained<'_>) -> Vec<Remark> {
    let shown = explained
        .material
        .sources
        .iter()
        .filter_map(|source| pattern(explained, &of(source).collect::<Vec<_>>()));
    let shown: Vec<Remark> = shown.collect();
    if !shown.is_empty() {
        return shown;
    }
    listed(explained).into_iter().collect()
}

/// Whether the disk of a row is on USB; `None` if the facts do not tell. Also `Some(false)` for a rotating disk: it may
/// be that slow by itself.
fn is_on_usb(explained: &Explained<'_>, at: &At<'_>) -> Option<bool> {
    let device = at.device(explained);
    if let Some(device) = device.filter(|device| !device.transport.is_empty()) {
        return Some(device.transport == "usb");
    }
    if device.is_some_and(|device| device.queue.rotational == Some(true)) {
        return Some(false);
    }
    if OTHERS.iter().any(|start| at.disk.target.starts_with(start)) {
        return Some(false);
    }
    let mut disks = at.host(explained).usb.iter().filter(|one| is_storage(one)).peekable();
    disks.peek()?;
    disks.all(|one| one.speed == HIGH_SPEED).then_some(true)
}

fn is_large(at: &At<'_>) -> bool {
    at.row.access == Access::Sequential && at.row.block.is_none_or(|block| block >= LARGE)
}

/// Finds a disk that moves large blocks at the rate of USB 2, both for reads and writes and at any depth, and small
/// ones far more slowly.
fn pattern(explained: &Explained<'_>, rows: &[At<'_>]) -> Option<Remark> {
    let large: Vec<&At<'_>> = rows.iter().filter(|at| is_large(at) && !at.is_device()).collect();
    let first = large.first()?;
    let flight =
        |at: &At<'_>| at.row.depth.unwrap_or(0).saturating_mul(at.row.threads.unwrap_or(1));
    let has = |does: Does| {
        let mut own = large.iter().filter(|at| at.row.does == does);
        own.clone().any(|at| flight(at) >= DEEP_QUEUE) && own.any(|at| flight(at) == 1)
    };
    let rates = || large.iter().map(|at| at.row.bytes_per_sec);
    let (least, most) = (rates().reduce(f64::min)?, rates().reduce(f64::max)?);
    let small = rows
        .iter()
        .filter(|at| at.row.access == Access::Random && at.is_small())
        .map(|at| at.row.bytes_per_sec);
    let is_below = small.reduce(f64::max).is_some_and(|best| best < least * FAR_BELOW);
    let is_level = DISK.contains(&least) && DISK.contains(&most);
    let on_usb = is_on_usb(explained, first);
    if !is_level || !is_below || !has(Does::Read) || !has(Does::Write) || on_usb == Some(false) {
        return None;
    }
    let words = format!(
        "large blocks move at {} to {}, reads and writes alike and with one or {DEEP_QUEUE} in flight: that is a bus",
        rate(least * 8.0),
        rate(most * 8.0)
    );
    Some(if on_usb == Some(true) {
        found(first, format!("{words}, USB 2 ({HIGH_SPEED})"), &["usb"])
    } else {
        let what = format!("{words}, most likely USB 2 ({HIGH_SPEED})");
        found(first, what, &["usb", "path-rate"])
    })
}

/// Remark on a disk at the rate of USB 2, on a host whose USB disks are all on USB 2.
fn listed(explained: &Explained<'_>) -> Option<Remark> {
    let large = all(explained).filter(|at| {
        let has_tree = at.host(explained).usb.iter().any(is_storage);
        has_tree && (is_large(at) || at.is_device() || at.row.access == Access::Unknown)
    });
    let best = large.max_by(|a, b| a.row.bytes_per_sec.total_cmp(&b.row.bytes_per_sec))?;
    let most = leaves(HIGH_SPEED).high() / 8.0 * ROUNDED;
    let is_near = (*DISK.start()..=most).contains(&best.row.bytes_per_sec);
    if !is_near || is_on_usb(explained, &best) != Some(true) {
        return None;
    }
    let what = format!(
        "{}: {} is what USB 2 leaves of {HIGH_SPEED}, and the disk hangs on it",
        best.words(),
        rate(best.row.bytes_per_sec * 8.0)
    );
    // The file may be on another disk of that speed, such as a memory card.
    let is_own = best.is_device()
        || OWN.iter().any(|start| best.disk.target.starts_with(start))
        || best.device(explained).is_some_and(|device| device.transport == "usb");
    let causes: &[&'static str] = if is_own { &["usb"] } else { &["usb", "path-rate"] };
    Some(found(&best, what, causes))
}

fn found(at: &At<'_>, what: String, causes: &[&'static str]) -> Remark {
    let remark = Remark::new(Stands::Found, what).because(carries()).names(causes);
    let (step, command) = if at.is_windows() {
        ("the same disk in a port of USB 3, with a cable that has the fast pairs", "")
    } else {
        (
            "whether the disk is at 480M, or at 5000M and more in another port and with another cable",
            "lsusb -t",
        )
    };
    at.shows(remark.next(step, command))
}
