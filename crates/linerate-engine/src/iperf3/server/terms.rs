//! What a client asks for, as far as it is granted. What is not granted is refused in a number that
//! the client has words for: nothing is passed over that would change what is measured.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use linerate_core::facts::HostFacts;
use linerate_core::iperf3::{
    BURST_MAX, DATAGRAM_DEFAULT, DATAGRAM_MAX, DATAGRAM_MIN, Params, Protocol, Refusal,
    SECONDS_MAX, WRITE_DEFAULT, WRITE_MAX,
};
use linerate_core::path::{Direction, Side};
use linerate_core::plan::{Knobs, Pattern, SetPlan};
use linerate_core::record::SetEnd;
use linerate_core::units::{Bytes, Rate};
use linerate_sys::{socket, thread};

use crate::end::placement::{self, Placed};
use crate::iperf3::streams::{Load, Manner};
use crate::load::application::Role;
use crate::load::transport::tcp::options;
use crate::load::transport::udp::options::RECV_BUFFER;

/// Longest part of a test at its start that does not count, in seconds.
//= iperf.h, MAX_OMIT_TIME
const OMIT_MAX: u64 = 600;

/// Receive buffers of all streams of datagrams together, in bytes of memory, where the client leaves them
/// open.
const RECV_BUFFERS: u64 = 64 * 1024 * 1024;

/// A test that is granted.
pub(super) struct Terms {
    pub(super) params: Params,
    plan: SetPlan,
}

impl Terms {
    /// Grants it, or says what is too much.
    pub(super) fn of(params: Params) -> Result<Self, Refusal> {
        fits(&params)?;
        let sends = params.reverse;
        if lacking(&params).is_some() {
            return Err(Refusal::UNSUPPORTED);
        }
        if params.tos != 0 && sends {
            return Err(Refusal::TOS);
        }
        if params.time > SECONDS_MAX || params.omit > OMIT_MAX {
            return Err(Refusal::DURATION);
        }
        if let Some(cpu) = params.server_cpu
            && !thread::allowed_cpus().is_ok_and(|cpus| cpus.contains(&cpu))
        {
            return Err(Refusal::AFFINITY);
        }
        let plan = plan(&params);
        Ok(Self { params, plan })
    }

    /// Whether this end sends or receives.
    fn role(&self) -> Role {
        if self.params.reverse {
            Role::Sender
        } else {
            Role::Receiver
        }
    }

    /// `forward, 4 streams, 10 s`: forward is from the client to here.
    pub(super) fn words(&self) -> String {
        let Params {
            parallel,
            time,
            num,
            blocks,
            ..
        } = self.params;
        let direction = match self.role() {
            Role::Sender => "sends to it",
            Role::Receiver => "receives from it",
        };
        let until = match (num, blocks) {
            (0, 0) => format!("{time} s"),
            (0, n) => format!("{n} blocks"),
            (n, _) => Bytes(n).to_string(),
        };
        let s = if parallel == 1 { "" } else { "s" };
        let what = if self.is_of_datagrams() {
            " of datagrams"
        } else {
            ""
        };
        format!("{direction}, {parallel} stream{s}{what}, {until}")
    }

    /// Whether payload goes by UDP.
    pub(super) fn is_of_datagrams(&self) -> bool {
        self.params.protocol == Protocol::Udp
    }

    /// Whether it comes here so.
    pub(super) fn receives_datagrams(&self) -> bool {
        self.is_of_datagrams() && self.role() == Role::Receiver
    }

    /// How long it may last, as agreed on.
    pub(super) fn longest(&self) -> Duration {
        let seconds = match self.params.time {
            0 => SECONDS_MAX,
            n => n,
        };
        Duration::from_secs(seconds + self.params.omit)
    }

    /// The bytes after which the client ends the test, where that is what ends it, and where they
    /// come here.
    pub(super) fn wanted(&self) -> Option<u64> {
        self.bytes().filter(|_| self.role() == Role::Receiver)
    }

    /// The bytes after which the test ends, where that is what ends it.
    fn bytes(&self) -> Option<u64> {
        let blocks = self.params.blocks.saturating_mul(self.size());
        Some(self.params.num.max(blocks)).filter(|bytes| *bytes > 0)
    }

    /// The bytes of all whole blocks that make so many: a client reads a block before it counts it. What is omitted
    /// does not count.
    fn most(&self) -> Option<u64> {
        let bytes = self.bytes().filter(|_| self.params.omit == 0)?;
        Some(bytes.div_ceil(self.size()).saturating_mul(self.size()))
    }

    fn size(&self) -> u64 {
        match (self.params.len, self.params.protocol) {
            (0, Protocol::Udp) => DATAGRAM_DEFAULT,
            (0, _) => WRITE_DEFAULT,
            (n, _) => n,
        }
    }

