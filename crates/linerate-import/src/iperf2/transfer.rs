//! Makes transfers from the rows of a test.

use std::collections::{BTreeMap, BTreeSet};

use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Counted, Lost, RoundTrips, Transfer};
use linerate_units::{Bytes, Nanos, Rate};

use super::text::{Connection, Lines, Test};
use crate::iperf_command::requested;
use crate::iperf_row::{CONTRADICTS, Row, number, ticks, word};
use crate::reading::{Notes, flag};

/// The transfers of a test, one for each direction.
pub(super) fn all(
    lines: &Lines<'_>,
    test: &Test<'_>,
    command: Option<&str>,
    notes: &mut Notes,
) -> Vec<Transfer> {
    let mut note = |what: &str| notes.at(test.line, what);
    let has = |names: &[&str]| command.is_some_and(|command| flag(command, names));
    let server =
        lines.connects_to.is_none() && (lines.listens_on.is_some() || has(&["-s", "--server"]));
    if lines.connects_to.is_none() && lines.listens_on.is_none() && command.is_none() {
        note(
            "the output does not say which end wrote it: it was read as that of a client that sends",
        );
    }
    let views = Direction::ALL.map(|direction| View::new(lines, test, server, direction));
    let loaded = views.iter().filter(|view| !view.rows.is_empty()).count();
    let duplex = test.connections.iter().any(|connection| connection.duplex);
    let both = loaded > 1 && (duplex || has(&["-d", "--dualtest"]));
    if loaded > 1 && !both && !has(&["-r", "--tradeoff"]) {
        note(
            "the output does not say whether both directions were loaded at once: they were read as one after the other",
        );
    }
    if views.iter().any(|view| view.whole().is_some_and(|(whole, _)| whole.is_none())) {
        note("the row of the whole time is missing: the rate is that of the intervals");
    }
    let transfers: Vec<Transfer> = views
        .iter()
        .filter_map(|view| view.transfer(both))
        .map(|mut one| {
            if let Some(command) = command {
                requested(&mut one, command);
            }
            one
        })
        .collect();
    let rows = || test.rows.iter().chain(&test.server);
    if rows().any(|row| row.comma) {
        note("the numbers have a decimal comma");
    }
    if rows().any(Row::contradicts) {
        note(CONTRADICTS);
    }
    if rows().any(|row| row.binary) {
        note(
            "rates in Bytes/sec have multiples of 1024, as iperf counts them: they were converted",
        );
    }
    transfers
}

/// One direction of a test, with its rows.
struct View<'a> {
    lines: &'a Lines<'a>,
    test: &'a Test<'a>,
    direction: Direction,
    /// Whether the end that wrote the output is the sender.
    sends: bool,
    /// Rows of this direction for all streams together: those of intervals, then that of the whole time.
    rows: Vec<&'a Row<'a>>,
    /// For each stream, the row of the whole time.
    each: Vec<&'a Row<'a>>,
}

impl<'a> View<'a> {
    fn new(lines: &'a Lines<'a>, test: &'a Test<'a>, server: bool, direction: Direction) -> Self {
        let ways = Ways::new(lines, test);
        let own = |row: &&Row<'_>| ways.of(row) == direction;
        let rows: Vec<&Row<'_>> = test.rows.iter().filter(own).collect();
        let ids: BTreeSet<&str> =
            rows.iter().filter(|row| !row.is_sum()).map(|row| row.id).collect();
        let wholes = rows.iter().filter(|row| !row.is_sum() && row.from == 0.0);
        let last: BTreeMap<&str, &Row<'_>> = wholes.map(|row| (row.id, *row)).collect();
        let each: Vec<&Row<'_>> = last.into_values().collect();
        let sum = rows.iter().any(|row| row.is_sum());
        let all = rows.iter().filter(|row| row.is_sum() == (sum && ids.len() > 1));
        Self {
            lines,
            test,
            direction,
            sends: server == (direction == Direction::Reverse),
            rows: all.copied().collect(),
            each,
        }
    }

