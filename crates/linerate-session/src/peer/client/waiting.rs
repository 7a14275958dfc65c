//! The wait for a far end that does not answer: when the user is informed, and when the wait ends.
//!
//! A request counts as unanswered from the moment it is sent, or from the last byte that was received after that. So a
//! slow path that still delivers an answer is not silent.

use std::time::{Duration, Instant};

use crate::net::HEED;
use linerate_judge::event::{Silence, Silences};

/// Time without an answer after which the user is informed of the silence.
pub(super) const TOLD: Duration = Duration::from_secs(5);
/// Time without an answer after which the far end is considered lost. A program that was suspended for a few seconds,
/// or a host that is busy, still answers in time.
pub const GIVEN_UP: Duration = Duration::from_secs(12);
/// Additional time for the far end to prepare a set, for each of its streams.
const EACH_STREAM: Duration = Duration::from_millis(10);
/// Longest time for the far end to prepare a set. It is longer than the far end waits for its own threads.
const PREPARED: Duration = Duration::from_secs(60);

/// Returns the time within which the far end must prepare a set of `streams` streams.
pub(super) fn for_streams(streams: u32) -> Duration {
    (GIVEN_UP + EACH_STREAM * streams).min(PREPARED)
}

/// Number of unanswered requests, and the callback that reports silences to the user.
#[derive(Default)]
pub(in crate::peer) struct Waiting {
    /// Number of requests that are not answered yet.
    due: u32,
    /// Time from which the silence is counted: normally that at which the oldest unanswered request was sent.
    requested: Option<Instant>,
    /// Whether the current silence was reported to the user.
    reported: bool,
    tell: Option<Silences>,
}

impl Waiting {
    /// Sets the callback that reports silences from now on.
    pub(super) fn tell(&mut self, tell: Option<Silences>) {
        self.tell = tell;
    }

    /// Notes that a request was sent.
    pub(super) fn requested(&mut self) {
        if self.due == 0 {
            self.restart();
        }
        self.due += 1;
    }

    /// Counts the silence from now on, because until now the far end was waiting for this end.
    pub(super) fn restart(&mut self) {
        self.requested = Some(Instant::now());
    }

    /// Counts the silence as if it had already lasted for `lasted`.
    pub(super) fn since(&mut self, lasted: Duration) {
        self.requested = Instant::now().checked_sub(lasted);
    }

    /// Notes that an answer was received.
    pub(super) fn answered(&mut self) {
        self.due = self.due.saturating_sub(1);
        self.restart();
        if std::mem::take(&mut self.reported)
            && let Some(tell) = &self.tell
        {
            tell(None);
        }
    }

    /// Notes that a request ended without an answer. The callback
    /// is not called, because the caller reports the failure.
    pub(super) fn ended(&mut self) {
        self.due = self.due.saturating_sub(1);
        self.reported = false;
    }

    /// Returns for how long the far end has not answered; zero if
    /// no answer is due. `heard` is when its last byte arrived.
    pub(super) fn silent(&self, heard: Instant) -> Duration {
        let requested = self.requested.filter(|_| self.due > 0);
        requested.map_or(Duration::ZERO, |requested| requested.max(heard).elapsed())
    }

    /// Reports the silence to the user if it has lasted for [`TOLD`]; returns whether it has lasted for `patience`.
    pub(super) fn is_over(&mut self, heard: Instant, patience: Duration) -> bool {
        let lasted = self.silent(heard);
        if lasted >= TOLD
            && let Some(tell) = &self.tell
        {
            self.reported = true;
            let left = patience.saturating_sub(lasted);
            tell(Some(Silence { lasted, left }));
        }
        lasted >= patience
    }
}

/// Returns the time of the next check of a silence, but at most `deadline`.
pub(super) fn look(deadline: Instant) -> Instant {
    deadline.min(Instant::now() + HEED)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn ago(secs: u64) -> Instant {
        Instant::now().checked_sub(Duration::from_secs(secs)).unwrap()
    }

    #[test]
    fn a_silence_begins_with_a_request_or_with_the_last_byte_after_it() {
        let mut waiting = Waiting::default();
        let is = |waiting: &Waiting, heard, secs| {
            let silent = waiting.silent(heard);
            silent >= Duration::from_secs(secs) && silent < Duration::from_secs(secs + 100)
        };
        assert_eq!(waiting.silent(ago(900)), Duration::ZERO, "nothing was asked");
        waiting.requested();
        waiting.requested = Some(ago(500));
        assert!(is(&waiting, ago(900), 500));
        assert!(is(&waiting, ago(200), 200));
        waiting.requested();
        assert!(is(&waiting, ago(900), 500), "the oldest counts");
        waiting.answered();
        assert!(is(&waiting, ago(900), 0), "one is still due");
        waiting.requested = Some(ago(500));
        waiting.answered();
        assert_eq!(waiting.silent(ago(900)), Duration::ZERO);
    }

    #[test]
    fn the_user_is_told_after_five_seconds_and_when_it_is_over() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Waiting::default();
        let to = Arc::clone(&reported);
        waiting.tell(Some(Arc::new(move |silence: Option<Silence>| {
            to.lock().unwrap().push(silence.map(|s| s.lasted.as_secs()));
        })));
        let mut looked = |secs| {
            waiting.requested();
            waiting.requested = Some(ago(secs));
            let over = waiting.is_over(ago(900), GIVEN_UP);
            waiting.answered();
            (over, std::mem::take(&mut *reported.lock().unwrap()))
        };
        assert_eq!(looked(4), (false, vec![]));
        assert_eq!(looked(5), (false, vec![Some(5), None]));
        assert_eq!(looked(11), (false, vec![Some(11), None]));
        assert_eq!(looked(12), (true, vec![Some(12), None]));
    }

    #[test]
    fn many_streams_get_more_time() {
        assert_eq!(for_streams(0), GIVEN_UP);
        assert_eq!(for_streams(100), GIVEN_UP + Duration::from_secs(1));
        assert_eq!(for_streams(u32::MAX), PREPARED);
    }
}