    /// Sets the options of a data connection. What a receiver cannot set changes nothing that is
    /// measured: its congestion control.
    pub(super) fn dress(&self, fd: OwnedFd) -> Result<OwnedFd, Refusal> {
        options::set(&fd, Side::Far, &self.plan);
        let refused = options::set_connected(&fd, &self.plan);
        if refused.is_some() && self.role() == Role::Sender {
            return Err(Refusal::CONGESTION);
        }
        let mut got = SetEnd::default();
        options::read_back(&fd, Side::Far, &self.plan, &mut got);
        let small = |got: Option<u64>| got.is_some_and(|got| got < self.params.window);
        if small(got.send_buffer) || small(got.recv_buffer) {
            return Err(Refusal::BUFFER);
        }
        Ok(fd)
    }

    /// Sets the options of a socket for datagrams.
    pub(super) fn dress_datagrams(&self, fd: &OwnedFd) -> Result<(), Refusal> {
        let fd = fd.as_fd();
        let window = self.params.window;
        if window == 0 {
            let share = RECV_BUFFERS / u64::from(self.params.parallel.max(1));
            // The kernel gives what it allows.
            let _ = socket::set_recv_buffer(fd, share.min(RECV_BUFFER));
            return Ok(());
        }
        let _ = socket::set_send_buffer(fd, window);
        let _ = socket::set_recv_buffer(fd, window);
        let got = [socket::send_buffer(fd), socket::recv_buffer(fd)];
        if got
            .iter()
            .any(|got| got.as_ref().is_ok_and(|got| *got < window))
        {
            return Err(Refusal::BUFFER);
        }
        Ok(())
    }

    /// The congestion control in force.
    pub(super) fn congestion_of(fds: &[OwnedFd]) -> Option<String> {
        let name = socket::congestion(fds.first()?.as_fd()).ok()?;
        Some(name).filter(|name| !name.is_empty())
    }

    /// How payload is moved: on CPUs by the rules of a run, in calls as large as the client says.
    pub(super) fn manner(&self, facts: &HostFacts, from: IpAddr, own: Option<IpAddr>) -> Manner {
        let end = placement::End {
            side: Side::Far,
            shared: own.is_some_and(|own| own.to_canonical() == from.to_canonical()),
        };
        let ruled = || {
            let allowed = thread::allowed_cpus().unwrap_or_default();
            placement::place(facts, &allowed, end, &self.plan)
        };
        let asked = |cpu| Placed::apart(vec![cpu; self.params.parallel as usize]);
        let placed = self.params.server_cpu.map_or_else(ruled, asked);
        Manner {
            role: self.role(),
            load: self.load(),
            most: self.most(),
            placed,
        }
    }

    fn load(&self) -> Load {
        if self.is_of_datagrams() {
            return Load::Datagrams {
                size: self.size() as u16,
                width: self.params.width,
                pace: pace(&self.params),
                burst: Some(self.params.burst as usize).filter(|burst| *burst > 0),
            };
        }
        Load::Bytes {
            size: self.size(),
            cap: WRITE_MAX as u32,
            discard: self.params.discard && self.role() == Role::Receiver,
        }
    }
}

/// Whether what is moved at once can be.
fn fits(params: &Params) -> Result<(), Refusal> {
    match params.protocol {
        Protocol::Sctp => Err(Refusal::PROTOCOL),
        Protocol::Tcp if params.len > WRITE_MAX => Err(Refusal::WRITE_SIZE),
        Protocol::Udp if !matches!(params.len, 0 | DATAGRAM_MIN..=DATAGRAM_MAX) => {
            Err(Refusal::DATAGRAM_SIZE)
        }
        Protocol::Tcp | Protocol::Udp => Ok(()),
    }
}

/// The option of iperf3 that is asked for and not implemented here.
pub(super) fn lacking(params: &Params) -> Option<&'static str> {
    let udp = params.protocol == Protocol::Udp;
    if params.bidirectional {
        Some("--bidir")
    } else if params.zerocopy && params.reverse {
        Some("--zerocopy with --reverse")
    } else if udp && params.burst > BURST_MAX {
        Some("so large a burst with --bitrate")
    } else if udp && params.discard && !params.reverse {
        // What is dropped in the kernel has no number to be told apart by.
        Some("--skip-rx-copy by UDP")
    } else {
        None
    }
}

/// What the sender of each stream keeps to.
fn pace(params: &Params) -> Option<Rate> {
    let paces = [params.bandwidth, params.fqrate].into_iter();
    paces.filter(|pace| *pace > 0).min().map(Rate)
}

