//! Rules about operations in flight: a thread that only submits, and operations that run one after the other.

use super::super::super::Explained;
use super::super::Remark;
use super::rows::{At, SEEK, SHOWN, all, are_single, firsts, time};
use linerate_facts::finding::Stands;
use linerate_units::Nanos;

/// Least share of its time that a thread spends on submission if it does nothing else.
const ONLY_SUBMITS: f64 = 0.9;
/// Shortest time to submit an operation at which the submission waits for the disk. To hand an operation over takes
/// microseconds.
const SUBMIT_BLOCKS: Nanos = Nanos::from_micros(50);
/// Most characters of an engine's name that are shown.
const LONGEST_NAME: usize = 20;

pub(in crate::rule) fn submits(explained: &Explained<'_>) -> Vec<Remark> {
    firsts(explained).filter_map(|at| submitting(&at)).take(SHOWN).collect()
}

/// Remark on threads that only submit. The time is summed over the rows of a result, because they share its threads.
fn submitting(at: &At<'_>) -> Option<Remark> {
    let rows = at.disk.rows.iter();
    let each = rows.filter_map(|row| Some((row.submit?, row.operations?)));
    let share = each.clone().map(|(time, rate)| time.secs() * rate).sum::<f64>() / at.threads();
    let longest = each.map(|(time, _)| time).max()?;
    if share < ONLY_SUBMITS {
        return None;
    }
    let why = if longest >= SUBMIT_BLOCKS {
        "the submission waits for the disk: the cache is not bypassed, or the file system cannot do it without waiting"
    } else {
        "so short a time is that of the processor: one core is full"
    };
    let what = format!(
        "{}: submitting takes {:.0} % of the time of a thread: the disk gets no more operations",
        at.words(),
        (share * 100.0).min(100.0)
    );
    let operations: f64 = at.disk.rows.iter().filter_map(|row| row.operations).sum();
    let remark = Remark::new(Stands::Found, what)
        .because(format!("{longest} to submit one, and {operations:.0} in a second"))
        .because(why)
        .names(&["disk-submit"])
        .next(
            "bypass the cache, with another engine and several threads",
            &format!("{} --numjobs=4", at.deeper()),
        );
    Some(at.shows(remark))
}

pub(in crate::rule) fn depth(explained: &Explained<'_>) -> Vec<Remark> {
    let single = are_single(explained);
    all(explained).filter_map(|at| one_at_a_time(&at, single)).take(SHOWN).collect()
}

fn one_at_a_time(at: &At<'_>, single: bool) -> Option<Remark> {
    if at.is_device() || at.is_copy() {
        return None;
    }
    let requested = at.row.requested.or(at.row.depth).unwrap_or(1);
    let ignored = at.row.requested.is_some() && at.row.mean.is_none_or(|_| at.is_one());
    // A disk that answers as slowly as a rotating one has another cause.
    let answers =
        at.each().filter(|each| *each < SEEK && single && at.is_single() && at.is_small());
    let is_shown = at.row.mean.is_none_or(|_| at.is_one()) && at.disk.direct == Some(true);
    let is_deep = requested > 1 && at.is_one();
    if !(ignored || is_deep || answers.is_some() && is_shown) {
        return None;
    }
    let engine = Some(at.disk.engine.as_str()).filter(|name| ignored && !name.is_empty());
    let why = match engine {
        Some(engine) => format!(
            "the engine {} keeps one operation in flight, whatever depth is asked",
            said(engine)
        ),
        None if requested > 1 => {
            "a layer below completes each operation before it takes the next one".to_owned()
        }
        None => "one operation after the other was asked".to_owned(),
    };
    let depth = if requested > 1 { format!(", and {requested} were asked") } else { String::new() };
    let threads = at.threads();
    let of_each = if threads > 1.0 { " of each thread" } else { "" };
    let what = format!(
        "{}: 1 operation{of_each} was in flight{depth}: the time of one limits the rate",
        at.words()
    );
    let causes: &[&str] =
        if at.is_small() { &["queue-depth"] } else { &["queue-depth", "disk-latency"] };
    let mut remark = Remark::new(Stands::Found, what).because(why).names(causes);
    if let Some((each, rate)) = at.each().zip(at.row.operations) {
        let mean = at.row.mean.map_or(each, Nanos::secs);
        remark = remark.because(format!(
            "{threads:.0}/{} = {:.0} operations/s, and {rate:.0} were done",
            time(mean),
            threads / mean.max(1e-9)
        ));
    }
    Some(at.shows(
        remark.next("ask for more with an engine that can keep them in flight", at.deeper()),
    ))
}

/// The name of an engine, reduced to letters, digits, `_` and `-`, and to `LONGEST_NAME` characters.
fn said(engine: &str) -> String {
    let letters = engine.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c));
    letters.take(LONGEST_NAME).collect()
}
