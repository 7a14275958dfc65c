//! What the bytes cross, and what each direction asks of it.

use super::{DirectionModel, Load, Resource};
use crate::path::{Direction, Place, Side, Stage};
use crate::stats::Interval;

/// The resources of a path. Capacities stay unknown until something can read them.
///
/// Ends on one machine share its CPUs: that is one resource, which bears the demands of both.
pub(super) fn resources(directions: &[DirectionModel], same_machine: bool) -> Vec<Resource> {
    let net = Resource {
        name: "net".to_owned(),
        stage: Stage::Net,
        side: Place::Path,
        capacity: None,
        demand: Direction::ALL.map(|d| base(directions, d).map(|_| 1.0)),
    };
    if same_machine {
        return vec![cpu(directions, "cpu", &[Side::Near, Side::Far]), net];
    }
    vec![
        cpu(directions, "near cpu", &[Side::Near]),
        net,
        cpu(directions, "far cpu", &[Side::Far]),
    ]
}

/// The CPUs of one machine, which stands where the first of `sides` does.
fn cpu(directions: &[DirectionModel], name: &str, sides: &[Side]) -> Resource {
    let loads = directions.iter().map(|d| (d.direction, &d.base));
    let seen = loads.flat_map(|(direction, load)| {
        let count = move |side| load.cpus[usize::from(side != direction.sender())].len();
        sides.iter().copied().map(count)
    });
    let count = seen.max().filter(|n| *n > 0).map(|n| n as f64);
    Resource {
        name: name.to_owned(),
        stage: Stage::Cpu,
        side: Place::from(sides[0]),
        capacity: count.map(|n| Interval {
            low: n,
            mid: n,
            high: n,
        }),
        demand: Direction::ALL.map(|d| demand(base(directions, d)?, d, sides)),
    }
}

/// CPU seconds per bit: what the threads of `sides` used over what arrived.
fn demand(load: &Load, direction: Direction, sides: &[Side]) -> Option<f64> {
    let threads = sides.iter().flat_map(|side| {
        if *side == direction.sender() {
            &load.senders
        } else {
            &load.receivers
        }
    });
    let busy: f64 = threads.map(|t| t.busy).sum::<Option<f64>>()?;
    (load.goodput.mean > 0.0).then(|| busy / load.goodput.mean)
}

fn base(directions: &[DirectionModel], direction: Direction) -> Option<&Load> {
    let found = directions.iter().find(|d| d.direction == direction);
    found.map(|d| &d.base)
}
