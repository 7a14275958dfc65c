//! Socket options for datagrams, used by sessions and by tests with iperf3.

use std::os::fd::{AsFd, OwnedFd};

use linerate_facts::Gap;
use linerate_facts::parse::datagram::DATAGRAM_MAX;
use linerate_plan::Knobs;
use linerate_sys::socket;

use crate::transport::{marked, refused};

/// Requested receive buffer if the plan leaves it open, in bytes of memory. The system's default has room for some
/// hundred small datagrams, so a receiver that briefly waits for its CPU would lose some.
pub const RECV_BUFFER: u64 = 4 * 1024 * 1024;

/// Returns the size of datagrams in bytes: as requested or, for zero, what fits into one packet of the route. A header
/// needs `least` bytes.
pub fn size(requested: u64, fits: u32, least: u64) -> u16 {
    let most = u64::from(fits).clamp(least, DATAGRAM_MAX as u64);
    (if requested == 0 { most } else { requested }) as u16
}

/// Reports that datagrams of `size` bytes are fragmented; `None` if they fit into a packet of the route.
pub(crate) fn fragments(size: u16, fits: u32) -> Option<Gap> {
    (u32::from(size) > fits).then(|| Gap {
        hint: format!("--write-size {fits}B"),
        ..refused(
            "fragments",
            &format!(
                "a datagram of {size} B does not fit a packet of the route ({fits} B): it is \
                 fragmented, and losing one fragment loses all of it"
            ),
        )
    })
}

/// Sets the DSCP and the buffers of a socket; returns a gap for each setting that was refused.
pub(crate) fn buffers(fd: &OwnedFd, knobs: &Knobs) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let requested = knobs.recv_buffer.map_or(RECV_BUFFER, |b| b.0);
    let mut note = |what: &str, set: std::io::Result<()>| {
        if let Err(e) = set {
            gaps.push(refused(what, &e.to_string()));
        }
    };
    if let Some(result) = marked(fd.as_fd(), knobs) {
        note("dscp", result);
    }
    note("recv_buffer", socket::set_recv_buffer(fd.as_fd(), requested));
    if let Some(bytes) = knobs.send_buffer {
        note("send_buffer", socket::set_send_buffer(fd.as_fd(), bytes.0));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_fit_a_packet_unless_asked_otherwise() {
        assert_eq!(size(0, 1472, 24), 1472);
        assert_eq!(size(0, 65_508, 24), 65_507);
        assert_eq!(size(0, 0, 24), 24);
        assert_eq!(size(8000, 1472, 24), 8000);
        assert_eq!(fragments(1472, 1472), None);
        let gap = fragments(1473, 1472).unwrap();
        assert_eq!((&*gap.what, &*gap.hint), ("set.fragments", "--write-size 1472B"));
    }
}
