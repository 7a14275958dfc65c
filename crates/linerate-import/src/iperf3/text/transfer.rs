//! Makes transfers from the lines of an output.

use linerate_plan::path::{ByRole, Direction};
use linerate_record::reported::{Carrier, Counted, Cpu, CpuOf, Lost, Transfer};
use linerate_units::{Bytes, Nanos, Rate};

use super::lines::Lines;
use crate::format::Section;
use crate::iperf_command::requested;
use crate::iperf_row::{CONTRADICTS, Row, bytes, number, ticks, word};
use crate::reading::{Notes, flag};

/// The transfers of an output: one, or one in each direction.
pub(super) fn all(lines: &Lines<'_>, section: &Section<'_>, notes: &mut Notes) -> Vec<Transfer> {
    let mut note = |what: &str| notes.at(section.line, what);
    let both = [&lines.intervals, &lines.summary]
        .iter()
        .any(|rows| rows.iter().any(|row| !row.role.is_empty()));
    let server = lines.by_server || (!lines.by_client && by_server(lines, section));
    let (reverse, known) = reverse(lines, section, server);
    if !both && !known {
        note(
            "the output does not say which end wrote it: it was read as that of a client that sends",
        );
    }
    let directions = match (both, reverse) {
        (true, _) => Direction::ALL.to_vec(),
        (false, true) => vec![Direction::Reverse],
        (false, false) => vec![Direction::Forward],
    };
    let views = directions.into_iter().map(|direction| {
        let sends = server == (direction == Direction::Reverse);
        View::new(lines, direction, both, (server, sends))
    });
    let views: Vec<View<'_>> = views.collect();
    let mut transfers: Vec<Transfer> = views.iter().filter_map(View::transfer).collect();
    if transfers.is_empty() {
        return transfers;
    }
    if let Some(command) = section.command {
        for one in &mut transfers {
            requested(one, command);
        }
    }
    for (view, one) in views.iter().zip(&transfers) {
        if let (0, Some(sent)) = (one.goodput.0, view.totals[0].filter(|row| row.bytes > 0.0)) {
            let sent = Rate(sent.rate as u64);
            note(&format!("the sender put {sent} on its way, and nothing arrived: the rate is 0"));
        }
    }
    for what in said(lines, &views) {
        note(what);
    }
    transfers
}

/// Notes about the figures of an output.
fn said(lines: &Lines<'_>, views: &[View<'_>]) -> Vec<&'static str> {
    let mut rows = lines.intervals.iter().chain(&lines.summary);
    // A server of version 3.1 prints a row of zeros for the end whose payload it does not count.
    let is_summed = lines.summary.iter().any(|row| row.bytes > 0.0);
    let all = [
        (rows.clone().any(|row| row.comma), "the numbers have a decimal comma"),
        (
            rows.any(|row| row.binary),
            "rates in Bytes/sec have multiples of 1024, as iperf3 counts them: they were converted",
        ),
        (lines.summary.iter().any(Row::contradicts), CONTRADICTS),
        (
            lines.summary.is_empty() || !is_summed && !views.iter().any(View::is_nothing),
            "the summary is missing: the rate is that of the intervals, and so is the sum of retransmits",
        ),
        (
            views.iter().any(View::is_by_loss),
            "the row of the summary has the rate that was sent: the goodput is the share of it that was not lost",
        ),
    ];
    all.into_iter().filter_map(|(is, what)| is.then_some(what)).collect()
}

/// Whether a server wrote an output that lacks its first lines.
fn by_server(lines: &Lines<'_>, section: &Section<'_>) -> bool {
    let has = |role: &str| lines.intervals.iter().any(|row| row.role == role);
    let option = |command: &str| flag(command, &["-s", "--server"]);
    has("RX-S") || has("TX-S") || section.command.is_some_and(option)
}

