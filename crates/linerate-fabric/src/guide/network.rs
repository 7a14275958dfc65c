//! Checks of the network: the subnet manager, the LID that it gives, and whether a packet to a LID arrives.

use super::{DevicePort, Finding, Scene, ok, unknown, wrong};
use crate::finding;
use crate::network::Network;
use linerate_facts::advice::{Advice, Step};
use linerate_facts::infiniband::LinkState;
use linerate_facts::odd::infiniband::manager::managed_beside;
use linerate_units::shell::word;

/// Ids of findings that explain why a port has no address.
const UNSERVED: [&str; 3] = ["wrong-port", "no-manager", "unserved-port"];

/// Checks whether a subnet manager has configured the port.
pub(super) fn managed(scene: &Scene<'_>, own: DevicePort<'_>) -> Finding {
    let (device, port) = own;
    let network = reached_network(scene, own);
    if port.is_active() {
        if let Some(found) = network.and_then(gone) {
            return found;
        }
        let by = port.manager().map_or_else(
            || "a subnet manager has set the port up".to_owned(),
            |lid| format!("the subnet manager at LID {lid} has set the port up"),
        );
        return ok(by);
    }
    // A manager that runs on this host, for another port, explains more than a walk from this port can.
    let odd = scene.odd(&["unserved-port"], own);
    if let Some(odd) = odd.filter(|_| managed_beside(scene.inventory, own).is_some()) {
        return odd.clone();
    }
    if let Some(found) = network.and_then(unserved) {
        return found;
    }
    if let Some(odd) = odd {
        return odd.clone();
    }
    let look = format!("ibstat {} {}", word(&device.name), port.number);
    let state = port.state.map_or("unknown", LinkState::name);
    let advice = Advice::new("see the state of the port").on(None, look);
    unknown(format!("the state of the port is {state}"), advice)
}

/// The finding of the network that explains why its own port has no manager.
fn unserved(network: &Network) -> Option<Finding> {
    let own = network.name(network.own()?);
    let mut found = finding::find(network).into_iter();
    let is_it = |found: &Finding| found.subject == own && UNSERVED.contains(&found.id);
    found.find(is_it).or_else(|| gone(network))
}

/// The finding of the network about a manager that no longer runs.
fn gone(network: &Network) -> Option<Finding> {
    finding::find(network).into_iter().find(|found| found.id == "manager-gone")
}

/// The network, if it was walked from the port that is checked.
fn reached_network<'a>(scene: &Scene<'a>, (_, port): DevicePort<'_>) -> Option<&'a Network> {
    let network = scene.network?;
    let walked = network.port(network.own()?)?.guid?;
    (port.guid() == Some(walked)).then_some(network)
}

/// Checks whether the port has an address.
pub(super) fn addressed(_: &Scene<'_>, own: DevicePort<'_>) -> Finding {
    let (device, port) = own;
    match port.lid {
        Some(lid @ 1..=0xbfff) => ok(format!("LID {lid}")),
        Some(lid) => {
            let advice = Advice::new("see where the manager runs, and read its log there");
            let look = format!("sudo sminfo -C {} -P {}", word(&device.name), port.number);
            wrong(
                "ib-bad-lid",
                format!("LID {lid} is no address of one port"),
                advice.on(None, look),
            )
        }
        None => {
            let look = format!("ibstat {} {}", word(&device.name), port.number);
            let advice = Advice::new("see the base LID of the port").on(None, look);
            unknown("the LID of the port is unknown", advice)
        }
    }
}

/// Checks whether another port answered a packet to its LID. Counters are read by LID, so their replies show it.
pub(super) fn reached(scene: &Scene<'_>, port: DevicePort<'_>) -> Finding {
    let Some(network) = reached_network(scene, port) else {
        let what =
            "whether another port answers by its LID is unknown: this port could not be opened";
        return unknown(what, ping(port, None));
    };
    let own = network.own().map(|own| own.node);
    let others = || {
        let ports = network.ports();
        let ports = ports.filter(|(at, _)| Some(at.node) != own && network.is_here(*at));
        ports.filter_map(|(at, port)| Some((at, port, network.nodes[at.node].lid(at.port)?)))
    };
    if let Some((at, _, lid)) = others().find(|(_, port, _)| !port.counters.is_empty()) {
        return ok(format!("{} answered at LID {lid}", network.name(at)));
    }
    let is_silent = |node: usize| {
        let mut gaps = network.gaps.iter().filter(|gap| gap.node == Some(node));
        gaps.any(|gap| gap.why.is_silent())
    };
    if let Some((at, _, lid)) = others().find(|(at, ..)| is_silent(at.node)) {
        let at = network.name(at);
        let what = format!("{at} has LID {lid} and did not answer there");
        return wrong("silent-node", what, ping(port, Some(lid)));
    }
    if let Some((at, _, lid)) = others().next() {
        let what = format!("{} has LID {lid} and was not asked there", network.name(at));
        return unknown(what, ping(port, Some(lid)));
    }
    let what = "no other port of this network has a LID";
    unknown(what, ping(port, None))
}

/// Advice on how to send a packet to the LID of a port by hand.
fn ping((device, port): DevicePort<'_>, lid: Option<u16>) -> Advice {
    let at = format!("-C {} -P {}", word(&device.name), port.number);
    let serve = Step::on(None, "sudo ibping -S").about("on the other host, until Ctrl-C");
    let lids = Step::on(None, format!("sudo ibhosts {at}")).about("the hosts of this network");
    let ask = match lid {
        Some(lid) => Step::on(None, format!("sudo ibping {at} -c 3 {lid}")),
        None => Step::on(
            None,
            format!("sudo ibping {at} -c 3 $(sudo sminfo {at} | awk '{{print $4}}')"),
        )
        .about("the port of the manager, if it is the other host"),
    };
    Advice::new("ask the other port by its LID").step(serve).step(lids).step(ask)
}
