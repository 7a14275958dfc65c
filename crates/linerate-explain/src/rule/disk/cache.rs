//! Rules about results that measured something besides the disk: memory, or flushes.

use super::super::super::Explained;
use super::super::{Remark, rate};
use super::rows::{At, SHOWN, all, time};
use linerate_facts::block::BlockDevice;
use linerate_facts::finding::Stands;
use linerate_record::reported::Does;
use linerate_units::Nanos;

/// Bytes per second above which a single rotating disk is ruled out.
//= the fastest disks with one actuator move up to 285 MB/s at their outer edge (data sheets of 2021 to 2024)
pub(in crate::rule) const ROTATING: f64 = 300e6;
/// Bytes per second that no Serial ATA link carries.
//= Serial ATA Revision 3.5: 6 Gb/s, of which 8b/10b leaves 600 MB/s
const SATA: f64 = 600e6;
/// Bytes per second above which no thread reads one disk through the page cache.
//= PCI Express Base Specification 5.0: 32 GT/s on four lanes, 128b/130b: 15.75 GB/s
const ANY: f64 = 15.75e9;
/// Bytes that most machines keep in memory before a program that writes has to wait.
//= Linux, Documentation/admin-guide/sysctl/vm.rst: dirty_ratio, 20 % of the memory: of 10 GiB
const KEPT: f64 = 2_147_483_648.0;
/// Words in the models of volumes of several disks, and of disks of virtual machines, which may report that they
/// rotate.
const NOT_ONE: [&str; 12] = [
    "QEMU", "VIRTUAL", "VBOX", "VMWARE", "MSFT", "RAID", "PERC", "LOGICAL", "LUN", "MR9",
    "LIO-ORG", "VDISK",
];

/// Least share of an operation's time at which its flush is most of it.
const MOST: f64 = 0.5;
/// Largest ratio of the flushes' reported time to the time of all operations: means are rounded.
const WHOLE: f64 = 1.1;
/// Shortest flush that is reported as slow: below it a protected cache answers, and hardly anything is faster.
const SLOW_FLUSH: Nanos = Nanos::from_micros(200);
/// Seconds of one rotation of a disk, for each speed in rotations per minute.
const TURNS: [(u32, f64); 4] =
    [(5_400, 60.0 / 5_400.0), (7_200, 60.0 / 7_200.0), (10_000, 0.006), (15_000, 0.004)];
/// Largest relative difference between a flush and a disk's rotation; also the largest share of writes without a flush
/// at which each write counts as flushed.
const NEAR: f64 = 0.05;

pub(in crate::rule) fn cached(explained: &Explained<'_>) -> Vec<Remark> {
    all(explained).filter_map(|at| from_memory(explained, &at)).take(SHOWN).collect()
}

fn from_memory(explained: &Explained<'_>, at: &At<'_>) -> Option<Remark> {
    let waited = at.row.does == Does::Write && at.row.flushed.is_none_or(|share| share > 0.0);
    if at.is_copy() || at.is_device() || at.is_direct() || waited {
        return None;
    }
    let moved = rate(at.row.bytes_per_sec * 8.0);
    let device = at.device(explained);
    let (most, kind) = limit(explained, at, device)?;
    let (what, evidence) = if at.row.bytes_per_sec > most {
        let name = device.map_or(String::new(), |disk| format!("{} is {kind}; ", disk.name));
        let what = format!(
            "{}: {moved} is more than {kind} moves: the bytes were in memory (page cache), and the disk was not measured",
            at.words()
        );
        (what, format!("{name}{kind} moves at most {}", rate(most * 8.0)))
    } else if was_left_behind(at) {
        let what = format!(
            "{}: {moved} is the rate of memory (page cache): the program did not wait for the disk",
            at.words()
        );
        (what, "so few bytes fit into memory, and are written later".to_owned())
    } else {
        return None;
    };
    let remark = Remark::new(Stands::Found, what)
        .because(evidence)
        .names(&["disk-page-cache"])
        .next("measure past the page cache", at.directly());
    Some(at.shows(remark))
}

