//! Rules about disks and files.

pub(super) mod cache;
pub(super) mod depth;
pub(super) mod latency;
pub(super) mod mounts;
pub(super) mod open;
pub(super) mod paths;
pub(super) mod repeated;
pub(super) mod rows;

use super::super::{Explained, side_name};
use super::direction::{rows as crossing, way};
use super::{Remark, rate};
use linerate_facts::finding::Stands;
use linerate_plan::path::Side;
use linerate_record::reported::{Access, DiskRow, Does};

/// Least ratio of a copy's rate to that of a benchmark row at which the row is not the most that the path carries.
const COPY_ABOVE: f64 = 1.1;

/// Most rows of a benchmark that are named in a remark.
const FEW: usize = 4;

/// Share of a program's bytes; if the disk moved less than this, the rest stayed in memory.
const DISK_MOVED: f64 = 0.5;

/// Share of the requested operations in flight below which the requested depth was not reached.
const DEPTH_REACHED: f64 = 0.7;

/// All disk rows, each with the host at which it was measured.
fn rows<'a>(explained: &'a Explained<'_>) -> impl Iterator<Item = (Side, &'a DiskRow)> {
    explained.material.disks().flat_map(|(source, disk)| {
        let side = source.side.unwrap_or(Side::Near);
        disk.rows.iter().map(move |row| (side, row))
    })
}

/// A disk row in words: `sequential read, 1 MiB, depth 8`.
pub(super) fn words(row: &DiskRow) -> String {
    let access = match row.access {
        Access::Sequential => "sequential ",
        Access::Random => "random ",
        Access::Copy => "copy, ",
        Access::Unknown => "",
    };
    let does = match row.does {
        Does::Read => "read",
        Does::Write => "write",
        Does::Mix => "mix",
    };
    let block = row.block.map_or(String::new(), |size| format!(", {size}"));
    let depth = row.depth.map_or(String::new(), |n| format!(", depth {n}"));
    let threads = row.threads.filter(|n| *n > 1);
    let threads = threads.map_or(String::new(), |n| format!(", {n} threads"));
    format!("{access}{does}{block}{depth}{threads}")
}

pub(super) fn copies(explained: &Explained<'_>) -> Vec<Remark> {
    let copies = crossing(explained).filter(|(_, row)| row.access == Access::Copy);
    copies.filter_map(|(side, copy)| above(explained, side, copy)).collect()
}

fn above(explained: &Explained<'_>, side: Side, copy: &DiskRow) -> Option<Remark> {
    let Some(direction) = way(side, copy.does) else {
        return above_any(explained, copy);
    };
    let alike = crossing(explained).filter(|(at, row)| {
        row.access == Access::Sequential && way(*at, row.does) == Some(direction)
    });
    // Prefer a row of the host that made the copy, if it has any.
    let rank = |(at, row): &(Side, &DiskRow)| (*at == side, row.bytes_per_sec);
    let (_, best) = alike.max_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    if copy.bytes_per_sec < best.bytes_per_sec * COPY_ABOVE {
        return None;
    }
    let what = format!(
        "a copy moved {} in the direction in which the row `{}` has {}: the row is not the most that it carries",
        rate(copy.bytes_per_sec * 8.0),
        words(best),
        rate(best.bytes_per_sec * 8.0)
    );
    Some(
        Remark::new(Stands::Doubt, what)
            .because("a copy reads and writes at the same time, with blocks and requests in flight of its own choice"),
    )
}

/// Compares a copy whose direction is unknown with the rows of each direction.
fn above_any(explained: &Explained<'_>, copy: &DiskRow) -> Option<Remark> {
    let slower = rows(explained).filter(|(at, row)| {
        let is_row = row.access == Access::Sequential && way(*at, row.does).is_some();
        is_row && copy.bytes_per_sec >= row.bytes_per_sec * COPY_ABOVE
    });
    let each: Vec<String> = slower
        .take(FEW)
        .map(|(at, row)| {
            let moved = rate(row.bytes_per_sec * 8.0);
            format!("`{}` at the {} has {moved}", words(row), side_name(at))
        })
        .collect();
    if each.is_empty() {
        return None;
    }
    let what = format!(
        "a copy moved {}, more than a row of the benchmark: if it went the same way, the row is not the most that it \
         carries",
        rate(copy.bytes_per_sec * 8.0)
    );
    Some(
        Remark::new(Stands::Doubt, what)
            .because(each.join("; "))
            .because("which way the copy went is not known"),
    )
}

pub(super) fn cache(explained: &Explained<'_>) -> Vec<Remark> {
    let remark = |row: &DiskRow, direct: Option<bool>| {
        // With direct I/O nothing stays in memory: the kernel may have counted at another layer of the disk.
        if direct == Some(true) {
            return None;
        }
        let moved = row.at_disk?.0 as f64;
        let counted = row.bytes_per_sec * row.seconds?;
        let share = moved / counted.max(1.0);
        (share < DISK_MOVED).then(|| {
            let what = format!(
                "{}: the disk moved {:.0} % of the bytes that were counted; the rest stayed in memory",
                words(row),
                share * 100.0
            );
            Remark::new(Stands::Doubt, what)
                .next("measure without the cache of the system", "fio --direct=1 ...")
        })
    };
    let disks = explained.material.disks();
    let all = disks.flat_map(|(_, disk)| disk.rows.iter().map(|row| (row, disk.direct)));
    all.filter_map(|(row, direct)| remark(row, direct)).collect()
}

pub(super) fn depth(explained: &Explained<'_>) -> Vec<Remark> {
    let remark = |row: &DiskRow| {
        let requested = f64::from(row.depth?) * f64::from(row.threads.unwrap_or(1));
        let flight = row.operations? * row.mean?.secs();
        (requested > 1.0 && flight < requested * DEPTH_REACHED).then(|| {
            let what = format!(
                "{}: {flight:.1} operations were in flight of the {requested:.0} that were requested",
                words(row)
            );
            let evidence = format!(
                "{:.0} operations in a second of {} each",
                row.operations.unwrap_or(0.0),
                row.mean.unwrap_or_default()
            );
            Remark::new(Stands::Doubt, what)
                .because(evidence)
                .because("a layer below completes each operation before it takes the next one, or the program is too slow or keeps a rate")
        })
    };
    rows(explained).filter_map(|(_, row)| remark(row)).collect()
}
