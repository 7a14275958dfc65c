//! `linerate fabric ping`: round trips on the management path.

use std::sync::atomic::{AtomicBool, Ordering};

use linerate_fabric::mad::{Get, transaction};
use linerate_fabric::walk::PATIENCE;
use linerate_host::fabric::{Arrival, Ended, MadPort, PortError};
use linerate_units::Nanos;

use super::super::exit::{Exit, Failure};
use super::super::options::Options;
use super::super::out;
use super::place::addressed;
use super::port::Outcome;
use super::{failed, found};
use linerate_show::fabric::{Pinged, pinged_json, pinged_page};

/// Time between two requests.
const BETWEEN: Nanos = Nanos::from_millis(100);

/// Number of the first request. Requests of a walk count up from one, so that their numbers never reach this one.
const FIRST_NUMBER: u32 = 0x8000_0000;

/// Sends `count` requests to the node that `to` names, and times each.
pub(super) fn run(
    port: &mut dyn MadPort,
    (to, count): (&str, u32),
    until: Nanos,
    stop: &AtomicBool,
    options: &Options,
) -> Result<Outcome<Exit>, Failure> {
    let walk = found(port, until, stop).map_err(failed)?;
    let network = walk.network();
    let (at, lid) = addressed(network, to)?;
    let mut trips = Vec::new();
    let mut sent = 0;
    while sent < count && !stop.load(Ordering::Relaxed) {
        if sent > 0 {
            port.pause(BETWEEN.duration());
        }
        trips.extend(trip(port, lid, FIRST_NUMBER + sent).map_err(failed)?);
        sent += 1;
    }
    let value = if trips.is_empty() { Exit::NotMeasured } else { Exit::Done };
    let pinged = Pinged { name: network.name(at), lid, sent, trips };
    out::result(options, || pinged_json(&pinged), || pinged_page(&pinged))?;
    // A capture holds only the walk; round trips cannot be replayed from it.
    let ended = if walk.is_done() { Ended::Whole } else { Ended::Early };
    Ok(Outcome { value, ended })
}

/// Round trip of one request and its reply; `None` if no reply is received.
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
            Some(Arrival::Lost(of) | Arrival::NotPossible(of)) if of == number => return Ok(None),
            _ => {}
        }
    }
}
