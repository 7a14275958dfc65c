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
use linerate_facts::infiniband::{IbDevice, IbPort, Layer};
use linerate_facts::odd::{self, Oddity};

/// What a check found.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// All is well. The advice, if there is one, makes it faster.
    Ok(Option<Advice>),
    /// Something is wrong; what to do.
    Wrong(Advice),
    /// It could not be judged; how to know.
    Unknown(Advice),
    /// An earlier check is wrong: this one cannot be judged.
    Waits,
}

/// A check with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Stable id: `card`, `manager`.
    pub id: &'static str,
    /// The question in a few words.
    pub title: &'static str,
    /// What was found, in words; empty for a check that waits.
    pub what: String,
    /// Whether that is well, and what to do.
    pub state: State,
}

/// All checks of one port.
#[derive(Debug, Clone, PartialEq)]
pub struct Guide {
    /// The port that the checks from the cable on are about: `mlx4_0 port 1`. `None` if there is none.
    pub port: Option<String>,
    /// The other InfiniBand ports of the host.
    pub others: Vec<String>,
    /// The checks, in order.
    pub checks: Vec<Check>,
}

/// What is known.
struct Scene<'a> {
    inventory: &'a Inventory,
    oddities: &'a [Oddity],
    network: Option<&'a Network>,
}

/// A port with its device.
type DevicePort<'a> = (&'a IbDevice, &'a IbPort);

/// What a check says.
type Answer = (String, State);

struct Row {
    id: &'static str,
    title: &'static str,
    judge: Judge,
}

/// What judges a check.
enum Judge {
    /// A check of the host as a whole.
    Host(fn(&Scene<'_>) -> Answer),
    /// A check of one port.
    Port(fn(&Scene<'_>, DevicePort<'_>) -> Answer),
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
fn judge(scene: &Scene<'_>, port: Option<DevicePort<'_>>) -> Vec<Check> {
    let mut is_stopped = false;
    let checks = CHECKS.iter().map(|row| {
        let answer = match (&row.judge, port) {
            _ if is_stopped => None,
            (Judge::Host(judge), _) => Some(judge(scene)),
            (Judge::Port(judge), Some(port)) => Some(judge(scene, port)),
            (Judge::Port(_), None) => None,
        };
        let (what, state) = answer.unwrap_or((String::new(), State::Waits));
        is_stopped |= matches!(state, State::Wrong(_));
        Check { id: row.id, title: row.title, what, state }
    });
    checks.collect()
}

/// The number of checks before the first one that is wrong.
fn progress(checks: &[Check]) -> usize {
    let wrong = |check: &Check| matches!(check.state, State::Wrong(_));
    checks.iter().position(wrong).unwrap_or(checks.len())
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
    fn odd(&self, ids: &[&str], port: DevicePort<'_>) -> Option<&Oddity> {
        let subject = name(port);
        let mut all = self.oddities.iter();
        all.find(|odd| ids.contains(&odd.id) && odd.subject == subject)
    }
}

/// A check that is well.
fn ok(what: impl Into<String>) -> Answer {
    (what.into(), State::Ok(None))
}

/// What an oddity says is wrong.
fn wrong(odd: &Oddity) -> Answer {
    (format!("{}: {}", odd.what, odd.why), State::Wrong(odd.fix.clone()))
}

impl Guide {
    /// Whether all checks are well.
    pub fn is_well(&self) -> bool {
        self.checks.iter().all(|check| matches!(check.state, State::Ok(_)))
    }

    /// Whether a check is wrong.
    pub fn is_wrong(&self) -> bool {
        progress(&self.checks) < self.checks.len()
    }
}
