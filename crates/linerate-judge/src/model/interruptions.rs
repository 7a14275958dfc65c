//! Interruptions of a step: link changes, silence in the middle of a load, ends that stopped for a moment.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::TcpShares;
use super::losses::loses_throughout;
use super::readings::{Window, growth};
use super::silence::{Silence, silences};
use linerate_facts::metric as m;
use linerate_plan::path::Side;
use linerate_record::{EndReadings, Step, Table, Total};
use linerate_units::Nanos;

/// The least time after which a sender retransmits unacknowledged data without any other sign of loss.
//= Linux, TCP_RTO_MIN
pub(crate) const TIMEOUT: Nanos = Nanos::from_millis(200);

/// Number of consecutive timeouts, each twice as long as the one before, that count as an outage of the path. At least
/// two, and as many as are needed so that all streams lose their retransmissions by chance only with a probability of
/// `SELDOM`.
//= RFC 6298, section 5.5: the timer doubles
const TIMERS: u32 = 2;
const TIMERS_MAX: u32 = 4;
const SELDOM: f64 = 1e-3;

/// The name of the trouble in a step that the user ended.
const STOPPED: &str = "stopped";

/// Number of consecutive samples that the sampling thread may miss on a busy host. The thread needs its CPU only for an
/// instant, so if it misses more, this end or its host was stopped.
const MISSED: u64 = 5;

/// Minimum payload rate during an interruption, relative to the rate at other times, at which the end did not stop.
/// Then only the sampling thread had to wait, as on a machine whose CPUs are all busy.
const WENT_ON: f64 = 0.5;

/// Largest payload of a stream that was blocked from its start: small packets carry some.
const FEW: u64 = 1 << 16;

/// Whether both ends and the path worked, and yet hardly any payload arrived. The senders could then not close their
/// streams in order, and lost their connections.
pub fn stalled(step: &Step) -> bool {
    let totals = || step.ends.iter().flat_map(|end| &end.totals);
    let blocked = |t: &Total| !t.complete && t.sent > 0 && t.received == 0;
    let trouble = step.trouble.as_ref().filter(|t| t.what != STOPPED);
    trouble.is_some()
        && step.ends.len() == 2
        && totals().any(blocked)
        // The receiving ends of the streams; an end of a ping-pong sends as well.
        && totals().filter(|t| t.sent == 0).all(|t| t.received <= FEW)
}

/// All interruptions of a step. `ticks` holds the start of each tick and the rate at which payload of `set`, or answers
/// of concurrent round trips, arrived.
pub(super) fn interruptions(
    step: &Step,
    set: u32,
    ticks: &[(u64, f64)],
    tcp: &TcpShares,
    streams: u32,
) -> Vec<String> {
    let mut found = Away::of(step).into_words();
    let of_the_path = silences(ticks).into_iter().filter(|silence| !silence.is_of_a_cpu(step, set));
    let timer = TIMEOUT.0.saturating_add(tcp.rtt.unwrap_or_default().0);
    let throughout =
        loses_throughout(step).then(|| timeouts(tcp.retransmitted, streams).saturating_mul(timer));
    // These paths are silent for a while without an interruption: a path whose round trip is long compared with a
    // sample, between two windows; a path that drops packets all the time, while its sender waits for one or more
    // timeouts; and a path that has dropped a whole window, for one timeout.
    let natural = |silence: &Silence| {
        let once = || Some(timer).filter(|_| silence.timeouts(step, set) > 0.0);
        let windows = tcp.rtt.unwrap_or_default().0.saturating_mul(2);
        let waits = throughout.or_else(once).unwrap_or(0).max(windows);
        (waits / step.plan.tick.0.max(1)) as usize
    };
    let too_long = of_the_path.filter(|silence| silence.samples > natural(silence));
    if let Some(samples) = too_long.map(|silence| silence.samples).max() {
        found.push(format!("no payload arrived for {samples} samples in a row, in mid-flow"));
    }
    if let Some(trouble) = step.trouble.as_ref().filter(|t| t.what != STOPPED && !stalled(step)) {
        found.push(format!("{}: {}", trouble.side.name(), trouble.what));
    }
    found
}

/// For how many times the first timeout a stream may be silent, if it loses the share `lost` of its packets.
fn timeouts(lost: Option<f64>, streams: u32) -> u64 {
    let lost = lost.unwrap_or(0.0).clamp(0.0, 0.5);
    let in_a_row = (SELDOM.ln() / lost.ln() / f64::from(streams.max(1))).ceil() as u32;
    (1 << in_a_row.clamp(TIMERS, TIMERS_MAX)) - 1
}

