//! Round-trip times of one step.

use hdrhistogram::Histogram;

use super::LoadError;

/// Longest round trip that is recorded exactly; longer ones are recorded with this value.
const LONGEST_NANOS: u64 = 60_000_000_000;
/// Significant digits of a time that are kept.
const DIGITS: u8 = 3;

/// Maximum memory for the times of a step in bytes: 1024 counts for each power of two.
pub(super) const ROOM: usize = 256 * 1024;

/// Round-trip times with three significant digits, and their counts.
#[derive(Debug, Default)]
pub(super) struct Times(Option<Histogram<u64>>);

impl Times {
    /// Allocates the memory for the times of a new step, so that recording allocates nothing.
    pub(super) fn renew(&mut self) -> Result<(), LoadError> {
        let room = Histogram::new_with_bounds(1, LONGEST_NANOS, DIGITS);
        self.0 = Some(room.map_err(|e| LoadError::Unsupported {
            what: format!("no room for round-trip times: {e}"),
        })?);
        Ok(())
    }

    /// Counts `times` round trips of `nanos`.
    #[inline(always)]
    pub(super) fn record(&mut self, nanos: u64, times: u64) {
        if let Some(room) = &mut self.0 {
            room.saturating_record_n(nanos, times);
        }
    }

    /// Takes all times: values in nanoseconds, ascending, with their counts.
    pub(super) fn take(&mut self) -> Vec<(u64, u64)> {
        let Some(room) = self.0.take() else {
            return Vec::new();
        };
        let each = room.iter_recorded().map(|step| {
            let value = room.median_equivalent(step.value_iterated_to());
            (value, step.count_at_value())
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_kept_to_three_digits_and_a_step_has_its_own() {
        let mut times = Times::default();
        times.record(7, 1);
        assert_eq!(times.take(), [], "before the first step");
        times.renew().unwrap();
        let counts = times.0.as_ref().unwrap().distinct_values();
        assert!((ROOM / 2..ROOM).contains(&(counts * size_of::<u64>())));
        times.record(1_000_000, 2);
        times.record(500, 1);
        times.record(u64::MAX, 1);
        let told = times.take();
        assert_eq!(told.iter().map(|(_, n)| n).sum::<u64>(), 4);
        assert_eq!(told[0], (500, 1));
        assert!(told[1].0.abs_diff(1_000_000) < 1_000 && told[1].1 == 2);
        assert!(told[2].0 >= LONGEST_NANOS);
        assert_eq!(times.take(), []);
    }
}
