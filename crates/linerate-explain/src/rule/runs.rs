//! Rules that compare runs of messages which differ in one thing: length, queue pairs, or one direction against both.

use super::super::Explained;
use super::moved::{Moved, runs};
use super::transfers::transfers;
use super::{Remark, rate};
use linerate_facts::finding::Stands;
use linerate_record::reported::{Carrier, Transfer};
use linerate_units::Bytes;

/// Shortest duration, in seconds, of a run that shows the path's rate: the first messages wait for pages of memory, for
/// the slot and for the CPUs' clocks, which takes some milliseconds.
const LEAST_SECONDS: f64 = 0.010;
/// Fewest messages of a run that shows the path's rate.
const LEAST_MESSAGES: u64 = 100;
/// Largest relative difference of the rates of two runs that count as equal.
const ALIKE: f64 = 0.05;

/// The duration of a run of one size in seconds, and its number of messages.
fn length(run: &Moved<'_>) -> Option<(f64, u64)> {
    let (size, rate, messages) = run.only()?;
    let messages = messages?;
    Some((messages as f64 * size.0 as f64 * 8.0 / rate.max(1.0), messages))
}

fn is_short((seconds, messages): (f64, u64)) -> bool {
    seconds < LEAST_SECONDS || messages < LEAST_MESSAGES
}

pub(super) fn short(explained: &Explained<'_>) -> Vec<Remark> {
    let all = runs(explained);
    let shorts =
        all.iter().filter_map(|run| Some((run, length(run).filter(|length| is_short(*length))?)));
    let mut remarks: Vec<Remark> =
        shorts.filter_map(|(run, length)| too_short(&all, run, length)).collect();
    remarks.extend(starts(explained));
    remarks
}

/// Duration in seconds below which a connection still opens its window, and a loss is chance.
const START: f64 = 0.5;

/// Remark on a transfer through sockets that was over before it reached the path's rate. None if the same direction has
/// a longer transfer.
fn starts(explained: &Explained<'_>) -> Option<Remark> {
    let is_start = |one: &Transfer| {
        one.goodput.0 > 0 && one.seconds.is_some_and(|seconds| seconds > 0.0 && seconds < START)
    };
    let counts =
        |one: &Transfer| matches!(one.carrier, Carrier::Tcp | Carrier::Udp) && one.error.is_none();
    let all = || transfers(explained).filter(|(_, _, one)| counts(one));
    let (source, result, one) = all().find(|(_, _, one)| is_start(one))?;
    if all().any(|(_, _, other)| other.direction == one.direction && !is_start(other)) {
        return None;
    }
    let what = format!(
        "{} says nothing of the path: the run was over in {:.0} ms, the start included",
        rate(one.goodput.0 as f64),
        one.seconds.unwrap_or(0.0) * 1e3
    );
    let remark = Remark::new(Stands::Found, what)
        .names(&["test-too-short"])
        .of(one.direction)
        .shown_by(source, result);
    Some(remark.next("for 10 seconds", "iperf3 -c HOST -t 10"))
}

fn too_short(
    all: &[Moved<'_>],
    run: &Moved<'_>,
    (seconds, messages): (f64, u64),
) -> Option<Remark> {
    let size = run.only()?.0;
    let same_size = || {
        all.iter()
            .filter(|other| other.is_like(run) && other.only().is_some_and(|only| only.0 == size))
    };
    let is_long = |other: &&Moved<'_>| {
        let same = other.both == run.both && other.setup.queues == run.setup.queues;
        same && length(other).is_some_and(|length| !is_short(length))
    };
    let words = format!("{messages} messages of {size} were over in {:.2} ms", seconds * 1e3);
    if let Some(long) = same_size().find(is_long) {
        if (run.best / long.best - 1.0).abs() <= ALIKE {
            return None;
        }
        let (_, many) = length(long)?;
        let what = format!(
            "{} says nothing: {words}, the start included. The run of {many} messages counts: {}",
            rate(run.best),
            rate(long.best)
        );
        return Some(
            Remark::new(Stands::Found, what)
                .names(&["test-too-short"])
                .shown_by(run.source, run.outcome),
        );
    }
    // Runs with equal numbers of messages are equally long: the start of a run does not explain their difference.
    let equals = same_size()
        .filter(|other| length(other).is_some_and(|length| length.1 == messages))
        .count();
    (equals < 2).then(|| {
        let what = format!("{} may be that of the start: {words}", rate(run.best));
        Remark::new(Stands::Doubt, what)
            .next("run the same for 10 seconds", "ib_write_bw -D 10 HOST")
    })
}

/// Least ratio of the rate of more queue pairs to that of few at which few do not reach the limit.
const QUEUES_GAIN: f64 = 1.3;

