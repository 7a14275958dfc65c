//! Reads the output of `lsblk`.

use linerate_facts::block::{BlockDevice, Layer};
use linerate_units::Bytes;

use super::table::{Column, cells, columns};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{MOST, command, first_line, lookup, scaled};

pub(crate) static LSBLK: Format = Format {
    id: "lsblk",
    label: "lsblk",
    versions: "util-linux 2.20 to 2.41",
    evidence: "run here: 2.38.1",
    unknown: "Columns that were not asked for; whether a disk rotates may be wrong in a virtual machine and behind a USB bridge.",
    starts: |at| is_head(at.line),
    read,
    ..Format::FACTS
};

/// Columns of which a table must have at least one: tables of other programs have names and sizes too.
const TELLING: [&str; 6] = ["ROTA", "MAJ:MIN", "TRAN", "MODEL", "SCHED", "FSTYPE"];
/// Characters of the tree before a name.
const TREE: [char; 10] = ['├', '└', '─', '│', '|', '`', '-', '+', ' ', '\t'];
/// Starts of the names of disks, for tables in which no column has the type.
const DISKS: [&str; 9] = ["sd", "nvme", "vd", "xvd", "hd", "mmcblk", "md", "dm-", "zram"];
/// Factors of the letters after sizes.
const UNITS: [(&str, u64); 6] =
    [("B", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40), ("P", 1 << 50)];

fn is_head(line: &str) -> bool {
    // This quick test excludes most lines.
    if !line.trim_start().starts_with(['N', 'K', 'P']) {
        return false;
    }
    let columns = columns(line);
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    let is_name =
        columns.first().is_some_and(|column| ["NAME", "KNAME", "PATH"].contains(&column.name));
    is_name && columns.len() > 1 && TELLING.into_iter().any(has)
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let columns = columns(first_line(section.text));
    // Further mount points of a device have lines of their own.
    let is_point = |line: &str| line.starts_with(' ') && line.trim_start().starts_with(['/', '[']);
    let is_other = |line: &str| {
        command(line).is_some() || !is_point(line) && Row::of(&columns, line).is_none()
    };
    let mut reading = Reading::until(section, is_other);
    for line in std::mem::take(&mut reading.lines).iter().skip(1) {
        let row = Row::of(&columns, line.text);
        let device = row.and_then(|row| row.device());
        let devices = &mut reading.facts.storage.devices;
        devices.extend(device.filter(|_| devices.len() < MOST));
    }
    reading.found("lsblk")
}

/// The name at the start of a row; `None` if the line does not begin with a name.
fn name(row: &str) -> Option<&str> {
    let first = row.trim_start_matches(TREE).split_whitespace().next()?;
    let name = first.strip_prefix("/dev/").unwrap_or(first);
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.!/".contains(c);
    (!name.is_empty() && name.chars().all(is_part)).then_some(name)
}

/// A row: the name of its device, and the text of its cell in each column.
struct Row<'a> {
    name: &'a str,
    columns: &'a [Column<'a>],
    cells: Vec<String>,
}

impl<'a> Row<'a> {
    /// Reads a row of the table; `None` if the line is something else.
    fn of(columns: &'a [Column<'a>], line: &'a str) -> Option<Self> {
        // Characters of the tree have several bytes but one column, so they are replaced by blanks.
        let sign = |c: char| {
            if c.is_ascii() || !TREE.contains(&c) { c } else { ' ' }
        };
        let plain: String = line.chars().map(sign).collect();
        let row = Self {
            name: name(line)?,
            columns,
            cells: cells(columns, &plain).into_iter().map(str::to_owned).collect(),
        };
        let turns = row.get("ROTA").map(|cell| ["0", "1"].contains(&cell));
        let number = row.get("MAJ:MIN").map(|cell| cell.contains(':'));
        let is_named = || DISKS.iter().any(|start| row.name.starts_with(start));
        turns.or(number).unwrap_or_else(is_named).then_some(row)
    }

    fn get(&self, name: &str) -> Option<&str> {
        let at = self.columns.iter().position(|column| column.name == name)?;
        let cell = self.cells.get(at).map(String::as_str);
        cell.filter(|cell| !cell.is_empty())
    }

    /// The device in the row; `None` if it is of a type that carries no load.
    fn device(&self) -> Option<BlockDevice> {
        let mut device = BlockDevice {
            name: self.name.to_owned(),
            layer: self.get("TYPE").map_or(Some(Layer::Disk), layer)?,
            size: self.get("SIZE").and_then(size),
            model: self.get("MODEL").unwrap_or_default().to_owned(),
            transport: self.get("TRAN").map_or("", transport).to_owned(),
            ..BlockDevice::default()
        };
        device.queue.rotational = self.get("ROTA").map(|cell| cell == "1");
        Some(device)
    }
}

