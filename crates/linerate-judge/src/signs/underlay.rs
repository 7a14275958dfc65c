//! Whether a port may be the limit although it is unknown whether the path crosses it: one of several ports
//! below a bridge, or the port below a tunnel.

use crate::model::{Load, least_of};
use linerate_facts::Gap;
use linerate_facts::nic::Nic;
use linerate_plan::path::{Direction, Stage};
use linerate_record::Host;
use linerate_units::Rate;

/// Share of the lowest rate that `ports` may have, below which they are not the limit. Outer headers of a tunnel use
/// up to a tenth of packets of the usual sizes.
//= RFC 7348, section 5: 50 bytes of VXLAN, 70 over IPv6; RFC 4303: about as many of ESP
const FAR_BELOW: f64 = 0.8;

/// Whether the capacity of each of `ports` at a stage may be the limit: goodput is near it, or it is not known.
pub(crate) fn may_bind(
    host: &Host,
    ports: &[&Nic],
    direction: Direction,
    load: &Load,
    stage: Stage,
) -> bool {
    let least = least_of(host, ports, (direction, load.packets), stage);
    let far_below = least.is_some_and(|least| goodput(load) < least.0 as f64 * FAR_BELOW);
    !far_below && !goes_elsewhere(host, ports, load)
}

/// Whether the path does not cross `ports` but leaves by the bridge above, for example to a guest: goodput exceeds
/// the rates of the ports together.
pub(crate) fn goes_elsewhere(host: &Host, ports: &[&Nic], load: &Load) -> bool {
    let route = host.facts.route.as_ref();
    let bridged = route.is_some_and(|route| route.ports.iter().any(|nic| nic.kind == "bridge"));
    let speeds: Option<Vec<Rate>> = ports.iter().map(|nic| nic.link.speed).collect();
    let sum = |all: Vec<Rate>| all.iter().map(|speed| speed.0 as f64).sum::<f64>();
    bridged && speeds.is_some_and(|all| goodput(load) > sum(all))
}

/// The gap that `what` of the lower port is missing, where traffic uses one of `ports`, or ports that are unknown.
pub(crate) fn untold(host: &Host, what: &str, ports: &[&Nic]) -> Gap {
    let port = host.facts.port.as_ref();
    let name = port.map_or("PORT", |port| &port.name);
    let why = if ports.is_empty() {
        format!("the port below {name} is unknown: a tunnel has its own route")
    } else {
        let names: Vec<&str> = ports.iter().map(|nic| nic.name.as_str()).collect();
        format!(
            "it is unknown whether, and in which packets, the path crosses {}",
            names.join(" or ")
        )
    };
    Gap {
        what: format!("the {what} below the {} port {name}", host.side.name()),
        why,
        hint: format!("ip -d link show {name}"),
    }
}

/// The highest goodput that the load may have had: the upper end of its interval, else the mean.
fn goodput(load: &Load) -> f64 {
    load.goodput.interval.map_or(load.goodput.mean, |i| i.high)
}
