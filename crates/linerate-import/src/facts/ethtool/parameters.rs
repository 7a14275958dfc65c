//! Reads the output of `ethtool -g`, `-l`, `-c` and `-a`: rings, channels, coalescing, and flow control.

use linerate_facts::nic::{Channels, Coalesce, Nic, Pause, Rings, Setting};

use super::settings::switch;
use super::{PROGRAM, VERSIONS, named, port};
use crate::facts::lines::{Reading, understood};
use crate::format::{Format, Found, Section};
use crate::reading::{Line, pair, small};

pub(crate) static PARAMETERS: Format = Format {
    id: "ethtool-parameters",
    label: "ethtool -g, -l, -c and -a",
    versions: VERSIONS,
    evidence: "run here: ethtool 6.1 of a virtio port: -g, -l and -c; published: the form of -a is made up \
        after ethtool's own source",
    unknown: "A value that the driver does not report (n/a) is unknown; old versions write 0 for it, and a maximum of \
              0 is left out.",
    starts: |at| head(at.line.trim_end()).is_some(),
    read,
    ..Format::FACTS
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Rings,
    Channels,
    Coalesce,
    Pause,
}

const TABLES: [(&str, Table); 4] = [
    ("Ring parameters for ", Table::Rings),
    ("Channel parameters for ", Table::Channels),
    ("Coalesce parameters for ", Table::Coalesce),
    ("Pause parameters for ", Table::Pause),
];

fn head(line: &str) -> Option<(&str, Table)> {
    let mut tables = TABLES.iter();
    tables.find_map(|(start, table)| Some((named(line, start)?, *table)))
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reading = super::reading(section);
    let mut now = ("", Table::Rings);
    let mut is_most = false;
    reading.each(|reading, line| {
        if let Some(head) = head(line.text) {
            (now, is_most) = (head, false);
            return begin(reading, now);
        }
        let is_head = line.text.starts_with("Pre-set maximums");
        if is_head || line.text.starts_with("Current hardware settings") {
            is_most = is_head;
            return Some(());
        }
        take(reading, now, is_most, line)
    });
    reading.found(PROGRAM)
}

fn begin(reading: &mut Reading<'_>, (name, table): (&str, Table)) -> Option<()> {
    let nic = port(reading, name)?;
    match table {
        Table::Rings => nic.rings = Some(Rings::default()),
        Table::Channels => nic.channels = Some(Channels::default()),
        Table::Coalesce => {
            nic.before.coalesce = nic.before.coalesce.or(nic.coalesce);
            nic.coalesce = Some(Coalesce::default());
        }
        Table::Pause => nic.pause = Some(Pause::default()),
    }
    Some(())
}

/// Reads a line; `None` if it is not understood.
fn take(
    reading: &mut Reading<'_>,
    (name, table): (&str, Table),
    is_most: bool,
    line: Line<'_>,
) -> Option<()> {
    let nic = port(reading, name)?;
    let (key, value) = line.pair()?;
    match table {
        Table::Rings | Table::Channels => size(nic, table, is_most, (key, value)),
        Table::Coalesce => coalesce(nic, line.text, (key, value)),
        Table::Pause => pause(nic, (key, value)),
    }
}

/// The number in a value, or `None` for `n/a`; an error if the value is not understood.
fn number(value: &str) -> Result<Option<u32>, ()> {
    if value == "n/a" { Ok(None) } else { small(value).map(Some).ok_or(()) }
}

fn size(nic: &mut Nic, table: Table, is_most: bool, (key, value): (&str, &str)) -> Option<()> {
    let setting: &mut Setting = match (table, key, &mut nic.rings, &mut nic.channels) {
        (Table::Rings, "RX", Some(rings), _) => &mut rings.rx,
        (Table::Rings, "TX", Some(rings), _) => &mut rings.tx,
        (Table::Channels, "RX", _, Some(channels)) => &mut channels.rx,
        (Table::Channels, "TX", _, Some(channels)) => &mut channels.tx,
        (Table::Channels, "Combined", _, Some(channels)) => &mut channels.combined,
        // Other kinds of rings, and parameters of newer versions, are not used.
        _ => return Some(()),
    };
    let number = number(value).ok()?;
    if is_most {
        setting.most = number.filter(|&most| most > 0);
    } else {
        // Without a maximum the value cannot be set, and then 0 means that the driver does not know it.
        setting.now = number.filter(|&now| now > 0 || setting.most.is_some());
    }
    Some(())
}

fn coalesce(nic: &mut Nic, line: &str, (key, value): (&str, &str)) -> Option<()> {
    let coalesce = nic.coalesce.as_mut()?;
    if key == "Adaptive RX" {
        let (rx, tx) = value.split_once("TX:").unwrap_or((value, ""));
        coalesce.adaptive_rx = switch(rx.trim());
        coalesce.adaptive_tx = switch(tx.trim());
        return (coalesce.adaptive_rx.is_some() || rx.trim() == "n/a").then_some(());
    }
    let into = match key {
        "rx-usecs" => &mut coalesce.rx_usecs,
        "rx-frames" => &mut coalesce.rx_frames,
        "tx-usecs" => &mut coalesce.tx_usecs,
        "tx-frames" => &mut coalesce.tx_frames,
        // Some twenty further values are not used.
        _ => return pair(line).map(|_| ()),
    };
    *into = number(value).ok()?;
    Some(())
}

fn pause(nic: &mut Nic, (key, value): (&str, &str)) -> Option<()> {
    let pause = nic.pause.as_mut()?;
    let into = match key {
        "Autonegotiate" => &mut pause.autoneg,
        "RX" => &mut pause.rx,
        "TX" => &mut pause.tx,
        _ => {
            let is_passed = key.ends_with("negotiated") || key.starts_with("Statistics");
            return is_passed.then_some(());
        }
    };
    understood(into, switch(value))
}
