//! netperf: the tables under its banners, and lines with a name and a value (`-k`).

mod pairs;
mod table;
#[cfg(test)]
mod tests;

use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Measured};

use crate::format::{Format, Found, Section};
use crate::reading::{Notes, lookup};

/// The format of netperf.
pub(crate) static FORMAT: Format = Format {
    id: "netperf",
    label: "netperf",
    versions: "2.4 to 2.7: TCP_STREAM, TCP_MAERTS, TCP_SENDFILE, UDP_STREAM, TCP_RR, TCP_CRR, UDP_RR, SCTP, omni with -k",
    evidence: "run here: 2.7.1, built from its source, on loopback",
    unknown: "CPU time of one CPU: netperf prints shares of all of them, without their number. Percentiles, unless \
              -k asks for them. Retransmits and segment, unless -k asks for them.",
    starts: |at| banner(at.line).is_some(),
    read,
    ..Format::RESULTS
};

/// What a banner says: `MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to ..`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Banner {
    carrier: Carrier,
    kind: Kind,
    /// Whether more than one request was kept in flight (`first burst`); `false` if the banner does not say so.
    burst: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Payload in one direction, as a stream.
    Stream(Direction),
    /// Requests and responses on one connection.
    Requests,
    /// Requests and responses, with a new connection for each.
    Connections,
    /// The test `omni`: its values show what it measured.
    Omni,
}

/// Texts in a banner, with the kind of test that each means.
const KINDS: &[(&str, Kind)] = &[
    (" STREAM TEST", Kind::Stream(Direction::Forward)),
    (" UNIDIRECTIONAL SEND TEST", Kind::Stream(Direction::Forward)),
    (" SENDFILE TEST", Kind::Stream(Direction::Forward)),
    (" MAERTS TEST", Kind::Stream(Direction::Reverse)),
    (" REQUEST/RESPONSE TEST", Kind::Requests),
    (" Connect/Request/Response TEST", Kind::Connections),
];

fn banner(line: &str) -> Option<Banner> {
    let line = line.strip_prefix("MIGRATED ").unwrap_or(line);
    if !(line.contains(" TEST from ") || line.contains(" TEST to ")) {
        return None;
    }
    let burst = line.split_once("first burst ").is_some_and(|(_, burst)| !burst.starts_with('0'));
    if line.starts_with("OMNI ") {
        return Some(Banner { carrier: Carrier::Tcp, kind: Kind::Omni, burst });
    }
    let carriers = [("TCP", Carrier::Tcp), ("UDP", Carrier::Udp), ("SCTP", Carrier::Sctp)];
    let (_, carrier) = carriers.iter().find(|(name, _)| line.starts_with(name))?;
    let (_, kind) = KINDS.iter().find(|(words, _)| line.contains(words))?;
    Some(Banner { carrier: *carrier, kind: *kind, burst })
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let first = section.text.lines().next().unwrap_or_default();
    let banner = banner(first).ok_or("it has no banner")?;
    let mut notes = Notes::default();
    if section.text.contains("Desired confidence was not achieved") {
        let what = "netperf did not reach the confidence that was asked for: the rates of its iterations differ";
        notes.at(section.line, what);
    }
    let (measured, used) = match pairs::read(section, banner, &mut notes) {
        Some(found) => found?,
        None => table::read(section, banner, &mut notes)?,
    };
    Ok(Found::of("netperf", used, notes).with(title(first), section.line, measured))
}

/// Name of the test in a banner.
fn title(line: &str) -> &str {
    let line = line.strip_prefix("MIGRATED ").unwrap_or(line);
    line.split_once(" TEST").map_or(line, |(title, _)| title)
}

/// Bits per second in a unit.
//= netperf 2.7.1: netlib.c, format_units; its MBytes are 2^20
fn bits(unit: &str) -> Option<f64> {
    const UNITS: &[(&str, f64)] = &[
        ("10^3bits/s", 1e3),
        ("10^6bits/s", 1e6),
        ("10^9bits/s", 1e9),
        ("10^12bits/s", 1e12),
        ("KBytes/s", 8.0 * 1024.0),
        ("MBytes/s", 8.0 * 1_048_576.0),
        ("GBytes/s", 8.0 * 1_073_741_824.0),
    ];
    let unit = unit.strip_suffix("ec").unwrap_or(unit);
    lookup(UNITS, unit)
}

/// Adds a note if rates are in bytes, whose multiples are binary.
fn binary(unit: &str, line: u64, notes: &mut Notes) {
    if unit.contains("Bytes/s") {
        let what =
            "rates in Bytes/s have multiples of 1024, as netperf counts them: they were converted";
        notes.at(line, what);
    }
}

/// Reads a number that is not negative. netperf writes a negative one for unknown.
fn number(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    (value.is_finite() && (0.0..1e15).contains(&value)).then_some(value)
}

/// A transfer as the measured value of a result.
fn boxed(transfer: linerate_record::reported::Transfer) -> Measured {
    Measured::Transfer(Box::new(transfer))
}
