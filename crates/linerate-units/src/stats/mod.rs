//! Statistics: what a few noisy samples allow to conclude, and no more.
//!
//! This module owns comparisons of two settings ([`Comparison`], of rare events [`share_ratio`]), means of correlated
//! series ([`mean_ci`]), the end of a ramp ([`steady_state`]), percentiles ([`percentile`]), the change of a mean
//! ([`change`]), counts of numbered datagrams ([`Arrivals`]), and settings that are measured in rounds
//! ([`rounds_ratio`]). All functions return `None` if the samples do not support a result; none returns NaN.

mod arrivals;
mod compare;
mod counts;
mod exact;
mod histogram;
mod interval;
mod percentile;
mod ratio;
mod rounds;
mod series;

pub use arrivals::{Arrival, Arrivals, WINDOW, WINDOW_MAX};
pub use compare::{Comparison, MAX_BLOCKS, MIN_BLOCKS, OutOfOrder};
pub use counts::{Count, share_change, share_ratio};
pub use exact::{Moments, moments};
pub use histogram::{Exact, Histogram};
pub use interval::{EQUAL, Interval, Range, is_equal};
pub use percentile::{BEYOND, median, merge, middle, percentile, percentile_ci, samples};
pub use ratio::{change, ratio_ci};
pub use rounds::{FEWEST, rounds_ci, rounds_ratio};
pub use series::{SHORTEST, is_steady, mean_ci, ramp_end, steady_state, without_swing};
