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

/// Those between samples with payload, of two or more. Each sample has its start and its rate.
pub(super) fn silences(ticks: &[(u64, f64)]) -> Vec<Silence> {
    let heard: Vec<usize> = (0..ticks.len()).filter(|i| ticks[*i].1 > 0.0).collect();
    let between = heard.windows(2).filter(|pair| pair[1] - pair[0] > 2);
    let silence = |pair: &[usize]| Silence {
        samples: pair[1] - pair[0] - 1,
        from: ticks[pair[0] + 1].0,
        to: ticks[pair[1]].0,
    };
    between.map(silence).collect()
}

impl Silence {
    /// Whether all threads of an end that move payload of `set` waited for their CPUs meanwhile: it was their host
    /// that kept them from going on, and no path.
    pub(super) fn is_of_a_cpu(self, step: &Step, set: u32) -> bool {
        let window = Window {
            from: self.from,
            to: self.to,
        };
        let prefixes = [format!("s{set}/tx"), format!("s{set}/rx")];
        step.ends.iter().any(|end| {
            let is_ours = |subject: &str| prefixes.iter().any(|p| subject.starts_with(p));
            let threads = end.about(m::THREAD_WAIT.source, is_ours);
            let waits: Vec<bool> = threads
                .map(|thread| growth(thread, m::THREAD_WAIT, window))
                .map(|grown| grown.is_some_and(|(waited, secs)| waited / 1e9 >= secs * WAITED))
                .collect();
            !waits.is_empty() && waits.into_iter().all(|waits| waits)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rates: &[f64]) -> Vec<(usize, u64, u64)> {
        let ticks: Vec<(u64, f64)> = (0..).step_by(10).zip(rates.iter().copied()).collect();
        let all = silences(&ticks).into_iter();
        all.map(|s| (s.samples, s.from, s.to)).collect()
    }

    #[test]
    fn silence_lies_between_samples_with_payload() {
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[0.0, 0.0, 0.0]), []);
        assert_eq!(of(&[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]), [], "no end of it");
        assert_eq!(of(&[1.0, 0.0, 1.0]), [], "one sample");
        assert_eq!(of(&[1.0, 0.0, 0.0, 1.0]), [(2, 10, 30)]);
        let twice = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 2.0];
        assert_eq!(of(&twice), [(2, 10, 30), (3, 50, 80)]);
    }
}
