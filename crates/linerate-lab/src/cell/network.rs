//! Cells with a fault between the hosts.

use linerate_plan::path::{Direction, Place};
use linerate_units::{Nanos, Rate};

use super::Planting;
use super::draw::Draw;
use crate::fault::{Depth, Fault, Manner, Share};

/// Returns a delay of `round_trip_ms` milliseconds for a round trip. It stays when the fault is removed, so that
/// packets pass the process on the wire in both measurements, and only the fault makes the difference.
pub(super) fn delay(round_trip_ms: u64) -> Fault {
    let half = Nanos(Nanos::from_millis(round_trip_ms).0 / 2);
    Fault::Delay { forward: half, reverse: half }
}

fn slow(direction: Direction, scenery: Vec<Fault>, fault: Fault) -> Planting {
    Planting { scenery, ..Planting::slow(direction, Place::Path, fault) }
}

pub(super) fn path_rate(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let rate = draw.turn(&[100_000_000, 1_000_000_000, 5_000_000_000]);
    let depth = draw.one(&[Depth::Shallow, Depth::Deep]);
    let fault = Fault::PathRate { rate: Rate(rate), depth, directions: direction.into() };
    slow(direction, Vec::new(), fault)
}

pub(super) fn police(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let rate = Rate(draw.turn(&[100_000_000, 300_000_000, 600_000_000]));
    let directions = direction.into();
    let round_trip = draw.one(&[1, 5]);
    slow(direction, vec![delay(round_trip)], Fault::Police { rate, directions })
}

pub(super) fn flow_rate(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let rate = Rate(draw.turn(&[100_000_000, 200_000_000, 300_000_000]));
    let manner = draw.one(&[Manner::Shaped, Manner::Policed]);
    let directions = direction.into();
    slow(direction, vec![delay(1)], Fault::FlowRate { rate, manner, directions })
}

pub(super) fn loss(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let millionths = draw.turn(&[1_000, 3_000, 10_000]);
    let share = Share::millionths(millionths).unwrap_or(Share::LEAST);
    let burst = draw.one(&[1, 1, 20]);
    let directions = direction.into();
    let round_trip = draw.one(&[5, 20]);
    slow(direction, vec![delay(round_trip)], Fault::Loss { share, burst, directions })
}

pub(super) fn reorder(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let by = Nanos::from_millis(draw.one(&[10, 30]));
    let every = draw.turn(&[20, 50, 100]);
    let directions = direction.into();
    slow(direction, vec![delay(5)], Fault::Reorder { by, every, directions })
}

pub(super) fn black_hole(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let bytes = draw.turn(&[1280, 1400, 1492]);
    let directions = direction.into();
    slow(direction, vec![delay(1)], Fault::BlackHole { bytes, directions })
}
