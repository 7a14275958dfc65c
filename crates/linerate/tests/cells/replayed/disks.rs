//! Disks, their links, layers and limits.

use linerate_facts::block::{BlockDevice, IoLimit, Layer};
use linerate_facts::metric::{self as m, Metric};
use linerate_plan::Purpose;
use linerate_plan::path::Side;
use linerate_record::{Record, Table};
use linerate_units::{Bytes, Transfers};

use super::super::hardware::{column, ends, facts, share_of, slower, tables};
use super::super::slot::card_in;
use super::{Replay, Shown};

/// Reads and writes of 128 KiB at random places, 32 in flight, past the page cache of a virtual disk.
const READS: &str = "disk-reads";
const WRITES: &str = "disk-writes";

const fn shown(
    words: &'static str,
    show: fn(&mut Record),
    named: &'static [&'static str],
    disturbed: &'static [&'static str],
) -> Shown {
    Shown { words, show, named, disturbed }
}

/// The cell and its near miss, in which the disk itself is the limit.
const fn replay(
    cause: &'static str,
    on: &'static str,
    over: (&'static str, fn(&mut Record)),
    under: (&'static str, fn(&mut Record), &'static [&'static str]),
    named: &'static [&'static str],
) -> Replay {
    Replay {
        cause,
        on,
        over: shown(over.0, over.1, named, &[]),
        under: shown(under.0, under.1, under.2, &[]),
    }
}

/// The disk itself is the limit of the reads.
const CAPPED: &[&str] = &["disk-capped"];

pub(super) const REPLAYS: &[Replay] = &[
    replay(
        "disk-throttled",
        READS,
        ("io.max allows what was read", |record| limited(record, 1.0)),
        ("io.max allows 1.2 times as much", |record| limited(record, 1.2), CAPPED),
        &["disk-throttled"],
    ),
    replay(
        "disk-link",
        READS,
        ("the link carries 1.01 times as much", |record| linked(record, 1.01)),
        ("the link carries 1.2 times as much", |record| linked(record, 1.2), CAPPED),
        &["disk-link"],
    ),
    replay(
        "disk-depth-held",
        READS,
        ("the queue takes 4 requests, and has 3.9", |record| held(record, 3.9)),
        ("the queue takes 4 requests, and has 2", |record| held(record, 2.0), &[]),
        &["disk-depth-held"],
    ),
    replay(
        "disk-split",
        READS,
        ("each operation is 4 requests, and the queue is full", |record| split(record, 4.0)),
        ("each operation is 1.4 requests", |record| split(record, 1.4), CAPPED),
        &["disk-depth-held", "disk-split"],
    ),
    replay(
        "disk-not-async",
        READS,
        ("threads, and 3 of 32 at the disk", |record| by_threads(record, 3.0)),
        ("threads, and all of 32 at the disk", |record| by_threads(record, 31.0), CAPPED),
        &["disk-not-async"],
    ),
    replay(
        "disk-crypt",
        READS,
        ("a CPU full of kernel threads, 3 of 32 at the disk", |record| encrypted(record, 0.95)),
        (
            "a third of each CPU for kernel threads, 3 of 32 at the disk",
            |record| encrypted(record, 0.3),
            &[],
        ),
        &["disk-crypt"],
    ),
    replay(
        "disk-raid-write",
        WRITES,
        ("a mirror with a bitmap, 4 requests each", |record| mirrored(record, 4.0)),
        ("a mirror with a bitmap, 2 requests each", |record| mirrored(record, 2.0), &[]),
        &["disk-raid-write"],
    ),
    replay(
        "disk-thermal",
        WRITES,
        ("79 of 80 degrees, and a rate that fell", |record| {
            heated(record, 79_000);
            falls(record);
        }),
        ("60 of 80 degrees, and a steady rate", |record| heated(record, 60_000), &[]),
        &["disk-thermal"],
    ),
    replay(
        "disk-cache-knee",
        WRITES,
        ("the rate fell to a third", falls),
        ("a steady rate", calm, &[]),
        &["disk-cache-knee"],
    ),
    replay(
        "disk-dirty",
        WRITES,
        ("the disk wrote nothing", |record| passed(record, m::DISK_WRITTEN_BYTES, 0.0)),
        ("the disk wrote 0.6 of it", |record| passed(record, m::DISK_WRITTEN_BYTES, 0.6), &[]),
        &["disk-dirty"],
    ),
    replay(
        "disk-page-cache",
        READS,
        ("the disk read nothing", |record| passed(record, m::DISK_READ_BYTES, 0.0)),
        ("the disk read 0.6 of it", |record| passed(record, m::DISK_READ_BYTES, 0.6), CAPPED),
        &["disk-page-cache"],
    ),
    Replay {
        cause: "disk-contended",
        on: READS,
        over: shown(
            "others write 0.3 of the bytes",
            |r| others(r, 0.3),
            CAPPED,
            &["disk-contended"],
        ),
        under: shown("others write 0.05 of the bytes", |r| others(r, 0.05), CAPPED, &[]),
    },
];

fn disk(record: &mut Record) -> &mut BlockDevice {
    facts(record, Side::Near).disks.last_mut().unwrap()
}

/// The tables of the disk itself.
fn counters(record: &mut Record) -> impl Iterator<Item = &mut Table> {
    let name = disk(record).name.clone();
    tables(record, Side::Near, "disk").filter(move |table| table.subject == name)
}

/// Multiplies a counter of the disk.
fn times(record: &mut Record, metric: Metric, by: f64) {
    for table in counters(record) {
        let values = column(table, metric);
        *values = share_of(values, by);
    }
}

/// Sets a counter of the disk so that it grows by so much in a second.
fn rate(record: &mut Record, metric: Metric, each: f64) {
    for table in counters(record) {
        let at = table.at.clone();
        let grown = at.iter().map(|at| (*at as f64 / 1e9 * each) as i64);
        *column(table, metric) = grown.collect();
    }
}

fn passed(record: &mut Record, metric: Metric, share: f64) {
    calm(record);
    times(record, metric, share);
}

fn limited(record: &mut Record, times: f64) {
    let goodput = goodput(record);
    let number = disk(record).number.clone();
    let read_bytes = Some((goodput / 8.0 * times) as u64);
    let group = "/system.slice/a.service".to_owned();
    let limit = IoLimit { group, number, read_bytes, ..IoLimit::default() };
    facts(record, Side::Near).io_limits = vec![limit];
}

fn goodput(record: &Record) -> f64 {
    linerate_judge::model::derive(record).directions[0].base.goodput.mean
}

/// What a link of PCIe 3.0 x4 carries at least, in bits per second.
const LEAST: f64 = 27.6e9;

/// Puts the disk into a slot of PCIe 3.0 x4, and slows the run down so that the link carries `share` times as much.
fn linked(record: &mut Record, share: f64) {
    let slots = card_in(Transfers(8_000_000_000), 4, 4, Some(256));
    let disk = disk(record);
    disk.pci = slots[1].address.to_string();
    disk.slots = slots;
    let goodput = goodput(record);
    slower(record, goodput * share / LEAST);
}

fn held(record: &mut Record, in_flight: f64) {
    (disk(record).queue.requests, disk(record).queue.queues) = (Some(4), Some(1));
    rate(record, m::DISK_QUEUE, in_flight * 1e3);
}

fn split(record: &mut Record, each: f64) {
    let queue = &mut disk(record).queue;
    (queue.requests, queue.queues) = (Some(64), Some(1));
    queue.largest = Some(Bytes(32 << 10));
    times(record, m::DISK_READS, each);
    rate(record, m::DISK_QUEUE, if each < 2.0 { 40e3 } else { 63e3 });
}

fn by_threads(record: &mut Record, in_flight: f64) {
    for end in record.sets.iter_mut().flat_map(|set| &mut set.ends) {
        "threads".clone_into(&mut end.way);
    }
    rate(record, m::DISK_QUEUE, in_flight * 1e3);
}

/// Puts a device above the disk.
fn above(record: &mut Record, device: BlockDevice) {
    let below = vec![disk(record).name.clone()];
    facts(record, Side::Near).disks.insert(0, BlockDevice { below, ..device });
}

fn encrypted(record: &mut Record, busy: f64) {
    above(
        record,
        BlockDevice { name: "dm-0".to_owned(), layer: Layer::Crypt, ..BlockDevice::default() },
    );
    rate(record, m::DISK_QUEUE, 3e3);
    let ticks = f64::from(facts(record, Side::Near).ticks_per_sec.max(1));
    let cpus = ends(record, Side::Near).flat_map(|end| &mut end.tables);
    for table in cpus.filter(|table| table.source == "cpu") {
        let Table { at, columns, .. } = table;
        for column in columns {
            let share = match &*column.name {
                "system" => busy,
                "idle" => 1.0 - busy,
                _ => 0.0,
            };
            let each = ticks * share / 1e9;
            column.values = at.iter().map(|at| (*at as f64 * each) as i64).collect();
        }
    }
}

/// Takes away that the host of the virtual machine took CPU time.
fn calm(record: &mut Record) {
    let cpus = ends(record, Side::Near).flat_map(|end| &mut end.tables);
    for table in cpus.filter(|table| table.source == "cpu") {
        column(table, m::CPU_STEAL).fill(0);
    }
}

fn mirrored(record: &mut Record, each: f64) {
    calm(record);
    let device = BlockDevice {
        name: "md0".to_owned(),
        layer: Layer::Raid,
        raid: "raid1".to_owned(),
        bitmap: "+8".to_owned(),
        ..BlockDevice::default()
    };
    above(record, device);
    let twin = BlockDevice { name: "twin".to_owned(), ..BlockDevice::default() };
    facts(record, Side::Near).disks[0].below.push(twin.name.clone());
    // The other half of the mirror counts what the disk does.
    let tables: Vec<Vec<Table>> = record
        .steps
        .iter()
        .map(|step| {
            let disks = step.ends[0].tables.iter().filter(|table| table.source == "disk");
            disks
                .map(|table| Table { subject: twin.name.clone(), ..table.clone() })
                .take(1)
                .collect()
        })
        .collect();
    for (step, tables) in record.steps.iter_mut().zip(tables) {
        step.ends[0].tables.extend(tables);
    }
    facts(record, Side::Near).disks.insert(1, twin);
    times(record, m::DISK_WRITES, each - 1.0);
}

fn heated(record: &mut Record, degrees: i64) {
    calm(record);
    disk(record).hottest = Some(80_000);
    for table in counters(record) {
        let rows = table.at.len();
        let metric = m::DISK_TEMPERATURE;
        table.columns.push(linerate_record::Column {
            name: metric.name.into(),
            unit: metric.unit,
            kind: metric.kind,
            values: vec![degrees; rows],
        });
    }
}

/// Lets the rate of the base load fall to a third after the first 40 % of its time.
fn falls(record: &mut Record) {
    calm(record);
    slower(record, 3.0);
    let is_load = |purpose: &Purpose| !matches!(purpose, Purpose::IdleLatency);
    for step in record.steps.iter_mut().filter(|step| is_load(&step.plan.purpose)) {
        for table in step.ends.iter_mut().flat_map(|end| &mut end.tables) {
            if !["worker", "disk"].contains(&table.source.as_str()) {
                continue;
            }
            let cut = table.at.len() * 2 / 5;
            for column in &mut table.columns {
                let Some(at_cut) = column.values.get(cut).copied() else { continue };
                for value in &mut column.values[cut..] {
                    *value = at_cut + (*value - at_cut) / 3;
                }
            }
        }
    }
}

/// Lets other programs write a share of what the load reads.
fn others(record: &mut Record, share: f64) {
    for (from, to) in [(m::DISK_READ_BYTES, m::DISK_WRITTEN_BYTES), (m::DISK_READS, m::DISK_WRITES)]
    {
        for table in counters(record) {
            let own = column(table, from).clone();
            *column(table, to) = share_of(&own, share);
        }
    }
}
