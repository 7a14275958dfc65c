//! `linerate fabric route`: the links that packets to a node pass.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use linerate_core::fabric::network::End;
use linerate_engine::fabric::{MadPort, drive};

use super::super::exit::{Exit, Failure};
use super::super::options::Options;
use super::super::out;
use super::{LONGEST, failed, found, place};
use crate::show::fabric::routed;

/// Shows the route to the node that `to` names.
pub(super) fn run(
    port: &mut dyn MadPort,
    to: &str,
    from: Option<&str>,
    stop: &AtomicBool,
    options: &Options,
) -> Result<Exit, Failure> {
    let mut walk = found(port, stop).map_err(failed)?;
    let network = walk.network();
    let to = place(network, to)?;
    let own = || {
        network
            .own()
            .ok_or_else(|| Failure::not_measured(anyhow!("no node answered")))
    };
    let from = from.map_or_else(own, |text| place(network, text))?;
    let lid = network.nodes[to.node].lid(to.port).ok_or_else(|| {
        let name = network.name(to);
        Failure::not_measured(anyhow!("{name} has no LID: no subnet manager serves it"))
            .hint("linerate fabric")
    })?;
    walk.ask_for_route(lid);
    walk.ask_for_path(from, to);
    let stopped = || stop.load(Ordering::Relaxed);
    drive(port, &mut walk, LONGEST, &stopped).map_err(failed)?;
    let page = routed(walk.network(), from, to, lid);
    out::print(&out::rendered(&page, options))?;
    Ok(match walk.network().route(from, lid).end {
        End::Arrives(_) => Exit::Done,
        End::Unknown(_) => Exit::NotMeasured,
        End::Loop(_) | End::NoEntry(_) | End::LinkDown(_) | End::Elsewhere(_) => Exit::Missed,
    })
}
