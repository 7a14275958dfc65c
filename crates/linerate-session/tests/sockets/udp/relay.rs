//! A relay between two ends, which loses, duplicates and delays datagrams.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_facts::parse::datagram::{DATAGRAM_MAX, Header, Kind};
use linerate_plan::path::Side;

use super::pair::{NEAR, socket};

/// Decides what a relay does with the n-th datagram that it receives from the end `side`.
pub(super) type Fate = fn(side: Side, n: u64, bytes: &[u8]) -> What;

#[derive(Clone, Copy)]
pub(super) enum What {
    Pass,
    Lose,
    Double,
    /// Sends the datagram after the next one.
    Hold,
}

/// A relay, and the sockets of two ends that reach each other only through it.
pub(super) struct Relay {
    pub(super) ends: [UdpSocket; 2],
    stop: Arc<AtomicBool>,
    /// Number of datagrams with payload that the relay lost.
    pub(super) lost: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    pub(super) fn new(fate: Fate) -> Self {
        let ends = [socket(), socket()];
        let middle = [socket(), socket()];
        for (end, middle) in ends.iter().zip(&middle) {
            end.connect(middle.local_addr().unwrap()).unwrap();
            middle.connect(end.local_addr().unwrap()).unwrap();
            middle.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        }
        let (stop, lost) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let threads = [(Side::Near, 0, 1), (Side::Far, 1, 0)].map(|(side, from, to)| {
            let (stop, lost) = (Arc::clone(&stop), Arc::clone(&lost));
            let [from, to] = [from, to].map(|at: usize| middle[at].try_clone().unwrap());
            thread::spawn(move || pass(side, &from, &to, fate, &stop, &lost))
        });
        Self { ends, stop, lost, threads: threads.into() }
    }
}

fn pass(
    side: Side,
    from: &UdpSocket,
    to: &UdpSocket,
    fate: Fate,
    stop: &AtomicBool,
    lost: &AtomicU64,
) {
    let mut room = vec![0; DATAGRAM_MAX];
    let mut held: Option<Vec<u8>> = None;
    let mut n = 0;
    while !stop.load(SeqCst) {
        let Ok(got) = from.recv(&mut room) else {
            continue;
        };
        let bytes = &room[..got];
        let what = fate(side, n, bytes);
        n += 1;
        if matches!(what, What::Lose) && payload(bytes) {
            lost.fetch_add(1, SeqCst);
        }
        let copies = match what {
            What::Lose => 0,
            What::Hold if held.is_none() => {
                held = Some(bytes.to_vec());
                continue;
            }
            What::Double => 2,
            What::Pass | What::Hold => 1,
        };
        for _ in 0..copies {
            let _ = to.send(bytes);
        }
        if let Some(held) = held.take() {
            let _ = to.send(&held);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        self.threads.drain(..).for_each(|t| t.join().unwrap());
    }
}

pub(super) fn payload(bytes: &[u8]) -> bool {
    Header::decode(bytes, NEAR).is_ok_and(|h| h.kind == Kind::Payload)
}
