//! Rows of disk results with their outputs, for the rules that find what limits a disk.

use super::super::super::Explained;
use super::super::Remark;
use super::words;
use linerate_facts::Inventory;
use linerate_facts::block::{BlockDevice, Storage};
use linerate_plan::path::Side;
use linerate_record::reported::{Access, Disk, DiskRow, Does, Measured, Outcome, Source};
use linerate_units::{Bytes, Nanos};

/// Largest payload of an operation whose time is mostly the disk's latency, and not the transfer of the payload.
const SMALL: Bytes = Bytes(64 << 10);

/// Range of the operations in flight, by Little's law, that counts as one.
const ONE: std::ops::RangeInclusive<f64> = 0.9..=1.1;

/// Shortest time of an operation, in seconds, that a rotating disk would explain: half a rotation at 15,000 a minute.
pub(in crate::rule) const SEEK: f64 = 0.002;

/// Most remarks that one rule makes: the runs of a series are alike.
pub(in crate::rule) const SHOWN: usize = 8;

/// Most rows that are examined, so that a long paste does not take long.
const JUDGED: usize = 10_000;

/// The step that shows the PCIe link of a disk in a slot, with its command.
pub(in crate::rule) const LINK: (&str, &str) = (
    "the width and the speed of the link of the disk (LnkSta), beside what it can do (LnkCap)",
    "sudo lspci -vv",
);

/// A disk row, with the source, result and table that it was read from.
#[derive(Clone, Copy)]
pub(in crate::rule) struct At<'a> {
    pub(in crate::rule) source: &'a Source,
    pub(in crate::rule) result: &'a Outcome,
    pub(in crate::rule) disk: &'a Disk,
    pub(in crate::rule) row: &'a DiskRow,
}

fn first<'a>(source: &'a Source, result: &'a Outcome) -> Option<At<'a>> {
    let Measured::Disk(disk) = &result.measured else {
        return None;
    };
    let row = disk.rows.first()?;
    Some(At { source, result, disk, row })
}

/// All disk rows of one output.
pub(in crate::rule) fn of(source: &Source) -> impl Iterator<Item = At<'_>> {
    let firsts = source.results.iter().filter_map(move |result| first(source, result));
    firsts.flat_map(At::siblings)
}

/// The first row of each disk result, in the order of the input.
pub(in crate::rule) fn firsts<'a>(explained: &Explained<'a>) -> impl Iterator<Item = At<'a>> {
    explained.material.runs().filter_map(|(source, result)| first(source, result)).take(JUDGED)
}

/// All disk rows, in the order of the input.
pub(in crate::rule) fn all<'a>(explained: &Explained<'a>) -> impl Iterator<Item = At<'a>> {
    firsts(explained).flat_map(At::siblings).take(JUDGED)
}

/// Whether every row has small operations, one at a time: then nobody compared depths.
pub(in crate::rule) fn are_single(explained: &Explained<'_>) -> bool {
    all(explained).all(|at| at.is_device() || at.is_single() && at.is_small())
}

/// A time in seconds, in words.
pub(in crate::rule) fn time(seconds: f64) -> String {
    Nanos((seconds.max(0.0) * 1e9) as u64).to_string()
}

/// Whether all results are about disks: then nothing else can be the limit.
pub(in crate::rule) fn are_alone(explained: &Explained<'_>) -> bool {
    let mut runs = explained.material.runs().peekable();
    runs.peek().is_some() && runs.all(|(_, result)| matches!(result.measured, Measured::Disk(_)))
}

