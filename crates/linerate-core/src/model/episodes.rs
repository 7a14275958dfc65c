//! Whether packets are lost all the time, or were once.

use crate::metric as m;
use crate::record::EndReadings;
use crate::units::Nanos;

use super::readings::Window;

/// Episodes of loss from which it goes on all the time: a queue that streams overrun while they start is one.
const EPISODES: usize = 3;

/// Round trips in which a sender gets over what was lost at once, and samples in which it shows.
const ROUND_TRIPS: u64 = 4;
const SAMPLES: u64 = 2;

/// Whether streams of `set` sent segments again in several episodes of a window.
pub(super) fn keeps_losing(
    sending: &EndReadings,
    set: u32,
    window: Window,
    tick: Nanos,
    rtt: Option<Nanos>,
) -> bool {
    let prefix = format!("s{set}/");
    let mut times: Vec<u64> = sending
        .about("tcp", |s| s.starts_with(&prefix))
        .flat_map(|table| {
            let counts = table.column(m::TCP_RETRANS).unwrap_or_default();
            let grown = counts.windows(2).zip(table.at.iter().skip(1));
            grown.filter(|(pair, _)| pair[1] > pair[0])
        })
        .map(|(_, at)| *at)
        .filter(|at| (window.from..=window.to).contains(at))
        .collect();
    times.sort_unstable();
    let trips = rtt.unwrap_or_default().0.saturating_mul(ROUND_TRIPS);
    let apart = trips.max(tick.0.saturating_mul(SAMPLES));
    let gaps = times.windows(2).filter(|t| t[1] - t[0] > apart).count();
    !times.is_empty() && gaps + 1 >= EPISODES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Column, Table};

    /// Samples of a step, 100 ms apart.
    const TICK: Nanos = Nanos::from_millis(100);

    #[test]
    fn several_episodes_are_loss_all_the_time_and_one_of_many_segments_is_not() {
        let at = |counts: &[i64], rtt_ms| {
            let table = Table {
                source: "tcp".to_owned(),
                subject: "s1/0".to_owned(),
                at: (0..counts.len() as u64).map(|n| n * TICK.0).collect(),
                columns: vec![Column {
                    name: m::TCP_RETRANS.name.to_owned(),
                    unit: m::TCP_RETRANS.unit,
                    kind: m::TCP_RETRANS.kind,
                    values: counts.to_vec(),
                }],
            };
            let end = EndReadings {
                tables: vec![table],
                ..EndReadings::default()
            };
            let all = Window {
                from: 0,
                to: u64::MAX,
            };
            keeps_losing(&end, 1, all, TICK, Some(Nanos::from_millis(rtt_ms)))
        };
        let thrice = [0, 1, 1, 1, 2, 2, 2, 3];
        assert!(at(&thrice, 1));
        assert!(at(&thrice, 74), "296 ms are less than 300 ms");
        assert!(!at(&thrice, 76), "so long it may take to get over one");
        assert!(!at(&[0, 1, 1, 1, 2, 2, 2, 2], 1), "twice");
        assert!(!at(&[0, 10, 20, 30, 40, 50, 60, 60], 1), "a long one");
        assert!(!at(&[0; 8], 1));
    }
}
