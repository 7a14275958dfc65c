//! Text that a separate thread writes. A slow reader, such as a terminal or a full pipe, then does not hold up
//! the sender.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Time between two tries to add the last item while the queue is full.
const RETRY_AFTER: Duration = Duration::from_millis(10);

/// An item for the writing thread.
enum Next {
    Text(Vec<u8>),
    /// The last item.
    End,
}

/// The sending end of the queue of texts: it passes them to the writing thread.
#[derive(Clone)]
pub(super) struct Giver(SyncSender<Next>);

impl Giver {
    /// Returns whether the thread accepts the text. It does not if too many texts wait already, or if it has ended.
    pub(super) fn give(&self, text: Vec<u8>) -> bool {
        self.0.try_send(Next::Text(text)).is_ok()
    }
}

/// A write accepts the whole text or nothing, and never waits.
impl Write for Giver {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let given = self.give(text.to_vec());
        given.then_some(text.len()).ok_or(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A thread that writes texts, one after another.
pub(crate) struct Beside {
    texts: Giver,
    most: usize,
    ended: Receiver<io::Result<()>>,
}

impl Beside {
    /// Starts the thread. It passes texts to `write` until that fails; at most `most` texts wait.
    pub(super) fn start(
        most: usize,
        mut write: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (texts, next) = sync_channel(most);
        let (over, ended) = sync_channel(1);
        let body = move || {
            let mut written = Ok(());
            while let (Ok(()), Ok(Next::Text(text))) = (&written, next.recv()) {
                written = write(&text);
            }
            // The [`Beside`] that waits for this result may have been dropped.
            let _ = over.send(written);
        };
        Builder::new().name("writer".to_owned()).spawn(body)?;
        Ok(Self { texts: Giver(texts), most, ended })
    }

    /// Starts a thread that writes each text to `out` and flushes it.
    pub(super) fn to(most: usize, mut out: impl Write + Send + 'static) -> io::Result<Self> {
        Self::start(most, move |text| {
            out.write_all(text)?;
            out.flush()
        })
    }

    pub(super) fn giver(&self) -> Giver {
        self.texts.clone()
    }

    /// Waits until all texts are written, but not longer than `within`. Later texts are not written.
    pub(super) fn finish(&self, within: Duration) -> io::Result<()> {
        let began = Instant::now();
        loop {
            match self.texts.0.try_send(Next::End) {
                Err(TrySendError::Full(_)) if began.elapsed() < within => {
                    std::thread::sleep(RETRY_AFTER);
                }
                Err(TrySendError::Full(_)) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(()) | Err(TrySendError::Disconnected(_)) => break,
            }
        }
        let left = within.saturating_sub(began.elapsed());
        let ended = self.ended.recv_timeout(left);
        ended.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Why the thread accepts no text any more.
    fn why(&self) -> io::Error {
        match self.ended.try_recv() {
            Ok(Err(error)) => error,
            Ok(Ok(())) | Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
                io::ErrorKind::BrokenPipe.into()
            }
        }
    }
}

/// A write accepts the whole text or nothing, and never waits; a flush waits for everything that was written.
impl Write for Beside {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match self.texts.0.try_send(Next::Text(text.to_vec())) {
            Ok(()) => Ok(text.len()),
            Err(TrySendError::Full(_)) => {
                Err(io::Error::other(format!("the last {} lines were not read in time", self.most)))
            }
            Err(TrySendError::Disconnected(_)) => Err(self.why()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.finish(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A writer that waits for the lock before each text.
    fn gated(most: usize, gate: &Arc<Mutex<()>>) -> (Beside, Arc<Mutex<Vec<u8>>>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (sink, door) = (Arc::clone(&heard), Arc::clone(gate));
        let beside = Beside::start(most, move |text| {
            drop(door.lock().unwrap());
            sink.lock().unwrap().extend_from_slice(text);
            Ok(())
        });
        (beside.unwrap(), heard)
    }

    #[test]
    fn a_reader_that_stands_still_is_not_waited_for_until_the_end() {
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock().unwrap();
        let (mut beside, heard) = gated(2, &gate);
        // The thread may have taken one text out of the queue already.
        let given = (0..10).take_while(|n| write!(beside, "{n}").is_ok()).count();
        assert!((2..=3).contains(&given), "{given}");
        let began = Instant::now();
        let late = beside.finish(Duration::from_millis(50)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= Duration::from_millis(50));
        drop(held);
        beside.flush().unwrap();
        assert_eq!(*heard.lock().unwrap(), b"0123456789"[..given]);
    }

    #[test]
    fn what_could_not_be_written_is_told_of_the_next_text() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let mut beside = Beside::start(8, move |_| Err(full())).unwrap();
        let reported = (0..500).find_map(|_| {
            std::thread::sleep(RETRY_AFTER);
            beside.write(b"x").err()
        });
        assert_eq!(reported.unwrap().kind(), io::ErrorKind::StorageFull);
        let mut beside = Beside::start(8, move |_| Err(full())).unwrap();
        beside.write_all(b"x").unwrap();
        let reported = beside.flush().unwrap_err();
        assert_eq!(reported.kind(), io::ErrorKind::StorageFull);
    }
}