/// Compares the run with fewest queue pairs with a run of more, at the same message size.
pub(super) fn queues(explained: &Explained<'_>) -> Vec<Remark> {
    let all = runs(explained);
    let counted: Vec<(&Moved<'_>, u32)> =
        all.iter().map(|run| (run, run.setup.queues.unwrap_or(1).max(1))).collect();
    let few = counted.iter().min_by_key(|(_, queues)| *queues);
    let remark = few.and_then(|(few, count)| {
        let more = counted
            .iter()
            .filter(|(run, queues)| queues > count && run.both == few.both && run.is_like(few));
        let pairs = more.filter_map(|(run, queues)| Some((run, *queues, few.beside(run)?)));
        let is_fair = |run: &Moved<'_>| {
            let lengths = length(few).zip(length(run));
            lengths.is_none_or(|(few, many)| is_short(few) == is_short(many) || few.1 == many.1)
        };
        let best = pairs.filter(|(run, ..)| is_fair(run)).max_by(|a, b| a.2.2.total_cmp(&b.2.2));
        let (run, queues, (size, slow, fast)) = best?;
        (fast > slow * QUEUES_GAIN)
            .then(|| held((*count, queues), size, (slow, fast)).shown_by(run.source, run.outcome))
    });
    remark.into_iter().collect()
}

fn held((few, many): (u32, u32), size: Bytes, (slow, fast): (f64, f64)) -> Remark {
    let pairs = |n: u32| {
        if n == 1 { "1 queue pair carries".to_owned() } else { format!("{n} queue pairs carry") }
    };
    let what = format!(
        "{} {} and {} {}, with messages of {size}: the queue pair is the limit, and not the link",
        pairs(few),
        rate(slow),
        pairs(many),
        rate(fast)
    );
    Remark::new(Stands::Found, what)
        .because("one queue pair has a highest rate of messages, and a number of messages that may be outstanding")
        .names(&["rdma-one-qp", "rdma-depth"])
        .rules_out(&["path-rate", "pcie-slot"])
        .next("more outstanding messages of one queue pair, with the size as before", "ib_write_bw -q 1 -t 1024 HOST")
        .next("fewer and larger messages", "ib_write_bw -q 1 -s 1048576 HOST")
}

/// Least ratio of both directions' sum to one direction's rate; below it they share a limit. Without a shared limit it
/// is 2.
const BOTH: f64 = 1.3;
/// Ratio of the sum to one direction's rate from which both directions share nothing that matters.
const WAYS_APART: f64 = 1.8;

/// A run in both directions, the rate of one direction alone at the same message size, and the sum of both.
struct Ways<'a> {
    both: &'a Moved<'a>,
    one: f64,
    sum: f64,
}

/// The pair of runs, one direction against both, in which both directions share most.
fn ways<'a>(all: &'a [Moved<'a>]) -> Option<Ways<'a>> {
    let of = |both: &'a Moved<'a>| {
        let ones = all
            .iter()
            .filter(|one| !one.both && one.is_like(both) && one.setup.queues == both.setup.queues);
        let has_size = |run: &Moved<'_>| run.rows.keys().any(|size| size.0 > 0);
        let pairs = ones.filter_map(|one| match one.beside(both) {
            Some((_, one, both)) => Some((one, both)),
            None if has_size(one) && has_size(both) => None,
            None => Some((one.best, both.best)),
        });
        let (one, sum) = pairs.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Ways { both, one, sum })
    };
    let found = all.iter().filter(|run| run.both).filter_map(of);
    found.min_by(|a, b| (a.sum / a.one).total_cmp(&(b.sum / b.one)))
}

/// Whether both directions together carry less than twice one direction, so that they share a limit.
pub(super) fn share(explained: &Explained<'_>) -> bool {
    ways(&runs(explained)).is_some_and(|ways| ways.sum < ways.one * WAYS_APART)
}

/// The rate of both directions together, in words; `None` if there is no run in one direction to compare with.
pub(super) fn sum(all: &[Moved<'_>]) -> Option<String> {
    let ways = ways(all)?;
    let (sum, each) = (giga(ways.sum), giga(ways.sum / 2.0));
    Some(format!("both ways together carry {sum}, {each} each: the port is full duplex"))
}

pub(super) fn both(explained: &Explained<'_>) -> Vec<Remark> {
    let all = runs(explained);
    let found = ways(&all).filter(|ways| ways.sum < ways.one * WAYS_APART);
    found.map(|ways| shared(&ways)).into_iter().collect()
}

/// A rate in Gb/s with one decimal: the rate of each direction is half of a sum.
fn giga(bits: f64) -> String {
    format!("{:.1} Gb/s", bits / 1e9)
}

fn shared(ways: &Ways<'_>) -> Remark {
    let Ways { both, one, sum } = *ways;
    let what = format!(
        "{} is the sum of both ways, {} each, and one way alone carries {}: what both ways share is the limit, and not \
         the port",
        giga(sum),
        giga(sum / 2.0),
        giga(one)
    );
    let remark = Remark::new(if sum < one * BOTH { Stands::Found } else { Stands::Doubt }, what)
        .because(format!("a port carries {} in the sum of both ways if each is as fast as one alone", giga(one * 2.0)))
        .because("both share memory and its node, the slot and its link, the IOMMU, and the engine of the card")
        .next("the slot, as it runs, and the node of the card", "sudo lspci -vv")
        .next("the same with the program on the other node", "numactl --cpunodebind=NODE --membind=NODE ib_write_bw -b HOST");
    if sum >= one * BOTH {
        return remark;
    }
    remark
        .names(&["memory-bandwidth", "numa-remote", "pcie-slot"])
        .rules_out(&["path-rate"])
        .shown_by(both.source, both.outcome)
}
