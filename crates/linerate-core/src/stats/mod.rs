//! Statistics: what a handful of noisy samples allow one to say, and no more.
//!
//! Owns comparisons of two settings ([`Comparison`], of rare events [`share_ratio`]), means of correlated series ([`mean_ci`]),
//! the end of a ramp ([`steady_state`]) and percentiles ([`percentile`]). Everything answers
//! `None` where the samples do not support an answer; nothing here returns NaN.

mod compare;
mod counts;
mod interval;
mod percentile;
mod series;

pub use compare::{Comparison, MAX_BLOCKS, MIN_BLOCKS, OutOfOrder};
pub use counts::{Count, share_ratio};
pub use interval::{EQUAL, Interval, Range, is_equal};
pub use percentile::{BEYOND, merge, percentile, samples};
pub use series::{mean_ci, steady_state};
