//! CPU work of a known cost: computing, without access to memory or the clock.

use std::hint::black_box;
use std::sync::OnceLock;

use linerate_sys::clock;

/// Number of iterations of one calibration, which take about half a millisecond.
const TRY: u64 = 300_000;
/// Number of calibrations. The fastest is used, since others were interrupted or began at a low clock frequency.
const TRIES: u32 = 9;

/// Runs `iterations` steps of a chain in which each step depends on the previous one.
pub(crate) fn spin(iterations: u64) {
    let mut x = black_box(iterations);
    for _ in 0..iterations {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
    black_box(x);
}

/// Returns how many iterations take one nanosecond on this machine. It is measured once per process.
pub(crate) fn per_nano() -> f64 {
    static PER_NANO: OnceLock<f64> = OnceLock::new();
    *PER_NANO.get_or_init(|| {
        let best = (0..TRIES)
            .map(|_| {
                let start = clock::now();
                spin(TRY);
                clock::now() - start
            })
            .min();
        TRY as f64 / best.unwrap_or(1).max(1) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_in_proportion() {
        // Time for which the thread ran on a CPU. Unlike elapsed time, it does not grow while other threads have the
        // CPU.
        let on_cpu = || {
            let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
            text.split(' ').next().unwrap().parse::<u64>().unwrap()
        };
        // The two amounts of work take turns, since the machine may be slow for a while.
        let mut sums = [0, 0];
        for _ in 0..20 {
            for (sum, n) in sums.iter_mut().zip([100_000, 400_000]) {
                let start = on_cpu();
                (0..20).for_each(|_| spin(n));
                *sum += on_cpu() - start;
            }
        }
        let ratio = sums[1] as f64 / sums[0] as f64;
        assert!((2.5..6.0).contains(&ratio), "{ratio}");
    }
}