/// Whether the server sends, and whether this is certain.
fn reverse(lines: &Lines<'_>, section: &Section<'_>, server: bool) -> (bool, bool) {
    let option = |command: &str| flag(command, &["-R", "--reverse"]);
    if lines.reverse || section.command.is_some_and(option) {
        return (true, true);
    }
    // The intervals of a sender have columns that those of a receiver lack. If there is only one heading, it may be
    // that of the summary.
    let no_intervals = lines.intervals.is_empty() && lines.headers.len() < 2;
    let column = |place: usize, name: &str| {
        let place = (lines.headers.get(place)).filter(|_| !no_intervals);
        place.is_some_and(|header| header.contains(name))
    };
    let sender = column(0, "Retr") || column(0, "Total Datagrams") && !column(0, "Lost");
    let receiver = column(0, "Lost") || (column(1, "Retr") && !column(0, "Retr"));
    if sender {
        return (server, true);
    }
    if receiver {
        return (!server, lines.by_client || lines.by_server);
    }
    if lines.sent {
        return (false, true);
    }
    // On systems without these columns, the summary of a server shows which end receives. If it has no summary, the
    // missing column of retransmits does.
    let counts = |end: &str| {
        let mut summary = lines.summary.iter();
        summary.any(|row| row.rest.ends_with(end) && row.bytes > 0.0)
    };
    let sends = server && counts("sender") && !counts("receiver");
    (sends, lines.by_client || lines.by_server)
}

/// One direction of an output, with its rows.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct View<'a> {
    lines: &'a Lines<'a>,
    direction: Direction,
    both: bool,
    /// Whether the server wrote the output.
    server: bool,
    /// Whether the end that wrote the output is the sender.
    sends: bool,
    intervals: Vec<&'a Row<'a>>,
    /// Rows of the summary for all streams together: the sender's, the receiver's, and one that does not name an end.
    totals: [Option<&'a Row<'a>>; 3],
    streams: usize,
    datagrams: bool,
}

impl<'a> View<'a> {
    fn new(
        lines: &'a Lines<'a>,
        direction: Direction,
        both: bool,
        (server, sends): (bool, bool),
    ) -> Self {
        let side = if sends { "TX" } else { "RX" };
        let own = |row: &&Row<'_>| row.role.is_empty() || row.role.starts_with(side);
        let rows: Vec<&Row<'_>> = lines.intervals.iter().filter(own).collect();
        let streams =
            count(&rows).max(count(&lines.summary.iter().filter(own).collect::<Vec<_>>()));
        let summary: Vec<&Row<'_>> = lines.summary.iter().filter(own).collect();
        let sum = rows.iter().chain(&summary).any(|row| row.is_sum());
        // A paste may lack the rows of some or all streams.
        let one = |row: &&&Row<'_>| row.is_sum() == (sum || streams > 1);
        let intervals = rows.iter().filter(one).copied().collect();
        let total = |name: fn(&str) -> bool| {
            let mut of = summary.iter().filter(one).copied();
            of.find(|row| name(row.rest))
        };
        let totals = [
            total(|rest| rest.ends_with("sender")),
            total(|rest| rest.ends_with("receiver")),
            total(|rest| !rest.ends_with("sender") && !rest.ends_with("receiver")),
        ];
        let of_datagrams = |row: &&Row<'_>| row.rest.contains(" ms ") && row.rest.contains('/');
        Self {
            lines,
            direction,
            both,
            server,
            sends,
            intervals,
            // A row after the sender's whose end is missing is the receiver's.
            totals: match totals {
                [Some(sent), None, cut] => [Some(sent), cut, None],
                all => all,
            },
            streams: if sum && streams < 2 { 0 } else { streams },
            datagrams: lines.headers.iter().any(|h| h.contains("Datagrams"))
                || summary.iter().any(of_datagrams),
        }
    }

