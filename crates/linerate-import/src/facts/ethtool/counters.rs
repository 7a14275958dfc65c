//! Reads the output of `ethtool -S eth0`: the counters of a driver.

use linerate_facts::nic::{Counter, counted};

use super::{PROGRAM, VERSIONS, port};
use crate::facts::lines::{Reading, is_prompt};
use crate::format::{Format, Found, Section};
use crate::reading::{Line, decimal, first_line};

pub(crate) static COUNTERS: Format = Format {
    id: "ethtool-counters",
    label: "ethtool -S",
    versions: VERSIONS,
    evidence: "run here: ethtool 6.1 of a virtio port",
    unknown: "The name of the port is only in the command before the output, and since when the driver counts is not \
              in it.",
    starts: |at| at.line.starts_with(START),
    read,
    ..Format::FACTS
};

const START: &str = "NIC statistics:";
/// Largest number of counters of a port.
const MOST: usize = 16_384;

fn read(section: &Section<'_>) -> Result<Found, String> {
    // The counters of another port, or another reading of this port, are a separate output if the heading names the
    // port.
    let mut reading = Reading::until(section, |line| {
        let is_next = line.trim_end().len() > START.len() && line.starts_with(START);
        is_next || is_prompt(line)
    });
    let lines = std::mem::take(&mut reading.lines);
    let said = first_line(section.text).strip_prefix(START).map(str::trim);
    let said = said.filter(|name| !name.is_empty());
    let Some(name) = said.or(reading.argument(PROGRAM)).map(str::to_owned) else {
        return Err(
            "the name of the port is missing: paste the command too, `ethtool -S PORT`".to_owned()
        );
    };
    let mut counters = Vec::new();
    for line in lines.into_iter().skip(1) {
        if line.text == START {
            reading.notes.at(line.number, "counters of another port follow, whose name is missing");
            break;
        }
        match counter(line).filter(|_| counters.len() < MOST) {
            Some(counter) => counters.push(counter),
            None => reading.strange(line),
        }
    }
    if let Some(nic) = port(&mut reading, &name) {
        nic.counters = counted::grouped(counters);
    }
    reading.found(PROGRAM)
}

/// Reads a line such as `     rx_queue_0_drops: 12`; names may have blanks and colons.
fn counter(line: Line<'_>) -> Option<Counter> {
    let (name, value) = line.trimmed().rsplit_once(':')?;
    let is_name = line.is_indented() && !name.trim().is_empty();
    Some(Counter { name: is_name.then(|| name.trim().to_owned())?, value: decimal(value.trim())? })
}