    /// The row of the whole time (`None` if it is missing), and the rows of the intervals.
    fn whole(&self) -> Option<(Option<&'a Row<'a>>, Vec<&'a Row<'a>>)> {
        let end = self.rows.iter().map(|row| row.to).fold(0.0, f64::max);
        // The last interval may end a little after the end of the whole time.
        let whole = |row: &&Row<'_>| row.from == 0.0 && row.to >= 0.95 * end;
        let Some(at) = self.rows.iter().rposition(whole) else {
            return (!self.rows.is_empty()).then(|| (None, self.rows.clone()));
        };
        Some((Some(self.rows[at]), self.rows[..at].to_vec()))
    }

    fn transfer(&self, both: bool) -> Option<Transfer> {
        let (whole, intervals) = self.whole()?;
        let Some(whole) = whole else {
            return self.cut(&intervals, both);
        };
        let reports = &self.test.server;
        // The server's report is used only if it covers all streams.
        let reported = self.direction == Direction::Forward
            && !reports.is_empty()
            && reports.len() == self.each.len();
        let counted = if reported || !self.sends { Counted::Receiver } else { Counted::Sender };
        // Versions that print no sum: the rates of the streams are added.
        let single = whole.is_sum() || self.each.len() <= 1;
        let rate = match (reported, single) {
            (true, _) => reports.iter().map(|row| row.rate).sum(),
            (false, true) => whole.rate,
            (false, false) => self.each.iter().map(|row| row.rate).sum(),
        };
        if whole.bytes <= 0.0 && rate <= 0.0 {
            return None;
        }
        let mut transfer = self.begun(rate, counted, both);
        transfer.seconds = Some(whole.seconds()).filter(|s| *s > 0.0);
        if single {
            (transfer.ticks, transfer.tick) = ticks(&intervals);
        }
        let each = self.each.iter().map(|row| row.rate);
        transfer.each =
            if reported { reports.iter().map(|row| row.rate).collect() } else { each.collect() };
        transfer.segment = self.test.connections.iter().find_map(|c| c.segment);
        transfer.buffer = self.lines.buffer.map(|size| Bytes(size as u64));
        transfer.size = self.lines.block.map(Bytes);
        transfer.datagrams =
            if reported { lost(reports.iter()) } else { lost([whole].into_iter()) };
        Some(transfer)
    }

    /// A transfer with the figures that every output has.
    fn begun(&self, rate: f64, counted: Counted, both: bool) -> Transfer {
        let carrier = if self.lines.udp { Carrier::Udp } else { Carrier::Tcp };
        let rate = Rate(rate.round() as u64);
        let mut transfer = Transfer::new(carrier, self.direction, rate, counted);
        transfer.both = both;
        transfer.streams = u32::try_from(self.each.len()).ok().filter(|n| *n > 0);
        if self.lines.enhanced && self.sends {
            self.kernel(&mut transfer);
        }
        transfer
    }

