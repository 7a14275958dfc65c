//! The object `end` of a document, with the sums over the whole time.

use serde::de::{MapAccess, SeqAccess};

use super::document::Kernel;
use super::fields::{Collect, Fill, TEXT, array, object};
use super::row::{F, Row};

/// Largest number of streams whose rates are kept. iperf3 has at most 128 in each direction.
const MOST_STREAMS: usize = 10_000;

/// The fields of the object `end`.
#[derive(Debug, Default)]
pub(super) struct End {
    pub(super) streams: Vec<Stream>,
    /// Readings of the sending sockets, by the kernel of the end that wrote the document.
    pub(super) kernel: Kernel,
    /// Sums of the first direction; then, in a bidirectional test, of the direction in which the server sends.
    pub(super) sums: [Sums; 2],
    pub(super) cpu: Row,
    pub(super) sender_congestion: Option<String>,
    pub(super) receiver_congestion: Option<String>,
}

/// The sums of one direction.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// The one sum for UDP, which mixes both ends: its rate is the sender's, its seconds are the receiver's.
    pub(super) mixed: Option<Row>,
    pub(super) sent: Option<Row>,
    pub(super) received: Option<Row>,
}

impl Sums {
    /// The sum for a key, by the key's place in the list of names.
    fn of(&mut self, place: usize) -> &mut Option<Row> {
        match place {
            0 => &mut self.mixed,
            1 => &mut self.sent,
            _ => &mut self.received,
        }
    }
}

/// The rates of a stream over the whole time, in bits per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    /// Whether the end that wrote the document sends on this stream; `None` before version 3.7.
    pub(super) sends: Option<bool>,
    pub(super) sent: Option<f64>,
    pub(super) received: Option<f64>,
}

impl Fill for End {
    const NAMES: &'static [&'static str] = &[
        "sum",
        "sum_sent",
        "sum_received",
        "sum_bidir_reverse",
        "sum_sent_bidir_reverse",
        "sum_received_bidir_reverse",
        "streams",
        "cpu_utilization_percent",
        "sender_tcp_congestion",
        "receiver_tcp_congestion",
    ];

    fn take<'de, A: MapAccess<'de>>(&mut self, name: usize, map: &mut A) -> Result<(), A::Error> {
        match name {
            0..6 => {
                let mut row = Row::default();
                map.next_value_seed(object(&mut row))?;
                let [forward, back] = &mut self.sums;
                // Up to version 3.9, a bidirectional test has two sums with the same name.
                let is_second = forward.of(name % 3).is_some();
                let sums = if name >= 3 || is_second { back } else { forward };
                *sums.of(name % 3) = Some(row);
            }
            6 => map.next_value_seed(array(self))?,
            7 => map.next_value_seed(object(&mut self.cpu))?,
            8 => self.sender_congestion = map.next_value_seed(TEXT)?,
            _ => self.receiver_congestion = map.next_value_seed(TEXT)?,
        }
        Ok(())
    }
}

impl Collect for End {
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<Option<()>, A::Error> {
        let mut ends = Ends::default();
        let next = array.next_element_seed(object(&mut ends))?;
        if let Some(stream) = ends.stream()
            && self.streams.len() < MOST_STREAMS
        {
            self.streams.push(stream);
        }
        // Of a stream that it receives, the writer does not know the far kernel's values: these are zero, or its own.
        if ends.sender.get(F::Sender) != Some(0.0) {
            let names = [F::MaxCwnd, F::MaxWnd, F::MinRtt, F::MeanRtt, F::MaxRtt];
            self.kernel.add(names.map(|name| ends.sender.positive(name)));
        }
        Ok(next)
    }
}

/// The rows of both ends of a stream; for UDP, one row for both ends.
#[derive(Default)]
struct Ends {
    sender: Row,
    receiver: Row,
    udp: Row,
}

impl Ends {
    fn stream(&self) -> Option<Stream> {
        let rows = [&self.sender, &self.receiver, &self.udp];
        let sends = rows.iter().find_map(|row| row.get(F::Sender));
        let udp = self.udp.positive(F::Bits);
        // All datagrams of a test have the same size, so the share that arrived is also the share of the bytes.
        let lost = self.udp.get(F::Lost).zip(self.udp.positive(F::Packets));
        let arrived = lost.map(|(lost, of)| (1.0 - lost / of).clamp(0.0, 1.0));
        let stream = Stream {
            sends: sends.map(|sends| sends > 0.0),
            sent: self.sender.positive(F::Bits).or(udp),
            received: self.receiver.positive(F::Bits).or_else(|| Some(udp? * arrived?)),
        };
        (stream.sent.is_some() || stream.received.is_some()).then_some(stream)
    }
}

impl Fill for Ends {
    const NAMES: &'static [&'static str] = &["sender", "receiver", "udp"];

    fn take<'de, A: MapAccess<'de>>(&mut self, name: usize, map: &mut A) -> Result<(), A::Error> {
        let row = match name {
            0 => &mut self.sender,
            1 => &mut self.receiver,
            _ => &mut self.udp,
        };
        map.next_value_seed(object(row))
    }
}
