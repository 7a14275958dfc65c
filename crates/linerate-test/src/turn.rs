//! Turns of tests: only the test that has the turn may load the machine.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread has the turn.
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// The right to load the machine. A test program has only one; it is returned when this value is dropped.
#[derive(Debug)]
pub struct Turn {
    _held: MutexGuard<'static, ()>,
}

/// Waits until no other test of this program loads the machine, and takes the turn.
///
/// # Panics
/// If this thread already has the turn: it would wait for itself.
pub fn turn() -> Turn {
    assert!(!HELD.get(), "this test has its turn already");
    // A test that panicked returns its turn as well, so a poisoned lock is no error.
    let held = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    HELD.set(true);
    Turn { _held: held }
}

impl Drop for Turn {
    fn drop(&mut self) {
        HELD.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_turn_is_taken_by_one_at_a_time_and_never_twice_by_one() {
        thread::spawn(|| {
            let _turn = turn();
            assert!(TURN.try_lock().is_err());
            turn();
        })
        .join()
        .expect_err("the second turn of one test");
        // The test that panicked has returned its turn.
        drop(turn());
        drop(turn());
    }
}
