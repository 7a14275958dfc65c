//! What a sweep over sizes says of the hardware: times of messages of many sizes have a slope, and a
//! slope is a rate that few links have.
//!
//! [`fit`] draws the line, [`candidates`] lists the links whose rate it is. A fit names what agrees
//! with it, never what is there.

mod candidates;
mod fit;

pub use candidates::{Candidate, candidates};
pub use fit::{Fit, Knee, MOST_POINTS, Point, fit};
