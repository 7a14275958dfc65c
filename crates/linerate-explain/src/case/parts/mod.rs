//! Turns the keys of a case into the parts of its path.

mod host;
mod net;
mod storage;

use super::packet::packet;
use super::{Case, CaseError};
use linerate_ceiling::part::{Description, Kind, Part};
use linerate_ceiling::{Bounds, Input, Source, bond};
use linerate_plan::path::{Direction, Place, Side, Stage};

pub(super) use host::{channels, express};

/// Most streams that are considered if a case does not give their number.
const MOST_STREAMS: u32 = 1024;

/// The path that a case describes, as parts with ceilings.
pub(super) fn description(case: &Case) -> Result<Description, CaseError> {
    let links = links(case);
    let packet = packet(case)?;
    let parts = host::parts(case, Side::Near, links)
        .into_iter()
        .chain(net::wires(case, links))
        .chain(net::limits(case, &packet))
        .chain(host::parts(case, Side::Far, links))
        .chain(storage::parts(&case.storage));
    Ok(Description {
        directions: Direction::ALL.to_vec(),
        streams: streams(case.streams, links),
        operation: Bounds::exact(case.storage.operation.map_or(1, |size| size.0) as f64),
        parts: parts.collect(),
        packet,
    })
}

/// Number of links that carry payload at the same time.
fn links(case: &Case) -> u32 {
    let there = case.near.port.links().min(case.far.port.links());
    case.storage.policy.map_or(there, |policy| policy.used(there))
}

/// Lowest and highest number of streams on each link.
fn streams(given: Option<u32>, links: u32) -> Vec<Bounds> {
    let low = bond::spread(given.unwrap_or(1), links);
    let high = bond::spread(given.unwrap_or(MOST_STREAMS), links);
    let each = low.into_iter().zip(high);
    each.map(|(low, high)| Bounds::new(f64::from(low), f64::from(high))).collect()
}

/// A part of the path, from its stage, side, directions, inputs and kind of ceiling.
fn part(
    name: &str,
    (stage, side): (Stage, Place),
    ways: Vec<Direction>,
    inputs: Vec<Input>,
    kind: Kind,
) -> Part {
    Part { name: name.to_owned(), stage, side, ways, inputs, kind }
}

/// An input of a ceiling: its key, its value or the assumed range, and whether the case gave it.
fn input<T: ToString>(key: &str, given: Option<T>, assumed: &str) -> Input {
    let source = if given.is_some() { Source::Given } else { Source::Assumed };
    Input {
        key: key.to_owned(),
        value: given.map_or_else(|| assumed.to_owned(), |value| value.to_string()),
        source,
    }
}
