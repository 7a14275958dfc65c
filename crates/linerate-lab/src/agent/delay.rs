//! The process that makes packets late.

use std::io;

use linerate_sys::packet::PacketPort;
use linerate_sys::process;
use linerate_sys::shared::SharedCounters;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::network::Network;
use crate::error::LabError;
use crate::forward;
use crate::spec::Forwarded;

/// The longest delay in one direction, in nanoseconds.
pub(super) const LONGEST_DELAY: u64 = 10_000_000_000;

/// A process that forwards with a delay.
pub(super) struct Delay {
    pid: Pid,
    counters: SharedCounters,
}

impl Delay {
    pub(super) fn start(network: &mut Network, delays: [u64; 2]) -> Result<Self, LabError> {
        let failed = |e: io::Error| LabError::step("cannot start a forwarding process", &e);
        let counters = SharedCounters::new().map_err(failed)?;
        let ports = network.open_wire()?;
        let keep = ports.each_ref().map(PacketPort::socket);
        // The child takes a copy of the ports along; the sockets stay open in it.
        let pid = process::fork(&keep, || {
            let failed = forward::run(&ports, delays, &counters[..]);
            eprintln!("lab: {failed}");
            1
        });
        let pid = pid.map_err(failed)?;
        Ok(Self { pid, counters })
    }

    pub(super) fn stop(&self) -> Result<(), LabError> {
        // The agent collects it with the ended programs. If it is gone already, that was told.
        match rustix::process::kill_process(self.pid, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(e) => Err(LabError::step(
                "cannot stop the forwarding process",
                &e.into(),
            )),
        }
    }

    pub(super) fn forwarded(&self) -> Result<Forwarded, LabError> {
        match rustix::process::test_kill_process(self.pid) {
            Ok(()) => Ok(forward::read(&self.counters[..])),
            Err(e) => Err(LabError::step(
                "the forwarding process has ended",
                &e.into(),
            )),
        }
    }
}