/// Links that were down and ends that stopped during a step, whatever its payload shows.
#[derive(Debug)]
pub(super) struct Away {
    /// Ports whose link went up or down, each with its end and the number of changes.
    links: Vec<((&'static str, String), f64)>,
    /// Ends that stopped for a moment, in words.
    ends: Vec<String>,
}

impl Away {
    /// The link changes and stopped ends of a step.
    pub(super) fn of(step: &Step) -> Self {
        Self { links: changes(step).collect(), ends: standstills(step).collect() }
    }

    /// Whether no link changed and no end stopped.
    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty() && self.ends.is_empty()
    }

    fn into_words(self) -> Vec<String> {
        let links = self.links.iter().map(|(link, n)| changed(link, *n));
        links.chain(self.ends).collect()
    }
}

/// An end that stopped for a moment in other steps is reported only if it did so in at least `STOOD_STILL` steps, and
/// in one of `ONE_IN` steps. Any busy machine stops once, and a slice in which it did is repeated.
const STOOD_STILL: usize = 2;
const ONE_IN: usize = 10;

/// Interruptions in other steps of this direction: links that changed, and ends that stopped repeatedly. Such
/// interruptions are rare, and seldom fall into the two seconds that are judged.
pub(super) fn outages_beside<'a>(steps: impl Iterator<Item = &'a Away>) -> Vec<String> {
    let (mut links, mut still, mut all) = (BTreeMap::new(), Vec::new(), 0);
    for away in steps {
        all += 1;
        for (link, changes) in &away.links {
            *links.entry(link).or_insert(0.0) += changes;
        }
        still.extend(away.ends.first());
    }
    let links = links.into_iter().map(|(link, n)| changed(link, n));
    let mut found: Vec<String> = links.map(|words| format!("in other steps {words}")).collect();
    if still.len() >= STOOD_STILL.max(all / ONE_IN) {
        found.extend(
            still.first().map(|first| format!("in {} other steps, first: {first}", still.len())),
        );
    }
    found
}

fn changed((side, port): &(&str, String), n: f64) -> String {
    let often = if n < 1.5 { "once".to_owned() } else { format!("{n:.0} times") };
    format!("the link of {side} {port} went up or down {often}")
}

