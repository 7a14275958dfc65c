//! Whether the receiving program is slower than the arriving payload, or keeps up with it.

use super::Thread;
use super::readings::{Window, gauge, mean};
use linerate_facts::metric::SOCKET_UNREAD;
use linerate_record::EndReadings;

/// Number of parts of the time that are compared. Data that piled up in one part only, and stayed or was read later,
/// does not show that the reader is slower than the arrivals.
const PARTS: usize = 4;

/// Payload that arrived and stayed unread, over the payload that the program read meanwhile, all streams: by how much
/// the arrivals are faster than the reader.
///
/// Uses the least growth between quarters of the time, less the size of one read, since a reader may let that much
/// collect. `None` if the receive queues were not read, or too seldom.
pub(super) fn behind(
    receiving: &EndReadings,
    set: u32,
    window: Window,
    goodput: f64,
    readers: &[Thread],
) -> Option<f64> {
    let grown: Vec<f64> = unread_samples(receiving, set, window)
        .iter()
        .map(|looks| steady_growth(looks))
        .collect::<Option<_>>()?;
    let a_read = a_read(readers);
    let seconds = window.to.saturating_sub(window.from) as f64 / 1e9;
    let read = (goodput / 8.0 * seconds).max(1.0);
    let unread: f64 = grown.iter().map(|g| (g - a_read).max(0.0)).sum();
    (!grown.is_empty()).then_some(unread / read)
}

/// Share of the samples in which a stream's receive queue held no more than one read: the program had read everything.
/// `None` without samples.
pub(super) fn caught_up(
    receiving: &EndReadings,
    set: u32,
    window: Window,
    readers: &[Thread],
) -> Option<f64> {
    let a_read = a_read(readers);
    let looks = unread_samples(receiving, set, window);
    mean(looks.into_iter().flatten().map(|unread| if unread <= a_read { 1.0 } else { 0.0 }))
}

/// Unread bytes at each reading, for each stream.
fn unread_samples(receiving: &EndReadings, set: u32, window: Window) -> Vec<Vec<f64>> {
    let prefix = format!("s{set}/");
    receiving
        .about("socket", |s| s.starts_with(&prefix))
        .map(|table| gauge(table, SOCKET_UNREAD, window).collect())
        .collect()
}

/// Largest number of bytes that one read of these threads returns, on average.
pub(crate) fn a_read(readers: &[Thread]) -> f64 {
    let sizes = readers.iter().filter_map(|t| t.bytes_per_op);
    sizes.fold(0.0, f64::max)
}

/// Growth over a whole series, if all of it had grown as slowly as its slowest quarter.
fn steady_growth(values: &[f64]) -> Option<f64> {
    let bound = |part: usize| part * values.len() / PARTS;
    let means: Vec<f64> = (0..PARTS)
        .map(|part| values.get(bound(part)..bound(part + 1)))
        .map(|part| part.filter(|p| !p.is_empty()))
        .map(|part| part.map(|p| p.iter().sum::<f64>() / p.len() as f64))
        .collect::<Option<_>>()?;
    let steps = means.windows(2).map(|w| w[1] - w[0]);
    Some(steps.reduce(f64::min)? * PARTS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_record::{Column, Table};

    fn series(at: impl Fn(f64) -> f64) -> Option<f64> {
        let values: Vec<f64> = (0..40).map(|i| at(f64::from(i) / 40.0)).collect();
        steady_growth(&values)
    }

    #[test]
    fn what_grows_all_the_time_is_told_from_what_came_once() {
        let growth = series(|t| 1000.0 * t).unwrap();
        assert!((growth - 1000.0).abs() < 1e-6, "{growth}");
        for when in [0.1, 0.4, 0.6, 0.9] {
            let once = series(|t| if t < when { 0.0 } else { 1000.0 });
            assert_eq!(once, Some(0.0), "at {when}");
        }
        let read_later = series(|t| if t < 0.5 { 1000.0 * t } else { 0.0 });
        assert!(read_later.unwrap() < 0.0);
        let until_full = series(|t| 1000.0 * t.min(0.8)).unwrap();
        assert!((500.0..900.0).contains(&until_full), "{until_full}");
        let full_soon = series(|t| 1000.0 * t.min(0.5));
        assert_eq!(full_soon, Some(0.0));
    }

    #[test]
    fn a_look_that_finds_less_than_a_read_tells_of_a_program_that_has_caught_up() {
        let unread = |values: &[i64]| EndReadings {
            tables: vec![Table {
                source: "socket".into(),
                subject: "s0/0".into(),
                at: (0..values.len() as u64).collect(),
                columns: vec![Column {
                    name: SOCKET_UNREAD.name.into(),
                    unit: SOCKET_UNREAD.unit,
                    kind: SOCKET_UNREAD.kind,
                    values: values.to_vec(),
                }],
            }],
            ..EndReadings::default()
        };
        let whole = Window { from: 0, to: 9 };
        let share = |values| caught_up(&unread(values), 0, whole, &[]);
        assert_eq!(share(&[0, 9, 0, 9]), Some(0.5));
        assert_eq!(share(&[9, 9, 9]), Some(0.0));
        assert_eq!(caught_up(&EndReadings::default(), 0, whole, &[]), None);
    }

    #[test]
    fn each_quarter_needs_a_reading() {
        assert_eq!(steady_growth(&[1.0, 2.0, 3.0]), None);
        assert_eq!(steady_growth(&[1.0, 2.0, 3.0, 4.0]), Some(4.0));
    }
}
