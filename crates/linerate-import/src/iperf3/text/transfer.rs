//! From lines to transfers.

use linerate_core::path::{ByRole, Direction};
use linerate_core::reported::{Carrier, Counted, Cpu, Lost, Note, Transfer};
use linerate_core::units::{Bytes, Nanos, Rate};

use super::lines::Lines;
use crate::format::Section;
use crate::iperf_row::{CONTRADICTS, Row, bytes, number, word};

/// The transfers of an output: one, or one in each direction.
pub(super) fn all(
    lines: &Lines<'_>,
    section: &Section<'_>,
    notes: &mut Vec<Note>,
) -> Vec<Transfer> {
    let mut note = |what: &str| {
        notes.push(Note {
            line: Some(section.line),
            what: what.to_owned(),
        });
    };
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
        View::new(lines, direction, both, sends)
    });
    let transfers: Vec<Transfer> = views.filter_map(|view| view.transfer()).collect();
    if transfers.is_empty() {
        return transfers;
    }
    let mut rows = lines.intervals.iter().chain(&lines.summary);
    if rows.clone().any(|row| row.comma) {
        note("the numbers have a decimal comma");
    }
    if rows.any(|row| row.binary) {
        note(
            "rates in Bytes/sec have multiples of 1024, as iperf3 counts them: they were converted",
        );
    }
    if lines.summary.iter().any(Row::contradicts) {
        note(CONTRADICTS);
    }
    if lines.summary.is_empty() {
        note("the summary is missing: the rate is that of the intervals");
    }
    transfers
}

/// Whether a server wrote an output that lacks its first lines.
fn by_server(lines: &Lines<'_>, section: &Section<'_>) -> bool {
    let has = |role: &str| lines.intervals.iter().any(|row| row.role == role);
    let option = |command: &str| {
        command
            .split(' ')
            .any(|word| word == "-s" || word == "--server")
    };
    has("RX-S") || has("TX-S") || section.command.is_some_and(option)
}

/// Whether the server sends, and whether this is known.
fn reverse(lines: &Lines<'_>, section: &Section<'_>, server: bool) -> (bool, bool) {
    if lines.reverse {
        return (true, true);
    }
    let option = |command: &str| {
        command
            .split(' ')
            .any(|word| word == "-R" || word == "--reverse")
    };
    if section.command.is_some_and(option) {
        return (true, true);
    }
    // A sender's intervals have columns of their own.
    let column =
        |place: usize, name: &str| lines.headers.get(place).is_some_and(|h| h.contains(name));
    let sender = column(0, "Retr") || column(0, "Total Datagrams") && !column(0, "Lost");
    let receiver = column(0, "Lost") || (column(1, "Retr") && !column(0, "Retr"));
    if sender {
        return (server, true);
    }
    if receiver {
        return (!server, lines.by_client || lines.by_server);
    }
    // On systems without these columns a server's summary shows who receives.
    let mut summary = lines.summary.iter();
    let arrived = summary.any(|row| row.rest.ends_with("receiver") && row.bytes > 0.0);
    (server && !arrived, lines.by_client || lines.by_server)
}

/// A direction of an output.
struct View<'a> {
    lines: &'a Lines<'a>,
    direction: Direction,
    both: bool,
    /// Whether the end that wrote the output sends.
    sends: bool,
    intervals: Vec<&'a Row<'a>>,
    /// Rows of the summary of all streams: the sender's, then the receiver's, then one without a name.
    totals: [Option<&'a Row<'a>>; 3],
    streams: usize,
    datagrams: bool,
}

