//! The handle by which its owner uses a lab.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};

use linerate_sys::process;
use rustix::process::{Pid, WaitOptions};

use crate::agent;
use crate::error::LabError;
use crate::fault::Fault;
use crate::message::{Channel, Reply, Request, Start};
use crate::program::{Program, Running, Streams};
use crate::spec::{Addresses, Forwarded, Host, PortStatus, Spec, Topology};

/// Two hosts, and a router or bridge between them, each in its own namespaces.
///
/// Dropping the lab ends every program in it, and removes the network. So does the end of the process that built it,
/// even if that process is killed.
#[derive(Debug)]
pub struct Lab {
    /// Channel to the agent, locked from each request to its reply. `None` once the lab is being closed.
    channel: Option<Mutex<Channel>>,
    outer_pid: Pid,
    topology: Topology,
    v6: bool,
}

impl Lab {
    /// Builds a lab and plants the faults of its specification.
    ///
    /// The lab's processes are forks of the caller, which must not have other threads yet
    /// ([`LabError::Threads`]). The only privilege needed is to create user namespaces ([`LabError::Forbidden`]
    /// says what prevents it).
    pub fn build(spec: &Spec) -> Result<Self, LabError> {
        let (own, other) = Channel::pair()?;
        let outer_pid = process::fork(&[&other.0], || agent::outer(&other, spec)).map_err(|e| {
            let busy = rustix::io::Errno::BUSY.raw_os_error();
            if e.raw_os_error() == Some(busy) {
                LabError::Threads
            } else {
                LabError::step("cannot fork", &e)
            }
        })?;
        drop(other);
        let built = reply(&own);
        let mut lab =
            Self { channel: Some(Mutex::new(own)), outer_pid, topology: spec.topology, v6: false };
        match built?.0 {
            Reply::Built(v6) => lab.v6 = v6,
            other => return Err(unexpected(&other)),
        }
        Ok(lab)
    }

    /// Returns the addresses of a host on the path; for the router, those of its port towards near.
    pub fn addresses(&self, host: Host) -> Addresses {
        let (link, number) = agent::station(self.topology, host);
        Addresses { v4: link.v4(number), v6: self.v6.then(|| link.v6(number)) }
    }

    /// Starts a program in a host.
    pub fn spawn(&self, host: Host, program: &Program) -> Result<Running, LabError> {
        if host == Host::Router && self.topology == Topology::Direct {
            return Err(LabError::NoSuchHost { host: host.to_string() });
        }
        let bytes = |text: &std::ffi::OsStr| text.as_bytes().to_vec();
        let cwd = program.directory()?;
        let start = Start {
            host,
            argv: program.argv.iter().map(|a| bytes(a)).collect(),
            env: program.env.iter().map(|(n, v)| (bytes(n), bytes(v))).collect(),
            cwd: bytes(cwd.as_os_str()),
            cpus: program.cpus.clone(),
        };
        let streams = Streams::open(program)?;
        let (reply, descriptors) = self.exchange(&Request::Start(start), &streams.inner())?;
        match (reply, descriptors.into_iter().next()) {
            (Reply::Started, Some(pidfd)) => Ok(streams.running(pidfd)),
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// Returns the counters of a host's ports.
    pub fn ports(&self, host: Host) -> Result<Vec<PortStatus>, LabError> {
        match self.ask(&Request::Ports(host))? {
            Reply::Ports(ports) => Ok(ports),
            other => Err(unexpected(&other)),
        }
    }

    /// Plants a fault now.
    pub fn plant(&self, fault: &Fault) -> Result<(), LabError> {
        self.command(&Request::Plant(fault.clone()))
    }

    /// Removes a planted fault.
    pub fn remove(&self, fault: &Fault) -> Result<(), LabError> {
        self.command(&Request::Remove(fault.clone()))
    }

    /// Switches the carrier of a host's link off or on.
    pub fn link(&self, host: Host, up: bool) -> Result<(), LabError> {
        self.command(&Request::Link(host, up))
    }

    /// Returns the counters of the process on the wire, which delays, loses and drops packets; `None` if no fault needs
    /// it. The counters restart when another fault is planted or removed.
    pub fn forwarded(&self) -> Result<Option<Forwarded>, LabError> {
        match self.ask(&Request::Forwarded)? {
            Reply::Forwarded(forwarded) => Ok(forwarded),
            other => Err(unexpected(&other)),
        }
    }

    fn command(&self, request: &Request) -> Result<(), LabError> {
        match self.ask(request)? {
            Reply::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    fn ask(&self, request: &Request) -> Result<Reply, LabError> {
        Ok(self.exchange(request, &[])?.0)
    }

    fn exchange(
        &self,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(Reply, Vec<OwnedFd>), LabError> {
        let channel = self.channel.as_ref().ok_or_else(|| LabError::gone("it was closed"))?;
        let channel = channel.lock().unwrap_or_else(PoisonError::into_inner);
        channel.send(request, descriptors)?;
        reply(&channel)
    }
}

/// Receives the agent's reply; an error in it is returned as an error.
fn reply(channel: &Channel) -> Result<(Reply, Vec<OwnedFd>), LabError> {
    match channel.receive()? {
        Some((Reply::Failed(error), _)) => Err(error),
        Some(reply) => Ok(reply),
        None => Err(LabError::gone("its agent ended")),
    }
}

fn unexpected(reply: &Reply) -> LabError {
    LabError::gone(format!("its agent answered {reply:?}"))
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Closing the channel ends the agent, everything in the lab, and then the outer process.
        drop(self.channel.take());
        while let Err(rustix::io::Errno::INTR) =
            rustix::process::waitpid(Some(self.outer_pid), WaitOptions::empty())
        {}
    }
}
