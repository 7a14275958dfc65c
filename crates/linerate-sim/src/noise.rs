//! Random numbers, and noise that is correlated in time, like the noise of measured rates.

/// A simple generator of random numbers (SplitMix64), only for simulations.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Makes a generator. Equal seeds always give the same numbers.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a uniformly distributed number between 0 and 1, both excluded.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Returns a normally distributed number with mean 0 and standard deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let (a, b) = (self.uniform(), self.uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Returns one of `choices`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.uniform() * choices.len() as f64) as usize]
    }
}

/// How noise is distributed and correlated in time. The unit of time is [`UNIT_NS`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Class {
    /// Normal noise whose values are independent.
    White,
    /// AR(1) noise with this correlation between consecutive values, from 0 to less than 1.
    Correlated(f64),
    /// Noise that changes to a new level with this probability in each unit of time.
    Steps(f64),
    /// Independent noise with Student's t distribution of 3 degrees of freedom: values far from the mean are rare, but
    /// occur.
    HeavyTails,
}

/// Time between two values of the noise, in nanoseconds.
pub const UNIT_NS: u64 = 100_000_000;

/// Largest absolute value of a factor's natural logarithm: a rate falls to 1 % at worst.
const FARTHEST: f64 = 4.6;

/// Noise on a rate: a factor around 1 for each unit of time.
#[derive(Debug, Clone)]
pub struct Noise {
    class: Class,
    size: f64,
    random: Random,
    level: f64,
}

impl Noise {
    /// Makes noise. The logarithm of its factor has the standard deviation `size`; 0.02 means 2 %.
    pub fn new(class: Class, size: f64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let level = random.normal();
        Self { class, size, random, level }
    }

    /// Returns the factor of the next unit of time.
    pub fn step(&mut self) -> f64 {
        let fresh = self.random.normal();
        let value = match self.class {
            Class::White => fresh,
            Class::Correlated(r) => {
                self.level = r * self.level + (1.0 - r * r).sqrt() * fresh;
                self.level
            }
            Class::Steps(chance) => {
                if self.random.uniform() < chance {
                    self.level = self.random.normal();
                }
                // A level is never quite constant: independent noise of a tenth of the size is added to it.
                self.level + 0.1 * fresh
            }
            Class::HeavyTails => {
                let chi: f64 = (0..3).map(|_| self.random.normal().powi(2)).sum();
                // Dividing by sqrt(3), the standard deviation of t with 3 degrees of freedom, makes it 1.
                fresh / (chi / 3.0).sqrt() / 3.0_f64.sqrt()
            }
        };
        (self.size * value).clamp(-FARTHEST, FARTHEST).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the standard deviation and the lag-1 correlation of the factor's logarithm over 20,000 units of time.
    fn shape(class: Class) -> (f64, f64) {
        let mut noise = Noise::new(class, 0.1, 7);
        let v: Vec<f64> = (0..20_000).map(|_| noise.step().ln()).collect();
        let squares: f64 = v.iter().map(|x| x * x).sum();
        let lagged: f64 = v.windows(2).map(|w| w[0] * w[1]).sum();
        ((squares / v.len() as f64).sqrt(), lagged / squares)
    }

    #[test]
    fn classes_have_the_size_and_the_correlation_they_claim() {
        for (class, want) in [
            (Class::White, 0.0),
            (Class::Correlated(0.9), 0.9),
            (Class::Steps(0.1), 0.9),
            (Class::HeavyTails, 0.0),
        ] {
            let (size, r) = shape(class);
            assert!((0.08..0.12).contains(&size), "{class:?}: {size}");
            assert!((r - want).abs() < 0.05, "{class:?}: {r}");
        }
    }

    #[test]
    fn a_seed_decides_everything() {
        let run = |seed| {
            let mut noise = Noise::new(Class::White, 0.1, seed);
            (noise.step(), noise.step())
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
