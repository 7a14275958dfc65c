//! Reads lines of a ping-pong: `size, count = 1024 976 wall clock time = 0.783628  20.406091 MB/s`.
//!
//! Test programs for parallel computers print such lines for one layer after the other. The rate proves the unit of
//! the size: bytes, or words of 8 bytes, counted in one direction or in both.

use linerate_record::reported::{Measured, Outcome, SizeRow, Sizes, Trip};
use linerate_units::Bytes;

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{Line, Notes, SECOND, count, nanos, number, outcome, rate, sizes};

/// The entry in the table of formats.
pub(crate) static WALL_CLOCK: Format = Format {
    id: "wall-clock",
    label: "a ping-pong that prints size, count and wall clock time",
    versions: "lines of size, count, seconds and MB/s",
    evidence: "published: ping-pong over MPI and sockets on Gigabit Ethernet adapters, as its author published it",
    unknown: "The layers: lines of one size that follow each other are those of one layer each, in the order of the first size.",
    starts: |at| {
        let is_row = |line: &str| line.starts_with(ROW) && line.contains(TIME);
        is_row(at.line) || at.line.starts_with(RECEIVED) && is_row(at.next)
    },
    read,
    extent: Extent::Parts,
    ..Format::RESULTS
};

const ROW: &str = "size, count = ";
const TIME: &str = " wall clock time = ";
const RECEIVED: &str = "received size";
/// Bits per second in one MB/s.
const MEGABYTE: f64 = 8e6;
/// Largest number of layers.
const MOST_LAYERS: usize = 8;
/// Largest relative difference of two figures that agree but for rounding.
const ROUNDED: f64 = 0.005;
/// Possible units: number of bytes in a unit of the size, and of directions that the rate counts.
const UNITS: [(u64, f64); 4] = [(8, 2.0), (8, 1.0), (1, 2.0), (1, 1.0)];

/// Reads a line: size, count, seconds, MB/s.
fn row(line: &str) -> Option<(u64, u64, f64, f64)> {
    let (sizes, times) = line.strip_prefix(ROW)?.split_once(TIME)?;
    let mut sizes = sizes.split_whitespace();
    let mut times = times.split_whitespace();
    let (size, repeated) = (count(sizes.next()?)?, count(sizes.next()?)?);
    let (seconds, megabytes) = (number(times.next()?)?, number(times.next()?)?);
    (seconds > 0.0 && repeated > 0 && times.next() == Some("MB/s"))
        .then_some((size, repeated, seconds, megabytes))
}

/// The unit of the size, and the number of directions, that the rate proves.
fn unit((size, repeated, seconds, megabytes): (u64, u64, f64, f64)) -> Option<(u64, f64)> {
    let moved = megabytes * 1e6 * seconds / (size as f64 * repeated as f64);
    let fits = |(bytes, ways): &(u64, f64)| (moved / (*bytes as f64 * ways) - 1.0).abs() < ROUNDED;
    UNITS.into_iter().find(fits)
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let mut notes = Notes::default();
    let mut layers: Vec<Vec<SizeRow>> = Vec::new();
    let mut known = None;
    let (mut layer, mut last) = (0, None);
    for Line { number, text: line, .. } in section.lines() {
        let line = line.trim();
        let Some(found) = row(line) else {
            if !line.is_empty() && !line.starts_with(RECEIVED) {
                notes.strange(number, line);
            }
            continue;
        };
        let Some((bytes, ways)) = known.or_else(|| unit(found)) else {
            notes.at(number, "size, count, time and rate do not fit together");
            continue;
        };
        known = Some((bytes, ways));
        let (size, repeated, seconds, megabytes) = found;
        layer = if last == Some(size) { layer + 1 } else { 0 };
        last = Some(size);
        if layers.len() <= layer && layers.len() < MOST_LAYERS {
            layers.push(Vec::new());
        }
        if let Some(rows) = layers.get_mut(layer) {
            notes.keep(
                rows,
                SizeRow {
                    size: Bytes(size.saturating_mul(bytes)),
                    samples: Some(repeated),
                    mean: nanos(seconds / repeated as f64, SECOND),
                    rate: rate(megabytes, MEGABYTE),
                    ..SizeRow::default()
                },
            );
        }
    }
    let Some((bytes, ways)) = known else {
        return Err("size, count, time and rate of no line fit together".into());
    };
    if bytes > 1 {
        notes.whole(format!(
            "sizes are words of {bytes} bytes: size, count, time and rate prove it"
        ));
    }
    Ok(Found {
        results: outcomes(section.line, layers, ways > 1.0),
        notes,
        used: Some(section.text.len()),
        ..Found::default()
    })
}

fn outcomes(line: u64, layers: Vec<Vec<SizeRow>>, both: bool) -> Vec<Outcome> {
    let many = layers.len() > 1;
    let one = |(at, rows): (usize, Vec<SizeRow>)| {
        let name = if many {
            format!("ping-pong, line {} of each size", at + 1)
        } else {
            "ping-pong".to_owned()
        };
        let table = Sizes { both, ..sizes(name.as_str(), Trip::Whole, rows) };
        outcome(&name, line, Measured::Sizes(table))
    };
    layers.into_iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{bits, notes, part, sizes, why};

    const TEXT: &str = include_str!("../tests/samples/wall-clock/two-layers.txt");

    #[test]
    fn each_layer_is_a_table() {
        let part = part(TEXT);
        assert_eq!(part.results.len(), 2);
        let [upper, lower] = [0, 1].map(|at| sizes(&part.results[at]));
        assert_eq!((upper.rows.len(), lower.rows.len()), (2, 2));
        assert_eq!((upper.trip, upper.both), (Trip::Whole, true));
        // 0.848137 s for 2000 round trips of one word of 8 bytes.
        assert_eq!((upper.rows[0].size, upper.rows[0].samples), (Bytes(8), Some(2000)));
        assert!(upper.rows[0].mean.unwrap().0.abs_diff(424_068) <= 1);
        assert_eq!(lower.rows[1].rate, bits(163_248_728));
        assert!(notes(&part, "words of 8 bytes"));
        assert!(!notes(&part, "not understood"));
    }

    #[test]
    fn a_rate_proves_the_unit_or_the_line_is_said() {
        let bytes = "size, count = 1000 10 wall clock time = 1.0  0.010000 MB/s\n";
        assert_eq!(sizes(&part(bytes).results[0]).rows[0].size, Bytes(1000));
        assert!(!sizes(&part(bytes).results[0]).both);
        let both = bytes.replace("0.010000", "0.020000");
        assert!(sizes(&part(&both).results[0]).both);
        assert!(why(&bytes.replace("0.010000", "0.030000")).contains("fit together"));
    }
}
