//! Reads the output of `ethtool eth0`: speed, duplex, and modes of the link.

use linerate_facts::nic::{Duplex, Nic, speed_of_mbps};

use super::{PROGRAM, VERSIONS, named, port};
use crate::facts::lines::{Reading, understood};
use crate::format::{Format, Found, Section};
use crate::reading::{Line, decimal, first_line, lookup, small};

pub(crate) static SETTINGS: Format = Format {
    id: "ethtool",
    label: "ethtool of a port",
    versions: VERSIONS,
    evidence: "run here: ethtool 6.1 of a virtio port and of a veth port; published: \
        geerlingguy/raspberry-pi-pcie-devices issue 364, with the end and a second port made up",
    unknown: "The driver and the slot of the port are not in it.",
    starts: |at| named(at.line.trim_end(), START).is_some() || is_speed(at.text),
    read,
    ..Format::FACTS
};

const START: &str = "Settings for ";

/// The name used for a port if only its speed was pasted.
const NAMELESS: &str = "port";

/// Whether a text begins with a line such as `Speed: 1000Mb/s`, which `grep` leaves: no other program writes a speed
/// so.
pub(crate) fn is_speed(text: &str) -> bool {
    let speed = first_line(text).trim().strip_prefix("Speed: ");
    let number = speed.and_then(|speed| speed.strip_suffix("Mb/s"));
    number.is_some_and(|number| decimal(number).is_some())
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reader = Reader {
        reading: super::reading(section),
        name: NAMELESS.to_owned(),
        list: None,
        ended: !is_speed(section.text),
        speeds: 0,
    };
    for line in std::mem::take(&mut reader.reading.lines) {
        if reader.take(line).is_none() {
            reader.reading.strange(line);
        }
    }
    reader.end();
    reader.reading.found(PROGRAM)
}

/// A list of modes that continues in the next lines.
#[derive(Clone, Copy)]
enum List {
    Supported,
    Advertised,
    Peer,
    Other,
}

struct Reader<'a> {
    reading: Reading<'a>,
    /// Name of the port that the lines are about.
    name: String,
    list: Option<List>,
    /// Whether the last line about the port was read.
    ended: bool,
    /// Number of speeds of ports without a name.
    speeds: u32,
}

impl Reader<'_> {
    /// Reads a line; `None` if it is not understood.
    fn take(&mut self, line: Line<'_>) -> Option<()> {
        let passed = line.is_indented().then_some(());
        if let Some(name) = named(line.text, START) {
            self.end();
            name.clone_into(&mut self.name);
            (self.list, self.ended) = (None, !self.reading.has_room());
            return port(&mut self.reading, name).map(|_| ());
        }
        let Some((key, value)) = line.pair() else {
            // A line of modes, or of names of messages: `drv probe link`.
            passed?;
            return self.modes(self.list?, line.trimmed());
        };
        if let Some(list) = list_of(key) {
            self.list = Some(list);
            return self.modes(list, value);
        }
        // All other values fill one line.
        self.list = (key == "Current message level").then_some(List::Other);
        self.ended |= key == "Link detected";
        // If several ports without a name have speeds, it is unknown which port carries the path.
        self.speeds += u32::from(key == "Speed" && self.name == NAMELESS);
        value_of(port(&mut self.reading, &self.name)?, key, value, passed)
    }

    fn modes(&mut self, list: List, text: &str) -> Option<()> {
        let nic = port(&mut self.reading, &self.name)?;
        let into = match list {
            List::Supported => &mut nic.link.supported,
            List::Advertised => &mut nic.link.advertised,
            List::Peer => &mut nic.link.peer,
            List::Other => return Some(()),
        };
        // The words `Not reported` are not modes.
        let modes = text.split_whitespace().filter(|word| word.contains("base"));
        into.extend(modes.take(256).map(str::to_owned));
        Some(())
    }

    /// Adds a note if the end of a port's lines is missing.
    fn end(&mut self) {
        if self.ended {
            return;
        }
        // A port that has a speed has a link.
        if let Some(nic) =
            port(&mut self.reading, &self.name).filter(|nic| nic.link.speed.is_some())
        {
            nic.up = true;
            if self.speeds > 1 {
                nic.link.speed = None;
            }
            return;
        }
        self.ended = true;
        let what =
            format!("the end about {} is missing: whether it has a link is unknown", self.name);
        self.reading.notes.push(None, what);
    }
}

fn list_of(key: &str) -> Option<List> {
    Some(match key {
        "Supported link modes" => List::Supported,
        "Advertised link modes" => List::Advertised,
        "Link partner advertised link modes" => List::Peer,
        "Supported ports" | "Supported FEC modes" | "Advertised FEC modes" => List::Other,
        _ => return None,
    })
}

/// Reads a value; `None` if it is not understood. Returns `passed` if the value is not used.
fn value_of(nic: &mut Nic, key: &str, value: &str, passed: Option<()>) -> Option<()> {
    const DUPLEXES: [(&str, Duplex); 2] = [("Full", Duplex::Full), ("Half", Duplex::Half)];
    match key {
        "Speed" if !value.starts_with("Unknown") => {
            let number = value.strip_suffix("Mb/s").and_then(decimal);
            nic.link.speed = number.and_then(speed_of_mbps);
            number.map(|_| ())
        }
        "Duplex" if !value.starts_with("Unknown") => {
            understood(&mut nic.link.duplex, lookup(&DUPLEXES, value))
        }
        "Lanes" => understood(&mut nic.link.lanes, small(value)),
        "Auto-negotiation" => understood(&mut nic.link.autoneg, switch(value)),
        "Link detected" => link(nic, value).then_some(()),
        _ => passed,
    }
}

/// Reads whether there is a link: `yes`, `no`, or `no (No cable)`; returns `false` if the value is another.
fn link(nic: &mut Nic, value: &str) -> bool {
    let (word, why) = value.split_once(' ').unwrap_or((value, ""));
    nic.up = word == "yes";
    if word == "no" {
        // Without a link, some drivers still show the last speed.
        (nic.link.speed, nic.link.duplex) = (None, None);
        let why = why.trim_start_matches('(').trim_end_matches(')');
        nic.down = why.to_lowercase();
    }
    matches!(word, "yes" | "no")
}

/// Reads a switch, which is `on` or `off`.
pub(super) fn switch(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}
