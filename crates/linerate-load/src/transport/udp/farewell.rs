//! The end of a step when datagrams may be lost: the sender repeats its end mark until the receiver confirms it. The
//! receiver confirms each end mark that it receives.

use std::time::Duration;

use linerate_facts::parse::datagram::{Header, Kind, datagrams};
use linerate_sys::clock;

use super::line::Line;
use crate::LoadError;

/// Time between two end marks, which is also the longest wait of the sender for a confirmation.
pub(super) const REPEAT: Duration = Duration::from_millis(20);
/// Time after the first end mark at which the sender assumes that the receiver is gone. If the receiver still runs, it
/// reports that no end mark arrived.
const PATIENCE_NANOS: u64 = 2_000_000_000;
/// Time in nanoseconds after the last datagram of the step at which the receiver stops waiting for more. It is longer
/// than the pauses of a sender that still repeats its end mark.
pub(super) const QUIET_NANOS: u64 = 60_000_000;
/// Most datagrams that the sender reads after each end mark.
const LOOKS: usize = 64;

/// State of the sender while it ends a step.
#[derive(Debug, Default)]
pub(super) struct Farewell {
    /// Time at which the first end mark was sent.
    began: Option<u64>,
}

impl Farewell {
    /// Sends the end mark of a step of `sent` datagrams once more; returns true when it is confirmed or the receiver is
    /// gone.
    pub(super) fn say(&mut self, line: &Line, step: u32, sent: u64) -> Result<bool, LoadError> {
        let now = clock::now();
        if now - *self.began.get_or_insert(now) > PATIENCE_NANOS {
            return Ok(true);
        }
        line.tell(Kind::End, step, sent)?;
        let mut room = [0; 2048];
        for look in 0..LOOKS {
            let Some(got) = line.receive(&mut room, look == 0)? else {
                break;
            };
            let read = |h: Header| h.kind == Kind::Ended && h.step == step;
            if datagrams(&room[..got], line.other).flatten().any(read) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
