//! Socket options: sets the values of the plan, reads the values that the kernel granted, and reports refusals.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use linerate_facts::Gap;
use linerate_plan::path::Side;
use linerate_plan::{Handover, Pattern, SetPlan};
use linerate_record::SetEnd;
use linerate_sys::{socket, zerocopy};

use crate::transport::{marked, refused};

/// Time in microseconds for which a busy receive polls the port's queue. The kernel's documentation suggests this value
/// for a single socket.
//= Documentation/admin-guide/sysctl/net.rst, busy_read
const BUSY_POLL_MICROS: u32 = 50;

/// Unsent data of a paced sender is limited to its payload of one divided by this number, in seconds. A tenth of a
/// second spans many of its writes.
const UNSENT_PER_SEC: u64 = 10;
const UNSENT_LEAST: u64 = 512;

/// Number of bytes by which segments may be shorter than requested without a gap: TCP options occupy them.
const MSS_OPTIONS: u32 = 40;

/// Sets the options of `plan` that a socket may have before it is connected; returns a gap for each that was refused.
pub(crate) fn set(fd: &OwnedFd, side: Side, plan: &SetPlan) -> Vec<Gap> {
    let fd = fd.as_fd();
    let knobs = &plan.knobs;
    let (sends, receives) = roles(side, plan);
    let ping_pong = matches!(plan.pattern, Pattern::PingPong { .. });
    let mut gaps = Vec::new();
    let mut note = |what: &str, result: io::Result<()>| {
        if let Err(e) = result {
            gaps.push(refused(what, &e.to_string()));
        }
    };
    if let Some(result) = marked(fd, knobs) {
        note("dscp", result);
    }
    if knobs.nodelay || (ping_pong && !knobs.nagle) {
        note("nodelay", socket::set_nodelay(fd, true));
    }
    if let Some(bytes) = knobs.send_buffer {
        note("send_buffer", socket::set_send_buffer(fd, bytes.0));
    }
    if let Some(bytes) = knobs.recv_buffer {
        note("recv_buffer", socket::set_recv_buffer(fd, bytes.0));
    }
    if let Some(bytes) = knobs.window_clamp.filter(|_| receives) {
        note("window_clamp", socket::set_window_clamp(fd, bytes.0));
    }
    // The near end proposes the segment size, for both directions, while connecting; setting it later has no effect.
    if let Some(bytes) = knobs.mss.filter(|_| side == Side::Near) {
        note("mss", socket::set_max_segment(fd, bytes));
    }
    if let Some(rate) = knobs.pacing.filter(|_| sends) {
        note("pacing", socket::set_pacing(fd, rate.0 / 8));
        // Data in the send buffer is also sent at this pace, long after the step is over, so unsent data is limited. If
        // the kernel refuses that, the old limit stays.
        let unsent = (rate.0 / 8 / UNSENT_PER_SEC).max(UNSENT_LEAST);
        let _ = socket::set_unsent_most(fd, unsent);
    }
    if knobs.copy == Handover::Zerocopy && sends && !ping_pong {
        note("copy", zerocopy::allow(fd));
    }
    if knobs.busy_poll
        && let Err(e) = socket::set_busy_poll(fd, BUSY_POLL_MICROS)
    {
        gaps.push(Gap {
            hint: format!("sudo sysctl -w net.core.busy_read={BUSY_POLL_MICROS}"),
            ..refused("busy_poll", &format!("SO_BUSY_POLL: {e}; the thread polls anyway"))
        });
    }
    // The connection attempt needs the setting too (for the ECN of dctcp). `set_connected` reports whether it was
    // refused.
    if let Some(name) = &knobs.congestion {
        let _ = socket::set_congestion(fd, name);
    }
    gaps
}

/// Sets the congestion control again on a connected socket, since connecting replaces it by the route's (`congctl`).
/// Returns a gap if it was refused.
pub(crate) fn set_connected(fd: &OwnedFd, plan: &SetPlan) -> Option<Gap> {
    let name = plan.knobs.congestion.as_ref()?;
    let refused = socket::set_congestion(fd.as_fd(), name).err()?;
    Some(congestion_gap(name, &refused.to_string()))
}

/// Returns whether this end sends payload, and whether it receives payload.
fn roles(side: Side, plan: &SetPlan) -> (bool, bool) {
    match plan.pattern.direction() {
        Some(direction) => (direction.sender() == side, direction.receiver() == side),
        None => (true, true),
    }
}