/// Bytes per second above which the disk cannot have moved the data, and the kind of disk to which this applies.
fn limit(
    explained: &Explained<'_>,
    at: &At<'_>,
    device: Option<&BlockDevice>,
) -> Option<(f64, &'static str)> {
    let is_guest = at.host(explained).machine.platform.guest == Some(true);
    match device {
        Some(disk) if disk.queue.rotational == Some(true) && !is_guest && is_plain(disk) => {
            Some((ROTATING, "a rotating disk"))
        }
        Some(disk) if disk.transport == "ata" => Some((SATA, "a disk on Serial ATA")),
        _ if at.threads() <= 1.0 || at.disk.direct == Some(false) => Some((ANY, "one disk")),
        _ => None,
    }
}

/// Whether the written bytes were so few, and so fast, that they stayed in memory.
fn was_left_behind(at: &At<'_>) -> bool {
    let is_known =
        at.row.does == Does::Write && at.row.flushed == Some(0.0) && at.disk.direct == Some(false);
    let bytes = at.row.seconds.map(|seconds| at.row.bytes_per_sec * seconds);
    is_known && at.row.bytes_per_sec > SATA && bytes.is_some_and(|bytes| bytes <= KEPT)
}

/// Whether a device looks like a single disk of a physical machine.
fn is_plain(disk: &BlockDevice) -> bool {
    let model = disk.model.to_ascii_uppercase();
    let is_other = NOT_ONE.iter().any(|word| model.contains(word));
    !is_other
        && disk.name.starts_with("sd")
        && ["", "ata", "sas"].contains(&disk.transport.as_str())
}

pub(in crate::rule) fn flushed(explained: &Explained<'_>) -> Vec<Remark> {
    all(explained).filter_map(|at| waits_for_flush(&at)).take(SHOWN).collect()
}

fn waits_for_flush(at: &At<'_>) -> Option<Remark> {
    let each = at.each()?;
    let operations = at.row.operations?;
    let flush = flush(at, each)?;
    let per = at.row.flushed.unwrap_or(1.0);
    let words = at.words();
    let what = if per >= 1.0 - NEAR {
        format!(
            "{words}: each write waits until it is on the disk: {operations:.0} writes/s are one flush after the other, of \
             {flush} each"
        )
    } else {
        format!(
            "{words}: flushes of {flush} take most of the time, one for {:.0} writes",
            1.0 / per
        )
    };
    let all = format!("{:.0}/{operations:.0} = {} for a write", at.threads(), time(each));
    let evidence = match at.row.mean.filter(|mean| mean.secs() < each * MOST) {
        Some(own) => {
            let part = time(flush.secs() * per);
            format!("{all}: the write itself takes {own}, the flush {part}")
        }
        None => format!("{all}, with its flush"),
    };
    let turn = TURNS.iter().find(|(_, turn)| (flush.secs() / turn - 1.0).abs() <= NEAR);
    let mut remark = Remark::new(Stands::Found, what).because(evidence).names(&["disk-sync"]);
    if let Some((turns, turn)) = turn {
        remark = remark
            .because(format!("a disk with {turns} turns a minute turns once in {}", time(*turn)));
    }
    let remark = remark.next(
        "several writers, more writes for each flush, or a disk with a protected write cache are faster; without flushes \
         the same disk shows the difference",
        "fio --name=noflush --filename=FILE --size=64M --rw=write --bs=8k --direct=1",
    );
    Some(at.shows(remark))
}

/// The time of the flush after each write, if it is most of the write's time.
fn flush(at: &At<'_>, each: f64) -> Option<Nanos> {
    let row = at.row;
    if row.does == Does::Read {
        return None;
    }
    if let Some(flush) = row.flush {
        let share = flush.secs() * row.flushed.unwrap_or(1.0) / each;
        // If the times do not fit one flush for each write, the number of flushes must be known.
        let fits = share >= MOST && (share <= WHOLE || row.flushed.is_some());
        return Some(flush).filter(|flush| fits && *flush >= SLOW_FLUSH);
    }
    let is_each = row.flushed.is_some_and(|share| share >= 1.0 - NEAR)
        && row.depth.is_none_or(|depth| depth == 1);
    let own = row.mean.map_or(0.0, Nanos::secs);
    // A synchronous write includes its flush; for a separate flush call the reported write time does not.
    let rest = if own < each * MOST { each - own } else { each };
    let flush = Nanos((rest * 1e9) as u64);
    (is_each && at.is_small() && flush >= SLOW_FLUSH).then_some(flush)
}
