//! How a receiver detects the end of payload, and the state of a test whose payload has no marks: there a separate
//! control connection starts and ends the payload.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use linerate_record::iperf3::Width;
use std::sync::Arc;

/// How a receiver detects the end of a stream's payload.
#[derive(Debug, Clone)]
pub enum Framing {
    /// By marks within the payload, as between two ends of linerate.
    Marked,
    /// Without marks, as in tests of iperf3.
    Bare(Arc<Bare>),
}

/// State that all streams of a test without marks share.
#[derive(Debug, Default)]
pub struct Bare {
    /// Width of datagram numbers in bits.
    pub(crate) width: Width,
    /// Number of datagrams that a paced sender passes to the kernel in a burst; `None` for as few as possible.
    pub(crate) burst: Option<usize>,
    /// Bytes that all senders together may still send; `None` if there is no limit.
    left: Option<AtomicU64>,
    stage: AtomicU8,
}

/// Stages of a test: its end was announced, and it is over.
const ENDING: u8 = 1;
const OVER: u8 = 2;

impl Bare {
    /// Makes the state of a test with datagram numbers of this width, whose datagrams are sent in bursts of `burst`.
    pub fn new(width: Width, burst: Option<usize>) -> Self {
        Self { width, burst, ..Self::default() }
    }

    /// Limits the bytes that all senders of the test may send together.
    #[must_use]
    pub fn limited(self, most: Option<u64>) -> Self {
        Self { left: most.map(AtomicU64::new), ..self }
    }

    /// Records that the control connection announced the end: from now on the other end may close its streams.
    pub fn say_end(&self) {
        self.stage.fetch_max(ENDING, Relaxed);
    }

    /// Records that no more payload will be received.
    pub fn finish(&self) {
        self.stage.fetch_max(OVER, Relaxed);
    }

    /// Returns whether the end of the test was announced.
    pub(crate) fn is_ending(&self) -> bool {
        self.stage.load(Relaxed) >= ENDING
    }

    /// Returns whether no more payload will be received.
    pub(crate) fn is_over(&self) -> bool {
        self.stage.load(Relaxed) >= OVER
    }

    /// Takes up to `bytes` from the bytes that may still be sent, and returns how many were taken.
    pub(crate) fn take(&self, bytes: u64) -> u64 {
        let Some(left) = &self.left else {
            return bytes;
        };
        let before = left.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(bytes)));
        before.unwrap_or_else(|left| left).min(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_ends_in_two_steps_and_never_goes_back() {
        let bare = Bare::default();
        assert!(!bare.is_ending() && !bare.is_over());
        bare.say_end();
        assert!(bare.is_ending() && !bare.is_over());
        bare.finish();
        bare.say_end();
        assert!(bare.is_ending() && bare.is_over());
    }

    #[test]
    fn senders_share_what_may_be_sent() {
        assert_eq!(Bare::default().take(7), 7);
        let limited = Bare::default().limited(Some(10));
        assert_eq!([7, 7, 7].map(|bytes| limited.take(bytes)), [7, 3, 0]);
    }
}
