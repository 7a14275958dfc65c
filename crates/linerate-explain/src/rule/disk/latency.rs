//! Rules about the latency of a disk: far too slow, or as slow as a seek.

use super::super::super::Explained;
use super::super::Remark;
use super::rows::{At, SEEK, SHOWN, all, are_single, firsts, time};
use linerate_facts::block::BlockDevice;
use linerate_facts::finding::Stands;
use linerate_record::reported::Does;
use linerate_units::Nanos;

/// Seconds of an operation that no working disk takes: ten times a seek and a rotation of a slow disk, about 10 ms.
const SICK_SECONDS: f64 = 0.1;
/// Most operations per second at which a queue does not explain such times: a rotating disk does 75 or more.
const FEW_OPERATIONS: f64 = 20.0;

pub(in crate::rule) fn latency(explained: &Explained<'_>) -> Vec<Remark> {
    let single = are_single(explained);
    let kinds = firsts(explained)
        .flat_map(|at| [Does::Read, Does::Write, Does::Mix].map(|does| (at, does)));
    let sick = kinds.filter_map(|(at, does)| sick_disk(&at, does));
    let seeks = all(explained).filter(|_| single).filter_map(|at| seeks(explained, &at));
    sick.chain(seeks).take(SHOWN).collect()
}

/// Whether a row has so few operations that take so long that neither a seek nor a queue explains it.
fn is_sick(at: &At<'_>) -> bool {
    let mean = at.row.mean.map(Nanos::secs).or(at.each().filter(|_| at.is_single()));
    let is_few = at.row.operations.is_some_and(|rate| rate <= FEW_OPERATIONS);
    (at.is_small() || at.is_device()) && is_few && mean.is_some_and(|mean| mean >= SICK_SECONDS)
}

/// Remark on the reads, writes or mixed rows of a result, if at least half of them are too slow for a working disk.
fn sick_disk(first: &At<'_>, does: Does) -> Option<Remark> {
    let rows: Vec<At<'_>> = first.siblings().filter(|at| at.row.does == does).collect();
    let sick: Vec<&At<'_>> = rows.iter().filter(|at| is_sick(at)).collect();
    let at = sick.first().filter(|_| sick.len() * 2 >= rows.len())?;
    let range = |of: &dyn Fn(&At<'_>) -> Option<f64>| {
        let all = || sick.iter().filter_map(|at| of(at));
        all().reduce(f64::min).zip(all().reduce(f64::max))
    };
    let (least, most) = range(&|at| at.row.mean.map(Nanos::secs).or(at.each()))?;
    let (few, many) = range(&|at| at.row.operations)?;
    let (waits, each) =
        (between(&time(least), &time(most)), between(&format!("{few:.1}"), &format!("{many:.1}")));
    let what = format!(
        "{}: each takes {waits}, at {each} a second: the disk, or what is behind it, is sick or held back",
        at.words()
    );
    let remark = Remark::new(Stands::Found, what)
        .because(
            "so few are no load: a rotating disk does 75 or more in a second, in about 10 ms each",
        )
        .names(&["disk-latency"])
        .next(
            "the errors and the state of the disk, then the latency of the storage behind it",
            "sudo smartctl -a /dev/DISK",
        );
    Some(at.shows(remark))
}

fn between(least: &str, most: &str) -> String {
    if least == most { least.to_owned() } else { format!("{least} to {most}") }
}

/// Remark on small operations, one after the other, that each take as long as a seek.
fn seeks(explained: &Explained<'_>, at: &At<'_>) -> Option<Remark> {
    let each = at.each()?;
    let is_one = at.is_single() && at.row.mean.is_none_or(|_| at.is_one());
    let is_sync = at.row.flushed.is_some_and(|share| share > 0.0);
    if at.is_device()
        || at.is_copy()
        || !at.is_small()
        || !is_one
        || is_sync
        || !(SEEK..SICK_SECONDS).contains(&each)
    {
        return None;
    }
    let is_nvme = Some(false).filter(|_| at.disk.target.starts_with("/dev/nvme"));
    let turns = |disk: &BlockDevice| disk.queue.rotational;
    let why = match is_nvme.or_else(|| at.device(explained).and_then(turns)) {
        Some(false) => "the disk does not turn: it, or the path to it, is slow",
        Some(true) => "the disk turns, and seeks for each: more in flight let it choose the order",
        None => {
            "a rotating disk seeks so long for each; a disk without moving parts that takes so long is slow, or far away"
        }
    };
    let what = format!(
        "{}: each takes {}, one after the other: the answer of the disk limits the rate",
        at.words(),
        time(each)
    );
    let operations = at.row.operations?;
    let remark = Remark::new(Stands::Found, what)
        .because(format!("1/{} = {operations:.0} operations/s", time(each)))
        .because(why)
        .names(&["disk-latency"])
        .next("ask for more in flight, with an engine that can keep them", at.deeper());
    Some(at.shows(remark))
}
