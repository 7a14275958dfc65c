//! Shows progress on stderr: the step, the rate so far and the time left.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_facts::Level;
use linerate_judge::event::{Event, RunControl, Silence, Silences, Sink};
use linerate_plan::path::Direction;
use linerate_units::{Nanos, Rate};

use super::document::{one_line, shortened, width_of};
use super::words;

/// Largest number of characters of a line.
const LONGEST: usize = 1000;

/// How much progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One line for each step, for logs.
    Lines,
    /// One line that is rewritten; the number is the width of the terminal in characters.
    Rewritten(usize),
    /// Nothing but errors that stop the run.
    Quiet,
}

/// A sink that shows progress, and that stops the run once `stop` is set.
pub struct Progress<W> {
    screen: Arc<Mutex<Screen<W>>>,
    stop: Arc<AtomicBool>,
}

/// The terminal or file that progress is written to, and what it shows now.
struct Screen<W> {
    out: W,
    mode: Mode,
    step: String,
    /// Width in characters of the line that is on the terminal without a line feed, to be overwritten.
    standing: usize,
    /// How long the far end has been silent, as last reported to the user; `None` while it answers.
    silence: Option<Silence>,
}

impl<W: Write> Progress<W> {
    /// Shows progress on `out`, which is never flushed; Ctrl-C sets `stop`.
    pub fn new(out: W, mode: Mode, stop: Arc<AtomicBool>) -> Self {
        let screen = Screen { out, mode, step: String::new(), standing: 0, silence: None };
        Self { screen: Arc::new(Mutex::new(screen)), stop }
    }
}

impl<W: Write> Screen<W> {
    /// Writes text in one call.
    fn put(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// Writes a line that stays on the screen.
    fn say(&mut self, text: &str) -> io::Result<()> {
        self.clear()?;
        // The text may contain words from the far end, so it is cleaned and shortened.
        self.put(&format!("{}\n", shortened(text, LONGEST)))
    }

    /// Writes a line that the next one overwrites. `step` is cut if the line is too long; `now`, the changing part,
    /// is not.
    fn replace(&mut self, step: &str, now: &str) -> io::Result<()> {
        let Mode::Rewritten(columns) = self.mode else {
            return Ok(());
        };
        // The last column stays free: some terminals wrap as soon as it is written.
        let columns = columns.saturating_sub(1);
        let step = cut(&one_line(step), columns.saturating_sub(width_of(now)));
        let text: String = step.chars().chain(now.chars()).take(columns).collect();
        let width = width_of(&text);
        let pad = " ".repeat(self.standing.saturating_sub(width));
        self.put(&format!("\r{text}{pad}"))?;
        self.standing = width;
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        if self.standing > 0 {
            self.put(&format!("\r{}\r", " ".repeat(self.standing)))?;
            self.standing = 0;
        }
        Ok(())
    }

    fn step_began(&mut self, words: &str, left: Nanos) -> io::Result<()> {
        // All slices of a trial have the same words: a log shows them once.
        let is_same = self.step == words;
        words.clone_into(&mut self.step);
        match self.mode {
            Mode::Lines if is_same => Ok(()),
            Mode::Quiet => Ok(()),
            Mode::Lines => self.say(&format!("{words}  ({})", time_left(left))),
            Mode::Rewritten(_) => self.replace(words, &format!("  {}", time_left(left))),
        }
    }

    fn progress(
        &mut self,
        rate: Option<Rate>,
        direction: Option<Direction>,
        left: Nanos,
    ) -> io::Result<()> {
        if self.silence.is_some() {
            return Ok(());
        }
        let step = self.step.clone();
        let mut now = String::new();
        if let Some(rate) = rate {
            let _ = write!(now, "  {rate}");
            // The words of a step that loads one direction already name the direction.
            if let Some(direction) = direction.filter(|d| !step.contains(d.name())) {
                let _ = write!(now, " {}", direction.name());
            }
        }
        self.replace(&step, &format!("{now}  {}", time_left(left)))
    }

    /// Shows that the far end does not answer, and how long to wait for it; `None`: it answers again.
    fn silent(&mut self, silence: Option<Silence>) -> io::Result<()> {
        let before = std::mem::replace(&mut self.silence, silence);
        match (self.mode, before, silence) {
            (Mode::Quiet, ..) | (_, None, None) | (Mode::Lines, Some(_), Some(_)) => Ok(()),
            (Mode::Lines, None, Some(now)) => self.say(&format!("note: {}", unanswered(now))),
            (Mode::Rewritten(_), _, Some(now)) => self.replace(&unanswered(now), ""),
            (_, Some(before), None) => self.say(&format!(
                "note: the far end answers again, after {} s",
                before.lasted.as_secs()
            )),
        }
    }

    fn tell(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::StepBegan { words, left, .. } => self.step_began(words, *left),
            Event::Progress { rate, direction, left } => self.progress(*rate, *direction, *left),
            Event::Notice { level, side, gap } => {
                let word = match level {
                    Level::Fatal => "error",
                    Level::Hint => "hint",
                    Level::Info => "note",
                };
                if self.mode == Mode::Quiet && *level != Level::Fatal {
                    return Ok(());
                }
                self.say(&format!(
                    "{word}: {}: {}: {}",
                    side.name(),
                    gap.what.trim_start_matches("set.").replace('_', " "),
                    gap.why
                ))?;
                if gap.hint.is_empty() {
                    return Ok(());
                }
                self.say(&format!("hint: {}", gap.hint))
            }
            Event::Proved { limit, after } if self.mode != Mode::Quiet => self.say(&format!(
                "proved after {:.0} s: {}: {}, {}",
                after.secs(),
                words::place(limit),
                limit.cause,
                words::metric(limit)
            )),
            Event::Ended(_) => self.clear(),
            _ => Ok(()),
        }
    }
}

