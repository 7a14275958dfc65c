//! Causes of slow files and disks. A read is payload in reverse, a write payload forward; the disk is the far end.

pub(super) mod cache_knee;
pub(super) mod capped;
pub(super) mod contended;
pub(super) mod crypt;
pub(super) mod depth_held;
pub(super) mod dirty;
pub(super) mod link;
pub(super) mod not_async;
pub(super) mod page_cache;
pub(super) mod raid_write;
pub(super) mod read_ahead;
pub(super) mod split;
pub(super) mod sync;
pub(super) mod thermal;
pub(super) mod throttled;

use super::{NoFinding, base, clear, unknown};
use crate::model::{DiskLoad, Load, Model, has_layer};
use crate::signs::GAIN;
use linerate_facts::HostFacts;
use linerate_facts::block::Layer;
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::file::BUFFERED;
use linerate_units::stats::Range;

/// Share of the payload that passes the disk, below which the page cache carries the load.
const FEW: f64 = 0.5;
/// Share of the payload that passes the disk, below which the page cache alone explains the rate.
const HARDLY_ANY: f64 = 0.05;
/// Share of the asked requests that a disk must have in flight, so that it takes all that it is given.
const HOLDS: f64 = 0.6;

/// Goodput with twice in flight, over that before, if the disk does no more: what waits longer may be served in another
/// order, which costs some.
const NO_GAIN: Range = Range { low: 0.8, high: GAIN };

/// The load of a file, and what the disks below the file did.
fn counted(model: &Model, direction: Direction) -> Result<(&Load, DiskLoad), NoFinding> {
    let load = base(model, direction)?;
    let held = facts(model).and_then(|facts| facts.filesystem.as_ref());
    if held.is_some_and(|held| held.kind == "tmpfs") {
        return Err(clear("the file is in memory (tmpfs), on no disk"));
    }
    let disk = load.disk.ok_or_else(|| {
        unknown(
            "what the disk did",
            "no disk below the file is known, or its counters were not read",
        )
    })?;
    Ok((load, disk))
}

/// Share of the payload of a load that the disks moved; more than 1 if they moved more than the payload.
fn passed(load: &Load, disk: DiskLoad) -> f64 {
    disk.own.bytes / (load.goodput.mean / 8.0).max(1.0)
}

/// Operations that a load keeps in flight, over all threads.
fn asked(load: &Load) -> u32 {
    load.knobs.depth.max(1).saturating_mul(load.streams.max(1))
}

/// Requests of the disks for each operation of a load; `None` if its operations were not counted.
fn requests_each(load: &Load, disk: DiskLoad) -> Option<f64> {
    let operations = load.operations.as_ref()?.mean;
    (operations > 0.0).then(|| disk.own.requests / operations)
}

/// Requests that a load asks the disks to have in flight.
fn requests_asked(load: &Load, disk: DiskLoad) -> f64 {
    f64::from(asked(load)) * requests_each(load, disk).unwrap_or(1.0).max(1.0)
}

fn is_buffered(load: &Load) -> bool {
    load.knobs.options.is_on(BUFFERED.key)
}

/// A load that goes past the page cache, and what the disks did; else why the cause is clear.
fn direct(model: &Model, direction: Direction) -> Result<(&Load, DiskLoad), NoFinding> {
    let (load, disk) = counted(model, direction)?;
    if is_buffered(load) || passed(load, disk) < FEW {
        return Err(clear("the page cache took part"));
    }
    Ok((load, disk))
}

/// The facts of the host with the file.
fn facts(model: &Model) -> Option<&HostFacts> {
    model.host(Side::Near).map(|host| &host.facts)
}

/// Whether software RAID is below the file: it makes requests of its own.
fn is_raid(model: &Model) -> bool {
    facts(model).is_some_and(|facts| has_layer(facts, Layer::Raid))
}

/// Whether a layer below the file makes requests of its own, so that the disks show little of what the file has.
fn between(model: &Model) -> bool {
    let has = |layer| facts(model).is_some_and(|facts| has_layer(facts, layer));
    [Layer::Raid, Layer::Crypt, Layer::Mapped].into_iter().any(has)
}

const BETWEEN: &str = "a layer below the file makes requests of its own";

/// Names of the devices that are made of no other device, in one text.
fn names(model: &Model) -> String {
    let disks = facts(model).map(|facts| facts.disks.as_slice()).unwrap_or_default();
    let names: Vec<&str> = crate::model::leaves(disks).map(|disk| disk.name.as_str()).collect();
    if names.is_empty() { "the disk".to_owned() } else { names.join(", ") }
}
