//! Events that disturb a measurement in either direction.

use linerate_plan::path::Place;
use linerate_units::{Nanos, Rate};

use super::draw::Draw;
use super::{Company, Planting};
use crate::fault::{Depth, Fault, FaultDirection, Origin, Rhythm};
use crate::spec::Host;

fn event(scenery: Vec<Fault>, faults: Vec<Fault>) -> Planting {
    Planting { scenery, faults, place: Some(Place::Path), ..Planting::default() }
}

pub(super) fn contended(draw: &mut Draw) -> Planting {
    let company = Company {
        host: draw.one(&[Host::Near, Host::Router]),
        direction: draw.direction(),
        apart: draw.turn(&[false, true]),
    };
    Planting { company: Some(company), ..event(Vec::new(), Vec::new()) }
}

pub(super) fn traffic(draw: &mut Draw) -> Planting {
    let link = Fault::PathRate {
        rate: Rate(1_000_000_000),
        depth: Depth::Deep,
        directions: FaultDirection::Both,
    };
    let others = Fault::Traffic {
        rate: Rate(draw.turn(&[400_000_000, 600_000_000])),
        direction: draw.direction(),
        origin: draw.one(&[Origin::Elsewhere, Origin::Ends]),
    };
    event(vec![link], vec![others])
}

/// Draws the time from planting to the beginning of an event. The first base step of a run of 33 s lasts 2 s, and
/// begins within a second of the planting.
fn moment(draw: &mut Draw) -> Nanos {
    Nanos::from_millis(draw.one(&[1_500, 1_700, 1_900]))
}

pub(super) fn interrupted(draw: &mut Draw) -> Planting {
    let side = draw.side();
    let after = moment(draw);
    let lasting = Nanos::from_millis(draw.one(&[300, 400, 500]));
    let down = Fault::LinkDown { side, after, lasting };
    event(Vec::new(), vec![down])
}

/// A stall of less than half a second cannot be distinguished from an end that is busy, so longer ones are drawn.
pub(super) fn stall(draw: &mut Draw) -> Planting {
    let side = draw.side();
    let after = moment(draw);
    let lasting = Nanos::from_millis(draw.one(&[700, 850, 1_000]));
    let stall = Fault::Stall { side, lasting, rhythm: Rhythm::Once(after) };
    event(Vec::new(), vec![stall])
}
