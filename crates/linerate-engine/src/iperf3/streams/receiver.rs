//! The receiving thread of a stream of datagrams.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use linerate_core::iperf3::{Intake, Width};
use linerate_sys::clock;
use linerate_sys::datagram::{Inbox, drain_errors};
use rustix::io::Errno;

use super::{Lane, REST};
use crate::load::transport::icmp::is_of_the_path;

/// Datagrams of one call; each has a room of 64 KiB, whatever the other side sends.
const MESSAGES: usize = 16;

/// Whether it says that what was sent is too long for the path: who sends nothing any more need not mind.
fn is_of_a_size(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::MSGSIZE)
}

/// Receives until the stop; else why nothing more can be received.
pub(super) fn run(lane: &Lane, width: Width, stop: &AtomicBool) -> Result<(), String> {
    let mut inbox = Inbox::new(MESSAGES);
    let mut intake = Intake::new(width, clock::now());
    while !stop.load(Relaxed) {
        match inbox.receive(lane.fd()) {
            Ok(_) => {
                let now = clock::now();
                let each = inbox.messages().map(|one| intake.take(one, now));
                lane.add(each.sum());
                lane.counts.arrived(&intake);
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // What the path says of the one datagram that this end sent. Whether the other end is there, the
            // control connection tells.
            Err(e) if is_of_the_path(&e) || is_of_a_size(&e) => {
                drain_errors(lane.fd());
                std::thread::sleep(REST);
            }
            Err(e) => return Err(e.to_string()),
        }
    }
    Ok(())
}
