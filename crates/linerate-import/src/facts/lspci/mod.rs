//! Reads the output of `lspci`.

mod class;
mod device;
#[cfg(test)]
mod tests;

use linerate_facts::Gap;
use linerate_facts::pci::{DRIVERS, Device, Limited, Link, NODES, PortKind, at};

use self::device::Text;
use super::tree;
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, MOST};

pub(crate) static LSPCI: Format = Format {
    id: "lspci",
    label: "lspci, plain or with -v to -vvv, -k, -n, -nn, -D, -s",
    versions: "pciutils 3.1 to 3.14",
    evidence: "run here: lspci 3.9.0 in a virtual machine; on registers of pciutils' tests (tree-asus-p6t6; \
        cap-pcie-2 and cap-exp-dev2 with changed widths); and on a server's files of hwloc's tests, without \
        the rights of root",
    unknown: "Without the rights of root it has no links and no packet sizes; of a device that is pasted without the \
              bridges above it, the slot is unknown.",
    starts: |at| device::head(at.line).is_some() || is_link(at.line),
    read,
    ..Format::FACTS
};

/// Whether a line is about the link of a device whose first line is missing, as after `grep Lnk`.
fn is_link(line: &str) -> bool {
    line.trim_start().starts_with("LnkCap:")
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reading = Reading::of(section);
    let lines = std::mem::take(&mut reading.lines);
    let mut all: Vec<Text> = Vec::new();
    if lines.first().is_some_and(|line| is_link(line.text)) {
        let named = reading.command.and_then(device::of_command);
        let device = named.ok_or(
            "the device is missing: paste its first line too, or the command with its address",
        )?;
        all.push(Text::new(device, section.line));
    }
    for line in lines {
        match device::head(line.text) {
            Some(_) if all.len() >= MOST => {
                reading.notes.at(line.number, "further devices are left out");
                break;
            }
            Some(device) => all.push(Text::new(device, line.number)),
            None => take(&mut reading, all.last_mut(), line),
        }
    }
    gaps(&mut reading, &all);
    reading.facts.pci = sorted(all.iter().map(|text| text.device.clone()).collect());
    tree::link_up(&mut reading.facts.pci);
    for text in &all {
        slower(&mut reading, text);
    }
    reading.found("lspci")
}

fn take(reading: &mut Reading<'_>, text: Option<&mut Text>, line: Line<'_>) {
    let belongs = line.is_indented() || device::is_known(line.text);
    let is_read = text.is_some_and(|text| belongs && text.take(line.trimmed()));
    if !is_read {
        reading.strange(line);
    }
}

/// The devices in the order of their addresses. If a device is pasted twice, the later text counts.
fn sorted(mut all: Vec<Device>) -> Vec<Device> {
    all.reverse();
    all.sort_by_key(|device| device.address);
    all.dedup_by_key(|device| device.address);
    all
}

/// Adds gaps for facts that this kind of output leaves unknown for all devices.
fn gaps(reading: &mut Reading<'_>, all: &[Text]) {
    let mut lack = |what: &str, why: &str, hint: &str| {
        reading.facts.gaps.push(Gap {
            what: what.to_owned(),
            why: why.to_owned(),
            hint: hint.to_owned(),
        });
    };
    if all.iter().all(|text| text.device.driver.is_empty()) {
        lack(DRIVERS, "no driver is in the output of lspci", "lspci -k");
    }
    if all.iter().all(|text| text.device.node.is_none()) {
        lack(NODES, "no NUMA node is in the output of lspci", "lspci -v");
    }
    if all.iter().any(|text| text.is_denied) {
        lack("facts.pci.links", "only root can read links and packet sizes", "sudo lspci -vv");
    }
}

/// Handles a card that runs below its own best, if the output lacks the bridge above it: a fact if lspci itself marks
/// the link as slower, else a note.
fn slower(reading: &mut Reading<'_>, text: &Text) {
    let device = &text.device;
    let found = at(&reading.facts.pci, device.address);
    let is_alone = found.is_some_and(|d| d.parent.is_none());
    let (Some(now), Some(max)) = (device.now, device.max) else {
        return;
    };
    let faces_up = !matches!(device.kind, Some(PortKind::Root | PortKind::Downstream));
    if !(is_alone && faces_up && is_less(now, max)) {
        return;
    }
    let is_card = device.class == 0 || device.carries_data();
    if text.is_downgraded && is_card {
        let mut all = reading.facts.pci.iter_mut();
        if let Some(found) = all.find(|found| found.address == device.address) {
            found.limited = Some(Limited { now, at: None });
        }
        return;
    }
    let what = format!(
        "{} runs at {now} and could do {max}; whether its slot or the link limits it is unknown without the bridge \
         above it (sudo lspci -vv of all devices)",
        device.address
    );
    reading.notes.at(text.line, what);
}

fn is_less(now: Link, max: Link) -> bool {
    let less =
        |now: Option<u64>, max: Option<u64>| now.zip(max).is_some_and(|(now, max)| now < max);
    less(now.width.map(u64::from), max.width.map(u64::from))
        || less(now.speed.map(|s| s.0), max.speed.map(|s| s.0))
}
