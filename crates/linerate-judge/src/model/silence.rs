//! Times in the middle of a load in which no payload arrived.

use super::ends::end;
use super::readings::{Window, growth};
use linerate_facts::metric as m;
use linerate_plan::path::Side;
use linerate_record::{Step, Table};

/// Minimum share of a silence for which a thread of the load waited for its CPU, so that this wait explains the
/// silence.
const WAITED: f64 = 0.5;

/// Rates of received payload, each with its start. Where no payload arrived in the middle of a load, the rate of
/// answers to round trips of the sets `beside` the load is used instead: a path that carries small packets in both
/// directions was not down, whatever the sender waits for. Before and after all payload, answers say nothing about the
/// load.
pub(super) fn heard(step: &Step, ticks: &[(u64, f64)], beside: &[u32]) -> Vec<(u64, f64)> {
    let subjects: Vec<String> = beside.iter().map(|set| format!("s{set}/tx")).collect();
    let asks = |subject: &str| subjects.iter().any(|s| subject.starts_with(s));
    let near = end(step, Side::Near).into_iter();
    let asking = near.flat_map(|end| end.about(m::WORKER_BYTES.source, asks));
    let asking: Vec<&Table> = asking.collect();
    let answered = |window: Window| -> f64 {
        let grown = asking.iter();
        let grown = grown.filter_map(|table| growth(table, m::WORKER_BYTES, window));
        grown.map(|(bytes, _)| bytes).sum()
    };
    let last = Window::of(step).to;
    let ends = ticks.iter().skip(1).map(|(from, _)| *from);
    let ends = ends.chain(std::iter::once(last));
    let flows = |tick: &(u64, f64)| tick.1 > 0.0;
    let flow = ticks.iter().position(flows).zip(ticks.iter().rposition(flows));
    let within = |at: usize| flow.is_some_and(|(first, last)| (first..=last).contains(&at));
    let heard = ticks.iter().zip(ends).enumerate();
    heard
        .map(|(at, (&(from, rate), to))| {
            let silent = rate <= 0.0 && within(at);
            let answers = silent.then(|| answered(Window { from, to }));
            (from, answers.unwrap_or(rate))
        })
        .collect()
}

/// Consecutive samples without any payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Silence {
    pub(super) samples: usize,
    from: u64,
    to: u64,
}

/// Silences of two or more samples between samples with payload. `ticks` holds the start and the rate of each sample.
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
    /// Number of times that the retransmission timers of `set` expired during the silence, up to the end of the sample
    /// that follows it.
    pub(super) fn timeouts(self, step: &Step, set: u32) -> f64 {
        let window = Window { from: self.from, to: self.to.saturating_add(step.plan.tick.0) };
        let prefix = format!("s{set}/");
        let sockets = step.ends.iter();
        let sockets =
            sockets.flat_map(|end| end.about(m::TCP_TOTAL_RTO.source, |s| s.starts_with(&prefix)));
        let grown = sockets.filter_map(|socket| growth(socket, m::TCP_TOTAL_RTO, window));
        grown.map(|(times, _)| times).sum()
    }

    /// Whether all threads of an end that move payload of `set` waited for their CPUs during the silence: then the host
    /// stopped them, and not the path.
    pub(super) fn is_of_a_cpu(self, step: &Step, set: u32) -> bool {
        let window = Window { from: self.from, to: self.to };
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
    use linerate_plan::{Purpose, StepPlan};
    use linerate_record::{Column, EndReadings};
    use linerate_units::Nanos;

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

    /// The rates of six samples, of which samples 2 to 4 are silent, if round trips were answered in the samples
    /// `answered`.
    fn heard_with(subject: &str, answered: &[usize]) -> Vec<f64> {
        heard_of(subject, answered, [5.0, 5.0, 0.0, 0.0, 0.0, 5.0])
    }

    /// As `heard_with`, for samples with these rates.
    fn heard_of(subject: &str, answered: &[usize], rates: [f64; 6]) -> Vec<f64> {
        let bytes = (0..=6).map(|row| 64 * answered.iter().filter(|at| **at < row).count() as i64);
        let table = Table {
            source: m::WORKER_BYTES.source.to_owned(),
            subject: subject.to_owned(),
            // The end is read 20 ms after the other one.
            at: (0..=6).map(|row| row * 100_000_000 + 20_000_000).collect(),
            columns: vec![Column {
                name: m::WORKER_BYTES.name.into(),
                unit: m::WORKER_BYTES.unit,
                kind: m::WORKER_BYTES.kind,
                values: bytes.collect(),
            }],
        };
        let near = EndReadings { tables: vec![table], ..EndReadings::default() };
        let step = Step {
            plan: StepPlan {
                index: 0,
                purpose: Purpose::Both,
                sets: vec![0, 4],
                washout: Nanos(0),
                measure: Nanos::from_millis(600),
                tick: Nanos::from_millis(100),
            },
            began: Nanos(0),
            ends: vec![near, EndReadings::default()],
            clock: None,
            took: Nanos(0),
            trouble: None,
        };
        let ticks: Vec<(u64, f64)> = (0..).step_by(100_000_000).zip(rates).collect();
        let heard = heard(&step, &ticks, &[4]);
        heard.into_iter().map(|(_, rate)| rate).collect()
    }

    #[test]
    fn answers_beside_a_load_are_heard_where_it_is_silent() {
        let silent = [5.0, 5.0, 0.0, 0.0, 0.0, 5.0];
        assert_eq!(heard_with("s4/tx0", &[]), silent);
        assert_eq!(heard_with("s4/tx0", &[3]), [5.0, 5.0, 0.0, 64.0, 0.0, 5.0]);
        assert_eq!(heard_with("s4/tx0", &[2, 3, 4, 4, 5]), [5.0, 5.0, 64.0, 64.0, 128.0, 5.0]);
        let rates = [0.0, 5.0, 0.0, 5.0, 0.0, 0.0];
        let ends = heard_of("s4/tx0", &[0, 2, 4, 5], rates);
        assert_eq!(ends, [0.0, 5.0, 64.0, 5.0, 0.0, 0.0], "no mid-flow");
        for other in ["s4/rx0", "s44/tx0", "s0/tx0"] {
            assert_eq!(heard_with(other, &[2, 3, 4]), silent, "{other}");
        }
    }
}
