//! Makes transfers from a document.

use linerate_plan::path::{ByRole, Direction};
use linerate_record::reported::{Carrier, Counted, Cpu, CpuOf, Lost, RoundTrips, Transfer};
use linerate_units::{Bytes, Nanos, Rate};

use super::document::{Document, Kernel, Ticks};
use super::end::Sums;
use super::row::{F, Row};
use crate::reading::Notes;

/// Number of intervals from which on the time at the end of a test, up to one interval, is at most 5 % of the whole.
const INTERVALS_OF_A_QUANTITY: usize = 20;

/// The transfers of a document: one, or one in each direction. `line` is the document's first line.
pub(super) fn all(document: &Document, line: u64, notes: &mut Notes) -> Vec<Transfer> {
    let both = document.start.settings.positive(F::Bidir).is_some()
        || document.intervals.back.seen
        || has_any(&document.end.sums[1]);
    let directions = if both {
        Direction::ALL.to_vec()
    } else if document.start.settings.positive(F::Reverse).is_some() {
        vec![Direction::Reverse]
    } else {
        vec![Direction::Forward]
    };
    let mut transfers = Vec::new();
    for direction in directions {
        match (View::new(document, direction, both)).transfer() {
            Some(transfer) => transfers.push(transfer),
            None if both => {
                notes.at(line, format!("nothing is known of the direction {}", word(direction)));
            }
            None => {}
        }
    }
    if !transfers.is_empty() {
        about(document, line, notes);
    }
    transfers
}

fn has_any(sums: &Sums) -> bool {
    sums.mixed.is_some() || sums.sent.is_some() || sums.received.is_some()
}

fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "from the client to the server",
        Direction::Reverse => "from the server to the client",
    }
}

/// Adds notes that help to understand the figures.
fn about(document: &Document, line: u64, notes: &mut Notes) {
    let start = &document.start;
    if !start.by_client && !start.by_server {
        let what = "the document does not say which end wrote it: it was read as the client's";
        notes.at(line, what);
    }
    if document.error.as_deref().is_some_and(super::hides_reason) {
        notes.at(line, super::HIDDEN);
    }
    let quantity = start.settings.positive(F::Bytes).or(start.settings.positive(F::Blocks));
    if quantity.is_some() && document.intervals.sum.rates.len() < INTERVALS_OF_A_QUANTITY {
        let what = "the test moved a quantity (-n or -k): iperf3 ends it at the end of an interval, or before all \
                    of it has arrived, so the rate may be too low";
        notes.at(line, what);
    }
    let sums = &document.end.sums;
    let more = |sums: &Sums| {
        let bytes = |row: &Option<Row>| row.as_ref()?.positive(F::Bytes);
        bytes(&sums.received).zip(bytes(&sums.sent)).is_some_and(|(received, sent)| received > sent)
    };
    if start.settings.positive(F::Omit).is_some() && sums.iter().any(more) {
        let what = "more was received than sent: bytes that were sent in the omitted seconds arrived after them, so \
                    the goodput is a little too high";
        notes.at(line, what);
    }
}

impl Ticks {
    /// The rates of intervals of equal length, in which a shorter last one is left out, and the length of an interval
    /// in seconds.
    fn equal(&self) -> (Vec<f64>, Option<f64>) {
        let mut rates = self.rates.clone();
        let mut seconds = self.seconds;
        let others = (self.seconds - self.last) / (rates.len().max(2) - 1) as f64;
        if rates.len() > 1 && self.last < 0.9 * others {
            rates.pop();
            seconds -= self.last;
        }
        let mean = (!rates.is_empty()).then(|| seconds / rates.len() as f64);
        // Rounded to milliseconds: iperf3's own clock is coarser.
        (rates, mean.map(|mean| (mean * 1e3).round() / 1e3))
    }

    /// Rate over all intervals, in bits per second.
    fn rate(&self) -> Option<f64> {
        (self.bytes > 0.0 && self.seconds > 0.0).then(|| self.bytes * 8.0 / self.seconds)
    }
}

