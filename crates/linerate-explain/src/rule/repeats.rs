//! A rule about two runs of one latency test: what was changed between the runs causes the difference.

use super::super::{Explained, Table, side_name};
use super::Remark;
use super::transfers::transfers;
use linerate_facts::finding::Stands;
use linerate_facts::nic::{Coalesce, Nic};
use linerate_plan::path::Side;
use linerate_record::reported::Trip;
use linerate_units::Nanos;

/// Least ratio of the times of two runs that differ: runs on one path, one after the other, vary by some percent.
const TIMES_DIFFER: f64 = 1.3;

/// Shortest interrupt delay that is reported, in microseconds: the threshold of the cause `latency-interrupts`.
const NOTABLE: u32 = 10;

/// Range of the difference in one direction over the interrupt delay, within which the delay explains it: one end or
/// both delay, a timer may already run, and without a delay each packet costs an interrupt.
const OF_DELAY: std::ops::RangeInclusive<f64> = 0.2..=1.5;

/// Most tables that are compared with each other.
const MOST: usize = 64;

/// A run of a latency test with one message size.
struct Run<'a, 'b> {
    table: &'b Table<'a>,
    time: Nanos,
}

pub(super) fn repeats(explained: &Explained<'_>) -> Vec<Remark> {
    let runs: Vec<Run<'_, '_>> = explained.tables.iter().filter_map(run).take(MOST).collect();
    let pair = |slow: &Run<'_, '_>| {
        let others = runs.iter().filter(|fast| is_like(slow, fast));
        let fast = others.min_by_key(|fast| fast.time)?;
        let is_slow = slow.time.0 as f64 >= fast.time.0 as f64 * TIMES_DIFFER;
        is_slow.then(|| remark(explained, (slow, fast)))
    };
    let mut slowest: Vec<&Run<'_, '_>> = runs.iter().collect();
    slowest.sort_by_key(|run| std::cmp::Reverse(run.time));
    slowest.into_iter().find_map(pair).into_iter().collect()
}

/// The run in a table of a latency test with one message size. Pings are left out: they have their own rules.
fn run<'a, 'b>(table: &'b Table<'a>) -> Option<Run<'a, 'b>> {
    let [row] = table.sizes.rows.as_slice() else {
        return None;
    };
    let is_ping = ["ping", "ibping"].contains(&table.source.tool.name.as_str());
    let is_test = !is_ping && !table.sizes.setup.collective;
    let time = row.mean.or(row.typical)?;
    (is_test && time.0 > 0).then_some(Run { table, time })
}

/// Whether two runs are of one test: same program, host, title, operation and message size.
fn is_like(a: &Run<'_, '_>, b: &Run<'_, '_>) -> bool {
    let (one, other) = (a.table.sizes, b.table.sizes);
    let size =
        |run: &Run<'_, '_>| run.table.sizes.rows.first().map(|row| (row.size, row.mean.is_some()));
    a.table.source.tool.name == b.table.source.tool.name
        && a.table.source.side == b.table.source.side
        && a.table.outcome.title == b.table.outcome.title
        && (&one.operation, one.carrier, one.trip) == (&other.operation, other.carrier, other.trip)
        && size(a) == size(b)
}

fn remark(explained: &Explained<'_>, (slow, fast): (&Run<'_, '_>, &Run<'_, '_>)) -> Remark {
    let line = |run: &Run<'_, '_>| run.table.outcome.line;
    let ratio = slow.time.0 as f64 / fast.time.0 as f64;
    let times = format!(
        "the run at line {} took {}, and that at line {} {}, {ratio:.1} times less",
        line(slow),
        slow.time,
        line(fast),
        fast.time
    );
    let found = |what: String| Remark::new(Stands::Found, what);
    if let Some((side, port, micros, has_changed)) =
        delayed(explained, slow, slow.time.0 - fast.time.0)
    {
        let what = format!(
            "{times}: in the slower one a packet waits for the interrupt of the card, up to {micros} us (rx-usecs of \
             {port}, not adaptive)"
        );
        // Without a change, the delay that both runs may have had explains less: a second cause stays possible.
        let causes: &[&'static str] = if has_changed {
            &["latency-interrupts"]
        } else {
            &["latency-interrupts", "latency-wakeup"]
        };
        return found(what)
            .because(
                "the difference of one way is of the size of that delay; one end or both have it",
            )
            .names(causes)
            .at(side)
            .shown_by(slow.table.source, slow.table.outcome)
            .next(
                &format!(
                    "interrupt at once, at both ends; each packet then costs one (here at the {})",
                    side_name(side)
                ),
                "sudo ethtool -C PORT rx-usecs 0",
            );
    }
    let what = format!(
        "{times}: if both are of one path, what was changed between them makes the difference"
    );
    let remark = found(what).next(
        "both in turns, three times each, and the settings of the card between them",
        "ethtool -c PORT",
    );
    // If there are transfers too, the question may be about them: the remark then gives no answer.
    if transfers(explained).next().is_none() { remark.names(&[]) } else { remark }
}

/// A port whose fixed interrupt delay explains the difference of two runs: host, name of the port, delay in
/// microseconds, and whether the delay was changed between two readings.
fn delayed<'a>(
    explained: &'a Explained<'_>,
    run: &Run<'_, '_>,
    difference: u64,
) -> Option<(Side, &'a str, u32, bool)> {
    let ways = match run.table.sizes.trip {
        Trip::Whole => 2.0,
        Trip::Half => 1.0,
        Trip::Unknown => return None,
    };
    let one_way = difference as f64 / 1e3 / ways;
    let explains = |micros: u32| OF_DELAY.contains(&(one_way / f64::from(micros.max(1))));
    let of = |(side, nic): (Side, &'a Nic)| {
        let both = [nic.before.coalesce, nic.coalesce].into_iter().flatten();
        let fixed = both.filter(|coalesce| coalesce.adaptive_rx == Some(false));
        let micros = fixed.filter_map(|coalesce| coalesce.rx_usecs).max()?;
        let usecs = |at: Option<Coalesce>| at.and_then(|at| at.rx_usecs);
        let has_changed =
            nic.before.coalesce.is_some() && usecs(nic.before.coalesce) != usecs(nic.coalesce);
        Some((side, nic.name.as_str(), micros, has_changed))
    };
    let mut all = explained.material.nics().filter_map(of);
    all.find(|(_, _, micros, _)| *micros >= NOTABLE && explains(*micros) && run.table.is_sockets())
}
