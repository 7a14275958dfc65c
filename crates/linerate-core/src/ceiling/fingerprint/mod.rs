//! Hardware that a sweep over message sizes points to. The times of messages of many sizes have a slope. A
//! slope is a rate, and few links have that rate.
//!
//! [`fit`] draws the line, [`candidates`] lists the links with its rate, [`timer`] finds times that a timer sets. A candidate agrees with the
//! measurement; it is no proof that the link is present.

mod candidates;
mod fit;
mod timer;

pub use candidates::{Candidate, candidates};
pub use fit::{Fit, Knee, MOST_POINTS, Point, fit};
pub use timer::{Timer, timer};