/// The beginning of a text that is too long, with a mark at its end.
fn cut(text: &str, columns: usize) -> String {
    const MARK: &str = "...";
    if width_of(text) <= columns {
        return text.to_owned();
    }
    let kept = columns.saturating_sub(MARK.len());
    let text: String = text.chars().take(kept).collect();
    text.trim_end().to_owned() + MARK
}

/// Words for a far end that does not answer. They are short, as a narrow terminal shows only one line.
pub fn unanswered(silence: Silence) -> String {
    format!(
        "no answer from the far end for {} s, given up in {} s",
        silence.lasted.as_secs(),
        silence.left.as_secs_f64().ceil()
    )
}

/// `22 s left`: the rest of the budget, rounded up.
fn time_left(left: Nanos) -> String {
    format!("{:.0} s left", left.secs().ceil())
}

impl<W: Write + Send + 'static> Sink for Progress<W> {
    fn event(&mut self, event: &Event<'_>) -> RunControl {
        let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        // If stderr is closed, the measurement continues.
        let _ = screen.tell(event);
        if self.stop.load(Ordering::Relaxed) { RunControl::Stop } else { RunControl::Go }
    }

    fn silences(&self) -> Option<Silences> {
        let screen = Arc::clone(&self.screen);
        Some(Arc::new(move |silence| {
            let mut screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = screen.silent(silence);
        }))
    }
}

#[cfg(test)]
mod tests {
    use linerate_judge::verdict::Limit;
    use linerate_plan::path::{Certainty, Measure, Place, Stage};
    use linerate_plan::{Purpose, StepPlan};

    use std::time::Duration;

    use super::*;

