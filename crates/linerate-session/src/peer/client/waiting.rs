//! The wait for a far end that does not answer: when the user is told, and when it is given up.
//!
//! A request is unanswered from the moment it is sent, or from the last byte that arrived after it. So a slow path
//! that still delivers an answer is not silent.

use std::time::{Duration, Instant};

use crate::net::HEED;
use linerate_judge::event::{Silence, Silences};

/// Time without an answer after which the user is told.
pub(super) const TOLD: Duration = Duration::from_secs(5);
/// Time without an answer after which the far end is given up. A program that was suspended for a few seconds, and a host
/// that is busy, still answer in time.
pub const GIVEN_UP: Duration = Duration::from_secs(12);
/// Further time for a far end that prepares many streams, for each of them.
const EACH_STREAM: Duration = Duration::from_millis(10);
/// Longest time for a far end that prepares streams: longer than it waits for its own threads.
const PREPARED: Duration = Duration::from_secs(60);

/// Returns the time for a far end to prepare so many streams.
pub(super) fn for_streams(streams: u32) -> Duration {
    (GIVEN_UP + EACH_STREAM * streams).min(PREPARED)
}

/// Unanswered requests, and who is told that they stay unanswered.
#[derive(Default)]
pub(in crate::peer) struct Waiting {
    /// Requests that are not answered yet.
    due: u32,
    /// Time at which the oldest of them was sent, or may be taken to be sent.
    asked: Option<Instant>,
    /// Whether the user knows of the present silence.
    told: bool,
    tell: Option<Silences>,
}

impl Waiting {
    /// Sets who is told of silences from now on.
    pub(super) fn tell(&mut self, tell: Option<Silences>) {
        self.tell = tell;
    }

    /// Notes that a request was sent.
    pub(super) fn asked(&mut self) {
        if self.due == 0 {
            self.again();
        }
        self.due += 1;
    }

    /// Counts the silence from now on: until now this end made the far end wait.
    pub(super) fn again(&mut self) {
        self.asked = Some(Instant::now());
    }

    /// Takes the far end to be silent for `lasted` already.
    pub(super) fn since(&mut self, lasted: Duration) {
        self.asked = Instant::now().checked_sub(lasted);
    }

    /// Notes that an answer was received.
    pub(super) fn answered(&mut self) {
        self.due = self.due.saturating_sub(1);
        self.again();
        if std::mem::take(&mut self.told)
            && let Some(tell) = &self.tell
        {
            tell(None);
        }
    }

    /// Notes that a request came to its end without an answer: nothing is told of that here.
    pub(super) fn ended(&mut self) {
        self.due = self.due.saturating_sub(1);
        self.told = false;
    }

    /// Returns how long the far end has been silent, if it owes an answer; `heard` is the time of the last byte from it.
    pub(super) fn silent(&self, heard: Instant) -> Duration {
        let asked = self.asked.filter(|_| self.due > 0);
        asked.map_or(Duration::ZERO, |asked| asked.max(heard).elapsed())
    }

    /// Tells the user of the silence, if it lasts long enough; returns whether it has lasted for `patience`.
    pub(super) fn is_over(&mut self, heard: Instant, patience: Duration) -> bool {
        let lasted = self.silent(heard);
        if lasted >= TOLD
            && let Some(tell) = &self.tell
        {
            self.told = true;
            let left = patience.saturating_sub(lasted);
            tell(Some(Silence { lasted, left }));
        }
        lasted >= patience
    }
}

/// Returns the next time to look at a silence, before `deadline`.
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
        waiting.asked();
        waiting.asked = Some(ago(500));
        assert!(is(&waiting, ago(900), 500));
        assert!(is(&waiting, ago(200), 200));
        waiting.asked();
        assert!(is(&waiting, ago(900), 500), "the oldest counts");
        waiting.answered();
        assert!(is(&waiting, ago(900), 0), "one is still due");
        waiting.asked = Some(ago(500));
        waiting.answered();
        assert_eq!(waiting.silent(ago(900)), Duration::ZERO);
    }

    #[test]
    fn the_user_is_told_after_five_seconds_and_when_it_is_over() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Waiting::default();
        let to = Arc::clone(&told);
        waiting.tell(Some(Arc::new(move |silence: Option<Silence>| {
            to.lock().unwrap().push(silence.map(|s| s.lasted.as_secs()));
        })));
        let mut looked = |secs| {
            waiting.asked();
            waiting.asked = Some(ago(secs));
            let over = waiting.is_over(ago(900), GIVEN_UP);
            waiting.answered();
            (over, std::mem::take(&mut *told.lock().unwrap()))
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
