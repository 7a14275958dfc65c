//! The checks of a first InfiniBand network, in order: each check needs those before it to be well.
//!
//! A check is pure: it judges an inventory, and the network if a port could be opened. What a check cannot know is
//! reported as unknown, with the command that shows it.

mod card;
mod ip;
mod network;
#[cfg(test)]
mod tests;
mod wire;

use crate::network::Network;
use linerate_facts::Inventory;
use linerate_facts::advice::Advice;
use linerate_facts::finding::{Finding, Stands};
use linerate_facts::infiniband::{IbDevice, IbPort, Layer};
use linerate_facts::odd;

/// The results of all checks, for one port.
#[derive(Debug, Clone, PartialEq)]
pub struct Guide {
    /// The port that the checks from the cable on are about: `mlx4_0 port 1`. `None` if the host has no InfiniBand
    /// port.
    pub port: Option<String>,
    /// The other InfiniBand ports of the host.
    pub others: Vec<String>,
    /// The results of the checks, in order. The subject is the title of the check. The id is that of the fault if there
    /// is one, else that of the check.
    pub checks: Vec<Finding>,
}

/// What the checks read: the host's inventory, its oddities, and the network that was walked.
struct Scene<'a> {
    inventory: &'a Inventory,
    oddities: &'a [Finding],
    network: Option<&'a Network>,
}

/// A port with its device.
type DevicePort<'a> = (&'a IbDevice, &'a IbPort);

struct Row {
    id: &'static str,
    title: &'static str,
    judge: Judge,
}

/// The function that judges a check.
enum Judge {
    /// A check of the host as a whole.
    Host(fn(&Scene<'_>) -> Finding),
    /// A check of one port.
    Port(fn(&Scene<'_>, DevicePort<'_>) -> Finding),
}

/// All checks, in their order.
const CHECKS: [Row; 8] = [
    row("card", "Card", Judge::Host(card::seen)),
    row("driver", "Driver", Judge::Host(card::driven)),
    row("cable", "Cable", Judge::Port(wire::cable)),
    row("manager", "Manager", Judge::Port(network::managed)),
    row("lid", "LID", Judge::Port(network::addressed)),
    row("ping", "Ping by LID", Judge::Port(network::reached)),
    row("ipoib", "IPoIB", Judge::Port(ip::interface)),
    row("rates", "Rates", Judge::Port(wire::rates)),
];

const fn row(id: &'static str, title: &'static str, judge: Judge) -> Row {
    Row { id, title, judge }
}

/// Runs the checks on a host. `network` is the network that one of its ports reached, if a port could be opened.
pub fn infiniband(inventory: &Inventory, network: Option<&Network>) -> Guide {
    let oddities = odd::find(inventory);
    let scene = Scene { inventory, oddities: &oddities, network };
    let ports = infiniband_ports(inventory);
    let linked = ports.iter().filter(|(_, port)| port.has_link() == Some(true));
    let judged = linked.map(|port| (*port, judge(&scene, Some(*port))));
    // Of several ports with a cable, the one that fails first is shown.
    let worst = judged.min_by_key(|(_, checks)| progress(checks));
    let (port, checks) = if let Some((port, checks)) = worst {
        (Some(port), checks)
    } else {
        let first = ports.first().copied();
        (first, judge(&scene, first))
    };
    let is_judged = |other: &&DevicePort<'_>| port.is_some_and(|port| name(port) == name(**other));
    Guide {
        port: port.map(name),
        others: ports.iter().filter(|p| !is_judged(p)).map(|p| name(*p)).collect(),
        checks,
    }
}

/// Runs the checks up to the first one that finds a fault; the others are not judged.
fn judge(scene: &Scene<'_>, port: Option<DevicePort<'_>>) -> Vec<Finding> {
    let mut is_stopped = false;
    let checks = CHECKS.iter().map(|row| {
        let found = match (&row.judge, port) {
            _ if is_stopped => None,
            (Judge::Host(judge), _) => Some(judge(scene)),
            (Judge::Port(judge), Some(port)) => Some(judge(scene, port)),
            (Judge::Port(_), None) => None,
        };
        let found = found.unwrap_or_else(|| answer("").stands(Stands::NotJudged));
        is_stopped |= found.is_now();
        let id = if found.id.is_empty() { row.id } else { found.id };
        Finding { id, subject: row.title.to_owned(), ..found }
    });
    checks.collect()
}

/// The number of checks before the first one that finds a fault.
fn progress(checks: &[Finding]) -> usize {
    checks.iter().position(Finding::is_now).unwrap_or(checks.len())
}

/// The InfiniBand ports of the host; not those of devices that are emulated in software.
fn infiniband_ports(inventory: &Inventory) -> Vec<DevicePort<'_>> {
    let devices = inventory.infiniband.devices.iter().filter(|d| !d.software);
    let ports = devices.flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    ports.filter(|(_, port)| port.layer == Some(Layer::InfiniBand)).collect()
}

fn name((device, port): DevicePort<'_>) -> String {
    format!("{} port {}", device.name, port.number)
}

impl Scene<'_> {
    /// The first oddity of a port with one of these ids.
    fn odd(&self, ids: &[&str], port: DevicePort<'_>) -> Option<&Finding> {
        let subject = name(port);
        let mut all = self.oddities.iter();
        all.find(|odd| ids.contains(&odd.id) && odd.subject == subject)
    }
}

/// The result of a check. Its id and subject are filled in later.
fn answer(what: impl Into<String>) -> Finding {
    Finding::new("", "", what)
}

/// The result of a check that found no fault.
fn ok(what: impl Into<String>) -> Finding {
    answer(what).stands(Stands::Good)
}

/// The result of a check that proved a fault: the id of the fault, its text, and advice.
fn wrong(id: &'static str, what: impl Into<String>, fix: Advice) -> Finding {
    Finding { id, ..answer(what).fix(fix).proved() }
}

/// The result of a check that could not be judged, with advice on how to find out.
fn unknown(what: impl Into<String>, how: Advice) -> Finding {
    answer(what).stands(Stands::Unknown).fix(how)
}

impl Guide {
    /// Whether no check found a fault, and all could be judged.
    pub fn is_well(&self) -> bool {
        self.checks.iter().all(|check| check.stands == Stands::Good)
    }

    /// Whether a check found a fault.
    pub fn is_wrong(&self) -> bool {
        progress(&self.checks) < self.checks.len()
    }
}
