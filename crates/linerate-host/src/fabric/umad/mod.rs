//! A real InfiniBand network, accessed through a user MAD device of the kernel (`/dev/infiniband/umadN`).
//!
//! Two agents registered with the kernel send requests and receive their replies: one on queue pair 0, for subnet
//! management, and one on queue pair 1, for counters and subnet administration. No other datagrams are received.
//= Linux, Documentation/infiniband/user_mad.rst

mod choice;
mod error;
#[cfg(test)]
#[path = "tests/guest.rs"]
mod guest;
mod header;

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_fabric::mad::{Get, LEN, Service, transaction};
use linerate_fabric::walk::PATIENCE;
use linerate_sys::umad;
use linerate_units::Nanos;
use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{Arrival, MadPort, PortError, polled, since};
use crate::Machine;
use choice::Choice;
use error::Owner;
use header::HEADER;

pub use choice::{Name, Wanted};
pub use error::UmadError;

/// Most requests without a reply. Subnet management datagrams have no flow control: a switch drops those for which it
/// has no room, and each drop costs a time-out. With round trips of 100 us, 4 requests allow 40,000 a second.
//= OpenSM 3.3.23, include/opensm/osm_base.h: OSM_DEFAULT_SMP_MAX_ON_WIRE
const WINDOW: usize = 4;

/// Most requests per second. The switch processors that answer them have other work; at this rate a large network is
/// still walked in seconds.
const PACE: u32 = 10_000;

/// Length of the longest datagram in bytes, that of Omni-Path. If a datagram does not fit, the kernel keeps it and
/// fails each read.
//= Linux, include/rdma/ib_mad.h: OPA_MGMT_MAD_SIZE
const LONGEST: usize = 2048;

/// A port of this host, used through its user MAD device.
#[derive(Debug)]
pub struct Umad {
    file: OwnedFd,
    name: Name,
    others: Vec<Name>,
    /// Id of the agent on queue pair 0.
    subnet: u32,
    /// Id of the agent on queue pair 1.
    general: u32,
    /// Requests that the kernel did not accept, with what `receive` returns for each.
    unsent: VecDeque<Arrival>,
    opened: Instant,
}

impl Umad {
    /// Opens a port: the wanted one, or the first InfiniBand port with a link.
    pub fn open(machine: &dyn Machine, wanted: Option<&Wanted>) -> Result<Self, PortError> {
        let Choice { name, umad, others } = choice::choose(machine, wanted)?;
        let path = format!("/dev/infiniband/{umad}");
        let file = opened(&path)?;
        let failed = |what: &str, error| PortError::call(format!("{what} at {path}"), error);
        umad::enable_partition_key(file.as_fd())
            .map_err(|e| failed("choosing the long header", e))?;
        let subnet =
            umad::register(file.as_fd(), 0).map_err(|e| match Errno::from_io_error(&e) {
                Some(Errno::PROTONOSUPPORT) => UmadError::NoSubnet { port: name.clone() }.into(),
                _ => failed("registering for queue pair 0", e),
            })?;
        let general = umad::register(file.as_fd(), 1)
            .map_err(|e| failed("registering for queue pair 1", e))?;
        Ok(Self {
            file,
            name,
            others,
            subnet,
            general,
            unsent: VecDeque::new(),
            opened: Instant::now(),
        })
    }

    /// Returns the port through which the network is queried.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the other InfiniBand ports of this host.
    pub fn others(&self) -> &[Name] {
        &self.others
    }

    fn agent(&self, service: Service) -> u32 {
        match service {
            Service::Subnet => self.subnet,
            Service::Performance | Service::Administration => self.general,
        }
    }

    /// Waits up to `wait` until a datagram can be read; returns false if none can.
    fn ready(&self, wait: Duration) -> Result<bool, PortError> {
        let events = polled(&self.file, wait)?;
        if events.contains(PollFlags::IN) {
            return Ok(true);
        }
        if events.intersects(PollFlags::ERR | PollFlags::HUP) {
            return Err(self.removed());
        }
        Ok(false)
    }

    fn removed(&self) -> PortError {
        let port = self.name.clone();
        UmadError::Removed { port }.into()
    }
}

impl MadPort for Umad {
    fn window(&self) -> usize {
        WINDOW
    }

    fn pace(&self) -> u32 {
        PACE
    }

    fn now(&self) -> Nanos {
        since(self.opened)
    }

    fn send(&mut self, transaction: u32, get: &Get) -> Result<(), PortError> {
        let agent = self.agent(get.attribute.service());
        let packet = header::encode(agent, transaction, get, PATIENCE.duration());
        match rustix::io::retry_on_intr(|| rustix::io::write(&self.file, &packet)) {
            Ok(_) => {}
            // The request's address is not valid, such as a LID that a faulty node reported.
            Err(Errno::INVAL) => self.unsent.push_back(Arrival::NotPossible(transaction)),
            // The kernel is short of memory for now.
            Err(Errno::NOMEM) => self.unsent.push_back(Arrival::Lost(transaction)),
            Err(Errno::NODEV | Errno::IO) => return Err(self.removed()),
            Err(e) => return Err(PortError::call(format!("sending through {}", self.name), e)),
        }
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Arrival>, PortError> {
        if let Some(news) = self.unsent.pop_front() {
            return Ok(Some(news));
        }
        if !self.ready(wait)? {
            return Ok(None);
        }
        let mut packet = [0; HEADER + LONGEST];
        let got = match rustix::io::read(&self.file, &mut packet) {
            Ok(0) | Err(Errno::NODEV | Errno::IO) => return Err(self.removed()),
            Ok(got) => got,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(e) => return Err(PortError::call(format!("receiving from {}", self.name), e)),
        };
        Ok(arrival(&packet[..got]))
    }
}

/// Decodes a packet that was read from the device; `None` if it is cut short.
fn arrival(packet: &[u8]) -> Option<Arrival> {
    let (status, mad) = header::decode(packet)?;
    // With a nonzero status, such as a time-out, the packet holds the beginning of the failed request.
    match mad.first_chunk::<LEN>() {
        Some(mad) if status == 0 => Some(Arrival::Mad(Box::new(*mad))),
        _ => transaction(mad).map(Arrival::Lost),
    }
}

fn opened(path: &str) -> Result<OwnedFd, PortError> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| {
        let path = path.to_owned();
        match (error, rustix::fs::stat(&path)) {
            (Errno::NOENT, _) => UmadError::NoFile { path }.into(),
            (Errno::ACCESS | Errno::PERM, Ok(stat)) => UmadError::Denied {
                path,
                owner: Owner::of(&stat),
                is_root: rustix::process::geteuid().is_root(),
            }
            .into(),
            (error, _) => PortError::call(format!("opening {path}"), error),
        }
    })
}

#[cfg(test)]
mod tests;
