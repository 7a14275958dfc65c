//! Tests with a far end whose answers arrive one byte at a time.

use std::io::Write;
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_plan::path::Direction;

use super::sessions::{step, stream};
use super::*;
use crate::link::{Link, StepControl};

/// Time between two bytes once the relay slows down. At this rate, the readings of a step would take minutes.
const DRIP: Duration = Duration::from_millis(50);

/// Relays connections to and from the server. Once `trickles`
/// is set, the relay passes the server's bytes one at a time.
struct Relay {
    address: SocketAddr,
    trickles: Arc<AtomicBool>,
}

impl Relay {
    fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let trickles = Arc::new(AtomicBool::new(false));
        let slow = Arc::clone(&trickles);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(server) else {
                    return;
                };
                let (back, forth) = (far.try_clone().unwrap(), near.try_clone().unwrap());
                thread::spawn(move || pass(near, far, &AtomicBool::new(false)));
                let slow = Arc::clone(&slow);
                thread::spawn(move || pass(back, forth, &slow));
            }
        });
        Self { address, trickles }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, slow: &AtomicBool) {
    let mut room = vec![0; 65_536];
    while let Ok(n @ 1..) = from.read(&mut room) {
        for byte in room[..n].chunks(1) {
            if !slow.load(Ordering::Relaxed) {
                break;
            }
            thread::sleep(DRIP);
            if to.write_all(byte).is_err() {
                return;
            }
        }
        if !slow.load(Ordering::Relaxed) && to.write_all(&room[..n]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[test]
fn readings_that_trickle_hold_nobody_who_wants_to_stop() {
    let server = Harness::keyed();
    let relay = Relay::before(server.address);
    let mut client = Client::connect(&ClientOptions {
        target: target(relay.address),
        ..server.options(server.key.as_ref())
    })
    .unwrap();
    client.prepare(&stream(0, Direction::Forward, 1)).unwrap();
    let began = Instant::now();
    let step = client.step(&step(&[0], 200), &mut |_| {
        relay.trickles.store(true, Ordering::Relaxed);
        // By now the step ended long ago, and only a part of its readings has arrived.
        if began.elapsed() < Duration::from_secs(2) {
            StepControl::Continue
        } else {
            StepControl::Stop
        }
    });
    let step = step.unwrap();
    assert!(began.elapsed() < LONG, "it was waited for");
    assert_eq!(step.ends.len(), 1, "what was read here is kept");
    assert_eq!(step.trouble.unwrap().what, "stopped");
}
