//! The parameters of a test that the server grants. Other requests are refused with an error number that the client can
//! translate to text. An option that would change the measurement is never ignored.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use linerate_plan::path::Direction;
use linerate_plan::{Handover, Knobs, Pattern, Purpose, Receive, SetPlan, StepPlan};
use linerate_record::SetEnd;
use linerate_record::iperf3::{
    BURST_MAX, DATAGRAM_DEFAULT, DATAGRAM_MAX, DATAGRAM_MIN, Params, Protocol, Refusal,
    SECONDS_MAX, WRITE_DEFAULT, WRITE_MAX,
};
use linerate_record::wire::limits::THREADS_MAX;
use linerate_sys::{socket, thread};
use linerate_units::{Bytes, Nanos, Rate};

use linerate_load::framing::Bare;
use linerate_load::transport::udp::options::RECV_BUFFER;
use linerate_plan::application::Role;

/// Longest step of a test: one day.
const DAY: Nanos = Nanos::from_secs(24 * 3600);

/// Longest part at the start of a test that may be omitted, in seconds.
//= iperf.h, MAX_OMIT_TIME
const OMIT_MAX: u64 = 600;

/// Memory of the receive buffers of all datagram streams together, in bytes, if the client leaves their size open.
const RECV_BUFFERS: u64 = 64 * 1024 * 1024;

/// Parameters of a test that the server grants.
pub(super) struct Terms {
    pub(super) params: Params,
}

impl Terms {
    /// Accepts the parameters of a request, or refuses it and names the parameter that is not possible.
    pub(super) fn of(params: Params) -> Result<Self, Refusal> {
        fits(&params)?;
        if lacking(&params).is_some() {
            return Err(Refusal::UNSUPPORTED);
        }
        if params.tos > u8::MAX.into() {
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
        Ok(Self { params })
    }

    /// Returns the roles of this end, one for each direction, in the order in which the client makes the streams.
    pub(super) fn roles(&self) -> &'static [Role] {
        match (self.params.bidirectional, self.params.reverse) {
            (true, _) => &[Role::Receiver, Role::Sender],
            (false, true) => &[Role::Sender],
            (false, false) => &[Role::Receiver],
        }
    }

    /// Returns whether this end sends payload in at least one direction.
    pub(super) fn sends(&self) -> bool {
        self.roles().contains(&Role::Sender)
    }

    /// Returns the number of streams in all directions together.
    pub(super) fn streams(&self) -> u32 {
        self.params.parallel * self.roles().len() as u32
    }

    /// Describes the test for the log, such as `receives from it, 4 streams, 10 s`.
    pub(super) fn words(&self) -> String {
        let Params { parallel, time, num, blocks, .. } = self.params;
        let direction = match self.roles() {
            [Role::Sender] => "sends to it",
            [Role::Receiver] => "receives from it",
            _ => "sends to it and receives from it",
        };
        let until = match (num, blocks) {
            (0, 0) => format!("{time} s"),
            (0, n) => format!("{n} blocks"),
            (n, _) => Bytes(n).to_string(),
        };
        let s = if parallel == 1 { "" } else { "s" };
        let what = if self.is_of_datagrams() { " of datagrams" } else { "" };
        let each = if self.params.bidirectional { " each" } else { "" };
        format!("{direction}, {parallel} stream{s}{what}{each}, {until}")
    }

    /// Returns whether payload is sent by UDP.
    pub(super) fn is_of_datagrams(&self) -> bool {
        self.params.protocol == Protocol::Udp
    }

    /// Returns the payload of a datagram in bytes; `None` for TCP.
    pub(super) fn datagram(&self) -> Option<u16> {
        self.is_of_datagrams().then(|| self.size() as u16)
    }

    /// Returns the longest duration of the test, as agreed with the client, including the omitted part.
    pub(super) fn longest(&self) -> Duration {
        let seconds = match self.params.time {
            0 => SECONDS_MAX,
            n => n,
        };
        Duration::from_secs(seconds + self.params.omit)
    }

    /// Returns the number of bytes after which the client ends the test; `None` if only the time limits the test.
    pub(super) fn bytes(&self) -> Option<u64> {
        let blocks = self.params.blocks.saturating_mul(self.size());
        Some(self.params.num.max(blocks)).filter(|bytes| *bytes > 0)
    }

    /// Returns the largest number of payload bytes in the test, rounded up to complete blocks: a client reads a block
    /// before it counts the block. Returns `None` if the start of the test is omitted or the bytes are not limited.
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

    /// Sets the type of service (TOS) of a stream's socket. On a stream
    /// that this end receives, TOS applies only to acknowledgements.
    pub(super) fn mark(&self, fd: &OwnedFd) -> Result<(), Refusal> {
        if self.params.tos == 0 {
            return Ok(());
        }
        match socket::set_traffic_class(fd.as_fd(), self.params.tos as u8) {
            Err(error) if self.sends() => Err(Refusal::TOS.because(&error)),
            _ => Ok(()),
        }
    }