/// One direction of a document, with its figures.
struct View<'a> {
    document: &'a Document,
    direction: Direction,
    both: bool,
    sums: &'a Sums,
    ticks: &'a Ticks,
    carrier: Carrier,
    /// Whether the end that wrote the document is the sender.
    sends: bool,
}

/// Goodput in bits per second, the seconds over which it was counted, and the end that counted it.
type Goodput = (f64, Option<f64>, Counted);

impl<'a> View<'a> {
    fn new(document: &'a Document, direction: Direction, both: bool) -> Self {
        let back = both && direction == Direction::Reverse;
        let intervals = &document.intervals;
        let protocol = document.start.protocol.as_deref().unwrap_or_default();
        let is = |name: &str| protocol.eq_ignore_ascii_case(name);
        let datagrams = document.end.sums.iter().any(|sums| sums.mixed.is_some());
        let carrier = match () {
            () if is("udp") || (protocol.is_empty() && datagrams) => Carrier::Udp,
            () if is("sctp") => Carrier::Sctp,
            () => Carrier::Tcp,
        };
        Self {
            document,
            direction,
            both,
            sums: &document.end.sums[usize::from(back)],
            ticks: if back { &intervals.back } else { &intervals.sum },
            carrier,
            sends: document.start.by_server == (direction == Direction::Reverse),
        }
    }

    fn setting(&self, figure: F) -> Option<f64> {
        self.document.start.settings.positive(figure)
    }

    /// Whether the end that wrote the document received the far end's figures. Otherwise they are zero.
    fn exchanged(&self) -> bool {
        let received = self.sums.received.as_ref();
        self.document.end.cpu.positive(F::RemoteTotal).is_some()
            || (self.sends && received.is_some_and(|row| row.positive(F::Bytes).is_some()))
    }

    fn transfer(&self) -> Option<Transfer> {
        let (rate, seconds, counted) = self.goodput()?;
        let mut transfer = Transfer::new(self.carrier, self.direction, bits(rate), counted);
        let (ticks, tick) = self.ticks.equal();
        transfer.both = self.both;
        transfer.streams = self.setting(F::Streams).map(|n| n as u32);
        transfer.seconds = seconds;
        (transfer.ticks, transfer.tick) = (ticks, tick);
        transfer.each = self.each(counted);
        transfer.retransmits = self.retransmits();
        transfer.segment = (self.setting(F::Mss).or(self.setting(F::MssDefault))).map(|n| n as u32);
        transfer.buffer = self.setting(F::Buffer).map(|n| Bytes(n as u64));
        transfer.cpu = self.cpu();
        transfer.datagrams = self.datagrams();
        transfer.size = self.setting(F::Block).map(|n| Bytes(n as u64));
        transfer.requested = self.requested();
        transfer.congestion = self.congestion();
        transfer.error.clone_from(&self.document.error);
        self.kernel(&mut transfer);
        Some(transfer)
    }

    /// The receiver's count if it is known, else the sender's. iperf3 writes zero for unknown.
    fn goodput(&self) -> Option<Goodput> {
        let of = |row: &Option<Row>, counted| {
            let row = row.as_ref()?;
            row.positive(F::Bytes)?;
            Some((row.positive(F::Bits)?, row.positive(F::Seconds), counted))
        };
        let ticks = |counted| Some((self.ticks.rate()?, Some(self.ticks.seconds), counted));
        let received = of(&self.sums.received, Counted::Receiver);
        let received = received.or_else(|| {
            let own = (!self.sends).then(|| ticks(Counted::Receiver)).flatten();
            own.or_else(|| self.all_lost())
        });
        received
            .or_else(|| of(&self.sums.sent, Counted::Sender))
            .or_else(|| of(&self.sums.mixed, Counted::Sender))
            .or_else(|| self.sends.then(|| ticks(Counted::Sender)).flatten())
    }