impl At<'_> {
    /// All rows of the result that this row belongs to.
    pub(in crate::rule) fn siblings(self) -> impl Iterator<Item = Self> {
        self.disk.rows.iter().map(move |row| Self { row, ..self })
    }

    /// Whether the kernel counted the row at a device or a mount: what programs requested is then unknown.
    pub(in crate::rule) fn is_device(&self) -> bool {
        self.source.tool.name == "iostat" || self.is_mount()
    }

    /// Whether the kernel counted the row at an NFS mount.
    pub(in crate::rule) fn is_mount(&self) -> bool {
        self.source.tool.name == "nfsiostat"
    }

    /// Whether a Windows program measured the row.
    pub(in crate::rule) fn is_windows(&self) -> bool {
        ["CrystalDiskMark", "DiskSpd"].contains(&self.source.tool.name.as_str())
    }

    /// Whether the row is the copy of a file.
    pub(in crate::rule) fn is_copy(&self) -> bool {
        self.row.access == Access::Copy
    }

    /// The row in words, with the name of a device.
    pub(in crate::rule) fn words(&self) -> String {
        let device =
            if self.is_device() { format!("{}: ", self.disk.target) } else { String::new() };
        format!("{device}{}", words(self.row))
    }

    /// Number of threads; one if it is unknown.
    pub(in crate::rule) fn threads(&self) -> f64 {
        f64::from(self.row.threads.unwrap_or(1).max(1))
    }

    /// Seconds of a thread for each operation; `None` without a rate of operations.
    pub(in crate::rule) fn each(&self) -> Option<f64> {
        Some(self.threads() / self.row.operations?)
    }

    /// Operations in flight of each thread, by Little's law.
    pub(in crate::rule) fn in_flight(&self) -> Option<f64> {
        Some(self.row.operations? * self.row.mean?.secs() / self.threads())
    }

    /// Whether each thread had one operation in flight.
    pub(in crate::rule) fn is_one(&self) -> bool {
        self.in_flight().is_some_and(|flight| ONE.contains(&flight))
    }

    /// Whether the row's operations are small.
    pub(in crate::rule) fn is_small(&self) -> bool {
        self.row.block.is_some_and(|block| block <= SMALL)
    }

    /// Whether one operation at a time was requested.
    pub(in crate::rule) fn is_single(&self) -> bool {
        self.row.depth == Some(1) && self.row.requested.is_none() && self.row.threads == Some(1)
    }

    /// Whether the page cache was bypassed. hdparm empties it before it reads.
    pub(in crate::rule) fn is_direct(&self) -> bool {
        self.disk.direct == Some(true) || self.source.tool.name == "hdparm"
    }

    /// A command for operations of this kind with many in flight.
    pub(in crate::rule) fn deeper(&self) -> &'static str {
        if self.row.access == Access::Random || self.is_small() {
            "fio --name=deep --filename=FILE --size=1G --rw=randread --bs=4k --direct=1 --ioengine=io_uring --iodepth=64"
        } else {
            "fio --name=deep --filename=FILE --size=1G --rw=read --bs=1M --direct=1 --ioengine=io_uring --iodepth=16"
        }
    }

    /// A command for operations of this kind that bypass the page cache.
    pub(in crate::rule) fn directly(&self) -> &'static str {
        match (self.source.tool.name.as_str(), self.row.does) {
            ("dd", Does::Write) => "dd if=/dev/zero of=FILE bs=1M count=4096 oflag=direct",
            ("dd", _) => "dd if=FILE of=/dev/null bs=1M iflag=direct",
            (_, Does::Write) => {
                "fio --name=direct --filename=FILE --size=1G --rw=write --bs=1M --direct=1"
            }
            _ => "fio --name=direct --filename=FILE --size=1G --rw=read --bs=1M --direct=1",
        }
    }

    /// Adds this row's run to a remark, as the one that shows it.
    pub(in crate::rule) fn shows(&self, remark: Remark) -> Remark {
        remark.shown_by(self.source, self.result)
    }

    /// Facts of the host that has the disk.
    pub(in crate::rule) fn host<'e>(&self, explained: &Explained<'e>) -> &'e Inventory {
        match self.source.side {
            Some(Side::Far) => &explained.material.far,
            _ => &explained.material.near,
        }
    }

    /// The disk below the row's target, if the facts of its host list it, or list only one disk.
    pub(in crate::rule) fn device<'e>(&self, explained: &Explained<'e>) -> Option<&'e BlockDevice> {
        let storage = &self.host(explained).storage;
        let target = self.disk.target.as_str();
        let name = match target.strip_prefix("/dev/") {
            Some(name) => Some(name),
            None => storage.filesystem(target).map(|fs| fs.device.as_str()),
        };
        let named = name.filter(|name| !name.is_empty()).map(|name| below(storage, name));
        named.unwrap_or_else(|| {
            let mut disks = storage.disks();
            disks.next().filter(|_| disks.next().is_none())
        })
    }
}

/// The only disk below a device. For a partition that the facts do not list, the disk that it belongs to.
fn below<'a>(storage: &'a Storage, name: &str) -> Option<&'a BlockDevice> {
    if let [one] = storage.leaves(name).as_slice() {
        return Some(one);
    }
    let is_part = |disk: &&BlockDevice| {
        let part = name.strip_prefix(disk.name.as_str()).unwrap_or_default();
        let number = part.strip_prefix('p').unwrap_or(part);
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    storage.disks().find(is_part)
}
