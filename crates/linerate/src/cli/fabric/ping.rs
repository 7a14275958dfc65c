//! `linerate fabric ping`: round trips on the management path.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use linerate_core::fabric::mad::{Get, transaction};
use linerate_core::fabric::walk::PATIENCE;
use linerate_core::units::Nanos;
use linerate_engine::fabric::{Arrival, MadPort, PortError};

use super::super::exit::{Exit, Failure};
use super::super::options::Options;
use super::super::out;
use super::{failed, found, place};
use crate::show::fabric::{Pinged, pinged};

/// Time between two requests.
const BETWEEN: Nanos = Nanos::from_millis(100);

/// Transactions of a walk count up from one; these do not meet them.
const FIRST: u32 = 0x8000_0000;

/// Times `count` requests to the node that `to` names.
pub(super) fn run(
    port: &mut dyn MadPort,
    to: &str,
    count: u32,
    stop: &AtomicBool,
    options: &Options,
) -> Result<Exit, Failure> {
    let walk = found(port, stop).map_err(failed)?;
    let network = walk.network();
    let at = place(network, to)?;
    let name = network.name(at);
    let lid = network.nodes[at.node].lid(at.port).ok_or_else(|| {
        Failure::not_measured(anyhow!("{name} has no LID: no subnet manager serves it"))
            .hint("linerate fabric")
    })?;
    let mut trips = Vec::new();
    let mut sent = 0;
    while sent < count && !stop.load(Ordering::Relaxed) {
        if sent > 0 {
            port.pause(BETWEEN.duration());
        }
        trips.extend(trip(port, lid, FIRST + sent).map_err(failed)?);
        sent += 1;
    }
    let any = !trips.is_empty();
    let page = pinged(&Pinged {
        name,
        lid,
        sent,
        trips,
    });
    out::print(&out::rendered(&page, options))?;
    Ok(if any { Exit::Done } else { Exit::NotMeasured })
}

/// The time of one request and its reply; `None` if there is none.
fn trip(port: &mut dyn MadPort, lid: u16, number: u32) -> Result<Option<Nanos>, PortError> {
    let get = Get::ping(lid);
    let began = port.now();
    port.send(number, &get)?;
    let until = Nanos(began.0.saturating_add(PATIENCE.0));
    loop {
        let now = port.now();
        if now >= until {
            return Ok(None);
        }
        match port.receive(Nanos(until.0 - now.0).duration())? {
            Some(Arrival::Mad(mad)) if transaction(&mad[..]) == Some(number) => {
                let is_reply = get.reply(&mad[..]).is_ok();
                return Ok(is_reply.then(|| Nanos(port.now().0.saturating_sub(began.0))));
            }
            Some(Arrival::Lost(lost)) if lost == number => return Ok(None),
            _ => {}
        }
    }
}