    /// A goodput of zero, if all datagrams were lost.
    fn all_lost(&self) -> Option<Goodput> {
        let lost = self.datagrams()?;
        let seconds = self.sums.mixed.as_ref()?.positive(F::Seconds);
        (lost.lost > 0 && lost.lost >= lost.of).then_some((0.0, seconds, Counted::Receiver))
    }

    fn each(&self, counted: Counted) -> Vec<f64> {
        let streams = self.document.end.streams.iter();
        let own = streams.filter(|stream| stream.sends.is_none_or(|sends| sends == self.sends));
        own.filter_map(|stream| match counted {
            Counted::Receiver => stream.received,
            Counted::Sender | Counted::Unknown => stream.sent,
        })
        .collect()
    }

    fn retransmits(&self) -> Option<u64> {
        let sent = self.sums.sent.as_ref()?;
        // If the sender's bytes are unknown, so are its retransmits, which iperf3 then writes as zero.
        sent.positive(F::Bytes)?;
        Some(sent.get(F::Retransmits).filter(|n| *n >= 0.0)? as u64)
    }

    /// CPU time of the sender and of the receiver. iperf3 writes zero for unknown.
    fn cpu(&self) -> ByRole<Option<Cpu>> {
        let row = &self.document.end.cpu;
        let of = |total, system| {
            Some(Cpu {
                total: row.positive(total)? / 100.0,
                system: row.get(system).map(|percent| percent / 100.0),
                of: CpuOf::Program,
            })
        };
        let host = of(F::HostTotal, F::HostSystem);
        let remote = of(F::RemoteTotal, F::RemoteSystem);
        if self.sends { [host, remote].into() } else { [remote, host].into() }
    }

    fn datagrams(&self) -> Option<Lost> {
        if self.carrier != Carrier::Udp || (self.sends && !self.exchanged()) {
            return None;
        }
        let sums = self.sums;
        let receiver = sums.received.as_ref().or(sums.mixed.as_ref())?;
        let sent = sums.sent.as_ref().and_then(|row| row.positive(F::Packets));
        let of = sent.or_else(|| sums.mixed.as_ref()?.positive(F::Packets))?;
        let jitter = receiver.positive(F::Jitter);
        Some(Lost {
            lost: receiver.get(F::Lost).filter(|lost| *lost >= 0.0)? as u64,
            of: of as u64,
            jitter: jitter.map(|ms| Nanos((ms * 1e6) as u64)),
        })
    }

    /// The requested rate of all streams: iperf3 reports that of each stream.
    fn requested(&self) -> Option<Rate> {
        let streams = self.setting(F::Streams)?;
        let each = self.setting(F::TargetBitrate).or_else(|| self.setting(F::FqRate))?;
        Some(bits(each * streams))
    }

    /// Congestion control of the sender. In a bidirectional test iperf3 names sender and receiver of the last
    /// direction that it sums, in which the server sends.
    fn congestion(&self) -> Option<String> {
        let end = &self.document.end;
        let swapped = self.both && self.direction == Direction::Forward;
        let name = if swapped { &end.receiver_congestion } else { &end.sender_congestion };
        name.clone()
    }

    /// Sets windows and round-trip times by the sender's kernel, which only the sender knows.
    fn kernel(&self, transfer: &mut Transfer) {
        if !self.sends {
            return;
        }
        let (end, ticks) = (&self.document.end.kernel, &self.document.intervals.kernel);
        let bytes = |of: fn(&Kernel) -> Option<f64>| {
            let largest = of(end).or_else(|| of(ticks))?;
            Some(Bytes(largest as u64))
        };
        transfer.window = bytes(|kernel| kernel.window);
        transfer.offered = bytes(|kernel| kernel.offered);
        let report = if end.count > 0 { end } else { ticks };
        let micros = |value: Option<f64>| value.map(|us| Nanos((us * 1e3) as u64));
        let mean = (report.count > 0).then(|| report.sum / report.count as f64);
        transfer.round_trip = RoundTrips {
            least: micros(report.least),
            mean: micros(mean),
            most: micros(report.most),
        };
    }
}

fn bits(rate: f64) -> Rate {
    Rate(rate.round() as u64)
}
