//! The log of a server. The server never waits for the reader of its log: a reader that stops reading must not block
//! clients.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use linerate_session::peer::server::Log;

use super::beside::Beside;
use linerate_show::one_line;

/// Lines that may wait to be written; more are counted and left out.
const WAITING: usize = 1024;
/// Time to write the waiting lines once the server has ended.
const LAST: Duration = Duration::from_secs(1);

/// A thread that writes lines.
pub(super) struct Writer {
    beside: Beside,
    left_out: Arc<AtomicU64>,
}

impl Writer {
    /// Starts the thread; it passes each line to `write`.
    pub(super) fn start(write: impl Fn(&str) + Send + 'static) -> io::Result<Self> {
        let left_out = Arc::new(AtomicU64::new(0));
        let missing = Arc::clone(&left_out);
        let beside = Beside::start(WAITING, move |line| {
            match missing.swap(0, Relaxed) {
                0 => {}
                n => write(&format!("{n} lines were left out: the output was not read in time")),
            }
            // An empty text is only sent so that the number of missing lines is written.
            if !line.is_empty() {
                write(&one_line(&String::from_utf8_lossy(line)));
            }
            Ok(())
        })?;
        Ok(Self { beside, left_out })
    }

    /// The function with which a server writes log lines.
    pub(super) fn log(&self) -> Log {
        let (lines, left_out) = (self.beside.giver(), Arc::clone(&self.left_out));
        Arc::new(move |line| {
            if !lines.give(line.as_bytes().to_vec()) {
                left_out.fetch_add(1, Relaxed);
            }
        })
    }

    /// Waits up to `LAST` until the waiting lines are written.
    pub(super) fn finish(self) {
        // If the queue has no room even for this text, nobody reads the lines.
        self.beside.giver().give(Vec::new());
        let _ = self.beside.finish(LAST);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Instant;

    use super::*;

    #[test]
    fn lines_are_written_in_order_and_what_finds_no_room_is_counted() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (sink, gate) = (Arc::clone(&heard), Arc::new(Mutex::new(())));
        let (held, door) = (gate.lock().unwrap(), Arc::clone(&gate));
        let writer = Writer::start(move |line| {
            drop(door.lock().unwrap());
            sink.lock().unwrap().push(line.to_owned());
        });
        let writer = writer.unwrap();
        let log = writer.log();
        // The thread has taken one line out of the queue, or will take it.
        for n in 0..WAITING + 10 {
            log(&n.to_string());
        }
        drop(held);
        while heard.lock().unwrap().len() < WAITING {
            std::thread::sleep(Duration::from_millis(1));
        }
        log("last");
        writer.finish();
        let heard = heard.lock().unwrap();
        assert!(heard.iter().any(|line| line.contains("were left out")));
        let numbers: Vec<usize> = heard.iter().filter_map(|l| l.parse().ok()).collect();
        assert!(numbers.len() >= WAITING && numbers.is_sorted(), "{numbers:?}");
        assert_eq!(heard.last().map(String::as_str), Some("last"));
    }

    #[test]
    fn a_reader_that_stands_still_is_not_waited_for() {
        let gate = Arc::new(Mutex::new(()));
        let (_held, door) = (gate.lock().unwrap(), Arc::clone(&gate));
        let writer = Writer::start(move |_| drop(door.lock().unwrap())).unwrap();
        let (log, began) = (writer.log(), Instant::now());
        (0..WAITING * 2).for_each(|_| log("x"));
        writer.finish();
        assert!(began.elapsed() < LAST + Duration::from_secs(5));
    }
}
