//! The ceilings of the storage at the far end.

use super::{input, part};
use crate::case::Storage;
use linerate_ceiling::part::{Kind, Part, Shared};
use linerate_ceiling::{Bounds, Cost, Input};
use linerate_plan::path::{Direction, Place, Stage};

const DEVICE: (Stage, Place) = (Stage::Device, Place::Far);

/// The ceilings of the storage device, each of which both directions share: its rate, its operations per second, and
/// the operations in flight over their latency.
pub(super) fn parts(storage: &Storage) -> Vec<Part> {
    let all = [rate(storage), operations(storage), depth(storage)];
    all.into_iter().flatten().collect()
}

fn rate(storage: &Storage) -> Option<Part> {
    let rate = storage.rate?;
    let shared = Shared {
        capacity: Bounds::exact(rate.0 as f64 / 8.0),
        cost: Cost::bytes(Bounds::exact(1.0)),
        formula: rate.to_string(),
    };
    let inputs = vec![input("storage.rate", Some(rate), "")];
    Some(both("device", DEVICE, inputs, shared))
}

fn operations(storage: &Storage) -> Option<Part> {
    let operations = storage.operations?;
    let capacity = Bounds::exact(f64::from(operations));
    let shared = counted(capacity, format!("{operations}/s x {}", size(storage)));
    let inputs = vec![input("storage.operations", Some(operations), "")];
    Some(both("operations", DEVICE, inputs, shared))
}

fn depth(storage: &Storage) -> Option<Part> {
    let (depth, latency) = (storage.depth?, storage.latency?);
    let words = format!("{depth} operations of {} in {latency} each", size(storage));
    let shared = counted(linerate_ceiling::storage::operations(depth, latency.secs()), words);
    let inputs =
        vec![input("storage.depth", Some(depth), ""), input("storage.latency", Some(latency), "")];
    Some(both("queue depth", (Stage::App, Place::Near), inputs, shared))
}

/// A ceiling in operations per second: each operation costs one.
fn counted(capacity: Bounds, formula: String) -> Shared {
    Shared {
        capacity,
        cost: Cost { per_operation: Bounds::exact(1.0), ..Cost::default() },
        formula,
    }
}

fn size(storage: &Storage) -> String {
    storage.operation.map(|s| s.to_string()).unwrap_or_default()
}

fn both(name: &str, place: (Stage, Place), inputs: Vec<Input>, shared: Shared) -> Part {
    let ways = Direction::ALL.to_vec();
    part(name, place, ways, inputs, Kind::Shared(shared))
}
