//! The work that the application does with its payload: extra work that a trial requests, and work or pauses that the
//! lab plants.
//!
//! With `LINERATE_LAB_APPLICATION`, this program acts as a costly or slow application, so that the lab can check
//! whether such an application is detected. The record does not show that this was planted.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use linerate_plan::application::{Burden, Habit, Role, VARIABLE};
use linerate_plan::{Knobs, Receive};
use linerate_units::Nanos;

use super::{LoadError, spin};

/// Most work per byte that a plan or the lab may request, in picoseconds.
pub(crate) const WORK_MAX_PS: u64 = 1_000_000;
/// Longest pause per operation that the lab may plant: a stop is noticed only after the pause.
const PAUSE_MAX: Nanos = Nanos::from_millis(100);
/// Approximate time of a piece of work, in nanoseconds: a stop is noticed only between two pieces.
const PIECE_NANOS: f64 = 500_000.0;

/// Work that a thread does on each operation's payload.
#[derive(Debug, Clone, Copy)]
pub struct Application {
    iterations_per_byte: f64,
    piece: u64,
    pause: Duration,
}

impl Application {
    /// Makes the work of a thread in this role, with the settings `knobs`.
    pub fn new(role: Role, knobs: &Knobs) -> Result<Self, LoadError> {
        static PLANTED: OnceLock<Result<Option<Habit>, String>> = OnceLock::new();
        let planted = PLANTED.get_or_init(|| match std::env::var(VARIABLE) {
            Ok(text) => planted(&text).map(Some),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(e) => Err(e.to_string()),
        });
        match planted {
            Ok(planted) => Ok(Self::of(role, knobs, *planted)),
            Err(why) => Err(LoadError::Unsupported { what: format!("{VARIABLE}: {why}") }),
        }
    }

    fn of(role: Role, knobs: &Knobs, planted: Option<Habit>) -> Self {
        let extra = match role {
            Role::Sender => knobs.extra_work.sender_ps_per_byte,
            Role::Receiver => knobs.extra_work.receiver_ps_per_byte,
        };
        // A receiver whose payload is dropped in the kernel cannot work on it.
        let seen = role == Role::Sender || knobs.receive == Receive::Copy;
        let (ps, pause) = match planted.filter(|h| h.binds(role)).map(|h| h.burden) {
            Some(Burden::Work { ps_per_byte }) if seen => (extra + ps_per_byte, Nanos(0)),
            Some(Burden::Pause { per_operation }) => (extra, per_operation),
            Some(Burden::Work { .. }) | None => (extra, Nanos(0)),
        };
        let per_nano = if ps == 0 { 0.0 } else { spin::per_nano() };
        Self {
            iterations_per_byte: ps as f64 / 1000.0 * per_nano,
            piece: (PIECE_NANOS * per_nano) as u64,
            pause: pause.duration(),
        }
    }

    /// Returns whether the application works or pauses at all.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.iterations_per_byte > 0.0 || !self.pause.is_zero()
    }

    /// Works on the payload of one operation, and pauses. Ends early if `stop` is set.
    #[inline]
    pub fn take(&self, bytes: u32, stop: &AtomicBool) {
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

/// Parses the lab's variable, and checks that it is within the limits of work and pauses.
fn planted(text: &str) -> Result<Habit, String> {
    let habit: Habit = text.parse().map_err(|e| format!("{e}"))?;
    match habit.burden {
        Burden::Work { ps_per_byte } if ps_per_byte > WORK_MAX_PS => {
            Err(format!("`{text}` is more than {WORK_MAX_PS} ps/B"))
        }
        Burden::Pause { per_operation } if per_operation.0 > PAUSE_MAX.0 => {
            Err(format!("`{text}` is more than {PAUSE_MAX}"))
        }
        _ => Ok(habit),
    }
}

#[cfg(test)]
mod tests {
    use linerate_plan::ExtraWork;

    use super::*;

    #[test]
    fn a_habit_holds_for_its_role() {
        let knobs = Knobs::default();
        let of = |text, role| Application::of(role, &knobs, Some(planted(text).unwrap()));
        let pause = |text, role| of(text, role).pause;
        let us = Duration::from_micros;
        assert_eq!(pause("receiver,pause=200us/op", Role::Receiver), us(200));
        assert_eq!(pause("receiver,pause=200us/op", Role::Sender), us(0));
        assert_eq!(pause("pause=200us/op", Role::Sender), us(200));
        assert!(of("sender,work=5ps/B", Role::Sender).iterations_per_byte > 0.0);
        let other = of("sender,work=5ps/B", Role::Receiver);
        assert_eq!(other.iterations_per_byte.to_bits(), 0);
    }

    #[test]
    fn what_cannot_be_kept_is_refused_in_words() {
        for text in ["", "work", "pause=101ms/op", "work=1000001ps/B"] {
            let why = planted(text).unwrap_err();
            assert!(why.contains('`'), "{why}");
        }
        assert!(planted("work=1000000ps/B").is_ok());
        assert!(planted("pause=100ms/op").is_ok());
    }

    #[test]
    fn planted_work_is_skipped_where_payload_is_discarded_but_extra_work_is_not() {
        let planted = planted("work=800ps/B").ok();
        let mut knobs = Knobs::default();
        let cost = |role, knobs: &Knobs| Application::of(role, knobs, planted).iterations_per_byte;
        let copied = cost(Role::Receiver, &knobs);
        assert!(copied > 0.0);
        knobs.receive = Receive::Discard;
        assert_eq!(cost(Role::Receiver, &knobs).to_bits(), 0);
        assert_eq!(cost(Role::Sender, &knobs).to_bits(), copied.to_bits());
        knobs.extra_work = ExtraWork { sender_ps_per_byte: 0, receiver_ps_per_byte: 800 };
        assert_eq!(cost(Role::Receiver, &knobs).to_bits(), copied.to_bits());
    }

    #[test]
    fn a_stop_ends_work_that_would_take_hours() {
        let knobs = Knobs {
            extra_work: ExtraWork { sender_ps_per_byte: WORK_MAX_PS, receiver_ps_per_byte: 0 },
            ..Knobs::default()
        };
        let application = Application::of(Role::Sender, &knobs, None);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| application.work(u64::MAX, &stop));
            std::thread::sleep(Duration::from_millis(5));
            stop.store(true, Relaxed);
        });
    }
}