    /// Sets the options of a socket for datagrams.
    pub(super) fn dress_datagrams(&self, fd: &OwnedFd) -> Result<(), Refusal> {
        self.mark(fd)?;
        let fd = fd.as_fd();
        let window = self.params.window;
        if window == 0 {
            let share = RECV_BUFFERS / u64::from(self.streams().max(1));
            // The kernel may limit the size of the buffer, so the result is ignored.
            let _ = socket::set_recv_buffer(fd, share.min(RECV_BUFFER));
            return Ok(());
        }
        let _ = socket::set_send_buffer(fd, window);
        let _ = socket::set_recv_buffer(fd, window);
        let got = [socket::send_buffer(fd), socket::recv_buffer(fd)];
        if got.iter().any(|got| got.as_ref().is_ok_and(|got| *got < window)) {
            return Err(Refusal::BUFFER);
        }
        Ok(())
    }

    /// Checks whether the streams of one direction got the requested settings. A receiver's congestion control is not
    /// checked, since it does not affect the measurement.
    pub(super) fn met(&self, role: Role, got: &SetEnd) -> Result<(), Refusal> {
        let refused = got.gaps.iter().any(|gap| gap.what == "set.congestion");
        if refused && role == Role::Sender {
            return Err(Refusal::CONGESTION);
        }
        let small = |got: Option<u64>| got.is_some_and(|got| got < self.params.window);
        if !self.is_of_datagrams() && (small(got.send_buffer) || small(got.recv_buffer)) {
            return Err(Refusal::BUFFER);
        }
        Ok(())
    }

    /// Returns the framing that the streams of all directions share.
    pub(super) fn bare(&self) -> Bare {
        let burst = Some(self.params.burst as usize).filter(|burst| *burst > 0);
        Bare::new(self.params.width, burst).limited(self.most())
    }

    /// Returns the streams of one direction as a set of a run. The
    /// segment size is left to the client, because it connects.
    pub(super) fn plan(&self, set: u32, role: Role) -> SetPlan {
        let params = &self.params;
        let window = (params.window > 0).then_some(Bytes(params.window));
        let streams = params.parallel;
        let cpus = params.server_cpu.map(|cpu| vec![cpu; streams as usize]);
        let cpus = cpus.unwrap_or_default();
        let sends = role == Role::Sender;
        let (sender_cpus, receiver_cpus) =
            if sends { (cpus, Vec::new()) } else { (Vec::new(), cpus) };
        SetPlan {
            id: set,
            pattern: Pattern::Stream {
                direction: if sends { Direction::Reverse } else { Direction::Forward },
            },
            knobs: Knobs {
                streams,
                nodelay: params.nodelay,
                send_buffer: window,
                recv_buffer: window,
                write_size: Bytes(self.size()),
                read_size: Bytes(self.size()),
                pacing: pace(params),
                congestion: params.congestion.clone(),
                sender_cpus,
                receiver_cpus,
                copy: if params.zerocopy && sends { Handover::Sendfile } else { Handover::Copy },
                receive: if params.discard && !sends { Receive::Discard } else { Receive::Copy },
                ..Knobs::default()
            },
        }
    }

    /// Returns the step in which the test's streams run. The client ends it.
    pub(super) fn step(&self, sets: Vec<u32>, grace: Duration) -> StepPlan {
        let washout = Nanos::from_secs(self.params.omit);
        let longest = Nanos::from(self.longest() + grace);
        let measure = Nanos(longest.0.min(DAY.0).saturating_sub(washout.0));
        StepPlan {
            index: 0,
            purpose: Purpose::Both,
            sets,
            washout,
            measure,
            // Only the totals of the step are used, so one tick suffices.
            tick: measure,
        }
    }
}

/// Checks whether the requested block size is possible for the protocol.
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

/// Returns the requested option of iperf3 that this server does not support; `None` if it supports all of them.
pub(super) fn lacking(params: &Params) -> Option<&'static str> {
    let udp = params.protocol == Protocol::Udp;
    let sends = params.reverse || params.bidirectional;
    let receives = !params.reverse || params.bidirectional;
    if udp && params.burst > BURST_MAX {
        Some("so large a burst with --bitrate")
    } else if udp && params.discard && receives {
        // A datagram that the kernel drops cannot be identified, because its number is never read.
        Some("--skip-rx-copy by UDP")
    } else if params.zerocopy && sends && !udp && params.parallel > THREADS_MAX {
        Some("--zerocopy with so many streams")
    } else {
        None
    }
}

