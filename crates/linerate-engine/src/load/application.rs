//! What the application does with its payload: extra work that a trial asks for, and work or
//! pauses that the lab plants.
//!
//! `LINERATE_LAB_APPLICATION` makes this program a costly or slow application, so that the lab can
//! check that such an application is found. A planted one leaves no trace in what is recorded.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use linerate_core::plan::{Knobs, Receive};
use linerate_core::units::Nanos;

use super::{LoadError, spin};

/// Name of the lab's variable: a comma list of `work=800ps/B` and `pause=200us/op`, behind `sender`
/// or `receiver` where they hold for one role only.
const VARIABLE: &str = "LINERATE_LAB_APPLICATION";
/// Most work per byte, in picoseconds, that a plan or the lab may ask for.
pub(crate) const WORK_MAX_PS: u64 = 1_000_000;
/// Longest pause per operation: stops must be noticed.
const PAUSE_MAX: Nanos = Nanos::from_millis(100);
/// Work is done in pieces of about this many nanoseconds, so that stops are noticed.
const PIECE_NANOS: f64 = 500_000.0;

/// Which way a thread moves payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It sends, or drives round trips.
    Sender,
    /// It receives, or answers.
    Receiver,
}

/// What one thread does beside moving payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Habit {
    work_ps: u64,
    pause: Duration,
}

/// The lab's application: one habit for each role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Planted {
    sender: Habit,
    receiver: Habit,
}

/// What a thread does with each operation's payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Application {
    iterations_per_byte: f64,
    piece: u64,
    pause: Duration,
}

impl Application {
    /// The application for a thread of `role` under `knobs`.
    pub(crate) fn new(role: Role, knobs: &Knobs) -> Result<Self, LoadError> {
        static PLANTED: OnceLock<Result<Planted, String>> = OnceLock::new();
        let planted = PLANTED.get_or_init(|| match std::env::var(VARIABLE) {
            Ok(text) => parse(&text),
            Err(std::env::VarError::NotPresent) => Ok(Planted::default()),
            Err(e) => Err(e.to_string()),
        });
        match planted {
            Ok(planted) => Ok(Self::of(role, knobs, planted)),
            Err(why) => Err(LoadError::Unsupported {
                what: format!("{VARIABLE}: {why}"),
            }),
        }
    }

    fn of(role: Role, knobs: &Knobs, planted: &Planted) -> Self {
        let (habit, extra) = match role {
            Role::Sender => (planted.sender, knobs.extra_work.sender_ps_per_byte),
            Role::Receiver => (planted.receiver, knobs.extra_work.receiver_ps_per_byte),
        };
        // Payload that was dropped in the kernel is not there to be looked at.
        let seen = role == Role::Sender || knobs.receive == Receive::Copy;
        let ps = extra + if seen { habit.work_ps } else { 0 };
        let per_nano = if ps == 0 { 0.0 } else { spin::per_nano() };
        Self {
            iterations_per_byte: ps as f64 / 1000.0 * per_nano,
            piece: (PIECE_NANOS * per_nano) as u64,
            pause: habit.pause,
        }
    }

    /// Works on the payload of one operation; gives up once `stop` is set.
    #[inline]
    pub(crate) fn take(&self, bytes: u32, stop: &AtomicBool) {
        if self.iterations_per_byte > 0.0 {
            self.work((self.iterations_per_byte * f64::from(bytes)) as u64, stop);
        }
        if !self.pause.is_zero() && bytes > 0 && !stop.load(Relaxed) {
            std::thread::sleep(self.pause);
        }
    }

    fn work(&self, mut iterations: u64, stop: &AtomicBool) {
        while iterations > 0 && !stop.load(Relaxed) {
            let piece = iterations.min(self.piece.max(1));
            spin::spin(piece);
            iterations -= piece;
        }
    }
}

