//! A JSON document of iperf3, with only the fields that are used.

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::end::End;
use super::fields::{Collect, Fill, NUMBER, TEXT, array, object};
use super::row::{F, Row};

/// The parts of a document that are used.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// Title of the test, if the user gave one.
    pub(super) title: Option<String>,
    pub(super) start: Start,
    pub(super) intervals: Intervals,
    pub(super) end: End,
    /// Why the test ended early, in iperf3's words.
    pub(super) error: Option<String>,
    /// Whether the document has an object `end`, or an event of that name.
    pub(super) ended: bool,
    /// Name of the event whose data is read next.
    event: Option<String>,
}

impl Document {
    fn fail(&mut self, why: Option<String>) {
        let Some(why) = why else { return };
        let heads = ["error - ", "SERVER ERROR - "];
        let bare = heads.iter().find_map(|head| why.strip_prefix(head));
        let why = bare.unwrap_or(&why).to_owned();
        match &mut self.error {
            // Since version 3.21 the key `error` may occur twice.
            Some(known) if !known.contains(&why) && known.len() < 1_000 => {
                known.push_str("; ");
                known.push_str(&why);
            }
            Some(_) => {}
            none => *none = Some(why),
        }
    }

    /// Reads the part of the document with this name.
    fn part<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "start" => map.next_value_seed(object(&mut self.start)),
            "interval" => map.next_value_seed(object(&mut OneInterval(&mut self.intervals, false))),
            "end" => {
                map.next_value_seed(object(&mut self.end))?;
                self.ended = true;
                Ok(())
            }
            "error" => {
                let why = map.next_value_seed(TEXT)?;
                self.fail(why);
                Ok(())
            }
            _ => map.next_value::<IgnoredAny>().map(|_| ()),
        }
    }
}

impl Fill for Document {
    const NAMES: &'static [&'static str] =
        &["start", "intervals", "end", "error", "title", "event", "data"];

    fn take<'de, A: MapAccess<'de>>(&mut self, name: usize, map: &mut A) -> Result<(), A::Error> {
        match Self::NAMES[name] {
            "intervals" => map.next_value_seed(array(&mut self.intervals)),
            "title" => {
                self.title = map.next_value_seed(TEXT)?;
                Ok(())
            }
            "event" => {
                self.event = map.next_value_seed(TEXT)?;
                Ok(())
            }
            "data" => {
                let event = self.event.take().unwrap_or_default();
                self.part(&event, map)
            }
            part => self.part(part, map),
        }
    }
}

/// The object `start`: the ends and the settings of the test.
#[derive(Debug, Default)]
pub(super) struct Start {
    pub(super) version: Option<String>,
    pub(super) protocol: Option<String>,
    /// The random text that identifies the test to both ends.
    pub(super) cookie: Option<String>,
    /// Whether the client wrote the document.
    pub(super) by_client: bool,
    /// Whether the server wrote the document.
    pub(super) by_server: bool,
    pub(super) settings: Row,
}

impl Fill for Start {
    const NAMES: &'static [&'static str] = &[
        "version",
        "protocol",
        "connecting_to",
        "accepted_connection",
        "test_start",
        "target_bitrate",
        "tcp_mss",
        "tcp_mss_default",
        "sock_bufsize",
        "num_streams",
        "blksize",
        "omit",
        "bytes",
        "blocks",
        "reverse",
        "bidir",
        "fqrate",
        "cookie",
    ];

    fn take<'de, A: MapAccess<'de>>(&mut self, name: usize, map: &mut A) -> Result<(), A::Error> {
        match Self::NAMES[name] {
            "version" => self.version = map.next_value_seed(TEXT)?,
            "cookie" => self.cookie = map.next_value_seed(TEXT)?,
            "protocol" => self.protocol = map.next_value_seed(TEXT)?,
            "connecting_to" => {
                map.next_value::<IgnoredAny>()?;
                self.by_client = true;
            }
            "accepted_connection" => {
                map.next_value::<IgnoredAny>()?;
                self.by_server = true;
            }
            "test_start" => map.next_value_seed(object(self))?,
            figure => self.settings.put(figure, map.next_value_seed(NUMBER)?),
        }
        Ok(())
    }
}

