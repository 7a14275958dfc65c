//! Random draws for simulated sweeps in tests: the same seed gives the same draws.

/// A random number generator (xorshift). The seed must not be 0.
//= Marsaglia, Xorshift RNGs, Journal of Statistical Software 8 (2003)
pub(super) struct Draw(pub(super) u64);

impl Draw {
    /// A random value from 0 to 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A random value from `low` to `high` whose logarithm is evenly distributed.
    pub(super) fn spread(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    /// A random value of a normal distribution with mean 0 and this standard deviation.
    pub(super) fn normal(&mut self, deviation: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.unit()).sum();
        (sum - 6.0) * deviation
    }

    /// Random factor by which a time is too long: 1.2 to 3 for 5 % of the times, else 1.
    pub(super) fn late(&mut self) -> f64 {
        if self.unit() < 0.05 { self.between(1.2, 3.0) } else { 1.0 }
    }

    /// A random element of a slice, which must not be empty.
    pub(super) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let index = (self.unit() * of.len() as f64) as usize;
        &of[index.min(of.len() - 1)]
    }
}
