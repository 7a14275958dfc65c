//! Log lines, with a limit per second, so that a flood of unauthenticated connections does not fill the disk.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Callback that receives a log line, without a time: about an arrival, a refusal, or the end of a session.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

const LINES_PER_SECOND: u32 = 10;
/// Largest number of characters of a line, which may contain text from a peer.
const LINE_MAX: usize = 300;

/// Logs lines up to a number per second, and counts the lines beyond it. Clones share one count.
#[derive(Clone)]
pub(crate) struct Lines {
    log: Log,
    before: &'static str,
    counts: Arc<Mutex<LineCounts>>,
}

struct LineCounts {
    second: Instant,
    lines: u32,
    kept_back: u32,
}

impl Lines {
    /// Makes a log that writes to `log`, with `before` in front of each line.
    pub(crate) fn new(log: &Log, before: &'static str) -> Self {
        Self {
            log: Arc::clone(log),
            before,
            counts: Arc::new(Mutex::new(LineCounts {
                second: Instant::now(),
                lines: 0,
                kept_back: 0,
            })),
        }
    }

    /// Logs `line`. If there were too many lines in this second, counts it instead.
    pub(crate) fn say(&self, line: &str) {
        self.say_at(line, Instant::now());
    }

    fn say_at(&self, line: &str, now: Instant) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(counts.second) >= Duration::from_secs(1) {
            self.catch_up(&mut counts);
            (counts.second, counts.lines) = (now, 0);
        }
        if counts.lines < LINES_PER_SECOND {
            counts.lines += 1;
            self.write(line);
        } else {
            counts.kept_back += 1;
        }
    }

    /// Logs a last line, without a rate limit.
    pub(crate) fn last(&self, line: &str) {
        self.finish();
        self.write(line);
    }

    /// Logs how many lines were suppressed, if any. This must be the last call.
    pub(crate) fn finish(&self) {
        self.catch_up(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn catch_up(&self, counts: &mut LineCounts) {
        let kept_back = std::mem::take(&mut counts.kept_back);
        if kept_back > 0 {
            self.write(&format!("{kept_back} more lines like these"));
        }
    }

    fn write(&self, line: &str) {
        let line = match line.char_indices().nth(LINE_MAX) {
            Some((end, _)) => &line[..end],
            None => line,
        };
        (self.log)(&format!("{}{line}", self.before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> (Lines, Arc<Mutex<Vec<String>>>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&heard);
        let log: Log = Arc::new(move |l: &str| sink.lock().unwrap().push(l.to_owned()));
        (Lines::new(&log, "a "), heard)
    }

    #[test]
    fn a_flood_of_lines_is_counted_not_written() {
        let (lines, heard) = lines();
        let now = Instant::now();
        for _ in 0..LINES_PER_SECOND + 5 {
            lines.say_at("x", now);
        }
        assert_eq!(heard.lock().unwrap().len(), LINES_PER_SECOND as usize);
        lines.clone().say_at("y", now + Duration::from_secs(1));
        {
            let heard = heard.lock().unwrap();
            assert_eq!(heard[heard.len() - 2..], ["a 5 more lines like these", "a y"]);
        }
        // No line was suppressed since then.
        lines.finish();
        assert_eq!(heard.lock().unwrap().len(), LINES_PER_SECOND as usize + 2);
        for _ in 0..LINES_PER_SECOND {
            lines.say_at("z", now + Duration::from_secs(1));
        }
        lines.finish();
        assert_eq!(heard.lock().unwrap().last().unwrap(), "a 1 more lines like these");
    }

    #[test]
    fn a_line_has_an_end() {
        let (lines, heard) = lines();
        lines.say(&"é".repeat(LINE_MAX));
        lines.say(&"é".repeat(LINE_MAX + 1));
        let heard = heard.lock().unwrap();
        assert_eq!(heard[0].chars().count(), LINE_MAX + 2);
        assert_eq!(heard[0], heard[1]);
    }
}