    fn transfer(&self) -> Option<Transfer> {
        let (rate, seconds, counted) = self.goodput()?;
        let carrier = match self.lines.protocol {
            Some("SCTP") => Carrier::Sctp,
            Some("UDP") => Carrier::Udp,
            _ if self.datagrams => Carrier::Udp,
            _ => Carrier::Tcp,
        };
        let mut transfer =
            Transfer::new(carrier, self.direction, Rate(rate.round() as u64), counted);
        transfer.both = self.both;
        transfer.streams =
            (self.lines.streams).or(u32::try_from(self.streams).ok().filter(|n| *n > 0));
        transfer.seconds = Some(seconds);
        (transfer.ticks, transfer.tick) = ticks(&self.intervals);
        transfer.each = self.each(counted);
        transfer.retransmits = self.retransmits();
        transfer.segment = self.lines.segment.or(self.lines.control_segment);
        transfer.local = self.lines.local;
        transfer.window = self.window();
        transfer.cpu = self.cpu();
        transfer.datagrams = self.lost();
        transfer.size = self.lines.block.map(Bytes);
        transfer.congestion = self.lines.congestion.filter(|_| !self.both).map(str::to_owned);
        transfer.error.clone_from(&self.lines.error);
        Some(transfer)
    }

    /// The receiver's count if it is known, else the sender's. iperf3 writes zero for unknown.
    fn goodput(&self) -> Option<(f64, f64, Counted)> {
        let of = |row: Option<&Row<'_>>, counted| {
            let row = row.filter(|row| row.bytes > 0.0)?;
            Some((row.rate, row.seconds(), counted))
        };
        let own = if self.sends { Counted::Sender } else { Counted::Receiver };
        let [sent, received, unnamed] = self.totals;
        let ticks = self.mean().map(|(rate, seconds)| (rate, seconds, own));
        if self.is_nothing() {
            return Some((0.0, self.length(), Counted::Receiver));
        }
        of(received, Counted::Receiver)
            .or_else(|| ticks.filter(|_| !self.sends))
            .or_else(|| of(sent, Counted::Sender))
            .or_else(|| self.by_loss())
            .or_else(|| of(unnamed, Counted::Sender))
            .or(ticks)
    }

    /// Whether no payload arrived. A server does not know what it did not count itself, and a client does not know if
    /// its test ended early.
    fn is_nothing(&self) -> bool {
        let [sent, received, _] = self.totals;
        let is_reported =
            received.filter(|_| sent.is_some() && !self.server && self.lines.error.is_none());
        // In its first interval a sender may only fill its buffer.
        let later = self.intervals.get(usize::from(self.sends)..).unwrap_or_default();
        let is_still = later.len() > 1 && later.iter().all(|row| row.bytes == 0.0);
        match is_reported {
            Some(row) => row.bytes == 0.0,
            None => received.is_none_or(|row| row.bytes == 0.0) && is_still,
        }
    }

    /// Length of the test in seconds, from the rows that there are.
    fn length(&self) -> f64 {
        let rows = self.totals.iter().flatten().chain(&self.intervals);
        rows.map(|row| row.to).fold(0.0, f64::max)
    }

    /// Goodput from the loss: up to version 3.1 the row of UDP has the sender's bytes and the receiver's losses.
    fn by_loss(&self) -> Option<(f64, f64, Counted)> {
        let row = self.totals[2].filter(|row| row.bytes > 0.0)?;
        let Lost { lost, of, .. } = self.lost()?;
        let arrived = row.rate * of.checked_sub(lost)? as f64 / of as f64;
        Some((arrived, row.seconds(), Counted::Receiver))
    }

    /// Whether the goodput was derived from the loss of datagrams.
    fn is_by_loss(&self) -> bool {
        let derived = self.by_loss();
        derived.is_some() && self.goodput() == derived && self.lost().is_some_and(|n| n.lost > 0)
    }

    /// Segments retransmitted, from the sender's row; if the end of the output is missing, the sum of all intervals.
    fn retransmits(&self) -> Option<u64> {
        if self.datagrams {
            return None;
        }
        let is_counted = |row: &Row<'_>| row.bytes > 0.0 || self.sends && self.is_nothing();
        if self.totals.iter().flatten().any(|row| is_counted(row)) {
            return self.totals[0].and_then(retransmits);
        }
        let of = |row: &&Row<'_>| word(row.rest)?.0.parse::<u64>().ok();
        let sum = self.intervals.iter().map(of);
        sum.sum::<Option<u64>>().filter(|_| self.sends && !self.intervals.is_empty())
    }

    /// Mean rate of the intervals, and their length in seconds.
    fn mean(&self) -> Option<(f64, f64)> {
        let seconds: f64 = self.intervals.iter().map(|row| row.seconds()).sum();
        let bits: f64 = (self.intervals.iter()).map(|row| row.rate * row.seconds()).sum();
        (seconds > 0.0 && bits > 0.0).then(|| (bits / seconds, seconds))
    }

    fn each(&self, counted: Counted) -> Vec<f64> {
        let name = match counted {
            Counted::Receiver => "receiver",
            Counted::Sender | Counted::Unknown => "sender",
        };
        let side = if self.sends { "TX" } else { "RX" };
        let rows = self.lines.summary.iter();
        let own = rows.filter(|row| row.role.is_empty() || row.role.starts_with(side));
        own.filter(|row| !row.is_sum() && row.rest.ends_with(name)).map(|row| row.rate).collect()
    }

    /// Largest congestion window, from rows such as `   0   1.31 MBytes`. Rows of the sum have no window.
    fn window(&self) -> Option<Bytes> {
        if !self.sends || self.datagrams {
            return None;
        }
        let largest = self.lines.intervals.iter().filter_map(|row| {
            let (_, rest) = word(row.rest)?;
            let (value, unit) = word(rest)?;
            bytes(value, word(unit)?.0)
        });
        let largest = largest.fold(0.0_f64, f64::max);
        (largest > 0.0).then_some(Bytes(largest as u64))
    }

    fn cpu(&self) -> ByRole<Option<Cpu>> {
        let line = self.lines.cpu.iter().find(|line| line.sends == self.sends);
        let [near, far] = line.map_or([None; 2], |line| line.ends);
        let of = |share: Option<(f64, f64)>| {
            let (total, system) = share.filter(|(total, _)| *total > 0.0)?;
            Some(Cpu { total, system: Some(system), of: CpuOf::Program })
        };
        if self.sends { [of(near), of(far)].into() } else { [of(far), of(near)].into() }
    }

    /// Lost datagrams, from `0.007 ms  0/3570 (0%)  receiver` or a row that does not name an end; if there is no
    /// summary, the sum of the intervals.
    fn lost(&self) -> Option<Lost> {
        let [sent, received, unnamed] = self.totals;
        let named = received.filter(|row| row.bytes > 0.0 || !self.sends);
        let row = named.or(unnamed.filter(|_| received.is_none()));
        if let Some(row) = row {
            return counts(row);
        }
        let is_counted = sent.is_none() && !self.sends;
        let mut each = self.intervals.iter().filter_map(|row| counts(row));
        let first = each.next().filter(|_| is_counted)?;
        Some(each.fold(first, |sum, one| Lost {
            lost: sum.lost.saturating_add(one.lost),
            of: sum.of.saturating_add(one.of),
            jitter: one.jitter,
        }))
    }
}

/// Number of different streams in rows.
fn count(rows: &[&Row<'_>]) -> usize {
    let mut ids: Vec<&str> = rows.iter().filter(|row| !row.is_sum()).map(|row| row.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

fn retransmits(row: &Row<'_>) -> Option<u64> {
    word(row.rest)?.0.parse().ok()
}

/// Jitter and loss from a row with `0.007 ms  0/3570 (0%)`.
fn counts(row: &Row<'_>) -> Option<Lost> {
    let (jitter, rest) = row.rest.split_once(" ms")?;
    let (counts, _) = word(rest)?;
    let (lost, of) = counts.split_once('/')?;
    Some(Lost {
        lost: lost.parse().ok()?,
        of: of.parse().ok().filter(|of| *of > 0)?,
        jitter: number(jitter.trim()).map(|(ms, _)| Nanos((ms * 1e6) as u64)),
    })
}
