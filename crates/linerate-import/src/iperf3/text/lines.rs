//! Reads the lines of an output, and sorts them by their kind.

use super::is_header;
use crate::format::Section;
use crate::iperf_row::{Row, Strange, bracket, number, row};
use crate::reading::{Line, Notes};

/// Largest number of streams of a direction. iperf3 itself has at most 128.
const MOST_STREAMS: usize = 1_000;

/// Starts of lines that have nothing about the result.
const PASSED_OVER: &[&str] = &[
    "- - - -",
    "-----",
    "Accepted connection from ",
    "Server listening on ",
    "Time: ",
    "Linux ",
    "Cookie: ",
    "Target Bitrate: ",
    "Test Complete. Summary Results:",
    "rcv_tcp_congestion ",
    "warning: ",
    "Starting Test: ",
    "TCP window size",
    "Using TCP Autotuning",
    "Finished omit period",
    "Waiting for server threads",
    "Authentication succeeded",
];

/// The lines of an output, sorted by their kind.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a line that was seen")]
pub(super) struct Lines<'a> {
    pub(super) version: Option<&'a str>,
    pub(super) by_client: bool,
    pub(super) by_server: bool,
    pub(super) reverse: bool,
    /// The protocol that `-V` prints.
    pub(super) protocol: Option<&'a str>,
    pub(super) streams: Option<u32>,
    pub(super) block: Option<u64>,
    pub(super) segment: Option<u32>,
    /// Number of lines that name a connection of the test.
    pub(super) connections: usize,
    /// Whether both ends of a connection have the same address.
    pub(super) local: Option<bool>,
    /// MSS of the control connection, which uses the same route as the test.
    pub(super) control_segment: Option<u32>,
    pub(super) cpu: Vec<CpuLine>,
    pub(super) congestion: Option<&'a str>,
    pub(super) error: Option<String>,
    /// The first two headings of columns: one for intervals, one for the summary.
    pub(super) headers: Vec<&'a str>,
    /// Whether the summary has begun: a line of words announced it, or a line with the number of datagrams sent.
    pub(super) summed: bool,
    /// Whether a line of dashes follows the rows of intervals.
    ruled: bool,
    /// Whether the end that wrote the output printed how many datagrams it sent.
    pub(super) sent: bool,
    /// Rows of intervals, without omitted ones.
    pub(super) intervals: Vec<Row<'a>>,
    /// Rows of the summary.
    pub(super) summary: Vec<Row<'a>>,
    pub(super) notes: Notes,
    /// Number of bytes up to the last line that was understood.
    pub(super) used: usize,
}

/// CPU use of both ends: `CPU Utilization: local/sender 15.3% (0.9%u/14.3%s), remote/receiver 36.1% ..`.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuLine {
    /// Whether the end that wrote the output is the sender.
    pub(super) sends: bool,
    /// CPU time as a share of one CPU, in total and in the kernel: of this end, then of the far end.
    pub(super) ends: [Option<(f64, f64)>; 2],
}

impl<'a> Lines<'a> {
    pub(super) fn read(section: &Section<'a>) -> Self {
        let mut lines = Self::default();
        let mut strange = Strange::default();
        let mut repeated = false;
        for Line { number, text, end } in section.lines() {
            let line = text.trim();
            if line.is_empty() {
                continue;
            }
            // The server's output follows the result and repeats it.
            repeated |= line == "Server output:";
            if repeated || lines.line(line) {
                lines.used = end;
                lines.notes.append(&mut strange.0);
                if line == "iperf Done." {
                    break;
                }
            } else {
                strange.line(number, line);
            }
        }
        if strange.end(&mut lines.notes) {
            lines.used = section.text.len();
        }
        lines
    }

    /// Reads a line. Returns whether it was understood.
    fn line(&mut self, line: &'a str) -> bool {
        if let Some(row) = row(line) {
            self.row(row);
            return true;
        }
        if is_header(line) {
            self.headers.push(line);
            self.headers.truncate(2);
            return true;
        }
        if bracket(line).is_some() {
            return self.connection(line);
        }
        self.ruled |= line.starts_with("- - -") && !self.intervals.is_empty();
        self.summed |= line.starts_with("Test Complete.");
        self.words(line) || PASSED_OVER.iter().any(|start| line.starts_with(start))
    }

    fn row(&mut self, row: Row<'a>) {
        // Lines of dashes also separate the intervals of several streams, but only the summary begins at zero again.
        let starts_over = self.ruled && row.from == 0.0;
        if is_marked(&row) || self.headers.len() > 1 || self.summed || starts_over {
            self.summed |= starts_over || is_marked(&row);
            if self.summary.len() < 4 * MOST_STREAMS {
                self.summary.push(row);
            }
        } else if !row.rest.ends_with("(omitted)") {
            self.intervals.push(row);
            self.ruled = row.rest.starts_with("- - -");
        }
    }