impl<'a> View<'a> {
    fn new(lines: &'a Lines<'a>, direction: Direction, both: bool, sends: bool) -> Self {
        let side = if sends { "TX" } else { "RX" };
        let own = |row: &&Row<'_>| row.role.is_empty() || row.role.starts_with(side);
        let rows: Vec<&Row<'_>> = lines.intervals.iter().filter(own).collect();
        let streams =
            count(&rows).max(count(&lines.summary.iter().filter(own).collect::<Vec<_>>()));
        let one = |row: &&&Row<'_>| row.is_sum() == (streams > 1);
        let intervals = rows.iter().filter(one).copied().collect();
        let summary: Vec<&Row<'_>> = lines.summary.iter().filter(own).collect();
        let total = |name: fn(&str) -> bool| {
            let mut of = summary.iter().filter(one).copied();
            of.find(|row| name(row.rest))
        };
        let headers = lines.headers.iter();
        Self {
            lines,
            direction,
            both,
            sends,
            intervals,
            totals: [
                total(|rest| rest.ends_with("sender")),
                total(|rest| rest.ends_with("receiver")),
                total(|rest| !rest.ends_with("sender") && !rest.ends_with("receiver")),
            ],
            streams,
            datagrams: headers
                .into_iter()
                .any(|header| header.contains("Datagrams")),
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
        (transfer.ticks, transfer.tick) = self.ticks();
        transfer.each = self.each(counted);
        transfer.retransmits = self.totals[0]
            .and_then(retransmits)
            .filter(|_| !self.datagrams);
        transfer.segment = self.lines.segment;
        transfer.window = self.window();
        transfer.cpu = self.cpu();
        transfer.datagrams = self.lost();
        transfer.size = self.lines.block.map(Bytes);
        transfer.congestion = self
            .lines
            .congestion
            .filter(|_| !self.both)
            .map(str::to_owned);
        transfer.error.clone_from(&self.lines.error);
        Some(transfer)
    }

    /// The receiver's count if it is known. Zero is what iperf3 writes for unknown.
    fn goodput(&self) -> Option<(f64, f64, Counted)> {
        let of = |row: Option<&Row<'_>>, counted| {
            let row = row.filter(|row| row.bytes > 0.0)?;
            Some((row.rate, row.seconds(), counted))
        };
        let own = if self.sends {
            Counted::Sender
        } else {
            Counted::Receiver
        };
        let [sent, received, unnamed] = self.totals;
        let ticks = self.mean().map(|(rate, seconds)| (rate, seconds, own));
        of(received, Counted::Receiver)
            .or_else(|| ticks.filter(|_| !self.sends))
            .or_else(|| of(sent, Counted::Sender))
            // Up to version 3.1 the row of UDP has the sender's bytes.
            .or_else(|| of(unnamed, Counted::Sender))
            .or(ticks)
    }

    /// Mean rate of the intervals, and their seconds.
    fn mean(&self) -> Option<(f64, f64)> {
        let seconds: f64 = self.intervals.iter().map(|row| row.seconds()).sum();
        let bits: f64 = (self.intervals.iter())
            .map(|row| row.rate * row.seconds())
            .sum();
        (seconds > 0.0 && bits > 0.0).then(|| (bits / seconds, seconds))
    }

    /// Rates of the intervals without a shorter one at the end, and the length of one.
    fn ticks(&self) -> (Vec<f64>, Option<f64>) {
        let mut rows = &self.intervals[..];
        if let [first, .., last] = rows
            && last.seconds() < 0.9 * first.seconds()
        {
            rows = &rows[..rows.len() - 1];
        }
        let seconds: f64 = rows.iter().map(|row| row.seconds()).sum();
        let tick = (seconds > 0.0).then(|| (seconds / rows.len() as f64 * 1e3).round() / 1e3);
        let ticks = rows.iter().map(|row| row.rate).collect();
        (if tick.is_some() { ticks } else { Vec::new() }, tick)
    }

    fn each(&self, counted: Counted) -> Vec<f64> {
        let name = match counted {
            Counted::Receiver => "receiver",
            Counted::Sender | Counted::Unknown => "sender",
        };
        let side = if self.sends { "TX" } else { "RX" };
        let rows = self.lines.summary.iter();
        let own = rows.filter(|row| row.role.is_empty() || row.role.starts_with(side));
        own.filter(|row| !row.is_sum() && row.rest.ends_with(name))
            .map(|row| row.rate)
            .collect()
    }

    /// Largest congestion window: `   0   1.31 MBytes`. The rows of the sum have none.
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
            Some(Cpu {
                total,
                system: Some(system),
                machine: false,
            })
        };
        if self.sends {
            [of(near), of(far)].into()
        } else {
            [of(far), of(near)].into()
        }
    }

    /// `0.007 ms  0/3570 (0%)  receiver`, of the receiver or of a row without a name.
    fn lost(&self) -> Option<Lost> {
        let [_, received, unnamed] = self.totals;
        let named = received.filter(|row| row.bytes > 0.0 || !self.sends);
        let row = named.or(unnamed.filter(|_| received.is_none()))?;
        let (jitter, rest) = row.rest.split_once(" ms")?;
        let (counts, _) = word(rest)?;
        let (lost, of) = counts.split_once('/')?;
        Some(Lost {
            lost: lost.parse().ok()?,
            of: of.parse().ok().filter(|of| *of > 0)?,
            jitter: number(jitter.trim()).map(|(ms, _)| Nanos((ms * 1e6) as u64)),
        })
    }
}

/// Number of different streams in rows.
fn count(rows: &[&Row<'_>]) -> usize {
    let mut ids: Vec<&str> = rows
        .iter()
        .filter(|row| !row.is_sum())
        .map(|row| row.id)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

fn retransmits(row: &Row<'_>) -> Option<u64> {
    row.bytes.gt(&0.0).then_some(())?;
    word(row.rest)?.0.parse().ok()
}
