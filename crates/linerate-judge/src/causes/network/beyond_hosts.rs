//! Whether the network limits a load, in the direction of the payload or of the acknowledgements.

use crate::causes::network::duplex;
use crate::causes::network::held::{Held, held_back};
use crate::causes::network::host_shaping;
use crate::causes::network::local_drops;
use crate::causes::prelude::*;

/// The load of a direction, if the network may limit its payload or its acknowledgements; else the reason why not.
pub(crate) fn beyond_hosts(model: &Model, direction: Direction) -> Result<Held<'_>, NoFinding> {
    let held = held_back(model, direction)?;
    if let Some(own) = of_a_host(model, held.load, direction) {
        return Err(clear(format!("a host does it itself: {own}")));
    }
    if matches!(duplex::CAUSE.check(model, direction), Ok(f) if f.enough) {
        let why = "packets collide at a port: duplex";
        return Err(clear(why));
    }
    Ok(held)
}

/// The reason why a host's own port or queue limits a load, and not the network.
pub(crate) fn of_a_host(model: &Model, load: &Load, direction: Direction) -> Option<String> {
    host_shaping::holds(load, direction).or_else(|| local_drops::holds(model, load, direction))
}
