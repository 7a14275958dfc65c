//! Reads the output of `nvme list`.

use linerate_facts::block::BlockDevice;
use linerate_units::Bytes;

use super::table::{Column, cells, columns};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{MOST, command, lookup, scaled};

pub(crate) static NVME: Format = Format {
    id: "nvme",
    label: "nvme list",
    versions: "nvme-cli 1 and 2",
    evidence: "published: forms by the source of nvme-cli 1.16 and 2.3, nvme-print.c; names and numbers are made up",
    unknown: "How a disk is reached: nvme list-subsys has that. Serial numbers are not kept.",
    starts: |at| {
        let is_head = |line: &str| line.contains(" SN ") && line.contains(" Namespace");
        at.line.starts_with("Node ") && is_head(at.line) || node(at.line).is_some()
    },
    read,
    ..Format::FACTS
};

/// Factors of the units after sizes.
const UNITS: [(&str, u64); 4] = [
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
];

/// The name of a disk at the start of a row.
fn node(line: &str) -> Option<&str> {
    let name = line.split_whitespace().next()?.strip_prefix("/dev/")?;
    let is_disk = linerate_facts::block::Namespace::of(name).is_some();
    (is_disk && line.contains(" / ") && line.contains('B')).then_some(name)
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let is_rule = |line: &str| line.starts_with("---");
    let mut reading = Reading::until(section, |line| {
        command(line).is_some() || !(is_rule(line) || node(line).is_some())
    });
    let mut heads: Vec<Column<'_>> = Vec::new();
    for line in std::mem::take(&mut reading.lines) {
        if line.text.starts_with("Node ") {
            heads = columns(line.text);
            // The column `FW Rev` has a blank in its name.
            heads.retain(|column| column.name != "Rev");
        } else if let Some(name) =
            node(line.text).filter(|_| reading.facts.storage.devices.len() < MOST)
        {
            let model = heads.iter().position(|column| column.name == "Model");
            let cells = cells(&heads, line.text);
            let model = model.and_then(|at| cells.get(at)).map_or("", |model| model);
            reading.facts.storage.devices.push(BlockDevice {
                name: name.to_owned(),
                model: model.to_owned(),
                size: size(line.text),
                ..BlockDevice::default()
            });
        }
    }
    let devices = reading.facts.storage.devices.iter_mut();
    devices.for_each(|disk| disk.queue.rotational = Some(false));
    reading.found("nvme")
}

/// Size of a namespace, which nvme rounds, from a row with `512.11  GB /   1.00  TB`.
fn size(row: &str) -> Option<Bytes> {
    let (_, rest) = row.split_once(" / ")?;
    let mut words = rest.split_whitespace();
    let (number, unit) = (words.next()?, words.next()?);
    scaled(number, lookup(&UNITS, unit)?).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::{merged, of, words};

    #[test]
    fn disks_have_models_and_sizes_and_no_serial_numbers() {
        let (all, notes) = of(&["nvme/2.txt"]);
        assert_eq!(words(&notes), [""; 0]);
        let disks: Vec<_> = all
            .storage
            .devices
            .iter()
            .map(|disk| (disk.name.as_str(), disk.model.as_str()))
            .collect();
        assert_eq!(disks, [("nvme0n1", "MAKER X3 1TB"), ("nvme1n1", "MAKER DC 7.68TB")]);
        assert_eq!(all.storage.devices[1].size.map(|size| size.0), Some(7_680_000_000_000));
        assert!(!format!("{all:?}").contains("SERIAL"));
    }

    #[test]
    fn rows_without_the_head_are_read() {
        let row = "/dev/nvme0n1     SERIAL1     MAKER X3      1     1.00  TB /   1.00  TB    512   B +  0 B   FW1\n";
        let (all, _) = merged(&[row]);
        assert_eq!(all.storage.devices[0].name, "nvme0n1");
        assert!(crate::read(b"/dev/nvme0n1 is slow / bad\n").is_err());
    }
}