/// Reads the options in force into `end`, and reports those that are smaller than planned.
pub(crate) fn read_back(fd: &OwnedFd, side: Side, plan: &SetPlan, end: &mut SetEnd) {
    let fd = fd.as_fd();
    let knobs = &plan.knobs;
    end.send_buffer = socket::send_buffer(fd).ok();
    end.recv_buffer = socket::recv_buffer(fd).ok();
    end.congestion = socket::congestion(fd).unwrap_or_default();
    end.mss = socket::max_segment(fd).ok();
    for (name, requested, got) in [
        ("wmem_max", knobs.send_buffer, end.send_buffer),
        ("rmem_max", knobs.recv_buffer, end.recv_buffer),
    ] {
        if let (Some(requested), Some(got)) = (requested, got)
            && got < requested.0.saturating_mul(2)
        {
            let requested = requested.0;
            let why = format!(
                "{requested} bytes were requested, which the kernel doubles, and {got} granted"
            );
            end.gaps.push(buffer_gap(name, requested, &why));
        }
    }
    if side == Side::Near
        && let (Some(requested), Some(got)) = (knobs.mss, end.mss)
        && !(requested.saturating_sub(MSS_OPTIONS)..=requested).contains(&got)
    {
        let why =
            format!("{requested} bytes were requested and {got} granted: the path allows no more");
        end.gaps.push(refused("mss", &why));
    }
}

/// Makes the gap for a socket buffer that is smaller than requested. `limit` is the sysctl that bounds it.
pub(super) fn buffer_gap(limit: &str, requested: u64, why: &str) -> Gap {
    let what = if limit == "wmem_max" { "send_buffer" } else { "recv_buffer" };
    Gap { hint: format!("sudo sysctl -w net.core.{limit}={requested}"), ..refused(what, why) }
}

/// Makes the gap for a congestion control that this process may not use.
pub(super) fn congestion_gap(name: &str, why: &str) -> Gap {
    Gap {
        hint: format!(
            "sudo modprobe tcp_{name}; sudo sysctl -w net.ipv4.tcp_allowed_congestion_control=\
             \"$(sysctl -n net.ipv4.tcp_allowed_congestion_control) {name}\""
        ),
        ..refused("congestion", &format!("{name}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use linerate_plan::Knobs;
    use linerate_plan::path::Direction;
    use linerate_plan::transport::Setting;
    use linerate_units::{Bytes, Rate};

    use super::*;

    fn plan(knobs: Knobs) -> SetPlan {
        SetPlan { id: 0, pattern: Pattern::Stream { direction: Direction::Forward }, knobs }
    }

    /// Makes a connected socket. It stays connected as long as the returned listener exists.
    fn near() -> (OwnedFd, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap());
        (near.unwrap().into(), listener)
    }

    #[test]
    fn what_is_given_leaves_no_gap_and_is_read_back() {
        let plan = plan(Knobs {
            send_buffer: Some(Bytes(20_000)),
            recv_buffer: Some(Bytes(30_000)),
            window_clamp: Some(Bytes(50_000)),
            pacing: Some(Rate(8_000_000)),
            congestion: Some("reno".to_owned()),
            ..Knobs::default()
        });
        let (fd, _listener) = near();
        assert_eq!(set(&fd, Side::Near, &plan), []);
        assert_eq!(set_connected(&fd, &plan), None);
        let mut end = SetEnd::default();
        read_back(&fd, Side::Near, &plan, &mut end);

        assert_eq!(end.gaps, []);
        assert_eq!(end.send_buffer, Some(40_000));
        assert_eq!(end.recv_buffer, Some(60_000));
        assert_eq!(end.congestion, "reno");
    }

    #[test]
    fn packets_are_marked_at_either_end_if_the_plan_says_so() {
        let mut knobs = Knobs::default();
        let class = |knobs: &Knobs, side| {
            let (fd, _listener) = near();
            assert_eq!(set(&fd, side, &plan(knobs.clone())), []);
            rustix::net::sockopt::ip_tos(&fd).unwrap()
        };
        assert_eq!(class(&knobs, Side::Near), 0);
        knobs.options.set("dscp", Setting::Number(46));
        assert_eq!(class(&knobs, Side::Near), 46 << 2);
        assert_eq!(class(&knobs, Side::Far), 46 << 2);
    }

    #[test]
    fn what_is_refused_or_cut_is_a_gap_with_its_reason() {
        let plan = plan(Knobs {
            send_buffer: Some(Bytes(1 << 40)),
            congestion: Some("nosuch".to_owned()),
            mss: Some(9000),
            ..Knobs::default()
        });
        let (fd, _listener) = near();
        let mut end = SetEnd { gaps: set(&fd, Side::Near, &plan), ..SetEnd::default() };
        end.gaps.extend(set_connected(&fd, &plan));
        read_back(&fd, Side::Near, &plan, &mut end);
        let gap = |what: &str| end.gaps.iter().find(|g| g.what == what);
        assert!(gap("set.send_buffer").unwrap().hint.contains("wmem_max"));
        assert!(gap("set.congestion").unwrap().hint.contains("modprobe"));
        assert!(gap("set.mss").is_some(), "{:?}", end.gaps);
    }

    #[test]
    fn a_near_end_only_sender_gets_no_window_clamp() {
        let (sends, receives) = roles(Side::Near, &plan(Knobs::default()));
        assert!(sends && !receives);
    }
}