    /// A writer that keeps what was written.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Paper {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Paper {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(text)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn run(mode: Mode) -> String {
        let plan = StepPlan {
            index: 0,
            purpose: Purpose::IdleLatency,
            sets: Vec::new(),
            washout: Nanos(0),
            measure: Nanos(0),
            tick: Nanos(0),
        };
        let out = Paper::default();
        let mut sink = Progress::new(out.clone(), mode, Arc::default());
        let left = Nanos::from_millis(21_500);
        for words in ["forward, 1 stream", "both", "both"] {
            sink.event(&Event::StepBegan { plan: &plan, words, left });
            sink.event(&Event::Progress {
                rate: Some(Rate(4_710_000_000)),
                direction: Some(Direction::Forward),
                left,
            });
        }
        sink.event(&Event::Ended(&linerate_record::End::Complete));
        out.text()
    }

    #[test]
    fn a_log_gets_one_line_for_each_step() {
        assert_eq!(run(Mode::Lines), "forward, 1 stream  (22 s left)\nboth  (22 s left)\n");
    }

    #[test]
    fn a_terminal_gets_one_line_that_is_gone_at_the_end() {
        let text = run(Mode::Rewritten(80));
        assert!(!text.contains('\n'));
        assert!(text.contains("forward, 1 stream  4.71 Gb/s  22 s left"), "{text}");
        assert!(text.contains("both  4.71 Gb/s forward  22 s left"), "{text}");
        assert!(text.ends_with(" \r"));
    }

    #[test]
    fn a_proof_stays_where_not_quiet() {
        let limit = Limit {
            metric: Measure::Goodput,
            cause: "path-rate",
            stage: Stage::Net,
            side: Place::Path,
            direction: Direction::Forward,
            certainty: Certainty::Proved,
            evidence: Vec::new(),
            trial: None,
            advice: Vec::new(),
        };
        let result_of = |mode| {
            let out = Paper::default();
            Progress::new(out.clone(), mode, Arc::default())
                .event(&Event::Proved { limit: &limit, after: Nanos::from_millis(15_400) });
            out.text()
        };
        let line = "proved after 15 s: net: path-rate, forward\n";
        assert_eq!(result_of(Mode::Lines), line);
        assert_eq!(result_of(Mode::Rewritten(80)), line);
        assert_eq!(result_of(Mode::Quiet), "");
    }

    #[test]
    fn a_long_step_is_cut_and_the_time_left_is_not() {
        assert_eq!(cut("twice the streams", 17), "twice the streams");
        assert_eq!(cut("twice the streams", 16), "twice the str...");
        let text = run(Mode::Rewritten(36));
        let line = "\rforward, 1...  4.71 Gb/s  22 s left";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_far_end_that_does_not_answer_is_told_of_until_it_does() {
        let result_of = |mode, answers: bool| {
            let out = Paper::default();
            let sink = Progress::new(out.clone(), mode, Arc::default());
            let silences = sink.silences().unwrap();
            silences(None);
            for lasted in [5, 6] {
                let (lasted, left) = (Duration::from_secs(lasted), Duration::from_millis(6_900));
                silences(Some(Silence { lasted, left }));
            }
            if answers {
                silences(None);
                silences(None);
            }
            out.text()
        };
        let first = "note: no answer from the far end for 5 s, given up in 7 s\n";
        let is_same = "note: the far end answers again, after 6 s\n";
        assert_eq!(result_of(Mode::Lines, false), first);
        assert_eq!(result_of(Mode::Lines, true), format!("{first}{is_same}"));
        assert_eq!(result_of(Mode::Quiet, true), "");
        let text = result_of(Mode::Rewritten(80), true);
        assert!(text.contains("\rno answer from the far end for 6 s, given up in 7 s"), "{text}");
        assert!(text.ends_with(is_same), "{text}");
    }

    #[test]
    fn no_line_fills_a_narrow_terminal() {
        for line in run(Mode::Rewritten(20)).split('\r') {
            assert!(width_of(line) < 20, "{line:?}");
        }
    }

    #[test]
    fn quiet_says_nothing_and_ctrl_c_stops_the_run() {
        assert_eq!(run(Mode::Quiet), "");
        let stop = Arc::new(AtomicBool::new(false));
        let mut sink = Progress::new(io::sink(), Mode::Quiet, Arc::clone(&stop));
        let end = Event::Ended(&linerate_record::End::Complete);
        assert_eq!(sink.event(&end), RunControl::Go);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(sink.event(&end), RunControl::Stop);
    }
}