/// The layer that a type means; `None` for a type that carries no load.
fn layer(name: &str) -> Option<Layer> {
    Some(match name {
        "disk" => Layer::Disk,
        "part" => Layer::Partition,
        "lvm" => Layer::Volume,
        "crypt" => Layer::Crypt,
        "mpath" => Layer::Multipath,
        "loop" => Layer::Loop,
        "rom" => return None,
        _ if name.starts_with("raid") => Layer::Raid,
        _ => Layer::Mapped,
    })
}

/// The transport by the name that linerate uses. lsblk prints `nvme` for an NVMe disk in a slot or behind a network,
/// so that one is unknown.
fn transport(name: &str) -> &str {
    match name {
        "sata" => "ata",
        "usb" | "sas" | "fc" | "iscsi" | "virtio" => name,
        _ => "",
    }
}

/// Reads a size, which lsblk rounds: `3.6T`, `953.9G`.
fn size(text: &str) -> Option<Bytes> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    scaled(digits, lookup(&UNITS, &text[digits.len()..])?).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::{merged, of, words};
    use super::*;

    fn found(text: &str) -> Vec<(String, Option<bool>, String)> {
        let (all, _) = merged(&[text]);
        let devices = all.storage.devices.into_iter();
        devices.map(|device| (device.name, device.queue.rotational, device.model)).collect()
    }

    #[test]
    fn disks_and_what_is_on_them_are_devices() {
        let (all, notes) = of(&["lsblk/2.38.1.txt"]);
        assert_eq!(words(&notes), [""; 0]);
        let disks: Vec<&str> = all.storage.disks().map(|disk| disk.name.as_str()).collect();
        assert_eq!(disks, ["sda", "nvme0n1"]);
        let sda = all.storage.device("sda").unwrap();
        assert_eq!((sda.queue.rotational, sda.transport.as_str()), (Some(true), "ata"));
        assert_eq!(sda.model, "MAKER HD4000 A1");
        let part = all.storage.device("nvme0n1p2").unwrap();
        assert_eq!((part.layer, part.queue.rotational), (Layer::Partition, Some(false)));
        assert_eq!(part.size, Some(Bytes(10_200_547_328)));
    }

    #[test]
    fn a_table_whose_blanks_were_lost_is_read() {
        for text in [
            "NAME ROTA MODEL\nsdb     1 MAKER HD40\n",
            "NAME\tROTA\tMODEL\nsdb\t1\tHD40\n",
            "NAME ROTA TRAN MODEL\nsdb     1 usb  MAKER HD40\n",
        ] {
            let (name, rotational, _) = found(text).remove(0);
            assert_eq!((name.as_str(), rotational), ("sdb", Some(true)), "{text}");
        }
        assert_eq!(found("NAME    ROTA MODEL\nnvme0n1    0 MAKER X3\n")[0].2, "MAKER X3");
        assert_eq!(found("NAME ROTA\nsda 1\nsdb 0\n").len(), 2);
    }

    #[test]
    fn other_tables_are_no_disks() {
        for text in [
            "NAME READY STATUS\npod 1/1 Running\n",
            "NAME TYPE SIZE\na b 3\n",
            "ROTA NAME\n1 sda\n",
        ] {
            let ids = crate::read(text.as_bytes())
                .map_or(Vec::new(), |all| all.parts.iter().map(|part| part.format.id).collect());
            assert!(!ids.contains(&"lsblk"), "{text}");
        }
    }
}
