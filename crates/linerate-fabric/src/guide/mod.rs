//! The checks of a first InfiniBand network, in the order in which each needs the one before it.
//!
//! A check is pure: it judges an inventory and, where a port could be opened, the network that answered. What it cannot
//! know is unknown, with the command that shows it.

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

/// All checks of one port.
#[derive(Debug, Clone, PartialEq)]
pub struct Guide {
    /// The port that the checks from the cable on are about: `mlx4_0 port 1`. `None` if there is none.
    pub port: Option<String>,
    /// The other InfiniBand ports of the host.
    pub others: Vec<String>,
    /// What the checks found, in order. The subject is the question in a few words. The id is that of the fault where one
    /// is named, and that of the check elsewhere.
    pub checks: Vec<Finding>,
}

/// What is known.
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

/// What judges a check.
enum Judge {
    /// A check of the host as a whole.
    Host(fn(&Scene<'_>) -> Finding),
    /// A check of one port.
    Port(fn(&Scene<'_>, DevicePort<'_>) -> Finding),
}

/// All checks, in order.
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

/// Judges a host. `network` is what one of its ports reached, if a port could be opened.
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

/// Runs the checks up to the first that is wrong.
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

/// The number of checks before the first one that is wrong.
fn progress(checks: &[Finding]) -> usize {
    checks.iter().position(Finding::is_now).unwrap_or(checks.len())
}

/// The ports of hardware that speak InfiniBand.
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

/// What a check found. Its id and subject are those of the check.
fn answer(what: impl Into<String>) -> Finding {
    Finding::new("", "", what)
}

/// A check that is well.
fn ok(what: impl Into<String>) -> Finding {
    answer(what).stands(Stands::Good)
}

/// A check that is wrong, as what was read proves: the id of the fault, and what to do.
fn wrong(id: &'static str, what: impl Into<String>, fix: Advice) -> Finding {
    Finding { id, ..answer(what).fix(fix).proved() }
}

/// A check that could not be judged, and how to know.
fn unknown(what: impl Into<String>, how: Advice) -> Finding {
    answer(what).stands(Stands::Unknown).fix(how)
}

impl Guide {
    /// Whether all checks are well.
    pub fn is_well(&self) -> bool {
        self.checks.iter().all(|check| check.stands == Stands::Good)
    }

    /// Whether a check is wrong.
    pub fn is_wrong(&self) -> bool {
        progress(&self.checks) < self.checks.len()
    }
}