/// The same in the terms of a run. Segments are the client's business: it dials.
fn plan(params: &Params) -> SetPlan {
    let window = (params.window > 0).then_some(Bytes(params.window));
    SetPlan {
        id: 0,
        pattern: Pattern::Stream {
            direction: if params.reverse {
                Direction::Reverse
            } else {
                Direction::Forward
            },
        },
        knobs: Knobs {
            streams: params.parallel,
            nodelay: params.nodelay,
            send_buffer: window,
            recv_buffer: window,
            pacing: pace(params),
            congestion: params.congestion.clone(),
            ..Knobs::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(change: impl FnOnce(&mut Params)) -> Result<Terms, Refusal> {
        let mut params = Params {
            time: 10,
            parallel: 1,
            ..Params::default()
        };
        change(&mut params);
        Terms::of(params)
    }

    fn refusal(change: impl FnOnce(&mut Params)) -> Option<Refusal> {
        of(change).err()
    }

    #[test]
    fn what_is_too_much_is_refused_and_what_is_just_not_is_granted() {
        assert_eq!(refusal(|_| ()), None);
        assert_eq!(refusal(|p| p.time = SECONDS_MAX), None);
        assert_eq!(
            refusal(|p| p.time = SECONDS_MAX + 1),
            Some(Refusal::DURATION)
        );
        assert_eq!(refusal(|p| p.omit = OMIT_MAX), None);
        assert_eq!(refusal(|p| p.omit = OMIT_MAX + 1), Some(Refusal::DURATION));
        assert_eq!(refusal(|p| p.len = WRITE_MAX), None);
        assert_eq!(
            refusal(|p| p.len = WRITE_MAX + 1),
            Some(Refusal::WRITE_SIZE)
        );
        assert_eq!(
            refusal(|p| p.server_cpu = Some(u32::MAX)),
            Some(Refusal::AFFINITY)
        );
    }

    #[test]
    fn what_would_change_what_is_measured_is_refused_and_the_client_s_own_business_is_not() {
        assert_eq!(
            refusal(|p| p.protocol = Protocol::Sctp),
            Some(Refusal::PROTOCOL)
        );
        assert_eq!(
            refusal(|p| p.bidirectional = true),
            Some(Refusal::UNSUPPORTED)
        );
        for (reverse, tos, zerocopy) in [
            (false, None, None),
            (true, Some(Refusal::TOS), Some(Refusal::UNSUPPORTED)),
        ] {
            let tos_now = refusal(|p| (p.reverse, p.tos) = (reverse, 8));
            let zerocopy_now = refusal(|p| (p.reverse, p.zerocopy) = (reverse, true));
            assert_eq!((tos_now, zerocopy_now), (tos, zerocopy));
        }
    }

    #[test]
    fn datagrams_are_bounded_on_both_sides() {
        let refusal = |change: &dyn Fn(&mut Params)| {
            refusal(|p| {
                p.protocol = Protocol::Udp;
                change(p);
            })
        };
        for (len, wanted) in [
            (0, None),
            (DATAGRAM_MIN - 1, Some(Refusal::DATAGRAM_SIZE)),
            (DATAGRAM_MIN, None),
            (DATAGRAM_MAX, None),
            (DATAGRAM_MAX + 1, Some(Refusal::DATAGRAM_SIZE)),
        ] {
            assert_eq!(refusal(&|p| p.len = len), wanted, "{len}");
        }
        assert_eq!(refusal(&|p| p.burst = BURST_MAX), None);
        let much = refusal(&|p| p.burst = BURST_MAX + 1);
        assert_eq!(much, Some(Refusal::UNSUPPORTED));
        assert_eq!(refusal(&|p| p.discard = true), Some(Refusal::UNSUPPORTED));
        assert_eq!(refusal(&|p| (p.discard, p.reverse) = (true, true)), None);
        assert_eq!(refusal(&|p| p.bandwidth = 1 << 53), None);
    }

    #[test]
    fn the_slower_of_two_paces_is_kept() {
        let load = |bandwidth, fqrate| {
            let granted = of(|p| {
                p.protocol = Protocol::Udp;
                (p.bandwidth, p.fqrate, p.reverse) = (bandwidth, fqrate, true);
            });
            match granted.ok().map(|terms| terms.load()) {
                Some(Load::Datagrams { size, pace, .. }) => Some((size, pace)),
                _ => None,
            }
        };
        let size = DATAGRAM_DEFAULT as u16;
        assert_eq!(load(0, 0), Some((size, None)));
        assert_eq!(load(7, 5), Some((size, Some(Rate(5)))));
        assert_eq!(load(7, 0), Some((size, Some(Rate(7)))));
    }

    #[test]
    fn a_number_of_bytes_is_waited_for_where_it_comes() {
        let wanted = |change: fn(&mut Params)| of(change).ok().and_then(|t| t.wanted());
        assert_eq!(wanted(|_| ()), None);
        assert_eq!(wanted(|p| p.num = 5), Some(5));
        assert_eq!(wanted(|p| p.blocks = 2), Some(2 * WRITE_DEFAULT));
        assert_eq!(wanted(|p| (p.num, p.reverse) = (5, true)), None);
    }
}