    /// A transfer from intervals, if the row of the whole time is missing.
    fn cut(&self, intervals: &[&Row<'_>], both: bool) -> Option<Transfer> {
        let (ticks, tick) = ticks(intervals);
        let mean = ticks.iter().sum::<f64>() / ticks.len().max(1) as f64;
        if mean <= 0.0 || (self.each.len() > 1 && !intervals.iter().all(|row| row.is_sum())) {
            return None;
        }
        let counted = if self.sends { Counted::Sender } else { Counted::Receiver };
        let mut transfer = self.begun(mean, counted, both);
        transfer.seconds = tick.map(|tick| tick * ticks.len() as f64);
        (transfer.ticks, transfer.tick) = (ticks, tick);
        // The number of retransmits for the whole time is only in the row of the whole time.
        transfer.retransmits = None;
        Some(transfer)
    }

    /// Reads `59116/0          3     3581K/1781(2809) us  2167735`: calls and errors, retransmits, and the congestion
    /// window and round-trip time at the end of the interval.
    fn kernel(&self, transfer: &mut Transfer) {
        let result_of = |row: &Row<'_>| {
            let mut words = row.rest.split_whitespace().skip(1);
            let retransmits: u64 = words.next()?.parse().ok()?;
            let (window, trip) = words.next()?.split_once("K/")?;
            let trip = trip.split_once('(').map_or(trip, |(trip, _)| trip);
            Some((retransmits, window.parse::<u64>().ok()?, trip.parse::<u64>().ok()?))
        };
        let totals = self.each.iter().map(|row| result_of(row).map(|(n, ..)| n));
        transfer.retransmits = totals.sum::<Option<u64>>().filter(|_| !self.each.is_empty());
        let all: Vec<_> = self.test.rows.iter().filter_map(result_of).collect();
        let largest = all.iter().map(|(_, window, _)| *window).max();
        transfer.window = largest.filter(|n| *n > 0).map(|n| Bytes(n.saturating_mul(1024)));
        let trips: Vec<u64> = all.iter().map(|(.., trip)| *trip).filter(|n| *n > 0).collect();
        let mean = trips.iter().map(|n| *n as f64).sum::<f64>() / trips.len().max(1) as f64;
        let micros = |n: u64| Nanos(n.saturating_mul(1000));
        transfer.round_trip = RoundTrips {
            least: trips.iter().min().map(|n| micros(*n)),
            mean: (!trips.is_empty()).then_some(Nanos((mean * 1e3) as u64)),
            most: trips.iter().max().map(|n| micros(*n)),
        };
    }
}

/// Finds the direction of each row.
struct Ways<'a> {
    /// For each connection, by its id: whether its direction is reverse.
    back: BTreeMap<&'a str, bool>,
    /// Whether the direction of all connections is reverse.
    all_back: bool,
}

impl<'a> Ways<'a> {
    /// In a test of both directions, a connection to the port that this client listens on carries the reverse
    /// direction.
    fn new(lines: &Lines<'_>, test: &Test<'a>) -> Self {
        let back = |connection: &Connection<'a>| {
            let [near, far] = connection.ports;
            let listens = lines.listens_on.or(lines.connects_to);
            let incoming = lines.connects_to.is_some() && Some(near) == listens;
            let back = connection.reverse || (incoming && Some(far) != lines.connects_to);
            (connection.id, back)
        };
        let back: BTreeMap<&str, bool> = test.connections.iter().map(back).collect();
        Self { all_back: !back.is_empty() && back.values().all(|back| *back), back }
    }

    /// The direction of a row. In a connection used both ways, the rows of the reverse direction have a star.
    fn of(&self, row: &Row<'_>) -> Direction {
        let known = self.back.get(row.id).copied().unwrap_or(false);
        if row.id.starts_with('*')
            || row.id.contains("-*")
            || known
            || (row.is_sum() && self.all_back)
        {
            Direction::Reverse
        } else {
            Direction::Forward
        }
    }
}

/// Sum of the datagrams of rows such as `0.001 ms 0/3570 (0%)`.
fn lost<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> Option<Lost> {
    let mut sum: Option<Lost> = None;
    for row in rows {
        let (jitter, rest) = row.rest.split_once(" ms")?;
        let counts: String = rest.chars().take_while(|c| *c != '(').collect();
        let (lost, of) = counts.split_once('/')?;
        let jitter = number(jitter.trim()).map(|(ms, _)| Nanos((ms * 1e6) as u64));
        let (lost, of): (u64, u64) = (lost.trim().parse().ok()?, word(of)?.0.parse().ok()?);
        let before = sum.unwrap_or(Lost { lost: 0, of: 0, jitter: None });
        sum = Some(Lost {
            lost: before.lost.checked_add(lost)?,
            of: before.of.checked_add(of)?,
            jitter: before.jitter.max(jitter),
        });
    }
    sum.filter(|sum| sum.of > 0)
}
