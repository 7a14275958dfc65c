//! Time in mid-flow in which no payload arrived.

use super::readings::{Window, growth};
use crate::metric as m;
use crate::record::Step;

/// Share of such a time that a thread of the load had to wait for its CPU for that to be the reason.
const WAITED: f64 = 0.5;

/// Samples in a row without any payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Silence {
    pub(super) samples: usize,
    from: u64,
    to: u64,
}

/// The longest one between samples with payload, when it is of two or more. Each sample has its start and its
/// rate.
pub(super) fn longest(ticks: &[(u64, f64)]) -> Option<Silence> {
    let first = ticks.iter().position(|(_, rate)| *rate > 0.0)?;
    let last = ticks.iter().rposition(|(_, rate)| *rate > 0.0)?;
    let mut found: Option<Silence> = None;
    let mut at = first;
    while at < last {
        let silent = ticks[at + 1..=last]
            .iter()
            .position(|(_, rate)| *rate > 0.0)?;
        if silent >= 2 && found.is_none_or(|found| silent > found.samples) {
            found = Some(Silence {
                samples: silent,
                from: ticks[at + 1].0,
                to: ticks[at + 1 + silent].0,
            });
        }
        at += 1 + silent;
    }
    found
}

impl Silence {
    /// Whether a thread that moves payload of `set` waited for its CPU meanwhile, at either end: it was its host
    /// that kept it from going on, and no path.
    pub(super) fn is_of_a_cpu(self, step: &Step, set: u32) -> bool {
        let window = Window {
            from: self.from,
            to: self.to,
        };
        let prefixes = [format!("s{set}/tx"), format!("s{set}/rx")];
        let is_ours = |subject: &str| prefixes.iter().any(|p| subject.starts_with(p));
        step.ends
            .iter()
            .flat_map(|end| end.about(m::THREAD_WAIT.source, is_ours))
            .filter_map(|thread| growth(thread, m::THREAD_WAIT, window))
            .any(|(waited, secs)| waited / 1e9 >= secs * WAITED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rates: &[f64]) -> Option<(usize, u64, u64)> {
        let ticks: Vec<(u64, f64)> = (0..).step_by(10).zip(rates.iter().copied()).collect();
        longest(&ticks).map(|s| (s.samples, s.from, s.to))
    }

    #[test]
    fn the_longest_silence_lies_between_samples_with_payload() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[0.0, 0.0, 0.0]), None);
        assert_eq!(of(&[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]), None, "no end of it");
        assert_eq!(of(&[1.0, 0.0, 1.0]), None, "one sample");
        assert_eq!(of(&[1.0, 0.0, 0.0, 1.0]), Some((2, 10, 30)));
        let twice = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 2.0];
        assert_eq!(of(&twice), Some((3, 50, 80)));
    }
}
