//! The summary of `networkQuality` of macOS: capacity of each direction, and round trips on the idle and on the
//! loaded path.

use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Counted, RoundTrips, Transfer};
use linerate_units::{Nanos, Rate};

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{BITS, Line, MILLI, Notes, SECOND, lookup, nanos, number, rate, transfer};

/// The entry in the table of formats.
pub(crate) static NETWORK_QUALITY: Format = Format {
    id: "networkquality",
    label: "networkQuality of macOS, summary",
    versions: "macOS 12 to 15",
    evidence: "published: networkQuality(1), and the summaries of macOS 13 and 14 as people publish them; the \
        figures are made up",
    unknown: "The protocol; which direction delays, unless -s loaded one after the other; losses.",
    starts: |at| capacity(if at.line.trim() == HEAD { at.next } else { at.line }).is_some(),
    read,
    extent: Extent::GoesOn(goes_on),
    ..Format::RESULTS
};

const HEAD: &str = "==== SUMMARY ====";
/// Names of the two directions; older versions use the second ones.
const WAYS: [(Direction, [&str; 2]); 2] =
    [(Direction::Forward, ["Uplink", "Upload"]), (Direction::Reverse, ["Downlink", "Download"])];
/// Seconds in a minute: responsiveness is in round trips per minute (RPM).
//= draft-ietf-ippm-responsiveness: RPM is 60,000 over the round trip in milliseconds
const MINUTE: f64 = 60.0;

/// Whether a summary continues at a line: the line must have the capacity of a direction that the summary lacks.
fn goes_on(before: &str, rest: &str) -> bool {
    let next = rest.lines().next().and_then(capacity);
    next.is_some_and(|(next, _)| {
        let mut known = before.lines().filter_map(capacity);
        known.all(|(direction, _)| direction != next)
    })
}

/// The direction and the value in a line such as `Uplink capacity: 21.483 Mbps`.
fn of_way<'a>(line: &'a str, what: &str) -> Option<(Direction, &'a str)> {
    let (name, value) = line.trim().split_once(": ")?;
    let (way, rest) = name.split_once(' ')?;
    let (direction, _) = WAYS.iter().find(|(_, names)| names.contains(&way))?;
    rest.eq_ignore_ascii_case(what).then_some((*direction, value))
}

fn capacity(line: &str) -> Option<(Direction, Rate)> {
    let (direction, value) = of_way(line, "capacity")?;
    let (value, unit) = value.split_once(' ')?;
    Some((direction, rate(number(value)?, lookup(BITS, unit)?)?))
}

/// The round trip in `Low (1213.415 milliseconds | 49 RPM)`, `17.208 milliseconds | 3486 RPM` or `Low (49 RPM)`.
fn time(value: &str) -> Option<Nanos> {
    let inner = value.split_once('(').map_or(value, |(_, inner)| inner);
    inner.trim_end_matches(')').split('|').find_map(|part| {
        let (value, unit) = part.trim().split_once(' ')?;
        let value = number(value).filter(|value| *value > 0.0)?;
        match unit {
            "milliseconds" => nanos(value, MILLI),
            "seconds" => nanos(value, SECOND),
            "RPM" => nanos(MINUTE / value, SECOND),
            _ => None,
        }
    })
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut used = 0;
    let mut ways = Vec::new();
    let (mut idle, mut loaded, mut both) = (None, Vec::new(), None);
    for Line { number, text, end } in section.lines() {
        let line = text.trim();
        let Some((name, value)) = line.split_once(": ").filter(|_| is_line(line)) else {
            if line.is_empty() || line == HEAD {
                used = end;
                continue;
            }
            break;
        };
        used = end;
        if let Some((direction, rate)) = capacity(line) {
            ways.push((number, direction, rate));
        } else if let Some((direction, value)) = of_way(line, "responsiveness") {
            loaded.extend(time(value).map(|time| (direction, time)));
        } else if name.eq_ignore_ascii_case("idle latency") {
            idle = time(value);
        } else if name == "Responsiveness" {
            both = time(value);
        }
    }
    let result = |(line, direction, rate): (u64, Direction, Rate)| {
        let own = loaded.iter().find(|(of, _)| *of == direction);
        let mut one = Transfer::new(Carrier::Sockets, direction, rate, Counted::Unknown);
        one.both = loaded.is_empty();
        one.round_trip =
            RoundTrips { least: idle, mean: own.map(|(_, time)| *time).or(both), most: None };
        transfer(line, one)
    };
    let results = ways.into_iter().map(result).collect();
    let found = Found { results, ..Found::of("networkQuality", used, Notes::default()) };
    found.complete("it has no capacity")
}

/// Whether a line is part of the summary: like `Interface: en7`, and not a prompt of a shell.
fn is_line(line: &str) -> bool {
    crate::reading::command(line).is_none()
        && line.split_once(": ").is_some_and(|(name, _)| name.split(' ').count() <= MOST_WORDS)
}

/// Largest number of words in a name, such as `Uplink bytes transferred`.
const MOST_WORDS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{part, transfer};

    const SEQUENTIAL: &str = include_str!("../tests/samples/networkquality/sequential.txt");

    #[test]
    fn each_direction_has_its_capacity_and_round_trips() {
        let part = part(SEQUENTIAL);
        let [up, down] = [0, 1].map(|at| transfer(&part.results[at]));
        assert_eq!((up.direction, up.goodput.0), (Direction::Forward, 11_250_000));
        assert_eq!((down.direction, down.goodput.0), (Direction::Reverse, 96_400_000));
        let times =
            |one: &Transfer| [one.round_trip.least, one.round_trip.mean].map(|n| n.unwrap().0);
        assert_eq!(times(up), [24_000_000, 810_500_000]);
        // The sample has 600 round trips per minute.
        assert_eq!(times(down), [24_000_000, 100_000_000]);
        assert!(!up.both && part.notes.is_empty());
    }

    #[test]
    fn both_directions_at_once_have_one_time() {
        let text = "Upload capacity: 9.5 Mbps\nDownload capacity: 1.2 Gbps\nUpload flows: 20\nResponsiveness: Low (1.5 seconds | 40 RPM)\n\nwords\n";
        let parsed = crate::read(text.as_bytes()).unwrap();
        let down = transfer(&parsed.parts[0].results[1]);
        assert_eq!((down.both, down.goodput.0), (true, 1_200_000_000));
        assert_eq!(down.round_trip.mean, Some(Nanos(1_500_000_000)));
        assert_eq!(down.round_trip.least, None);
        assert_eq!(time("High (0 RPM)"), None);
    }
}
