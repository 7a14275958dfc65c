//! A path that is simulated in virtual time.

pub mod noise;