/// The intervals, summed over streams.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    /// Intervals of the direction in which the client sends, or of the only direction.
    pub(super) sum: Ticks,
    /// In a bidirectional test, intervals of the direction in which the server sends.
    pub(super) back: Ticks,
    /// Readings of the sending sockets, by the kernel of the end that wrote the document.
    pub(super) kernel: Kernel,
}

impl Collect for Intervals {
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<Option<()>, A::Error> {
        array.next_element_seed(object(&mut OneInterval(self, false)))
    }
}

/// Rates of the intervals, in order, without those that iperf3 omitted, and their sums.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    pub(super) rates: Vec<f64>,
    pub(super) seconds: f64,
    pub(super) bytes: f64,
    /// Length of the last interval in seconds.
    pub(super) last: f64,
    /// Whether the document has intervals of this direction, omitted ones included.
    pub(super) seen: bool,
}

impl Ticks {
    fn add(&mut self, row: &Row) {
        self.seen = true;
        if row.positive(F::Omitted).is_some() {
            return;
        }
        let (rate, seconds) = (row.positive(F::Bits), row.positive(F::Seconds));
        if let (Some(rate), Some(seconds)) = (rate.or(row.get(F::Bits)), seconds) {
            self.rates.push(rate);
            self.seconds += seconds;
            self.bytes += row.positive(F::Bytes).unwrap_or(0.0);
            self.last = seconds;
        }
    }
}

/// Largest windows in bytes, and round-trip times in microseconds, of all streams.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Kernel {
    pub(super) window: Option<f64>,
    pub(super) offered: Option<f64>,
    pub(super) least: Option<f64>,
    pub(super) most: Option<f64>,
    pub(super) sum: f64,
    pub(super) count: u64,
}

impl Kernel {
    /// Adds the windows of a stream and its round-trip times: shortest, mean, longest. iperf3 writes zero for
    /// unknown.
    pub(super) fn add(&mut self, [window, offered, least, mean, most]: [Option<f64>; 5]) {
        self.window = larger(self.window, window);
        self.offered = larger(self.offered, offered);
        self.most = larger(self.most, most);
        if let Some(least) = least {
            self.least = Some(self.least.map_or(least, |known| known.min(least)));
        }
        if let Some(mean) = mean {
            self.sum += mean;
            self.count += 1;
        }
    }
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

/// The intervals to fill, and whether the first sum of the current interval was read.
struct OneInterval<'a>(&'a mut Intervals, bool);

impl Fill for OneInterval<'_> {
    const NAMES: &'static [&'static str] = &["streams", "sum", "sum_bidir_reverse"];

    fn take<'de, A: MapAccess<'de>>(&mut self, name: usize, map: &mut A) -> Result<(), A::Error> {
        if name == 0 {
            return map.next_value_seed(array(&mut Samples(&mut self.0.kernel)));
        }
        let mut row = Row::default();
        map.next_value_seed(object(&mut row))?;
        // Up to version 3.9, a bidirectional test has two sums with the same name.
        let back = name == 2 || self.1;
        self.1 = true;
        let intervals = &mut *self.0;
        let ticks = if back { &mut intervals.back } else { &mut intervals.sum };
        ticks.add(&row);
        Ok(())
    }
}

/// The streams of an interval. They make up most of a long document, so only a few of their fields are read.
struct Samples<'a>(&'a mut Kernel);

impl Collect for Samples<'_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, array: &mut A) -> Result<Option<()>, A::Error> {
        let mut sample = Sample::default();
        let next = array.next_element_seed(object(&mut sample))?;
        let [window, offered, trip, omitted] = sample.0;
        if next.is_some() && (omitted.is_nan() || omitted == 0.0) {
            let positive = |value: f64| Some(value).filter(|value| *value > 0.0);
            let trip = positive(trip);
            self.0.add([positive(window), positive(offered), trip, trip, trip]);
        }
        Ok(next)
    }
}

/// Figures of one stream in one interval: congestion window and send window in bytes, round-trip time in microseconds, and
/// 1 if iperf3 omitted the interval, else 0.
#[derive(Default)]
struct Sample([f64; 4]);

impl Fill for Sample {
    const NAMES: &'static [&'static str] = &["snd_cwnd", "snd_wnd", "rtt", "omitted"];

    fn take<'de, A: MapAccess<'de>>(&mut self, name: usize, map: &mut A) -> Result<(), A::Error> {
        self.0[name] = map.next_value_seed(NUMBER)?;
        Ok(())
    }
}
