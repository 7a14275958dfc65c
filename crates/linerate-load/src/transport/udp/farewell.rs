//! End of a step if datagrams may be lost: the sender repeats its end mark until the receiver confirms it. The
//! receiver confirms each mark that arrives.

use std::time::Duration;

use linerate_facts::parse::datagram::{Header, Kind, datagrams};
use linerate_sys::clock;

use super::line::Line;
use crate::LoadError;

/// Time between end marks, which is also the longest wait of a sender.
pub(super) const REPEAT: Duration = Duration::from_millis(20);
/// Time from the first end mark until the sender assumes that the receiver is gone. The receiver then reports
/// that no mark arrived.
const PATIENCE_NANOS: u64 = 2_000_000_000;
/// Time in nanoseconds without any datagram of the step after which the receiver stops waiting. It is longer than the
/// gaps of a sender that still repeats its marks.
pub(super) const QUIET_NANOS: u64 = 60_000_000;
/// Number of datagrams that the sender reads after each mark.
const LOOKS: usize = 64;

/// State of the end of a step, at the sender.
#[derive(Debug, Default)]
pub(super) struct Farewell {
    /// Time at which the first mark was sent.
    began: Option<u64>,
}

impl Farewell {
    /// Sends the end mark of a step of `sent` datagrams once more; returns true when no more marks are needed.
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
