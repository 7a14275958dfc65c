//! Reads lines of the kernel's log about PCI Express bandwidth and about links of ports.

#[cfg(test)]
mod tests;

use linerate_facts::nic::{Nic, speed_of_mbps};
use linerate_facts::pci::{Address, Device, Limited, Link};
use linerate_units::Transfers;

use super::{entry, port};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, command, decimal, scaled, small};

pub(crate) static DMESG: Format = Format {
    id: "dmesg",
    label: "dmesg: PCI Express bandwidth, links of ports",
    versions: "Linux 4.17 to 6.18 for bandwidth; any for links, where the line has address, name and speed",
    evidence: "published: NVIDIA/l2fwd-nv issue 6, geerlingguy/arm-nas issue 16, ntop/PF_RING issue 293, \
        geerlingguy/raspberry-pi-pcie-devices issue 364; lines of other drivers are made up after their forms",
    unknown: "The state of a link is that of the last line about it; lines before the log begins are missing.",
    starts: |at| {
        // This quick test excludes most lines. The line about a downshift precedes the one that names the port.
        let is_link = at.line.contains("ink ") || at.line.contains("PCIe bandwidth");
        at.line.contains(DOWNSHIFT)
            || is_link && message(at.line).is_some_and(|message| fact(&message).is_some())
    },
    read,
    ..Format::FACTS
};

/// Texts about a link that fell back to a lower speed: of the PHY's driver, and of the port when its link is up.
//= torvalds/linux, drivers/net/phy/phy-core.c: phy_check_downshift; drivers/net/phy/phy.c: phy_print_status
const DOWNSHIFT: &str = ": Downshift occurred from negotiated speed ";
const DOWNSHIFTED: &str = "(downshifted)";

/// A message about a device, such as `[   10.6] mlx5_core 0000:01:00.0 eth0: text`.
struct Message<'a> {
    driver: &'a str,
    address: Address,
    /// Name of the port; empty if the message has none.
    port: &'a str,
    text: &'a str,
}

fn message(line: &str) -> Option<Message<'_>> {
    let (at, address) = line.match_indices(':').take(8).find_map(|(at, _)| {
        // The first colon is within the address `0000:01:00.0`, whose domain may have more digits.
        let start = line[..at].rfind(' ').map_or(0, |blank| blank + 1);
        let end = line[start..].find([' ', ',']).map_or(line.len(), |blank| start + blank);
        let word = line.get(start..end)?;
        let address: Address = word.strip_suffix(':').unwrap_or(word).parse().ok()?;
        Some((start..end, address))
    })?;
    let driver = line[..at.start].trim_end().rsplit(' ').next()?;
    let rest = &line[at.end..];
    let (port, text) = if line[at].ends_with(':') { ("", rest) } else { rest.split_once(':')? };
    let port = port.trim().split(' ').next().unwrap_or_default();
    Some(Message {
        driver: driver.trim_end_matches(':'),
        address,
        // A port that was just created has no name yet.
        port: if port.contains('(') { "" } else { port },
        text: text.trim(),
    })
}

/// The fact that a message states.
enum Fact {
    /// The device's link as it runs. If it is slower than the device's best link: the place of the limit, and the
    /// best link.
    Bandwidth { now: Link, limit: Option<(Address, Link)> },
    /// A port has a link; with the speed in Mb/s if the message has it.
    Up(Option<u64>),
    /// A port lost its link.
    Down,
}

fn fact(message: &Message<'_>) -> Option<Fact> {
    // PCIe slots report links too; these are not links of ports.
    let is_slot = message.driver == "pcieport" || message.text.contains("Slot(");
    bandwidth(message.text).or_else(|| carrier(message.text).filter(|_| !is_slot))
}

/// Reads `63.008 Gb/s available PCIe bandwidth (8.0 GT/s PCIe x8 link)`, or `..., limited by 8.0 GT/s PCIe x4 link at
/// 0000:00:1c.0 (capable of 126.016 Gb/s with 16.0 GT/s PCIe x4 link)`.
//= torvalds/linux, drivers/pci/pci.c: __pcie_print_link_status
fn bandwidth(text: &str) -> Option<Fact> {
    let (_, rest) = text.split_once(" available PCIe bandwidth")?;
    let Some(rest) = rest.strip_prefix(", limited by ") else {
        let now = link(rest.trim().strip_prefix('(')?)?;
        return Some(Fact::Bandwidth { now, limit: None });
    };
    let (now, rest) = rest.split_once(" link at ")?;
    let (at, best) = rest.split_once(' ')?;
    let (_, best) = best.split_once(" with ")?;
    Some(Fact::Bandwidth { now: link(now)?, limit: Some((at.parse().ok()?, link(best)?)) })
}

