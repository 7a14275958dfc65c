//! What a client asks for, as far as it is granted. What is not granted is refused in a number that
//! the client has words for: nothing is passed over that would change what is measured.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use linerate_core::facts::HostFacts;
use linerate_core::iperf3::{Params, Protocol, Refusal, SECONDS_MAX, WRITE_DEFAULT, WRITE_MAX};
use linerate_core::plan::{Direction, Knobs, Pattern, SetPlan, Side};
use linerate_core::record::SetEnd;
use linerate_core::units::{Bytes, Rate};
use linerate_sys::{socket, thread};

use crate::end::placement;
use crate::iperf3::streams::Manner;
use crate::load::application::Role;
use crate::load::tcp::options;

/// Longest part of a test at its start that does not count, in seconds.
//= iperf.h, MAX_OMIT_TIME
const OMIT_MAX: u64 = 600;

/// A test that is granted.
pub(super) struct Terms {
    pub(super) params: Params,
    plan: SetPlan,
}

impl Terms {
    /// Grants it, or says what is too much.
    pub(super) fn of(params: Params) -> Result<Self, Refusal> {
        if params.protocol != Protocol::Tcp {
            return Err(Refusal::PROTOCOL);
        }
        let sends = params.reverse;
        if params.bidirectional || (params.zerocopy && sends) {
            return Err(Refusal::UNSUPPORTED);
        }
        if params.tos != 0 && sends {
            return Err(Refusal::TOS);
        }
        if params.time > SECONDS_MAX || params.omit > OMIT_MAX {
            return Err(Refusal::DURATION);
        }
        if params.len > WRITE_MAX {
            return Err(Refusal::WRITE_SIZE);
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
        format!("{direction}, {parallel} stream{s}, {until}")
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
        let blocks = self.params.blocks.saturating_mul(self.size());
        let bytes = self.params.num.max(blocks);
        (bytes > 0 && self.role() == Role::Receiver).then_some(bytes)
    }

    fn size(&self) -> u64 {
        match self.params.len {
            0 => WRITE_DEFAULT,
            n => n,
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
            placement::cpus(facts, &allowed, end, &self.plan)
        };
        let asked = |cpu| vec![cpu; self.params.parallel as usize];
        let cpus = self.params.server_cpu.map_or_else(ruled, asked);
        Manner {
            role: self.role(),
            size: self.size(),
            cap: WRITE_MAX as u32,
            discard: self.params.discard && self.role() == Role::Receiver,
            cpus,
        }
    }
}

/// The same in the terms of a run. Segments are the client's business: it dials.
fn plan(params: &Params) -> SetPlan {
    let window = (params.window > 0).then_some(Bytes(params.window));
    let paces = [params.bandwidth, params.fqrate].into_iter();
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
            pacing: paces.filter(|pace| *pace > 0).min().map(Rate),
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
            refusal(|p| p.protocol = Protocol::Udp),
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
    fn a_number_of_bytes_is_waited_for_where_it_comes() {
        let wanted = |change: fn(&mut Params)| of(change).ok().and_then(|t| t.wanted());
        assert_eq!(wanted(|_| ()), None);
        assert_eq!(wanted(|p| p.num = 5), Some(5));
        assert_eq!(wanted(|p| p.blocks = 2), Some(2 * WRITE_DEFAULT));
        assert_eq!(wanted(|p| (p.num, p.reverse) = (5, true)), None);
    }
}
