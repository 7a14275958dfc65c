//! A pool of threads, each of which makes one call after the other: a depth without io_uring.
//!
//! The threads do not wait for orders between two calls: each starts its next operation at once, and leaves a message
//! about the last one in a queue. The worker takes many messages at a time, so that it rarely has to be woken.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use linerate_sys::{clock, thread};

use super::Shape;
use super::caller::Caller;

/// Messages for which a queue has room: those of several [`BEAT`]s. A thread that finds no room waits.
const ROOM: usize = 8192;
/// Time between two looks into the queue while operations end all the time.
const BEAT: Duration = Duration::from_micros(500);
/// Stack of a thread in bytes: it makes no deep calls.
const STACK: usize = 256 << 10;
/// Longest time that a pool waits for its threads when it is dropped: a disk that does not answer holds the program no
/// longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Values of [`Gate`].
const CLOSED: u8 = 0;
const OPEN: u8 = 1;
const OVER: u8 = 2;

/// What the threads of a pool may do now.
type Gate = AtomicU8;

/// An operation that has ended, with its times on this host's clock.
pub(super) struct Message {
    pub(super) began: u64,
    pub(super) at: u64,
    pub(super) moved: io::Result<u32>,
}

/// Threads of one worker, which together keep its depth in flight.
pub(super) struct Pool {
    gate: Arc<Gate>,
    threads: Vec<JoinHandle<()>>,
    /// The kernel's ids of the threads.
    pub(super) ids: Vec<i32>,
    queue: Receiver<Message>,
    /// Whether the last look found a message.
    lately: bool,
    /// Whether all threads have ended, and all messages were taken.
    over: bool,
}

impl Pool {
    /// Starts the threads, which wait until [`Pool::go`]. They may run on all CPUs that the set may use, unlike the
    /// calling thread.
    pub(super) fn new(shape: &Shape) -> io::Result<Self> {
        let gate = Arc::new(Gate::new(CLOSED));
        let (to, queue) = sync_channel(ROOM);
        let (ready, begun) = channel();
        let mut pool =
            Self { gate, threads: Vec::new(), ids: Vec::new(), queue, lately: false, over: false };
        for part in 0..shape.depth {
            let shape = Shape { offsets: shape.offsets.of_part(part), ..shape.clone() };
            let (gate, to, ready) = (Arc::clone(&pool.gate), to.clone(), ready.clone());
            let run = move || {
                // Where this is refused, the threads share the CPU of the calling thread.
                let _ = thread::allow(&shape.cpus);
                let made = Caller::new(shape);
                let id = made.as_ref().map(|_| thread::id()).map_err(io::Error::kind);
                // The pool waits for the last sender to be dropped.
                let _ = ready.send(id);
                drop(ready);
                if let Ok(caller) = made {
                    serve(caller, &gate, &to);
                }
            };
            let builder = Builder::new().name("file".to_owned()).stack_size(STACK);
            pool.threads.push(builder.spawn(run)?);
        }
        drop(ready);
        pool.ids = begun.iter().collect::<Result<_, io::ErrorKind>>()?;
        Ok(pool)
    }

    /// Lets the threads begin, unless they have.
    #[inline]
    pub(super) fn go(&self) {
        if self.gate.load(Relaxed) == CLOSED {
            self.set(OPEN);
        }
    }

    /// Lets each thread end after its operation in flight.
    pub(super) fn stop(&self) {
        if self.gate.load(Relaxed) != OVER {
            self.set(OVER);
        }
    }

    fn set(&self, gate: u8) {
        self.gate.store(gate, Relaxed);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
    }

    /// Whether threads may leave messages still.
    pub(super) fn is_busy(&self) -> bool {
        !self.over
    }

    /// Waits up to `wait` for one operation to end, and passes all that have ended to `ended`.
    pub(super) fn complete(&mut self, wait: Duration, ended: impl FnMut(Message)) {
        let wait = if self.lately {
            std::thread::sleep(BEAT.min(wait));
            Duration::ZERO
        } else {
            wait
        };
        let first = self.queue.recv_timeout(wait);
        self.over = matches!(first, Err(RecvTimeoutError::Disconnected));
        self.lately = first.is_ok();
        first.into_iter().chain(self.queue.try_iter().take(ROOM)).for_each(ended);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stop();
        let until = Instant::now() + PATIENCE;
        while !self.threads.iter().all(JoinHandle::is_finished) && Instant::now() < until {
            // A thread may wait for room.
            self.queue.try_iter().for_each(drop);
            std::thread::sleep(BEAT);
        }
        for thread in self.threads.drain(..).filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }
}

/// What a thread of a pool does: one operation after the other while the gate is open. It ends after an error.
fn serve(mut caller: Caller, gate: &Gate, to: &SyncSender<Message>) {
    while gate.load(Relaxed) == CLOSED {
        std::thread::park();
    }
    while gate.load(Relaxed) == OPEN {
        let began = clock::now();
        let moved = caller.call();
        let goes_on = matches!(moved, Ok(1..));
        let message = Message { began, at: clock::now(), moved };
        if to.send(message).is_err() || !goes_on {
            return;
        }
    }
}
