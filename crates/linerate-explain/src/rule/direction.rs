//! A rule about directions: files are slow in one direction, and the network is not.

use super::super::Explained;
use super::{Remark, rate};
use linerate_facts::finding::Stands;
use linerate_judge::model::far_slower;
use linerate_plan::path::{Direction, Side};
use linerate_record::reported::{Access, Carrier, Counted, Disk, DiskRow, Does, Source};

/// Least ratio of the network's rate to the rate of files at which the network is not what limits them.
const NETWORK_CARRIES: f64 = 1.5;

/// The direction in which payload moves if the host at `side` reads or writes a file over the path; `None` for a mix.
pub(super) fn way(side: Side, does: Does) -> Option<Direction> {
    match (side, does) {
        (Side::Near, Does::Write) | (Side::Far, Does::Read) => Some(Direction::Forward),
        (Side::Near, Does::Read) | (Side::Far, Does::Write) => Some(Direction::Reverse),
        (_, Does::Mix) => None,
    }
}

/// Whether a disk result may be about files at the other end of the path. It is not if it is about a block device, or
/// if the program knows the disk below the file: these are on the host itself.
pub(crate) fn may_cross(source: &Source, disk: &Disk) -> bool {
    let of_devices = ["hdparm", "iostat"].contains(&source.tool.name.as_str());
    let is_device = of_devices || disk.target.starts_with("/dev/");
    !is_device && disk.rows.iter().all(|row| row.at_disk.is_none())
}

/// Rows of disk results that may cross the path, each with the host that reads or writes.
pub(super) fn rows<'a>(explained: &'a Explained<'_>) -> impl Iterator<Item = (Side, &'a DiskRow)> {
    let disks = explained.material.disks();
    let crossing = disks.filter(|(source, disk)| may_cross(source, disk));
    crossing.flat_map(|(source, disk)| {
        let side = source.side.unwrap_or(Side::Near);
        disk.rows.iter().map(move |row| (side, row))
    })
}

/// Highest rate of sequential disk rows in a direction, in bits per second.
pub(super) fn files(explained: &Explained<'_>, direction: Direction) -> Option<f64> {
    let of = rows(explained).filter(|(side, row)| {
        row.access == Access::Sequential && way(*side, row.does) == Some(direction)
    });
    of.map(|(_, row)| row.bytes_per_sec * 8.0).reduce(f64::max)
}

/// Highest rate that the network carried in a direction, in bits per second. For UDP only the receiver's count is used.
pub(super) fn network(explained: &Explained<'_>, direction: Direction) -> Option<f64> {
    let all = explained.material.transfers();
    let of = all.filter(|(_, one)| {
        let arrived = one.carrier == Carrier::Tcp || one.counted == Counted::Receiver;
        one.direction == direction && arrived
    });
    of.map(|(_, one)| one.goodput.0 as f64).reduce(f64::max)
}

pub(super) fn cleared(explained: &Explained<'_>) -> Vec<Remark> {
    remark(explained).into_iter().collect()
}

fn remark(explained: &Explained<'_>) -> Option<Remark> {
    let slow = far_slower(|direction| files(explained, direction))?;
    let (file, net) = (files(explained, slow)?, network(explained, slow)?);
    if net < file * NETWORK_CARRIES {
        return None;
    }
    let (from, to) = match slow {
        Direction::Forward => ("client", "server"),
        Direction::Reverse => ("server", "client"),
    };
    let what = format!(
        "files are slow from {from} to {to}, and the network is not: cables, cards and slots are cleared in that \
         direction"
    );
    let fast = files(explained, slow.reversed()).unwrap_or(0.0);
    let evidence = format!(
        "files move at {} there and at {} the other way; the network carried {} there",
        rate(file),
        rate(fast),
        rate(net)
    );
    let left = format!(
        "left are the protocol of the files, the reads at the {from} and the writes at the {to}"
    );
    Some(
        Remark::new(Stands::Found, what)
            .because(evidence)
            .because(left)
            .because("it holds if the files lie at the other end of the path: a disk of the same host says nothing of it")
            .next(
                "run the same benchmark at each end on its own disk",
                "fio --name=own --filename=FILE --size=1G --rw=write --bs=1M --iodepth=8 --direct=1",
            ),
    )
}