/// Reads a link such as `8.0 GT/s PCIe x4`; before Linux 5.1 it is written as `8 GT/s x4`.
fn link(text: &str) -> Option<Link> {
    let (speed, rest) = text.split_once(" GT/s ")?;
    let rest = rest.strip_prefix("PCIe ").unwrap_or(rest);
    let digits = rest.strip_prefix('x')?.split([' ', ')']).next()?;
    Some(Link {
        speed: Some(Transfers(scaled(speed, 1_000_000_000)?)),
        width: Some(u8::try_from(small(digits)?).ok()?),
    })
}

/// Reads a text such as `NIC Link is Up 10 Gbps, Flow Control: RX`, `Link is up at 1000 Mbps, full duplex`, `Link up`
/// or `Link is Down`.
fn carrier(text: &str) -> Option<Fact> {
    let lower = text.to_ascii_lowercase();
    let (_, rest) = lower.split_once("link ")?;
    if let Some(change) = rest.strip_prefix("change old ") {
        // The driver atlantic writes `link change old 0 new 10000`.
        let mbps = decimal(change.split_once(" new ")?.1.trim())?;
        return Some(if mbps == 0 { Fact::Down } else { Fact::Up(Some(mbps)) });
    }
    let rest = rest.strip_prefix("is ").unwrap_or(rest);
    if let Some(rest) = rest.strip_prefix("up") {
        return Some(Fact::Up(speed(rest)));
    }
    let is_down = rest.split([' ', ',', '.']).next() == Some("down");
    is_down.then_some(Fact::Down)
}

/// The first speed in a text, in Mb/s, such as ` 10 gbps`, ` - 1gbps/full` or `, 25000 mbps full duplex`.
fn speed(text: &str) -> Option<u64> {
    let (at, unit) = [("gbps", 1_000), ("mbps", 1)]
        .iter()
        .find_map(|(name, unit)| Some((text.find(name)?, *unit)))?;
    let number = text[..at].trim_end().rsplit([' ', ',']).next()?;
    scaled(number, unit)
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    // A line of the log may look like a prompt: `foo -> bar`.
    let ends = |line: &str| {
        command(line).is_some() && !line.trim_start().starts_with('[') && message(line).is_none()
    };
    let mut reading = Reading::until(section, ends);
    for line in std::mem::take(&mut reading.lines) {
        let message = message(line.text);
        let fact = message.as_ref().and_then(fact);
        match (message, fact) {
            (Some(message), Some(fact)) => keep(&mut reading, line, &message, &fact),
            // Most lines of a log have no fact that linerate uses.
            (None, _) if !is_log(line.text) => reading.strange(line),
            _ => {}
        }
    }
    reading.found("dmesg")
}

/// Whether a line is from a log: it begins with a time stamp, or names the kernel.
fn is_log(line: &str) -> bool {
    line.starts_with('[') || line.contains(" kernel: ")
}

fn keep(reading: &mut Reading<'_>, line: Line<'_>, message: &Message<'_>, fact: &Fact) {
    let (up, speed) = match fact {
        Fact::Bandwidth { now, limit } => {
            return bandwidth_of(reading, message, *now, *limit);
        }
        Fact::Up(speed) => (true, *speed),
        Fact::Down => (false, None),
    };
    if message.port.is_empty() {
        let state = if up { "up" } else { "down" };
        let what =
            format!("the link of {} is {state}, and its name is not in the line", message.address);
        return reading.notes.at(line.number, what);
    }
    // The message names the driver of the device; the driver of the port may be another one.
    if let Some(device) = device(reading, message.address) {
        message.driver.clone_into(&mut device.driver);
    }
    let Some(nic) = port(&mut reading.facts.network, message.port) else {
        return;
    };
    let mut modes = std::mem::take(&mut nic.link);
    modes.speed = speed.and_then(speed_of_mbps);
    modes.downshifted = up && message.text.contains(DOWNSHIFTED);
    *nic = Nic {
        name: message.port.to_owned(),
        device: message.address.to_string(),
        pci: message.address.to_string(),
        up,
        link: modes,
        ..Nic::default()
    };
}

fn bandwidth_of(
    reading: &mut Reading<'_>,
    message: &Message<'_>,
    now: Link,
    limit: Option<(Address, Link)>,
) {
    let Some((at, best)) = limit else {
        // The device runs at its best: no slower link is above it.
        if let Some(device) = device(reading, message.address) {
            (device.now, device.max) = (Some(now), Some(now));
            device.limited = None;
            message.driver.clone_into(&mut device.driver);
        }
        return;
    };
    if let Some(device) = device(reading, message.address) {
        device.max = Some(best);
        device.limited = Some(Limited { now, at: Some(at) });
        message.driver.clone_into(&mut device.driver);
    }
    if let Some(slowest) = device(reading, at) {
        slowest.now = Some(now);
    }
}

/// The device with this address, added if it is new; `None` if there are too many devices.
fn device<'a>(reading: &'a mut Reading<'_>, address: Address) -> Option<&'a mut Device> {
    let new = |address| Device { address, ..Device::default() };
    entry(&mut reading.facts.pci, address, |device| device.address, new)
}