/// Ports whose link went up or down, each with its end and the number of changes.
fn changes(step: &Step) -> impl Iterator<Item = ((&'static str, String), f64)> {
    let all = Window { from: 0, to: u64::MAX };
    ports(step, "port").filter_map(move |(side, port)| {
        let (changes, _) = growth(port, m::PORT_CARRIER_CHANGES, all)?;
        (changes > 0.0).then(|| ((side.name(), port.subject.clone()), changes))
    })
}

/// Ends that stopped for a moment, in words: nothing was read there for a while, and hardly any payload moved.
fn standstills(step: &Step) -> impl Iterator<Item = String> {
    let missed = step.plan.tick.0.saturating_mul(MISSED);
    let ends = [Side::Near, Side::Far].into_iter().zip(&step.ends);
    // An end that reports only sums has no samples that could be missing.
    let sampled = ends.filter(|(_, end)| end.is_sampled());
    sampled.filter_map(move |(side, end)| {
        let pause = longest_pause(end, step.plan.washout, missed)?;
        let still = pause.beyond > missed && !went_on(end, &pause).unwrap_or(false);
        still.then(|| {
            format!(
                "the {} end took no sample for {}: it was stopped, or had no CPU left",
                side.name(),
                Nanos(pause.beyond)
            )
        })
    })
}

/// A time in which nothing was read at an end.
struct Pause {
    from: u64,
    to: u64,
    /// Length of the pause beyond the planned time between readings, in nanoseconds.
    beyond: u64,
}

/// The longest time between two readings of one end, after the washout. Every reading counts: with many streams, one
/// row for each of them takes long, and is no pause. Only pauses longer than `least` are found.
fn longest_pause(end: &EndReadings, washout: Nanos, least: u64) -> Option<Pause> {
    let planned = |from: u64| if from < washout.0 { washout.0 } else { 0 };
    // During a pause nothing was read, also not for the table with the most rows: the other tables are checked only if
    // that table has a gap.
    let often = end.tables.iter().max_by_key(|t| t.at.len())?;
    let mut at = Cow::Borrowed(&often.at[..]);
    // The times of rows in a file may be in any order.
    if !at.is_sorted() {
        at.to_mut().sort_unstable();
    }
    let begins = std::iter::once(0).chain(at.iter().copied());
    let ends = at.iter().copied().chain(std::iter::once(u64::MAX));
    let gaps = begins.zip(ends).filter(|(from, to)| to - from > least);
    gaps.flat_map(|(from, to)| pauses(end, Window { from, to }, least))
        .map(|(from, to)| Pause { from, to, beyond: (to - from).saturating_sub(planned(from)) })
        .max_by_key(|pause| pause.beyond)
}

/// Times in a window between two successive readings of an end that are longer than `least`.
fn pauses(end: &EndReadings, window: Window, least: u64) -> Vec<(u64, u64)> {
    let read = || {
        let tables = end.tables.iter().filter(|table| meets(&table.at, window));
        tables.flat_map(|table| &table.at[window.within(table)])
    };
    let span = read().max().zip(read().min());
    if span.is_none_or(|(last, first)| last - first <= least) {
        return Vec::new();
    }
    let mut read: Vec<u64> = read().copied().collect();
    read.sort_unstable();
    let times = read.windows(2).map(|w| (w[0], w[1]));
    times.filter(|(from, to)| to - from > least).collect()
}

/// Whether any of these ascending times may be in a window.
fn meets(at: &[u64], window: Window) -> bool {
    let ends = at.first().zip(at.last());
    ends.is_some_and(|(first, last)| *first <= window.to && *last >= window.from)
}

/// Whether payload moved during a pause about as fast as otherwise; `None` if it was not read.
fn went_on(end: &EndReadings, pause: &Pause) -> Option<bool> {
    let (mut inside, mut all) = ((0.0, 0.0_f64), (0.0, 0.0_f64));
    for table in end.about(m::WORKER_BYTES.source, |_| true) {
        let bytes = table.column(m::WORKER_BYTES)?;
        let before = table.at.iter().rposition(|at| *at <= pause.from)?;
        let after = table.at.iter().position(|at| *at >= pause.to)?;
        let add = |sum: &mut (f64, f64), a: usize, b: usize| {
            sum.0 += bytes[b].saturating_sub(bytes[a]) as f64;
            sum.1 = sum.1.max((table.at[b] - table.at[a]) as f64);
        };
        add(&mut inside, before, after);
        add(&mut all, 0, bytes.len() - 1);
    }
    let otherwise = (all.0 - inside.0) / (all.1 - inside.1);
    (otherwise > 0.0).then(|| inside.0 / inside.1 >= otherwise * WENT_ON)
}

/// The tables of one source, of both ends.
pub(super) fn ports<'a>(
    step: &'a Step,
    source: &'a str,
) -> impl Iterator<Item = (Side, &'a Table)> {
    [Side::Near, Side::Far]
        .into_iter()
        .zip(&step.ends)
        .flat_map(move |(side, end)| end.about(source, |_| true).map(move |t| (side, t)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::table;
    use super::*;
    use linerate_plan::{Purpose, StepPlan};
    use linerate_record::Column;

    /// The interruptions of a step with a washout of 1 s and ticks of 100 ms, for rows of an end: the time of each
    /// reading, and the bytes that its worker had moved.
    fn outages_at(rows: &[(u64, i64)]) -> Vec<String> {
        Away::of(&step_with(worker(rows))).into_words()
    }

    fn worker(rows: &[(u64, i64)]) -> Table {
        Table {
            source: "worker".to_owned(),
            subject: "s0/tx0".to_owned(),
            at: rows.iter().map(|(ms, _)| ms * 1_000_000).collect(),
            columns: vec![Column {
                name: m::WORKER_BYTES.name.into(),
                unit: m::WORKER_BYTES.unit,
                kind: m::WORKER_BYTES.kind,
                values: rows.iter().map(|(_, bytes)| *bytes).collect(),
            }],
        }
    }

    /// A step in which the far end read this table.
    fn step_with(table: Table) -> Step {
        let far = EndReadings { tables: vec![table], ..EndReadings::default() };
        Step {
            plan: StepPlan {
                index: 0,
                purpose: Purpose::Both,
                sets: vec![0],
                washout: Nanos::from_secs(1),
                measure: Nanos::from_secs(1),
                tick: Nanos::from_millis(100),
            },
            began: Nanos(0),
            ends: vec![EndReadings::default(), far],
            clock: None,
            took: Nanos(0),
            trouble: None,
        }
    }

    /// The reported interruptions of other steps, in which the link changed so often.
    fn changed_beside(changes: &[i64]) -> Vec<String> {
        let port = |n: &i64| step_with(table("eth0", &[(m::PORT_CARRIER_CHANGES, [4, 4 + n])]));
        let steps: Vec<Away> = changes.iter().map(port).map(|step| Away::of(&step)).collect();
        outages_beside(steps.iter())
    }

    #[test]
    fn a_link_that_changed_in_another_step_is_told_once_for_all() {
        assert!(changed_beside(&[]).is_empty() && changed_beside(&[0, 0]).is_empty());
        let words = "in other steps the link of far eth0 went up or down 6 times";
        assert_eq!(changed_beside(&[2, 0, 4]), [words]);
    }

    #[test]
    fn an_end_that_stood_still_in_one_other_step_is_no_news_and_in_two_is() {
        let still = || step_with(worker(&[(0, 0), (1000, 0), (1601, 0), (2000, 0)]));
        let beside = |steps: &[Step]| {
            let away: Vec<Away> = steps.iter().map(Away::of).collect();
            outages_beside(away.iter())
        };
        assert!(beside(&[still()]).is_empty());
        let words = "in 2 other steps, first: the far end took no sample for 601 ms: it was stopped, or had no CPU left";
        assert_eq!(beside(&[still(), still()]), [words]);
    }

    /// Whether a silence of two samples counts, if a thread waited for its CPU for so many milliseconds in it.
    fn silence_behind(subject: &str, millis: i64) -> bool {
        let wait = |row: i64| ((row - 12).clamp(0, 2) * millis / 2) * 1_000_000;
        let thread = Table {
            source: m::THREAD_WAIT.source.to_owned(),
            subject: subject.to_owned(),
            at: (0..30).map(|row| row * 100_000_000).collect(),
            columns: vec![Column {
                name: m::THREAD_WAIT.name.into(),
                unit: m::THREAD_WAIT.unit,
                kind: m::THREAD_WAIT.kind,
                values: (0..30).map(wait).collect(),
            }],
        };
        result_of(2, thread)
    }

    #[test]
    fn silence_while_a_thread_of_the_load_has_no_cpu_is_no_outage() {
        assert!(silence_behind("s0/tx0", 98) && !silence_behind("s0/tx0", 102));
        assert!(!silence_behind("s0/rx3", 200));
        assert!(silence_behind("s1/pp0", 200), "no thread of the load");
    }

    /// Whether a silence of `silent` samples counts, in a step with ticks of 100 ms whose counter `counted` grew in
    /// those of its 30 rows that `retransmits` selects.
    fn silence_of(counted: m::Metric, silent: usize, retransmits: impl Fn(usize) -> bool) -> bool {
        result_of(silent, socket_that_counts(counted, retransmits))
    }

    /// The table of a socket, or a queue, whose counter grew in those of 30 rows that `retransmits` selects.
    fn socket_that_counts(counted: m::Metric, retransmits: impl Fn(usize) -> bool) -> Table {
        let rows = 0..=30_usize;
        let retransmitted_share = rows.clone().scan(0, |sum, row| {
            *sum += i64::from(retransmits(row));
            Some(*sum)
        });
        Table {
            source: counted.source.to_owned(),
            subject: "s0/0".to_owned(),
            at: rows.map(|row| row as u64 * 100_000_000).collect(),
            columns: vec![Column {
                name: counted.name.into(),
                unit: counted.unit,
                kind: counted.kind,
                values: retransmitted_share.collect(),
            }],
        }
    }

    /// Whether a silence of so many samples counts, in a step with this table of one end.
    fn result_of(silent: usize, table: Table) -> bool {
        result_with(silent, table, None)
    }

    /// As `result_of`, for a stream that retransmitted the share `lost` of its bytes.
    fn result_with(silent: usize, table: Table, lost: Option<f64>) -> bool {
        let ticks: Vec<(u64, f64)> = (0..30)
            .map(|n| {
                let rate = if (12..12 + silent).contains(&n) { 0.0 } else { 1e6 };
                (n as u64 * 100_000_000, rate)
            })
            .collect();
        let near = EndReadings { tables: vec![table], ..EndReadings::default() };
        let step = Step {
            plan: StepPlan {
                index: 0,
                purpose: Purpose::Both,
                sets: vec![0],
                washout: Nanos(0),
                measure: Nanos::from_secs(3),
                tick: Nanos::from_millis(100),
            },
            began: Nanos(0),
            ends: vec![near, EndReadings::default()],
            clock: None,
            took: Nanos(0),
            trouble: None,
        };
        let tcp = TcpShares { retransmitted: lost, ..TcpShares::default() };
        !interruptions(&step, 0, &ticks, &tcp, 1).is_empty()
    }

    #[test]
    fn the_more_is_lost_the_more_timers_run_out_in_a_row() {
        let of = |share| timeouts(Some(share), 1);
        assert_eq!((timeouts(None, 1), of(0.0), of(0.001), of(0.031)), (3, 3, 3, 3));
        assert_eq!((of(0.032), of(0.099), of(0.101)), (7, 7, 15));
        assert_eq!((of(0.4), of(1.0), of(f64::NAN)), (15, 15, 3));
        assert_eq!((timeouts(Some(0.101), 2), timeouts(Some(1.0), 64)), (3, 3));
        // A silence of 600 ms is no interruption; with heavy loss, one of 1.4 s is none either.
        let behind = |silent, lost| {
            let retransmitted_share = socket_that_counts(m::TCP_RETRANS, |row| row % 2 == 1);
            result_with(silent, retransmitted_share, Some(lost))
        };
        assert!(!behind(6, 0.031) && behind(7, 0.031));
        assert!(!behind(14, 0.032) && behind(15, 0.032));
    }

    fn silence(silent: usize, retransmits: impl Fn(usize) -> bool) -> bool {
        silence_of(m::TCP_RETRANS, silent, retransmits)
    }

    #[test]
    fn what_a_queue_of_an_end_refuses_all_the_time_is_lost_as_well() {
        let of = |silent| silence_of(m::QDISC_DROPS, silent, |row| row % 2 == 1);
        assert!(!of(6) && of(7));
    }

    #[test]
    fn silence_is_an_outage_unless_the_path_loses_packets_all_the_time() {
        let never = |_| false;
        assert!(!silence(1, never) && silence(2, never));
        // Retransmissions around the outage alone, and up to the last quarter of the step.
        assert!(silence(2, |row| (12..16).contains(&row)));
        assert!(silence(2, |row| row <= 22 && row % 2 == 1));
        assert!(!silence(6, |row| row % 2 == 1) && silence(7, |row| row % 2 == 1));
    }

    #[test]
    fn one_timer_that_ran_out_in_a_silence_is_no_outage() {
        let ran_out = |silent, when: usize| silence_of(m::TCP_TOTAL_RTO, silent, |row| row == when);
        // Samples 12 and 13 are silent: the timer expired by the end of the sample that follows them.
        assert!(!ran_out(2, 13) && !ran_out(2, 15) && ran_out(2, 16) && ran_out(2, 12));
        assert!(ran_out(3, 14), "a timer and a sample");
    }

    /// As `outages_at`, for an end that moved no payload; the times are in milliseconds.
    fn outages_of(rows_ms: &[u64]) -> Vec<String> {
        let rows: Vec<_> = rows_ms.iter().map(|ms| (*ms, 0)).collect();
        outages_at(&rows)
    }

    #[test]
    fn an_end_that_missed_more_than_five_samples_stood_still() {
        assert!(outages_of(&[0, 1000, 1100, 1600, 1600, 2000]).is_empty());
        let words = "the far end took no sample for 501 ms: it was stopped, or had no CPU left";
        assert_eq!(outages_of(&[0, 1000, 1100, 1601, 1601, 2000]), [words]);
    }

    #[test]
    fn an_end_whose_payload_went_on_did_not_stand_still() {
        // 1 byte in a millisecond but for the pause of 600 ms, in which half of that rate is the limit.
        let of = |inside: i64| {
            let rows = [(0, 0), (1000, 1000), (1600, 1000 + inside), (2000, 1400 + inside)];
            outages_at(&rows).len()
        };
        assert_eq!((of(299), of(301)), (1, 0));
    }

    #[test]
    fn no_row_is_missed_in_a_wash_out_unless_it_ends_late() {
        assert!(outages_of(&[0, 1500, 1500, 2000]).is_empty());
        assert_eq!(outages_of(&[0, 1501, 1501, 2000]).len(), 1);
        assert!(outages_of(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn a_long_pause_is_the_longest_between_all_readings(
            mut times in prop::collection::vec(prop::collection::vec(0u64..200, 0..12), 1..5),
            washout in 0u64..60,
        ) {
            for at in &mut times {
                at.sort_unstable();
            }
            let mut all = times.concat();
            all.sort_unstable();
            let planned = |from: u64| if from < washout { washout } else { 0 };
            let beyond = |w: &[u64]| (w[1] - w[0]).saturating_sub(planned(w[0]));
            let longest = all.windows(2).map(beyond).max().unwrap_or(0);
            let tables = times.into_iter().map(|at| Table {
                source: "worker".to_owned(),
                subject: "s0/tx0".to_owned(),
                at,
                columns: Vec::new(),
            });
            let end = EndReadings { tables: tables.collect(), ..EndReadings::default() };
            let found = longest_pause(&end, Nanos(washout), 20);
            let found = found.map(|pause| pause.beyond).filter(|beyond| *beyond > 20);
            prop_assert_eq!(found, Some(longest).filter(|beyond| *beyond > 20));
        }
    }
}
