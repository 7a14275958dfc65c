//! `linerate fabric route`: the links that packets to a node pass.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use linerate_fabric::network::End;
use linerate_host::fabric::{MadPort, drive};
use linerate_units::Nanos;

use super::super::exit::{Exit, Failure};
use super::super::options::Options;
use super::super::out;
use super::place::{addressed, place};
use super::port::Outcome;
use super::{failed, found};
use linerate_show::fabric::{Way, routed, routed_json};

/// Shows the route to the node that `to` names.
pub(super) fn run(
    port: &mut dyn MadPort,
    (to, from): (&str, Option<&str>),
    until: Nanos,
    stop: &AtomicBool,
    options: &Options,
) -> Result<Outcome<Exit>, Failure> {
    let mut walk = found(port, until, stop).map_err(failed)?;
    let network = walk.network();
    let (to, lid) = addressed(network, to)?;
    let own = || network.own().ok_or_else(|| Failure::not_measured(anyhow!("no node answered")));
    let from = from.map_or_else(own, |text| place(network, text))?;
    walk.ask_for_route(lid);
    walk.ask_for_path(from, to);
    let stopped = || stop.load(Ordering::Relaxed);
    let ended = drive(port, &mut walk, until, &stopped).map_err(failed)?;
    let network = walk.network();
    let way = Way { network, from, to, lid, route: network.route(from, lid) };
    out::result(options, || routed_json(&way), || routed(&way))?;
    let value = match way.route.end {
        End::Arrives(_) => Exit::Done,
        End::Unknown(_) => Exit::NotMeasured,
        End::Loop(_) | End::NoEntry(_) | End::LinkDown(_) | End::Elsewhere(_) => Exit::Missed,
    };
    Ok(Outcome { value, ended })
}