    /// Reads a line about one connection that is not a row.
    fn connection(&mut self, line: &str) -> bool {
        let Some((id, rest)) = bracket(line) else {
            return false;
        };
        let rest = rest.trim();
        if is_sent(rest) {
            self.sent = true;
            self.summed = true;
            // The line follows the row of its stream in the summary, and there may be only one heading for both
            // parts.
            let last = self.intervals.pop_if(|row| row.id == id && row.from == 0.0);
            self.summary.extend(last);
            return true;
        }
        let connected = rest.starts_with("local ") && rest.contains(" connected to ");
        self.connections += usize::from(connected);
        if connected {
            self.local = self.local.or(is_local(rest));
        }
        connected
            || rest.ends_with("datagrams received out-of-order")
            || rest.ends_with("statistics not available)")
    }

    /// Reads a line of words.
    fn words(&mut self, line: &'a str) -> bool {
        if let Some(why) = line.strip_prefix("iperf3: ") {
            let why = why.strip_prefix("error - ").unwrap_or(why);
            self.error.get_or_insert_with(|| why.to_owned());
        } else if let Some(version) = line.strip_prefix("iperf 3.") {
            self.version = line.get(line.len() - version.len() - 2..);
            self.version = self.version.and_then(|text| text.split(' ').next());
        } else if line.starts_with("Connecting to host ") {
            self.by_client = true;
        } else if line.starts_with("Accepted connection from ") {
            self.by_server = true;
        } else if line.starts_with("Reverse mode, ") {
            self.reverse = true;
        } else if let Some(mss) = line.strip_prefix("TCP MSS: ") {
            let mss = mss.split(' ').next().and_then(|n| n.parse().ok());
            // A server does not know the MSS, and writes zero.
            self.segment = mss.filter(|n| *n > 0);
        } else if let Some(mss) = line.strip_prefix("Control connection MSS ") {
            self.control_segment = mss.trim().parse().ok().filter(|n| *n > 0);
        } else if let Some(name) = line.strip_prefix("snd_tcp_congestion ") {
            self.congestion = Some(name);
        } else if let Some(settings) = line.strip_prefix("Starting Test: protocol: ") {
            self.settings(settings);
        } else if let Some(shares) = line.strip_prefix("CPU Utilization: ") {
            self.cpu.extend(cpu(shares));
            self.cpu.truncate(2);
        } else {
            return line == "iperf Done.";
        }
        true
    }

    /// Reads `TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, 2 second test, tos 0`.
    fn settings(&mut self, text: &'a str) {
        let mut parts = text.split(", ");
        self.protocol = parts.next();
        for part in parts {
            let Some((value, what)) = part.split_once(' ') else {
                continue;
            };
            match what {
                "streams" => self.streams = value.parse().ok(),
                "byte blocks" => self.block = value.parse().ok(),
                _ => {}
            }
        }
    }
}

/// Whether both ends in `local 192.0.2.1 port 41000 connected to 192.0.2.2 port 5201` have the same address.
pub(crate) fn is_local(rest: &str) -> Option<bool> {
    let mut words = rest.split_whitespace().skip(1);
    let own = words.next()?;
    let other = words.skip_while(|word| *word != "to" && *word != "with").nth(1)?;
    Some(own == other)
}

/// Whether a row says which end counted. Only rows of a summary do.
pub(super) fn is_marked(row: &Row<'_>) -> bool {
    row.rest.ends_with("sender") || row.rest.ends_with("receiver")
}

/// Whether a client's line is like `Sent 3334 datagrams`.
pub(super) fn is_sent(rest: &str) -> bool {
    rest.starts_with("Sent ") && rest.ends_with(" datagrams")
}

/// Whether a line can be part of an output, other than a row, a heading or a line about one connection.
pub(super) fn is_known(line: &str) -> bool {
    Lines::default().line(line)
}

fn cpu(text: &str) -> Option<CpuLine> {
    let (near, far) = text.split_once("), ")?;
    let near_of = near.strip_prefix("local/")?;
    let share = |text: &str| {
        let percent = |text: &str| number(text).map(|(value, _)| value / 100.0);
        let (total, parts) = text.split_once(' ')?.1.split_once("% (")?;
        let system = parts.split_once("%u/")?.1.split_once("%s")?.0;
        Some((percent(total)?, percent(system)?))
    };
    Some(CpuLine { sends: near_of.starts_with("sender"), ends: [share(near), share(far)] })
}