/// Reads the lab's variable: roles come first and hold for all that follows, `sender,work=800ps/B`.
fn parse(text: &str) -> Result<Planted, String> {
    let mut planted = Planted::default();
    let mut roles = (true, true);
    for item in text.split(',').map(str::trim).filter(|i| !i.is_empty()) {
        match item {
            "sender" => roles = (true, false),
            "receiver" => roles = (false, true),
            habit => {
                if roles.0 {
                    parse_habit(habit, &mut planted.sender)?;
                }
                if roles.1 {
                    parse_habit(habit, &mut planted.receiver)?;
                }
            }
        }
    }
    Ok(planted)
}

fn parse_habit(text: &str, habit: &mut Habit) -> Result<(), String> {
    let wrong = || format!("`{text}` is not `work=800ps/B` or `pause=200us/op`");
    match text.split_once('=').ok_or_else(wrong)? {
        ("work", value) => {
            let number = value.strip_suffix("ps/B").ok_or_else(wrong)?;
            let ps = number.parse().map_err(|_| wrong())?;
            if ps > WORK_MAX_PS {
                return Err(format!("`{text}` is more than {WORK_MAX_PS} ps/B"));
            }
            habit.work_ps = ps;
        }
        ("pause", value) => {
            let time = value.strip_suffix("/op").ok_or_else(wrong)?;
            let pause: Nanos = time.parse().map_err(|e| format!("`{text}`: {e}"))?;
            if pause.0 > PAUSE_MAX.0 {
                return Err(format!("`{text}` is more than {PAUSE_MAX}"));
            }
            habit.pause = pause.duration();
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use linerate_core::plan::ExtraWork;

    use super::*;

    fn habit(work_ps: u64, pause_us: u64) -> Habit {
        Habit {
            work_ps,
            pause: Duration::from_micros(pause_us),
        }
    }

    #[test]
    fn habits_are_read_for_one_role_or_both() {
        let planted = parse("work=800ps/B, receiver,pause=200us/op").unwrap();
        assert_eq!(planted.sender, habit(800, 0));
        assert_eq!(planted.receiver, habit(800, 200));
        assert_eq!(
            parse("sender,work=5ps/B").unwrap().receiver,
            Habit::default()
        );
        assert_eq!(parse("").unwrap(), Planted::default());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_words() {
        for text in [
            "work",
            "work=800",
            "work=800ns/B",
            "work=-1ps/B",
            "pause=200us",
            "pause=3/op",
            "pause=101ms/op",
            "both,work=1ps/B",
            "sleep=1us/op",
            "work=1000001ps/B",
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains('`'), "{why}");
        }
        assert!(parse("work=1000000ps/B,pause=100ms/op").is_ok());
    }

    #[test]
    fn planted_work_is_skipped_where_payload_is_discarded_but_extra_work_is_not() {
        let planted = parse("work=800ps/B").unwrap();
        let mut knobs = Knobs::default();
        let cost = |role, knobs: &Knobs| Application::of(role, knobs, &planted).iterations_per_byte;
        let copied = cost(Role::Receiver, &knobs);
        assert!(copied > 0.0);
        knobs.receive = Receive::Discard;
        assert_eq!(cost(Role::Receiver, &knobs).to_bits(), 0);
        assert_eq!(cost(Role::Sender, &knobs).to_bits(), copied.to_bits());
        knobs.extra_work = ExtraWork {
            sender_ps_per_byte: 0,
            receiver_ps_per_byte: 800,
        };
        assert_eq!(cost(Role::Receiver, &knobs).to_bits(), copied.to_bits());
    }

    #[test]
    fn a_stop_ends_work_that_would_take_hours() {
        let knobs = Knobs {
            extra_work: ExtraWork {
                sender_ps_per_byte: WORK_MAX_PS,
                receiver_ps_per_byte: 0,
            },
            ..Knobs::default()
        };
        let application = Application::of(Role::Sender, &knobs, &Planted::default());
        application.work(u64::MAX, &AtomicBool::new(true));
    }
}
