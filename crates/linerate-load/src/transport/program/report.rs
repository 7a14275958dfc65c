//! Reports of an ordinary program: records of a fixed size, several of which are written at a time.

use std::io::{self, Write};

use linerate_sys::clock;
use linerate_sys::plain::Failed;

/// Size of a report in bytes.
pub(super) const REPORT_BYTES: usize = 17;
/// Shortest time between two writes of reports, in nanoseconds, unless the buffer is full.
const EVERY: u64 = 10_000_000;
/// Most bytes of reports that wait to be written: as many as any pipe can hold.
const ROOM: usize = 64 * 1024;
/// Names of the calls that can fail.
const CALLS: [&str; 11] = [
    "socket",
    "bind",
    "listen",
    "accept",
    "connect",
    "getsockname",
    "setsockopt",
    "poll",
    "send",
    "recv",
    "getrandom",
];

/// A report of an ordinary program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The program listens at this TCP port.
    Listening(u16),
    /// The program is connected. The value is true if the kernel's TCP carries the connection.
    Connected(bool),
    /// A message was sent at the time `at` of this host's clock, and answered `nanos` nanoseconds later.
    Trip { at: u64, nanos: u64 },
    /// Payload moved since the last such report, in bytes, and the number of calls for it.
    Moved { bytes: u64, calls: u64 },
    /// The step is over. The value is its whole payload in bytes.
    Ended(u64),
    /// A call failed with this error number; zero if the other end closed the connection.
    Failed { call: &'static str, errno: i32 },
}

impl Report {
    fn encode(self) -> [u8; REPORT_BYTES] {
        let (kind, a, b) = match self {
            Self::Listening(port) => (0, u64::from(port), 0),
            Self::Connected(tcp) => (1, u64::from(tcp), 0),
            Self::Trip { at, nanos } => (2, at, nanos),
            Self::Moved { bytes, calls } => (3, bytes, calls),
            Self::Ended(total) => (4, total, 0),
            Self::Failed { call, errno } => {
                let call = CALLS.iter().position(|own| *own == call);
                (5, call.unwrap_or(CALLS.len()) as u64, errno as u64)
            }
        };
        let mut raw = [kind; REPORT_BYTES];
        raw[1..9].copy_from_slice(&a.to_le_bytes());
        raw[9..].copy_from_slice(&b.to_le_bytes());
        raw
    }

    /// Decodes a report; `None` if it is invalid.
    pub(super) fn decode(raw: &[u8; REPORT_BYTES]) -> Option<Self> {
        let (kind, numbers) = raw.split_first()?;
        let mut numbers = numbers.chunks_exact(8);
        let mut next = || Some(u64::from_le_bytes(numbers.next()?.try_into().ok()?));
        let (a, b) = (next()?, next()?);
        Some(match kind {
            0 => Self::Listening(a.try_into().ok()?),
            1 => Self::Connected(a != 0),
            2 => Self::Trip { at: a, nanos: b },
            3 => Self::Moved { bytes: a, calls: b },
            4 => Self::Ended(a),
            5 => Self::Failed {
                call: CALLS.get(usize::try_from(a).ok()?).unwrap_or(&"call"),
                errno: i32::try_from(b).ok()?,
            },
            _ => return None,
        })
    }
}

impl From<&Failed> for Report {
    fn from(failed: &Failed) -> Self {
        Self::Failed { call: failed.call, errno: failed.source.raw_os_error().unwrap_or(0) }
    }
}

/// Collects reports, and writes them at most once in about 10 ms while a step runs.
pub(super) struct Reports<W> {
    out: W,
    waiting: Vec<u8>,
    written: u64,
    /// Payload that was moved but not reported yet, in bytes.
    bytes: u64,
    calls: u64,
    total: u64,
}

impl<W: Write> Reports<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, waiting: Vec::with_capacity(ROOM), written: 0, bytes: 0, calls: 0, total: 0 }
    }

    /// Writes a report at once, after those that wait.
    pub(super) fn tell(&mut self, report: Report) -> io::Result<()> {
        self.waiting.extend_from_slice(&report.encode());
        self.flush()
    }

    /// Records a round trip of a message of `bytes` bytes that was sent at the time `at` and is answered now.
    #[inline]
    pub(super) fn trip(&mut self, bytes: u64, at: u64, now: u64) -> io::Result<()> {
        let nanos = now.saturating_sub(at);
        self.waiting.extend_from_slice(&Report::Trip { at, nanos }.encode());
        self.total += bytes;
        self.look(now)
    }

    /// Records the payload moved by one call.
    #[inline]
    pub(super) fn moved(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes += bytes;
        self.calls += 1;
        self.look(clock::now())
    }

    /// Writes the waiting reports, if the buffer is full or the last write was long enough ago.
    #[inline]
    fn look(&mut self, now: u64) -> io::Result<()> {
        let full = self.waiting.len() + 2 * REPORT_BYTES > ROOM;
        if full || now.saturating_sub(self.written) >= EVERY {
            self.written = now;
            self.flush()?;
        }
        Ok(())
    }

    /// Writes all reports that wait.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.calls > 0 {
            let (bytes, calls) = (self.bytes, self.calls);
            self.waiting.extend_from_slice(&Report::Moved { bytes, calls }.encode());
            self.total += bytes;
            (self.bytes, self.calls) = (0, 0);
        }
        if !self.waiting.is_empty() {
            self.out.write_all(&self.waiting)?;
            self.out.flush()?;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Ends the step, and reports its whole payload.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.flush()?;
        let total = std::mem::take(&mut self.total);
        self.tell(Report::Ended(total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_as_they_were_written() {
        for report in [
            Report::Listening(5377),
            Report::Connected(true),
            Report::Trip { at: 9, nanos: 7 },
            Report::Moved { bytes: 1, calls: 2 },
            Report::Ended(u64::MAX),
            Report::Failed { call: "recv", errno: 104 },
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        assert_eq!(Report::decode(&[b'r'; REPORT_BYTES]), None);
        assert_eq!(Report::decode(&[0xff; REPORT_BYTES]), None);
    }

    #[test]
    fn payload_is_reported_in_few_records_and_to_the_byte() {
        let mut reports = Reports::new(Vec::new());
        reports.written = clock::now();
        for _ in 0..1000 {
            reports.bytes += 3;
            reports.calls += 1;
        }
        reports.end().unwrap();
        let read: Vec<_> = reports
            .out
            .chunks_exact(REPORT_BYTES)
            .map(|raw| Report::decode(raw.try_into().unwrap()).unwrap())
            .collect();
        let moved = Report::Moved { bytes: 3000, calls: 1000 };
        assert_eq!(read, [moved, Report::Ended(3000)]);
        assert_eq!(reports.total, 0);
    }
}