/// Returns the pace of each sending stream: the lower one of the two requested paces.
fn pace(params: &Params) -> Option<Rate> {
    let paces = [params.bandwidth, params.fqrate].into_iter();
    paces.filter(|pace| *pace > 0).min().map(Rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(change: impl FnOnce(&mut Params)) -> Result<Terms, Refusal> {
        let mut params = Params { time: 10, parallel: 1, ..Params::default() };
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
        assert_eq!(refusal(|p| p.time = SECONDS_MAX + 1), Some(Refusal::DURATION));
        assert_eq!(refusal(|p| p.omit = OMIT_MAX), None);
        assert_eq!(refusal(|p| p.omit = OMIT_MAX + 1), Some(Refusal::DURATION));
        assert_eq!(refusal(|p| p.len = WRITE_MAX), None);
        assert_eq!(refusal(|p| p.len = WRITE_MAX + 1), Some(Refusal::WRITE_SIZE));
        assert_eq!(refusal(|p| p.server_cpu = Some(u32::MAX)), Some(Refusal::AFFINITY));
    }

    #[test]
    fn what_would_change_what_is_measured_is_refused_and_the_client_s_own_business_is_not() {
        assert_eq!(refusal(|p| p.protocol = Protocol::Sctp), Some(Refusal::PROTOCOL));
        let most = THREADS_MAX;
        for (streams, sends, wanted) in [
            (most, true, None),
            (most + 1, true, Some(Refusal::UNSUPPORTED)),
            (most + 1, false, None),
        ] {
            let zerocopy =
                refusal(|p| (p.zerocopy, p.reverse, p.parallel) = (true, sends, streams));
            assert_eq!(zerocopy, wanted, "{streams}");
        }
        assert_eq!(refusal(|p| (p.reverse, p.tos) = (true, 255)), None);
        let tos = refusal(|p| (p.reverse, p.tos) = (true, 256));
        assert_eq!(tos, Some(Refusal::TOS));
    }

    #[test]
    fn each_direction_has_streams_of_its_own_in_the_order_in_which_the_client_makes_them() {
        let both = of(|p| (p.bidirectional, p.parallel, p.zerocopy) = (true, 3, true));
        let both = both.ok().unwrap();
        assert_eq!(both.roles(), [Role::Receiver, Role::Sender]);
        assert_eq!(both.streams(), 6);
        let copies = [Role::Receiver, Role::Sender].map(|role| both.plan(0, role).knobs.copy);
        assert_eq!(copies, [Handover::Copy, Handover::Sendfile]);
        assert!(both.words().contains("3 streams each"));
        for (reverse, role) in [(false, Role::Receiver), (true, Role::Sender)] {
            let one = of(|p| p.reverse = reverse).ok().unwrap();
            assert_eq!((one.roles(), one.streams()), (&[role][..], 1));
        }
    }

    #[test]
    fn the_type_of_service_is_set_where_one_is_asked_for() {
        let class = |tos| {
            let terms = of(|p| (p.tos, p.reverse) = (tos, true)).ok().unwrap();
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let fd = OwnedFd::from(socket);
            assert_eq!(terms.mark(&fd), Ok(()));
            socket::traffic_class(fd.as_fd()).unwrap()
        };
        assert_eq!((class(0), class(0xb8)), (0, 0xb8));
        // A file that is no socket has no traffic class. A sending
        // test is refused because of this; a receiving one continues.
        let file = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let refused = |reverse| {
            let terms = of(|p| (p.tos, p.reverse) = (8, reverse)).ok().unwrap();
            terms.mark(&file()).err().map(|refusal| refusal.code)
        };
        assert_eq!(refused(true), Some(Refusal::TOS.code));
        assert_eq!(refused(false), None);
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
        let requested = |bandwidth, fqrate| {
            let granted = of(|p| {
                p.protocol = Protocol::Udp;
                (p.bandwidth, p.fqrate, p.reverse) = (bandwidth, fqrate, true);
            });
            let knobs = granted.ok().unwrap().plan(0, Role::Sender).knobs;
            assert_eq!(knobs.write_size, Bytes(DATAGRAM_DEFAULT));
            knobs.pacing
        };
        assert_eq!(requested(0, 0), None);
        assert_eq!(requested(7, 5), Some(Rate(5)));
        assert_eq!(requested(7, 0), Some(Rate(7)));
    }

    #[test]
    fn a_number_of_bytes_is_that_of_the_client_or_of_its_blocks() {
        let bytes = |change: fn(&mut Params)| of(change).ok().and_then(|t| t.bytes());
        assert_eq!(bytes(|_| ()), None);
        assert_eq!(bytes(|p| p.num = 5), Some(5));
        assert_eq!(bytes(|p| p.blocks = 2), Some(2 * WRITE_DEFAULT));
    }

    #[test]
    fn no_step_is_longer_than_a_day() {
        for (time, omit, grace) in [(10, 2, 30), (SECONDS_MAX, OMIT_MAX, 30), (0, 0, 0)] {
            let terms = of(|p| (p.time, p.omit) = (time, omit)).ok().unwrap();
            let step = terms.step(vec![0], Duration::from_secs(grace));
            let all = step.washout.0 + step.measure.0;
            assert_eq!(step.washout, Nanos::from_secs(omit));
            assert!(all <= DAY.0 && step.measure.0 > 0, "{all}");
        }
    }
}
