//! The agent: the first process of the lab's PID namespace. It builds the network, starts programs in the hosts and
//! plants faults. When it ends, for whatever reason, the kernel ends all other processes of the lab.

mod child;
mod network;
mod place;
mod plant;
mod quota;
mod start;
mod traffic;
mod wire;

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use linerate_sys::namespace::{self, Space};
use linerate_sys::process;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Signal, WaitOptions};

use crate::error::{self, LabError};
use crate::message::{Channel, Reply, Request};
use crate::spec::{Host, Spec, Topology};
pub(crate) use network::station;
use network::{Network, Spot};
use plant::{Act, Plants};
use start::Programs;

/// Exit status of the lab's processes when the lab's owner has closed the lab, or has ended.
const CLOSED: u8 = 0;
/// Exit status after an error, which is reported to the lab's owner if possible.
const FAILED: u8 = 1;

/// The lab's outer process, the only child of the lab's owner. It makes the user and the PID namespace, starts the
/// agent, and waits for the agent.
pub(crate) fn outer(channel: &Channel, spec: &Spec) -> u8 {
    let lab = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    quota::clean(lab);
    let ended = enter_user_and_pid().and_then(|()| start_agent(channel, spec, lab));
    quota::clean(lab);
    match ended {
        Ok(status) => status,
        Err(error) => {
            // If the owner has ended too, nobody reads the error.
            let _ = channel.send(&Reply::Failed(error), &[]);
            FAILED
        }
    }
}

fn enter_user_and_pid() -> Result<(), LabError> {
    // A new session without a terminal: Ctrl-C then reaches only the owner, which ends the lab in order.
    rustix::process::setsid().map_err(|e| LabError::step("cannot leave the session", &e.into()))?;
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    namespace::unshare(&[Space::User]).map_err(|e| error::forbidden("user namespace", &e))?;
    namespace::map_root(uid, gid)
        .map_err(|e| error::forbidden("user namespace with its own root", &e))?;
    namespace::unshare(&[Space::Pid]).map_err(|e| error::forbidden("PID namespace", &e))
}

fn start_agent(channel: &Channel, spec: &Spec, lab: u32) -> Result<u8, LabError> {
    let agent = process::fork(&[&channel.0], || agent(channel, spec, lab))
        .map_err(|e| error::forbidden("process in the PID namespace", &e))?;
    loop {
        match rustix::process::waitpid(Some(agent), WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                return Ok(status.exit_status().map_or(FAILED, |status| status as u8));
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(LabError::step("cannot wait for the agent", &e.into())),
        }
    }
}

fn agent(channel: &Channel, spec: &Spec, lab: u32) -> u8 {
    // If the outer process is killed, the agent ends too; if the owner is killed, the channel closes.
    if rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
        return FAILED;
    }
    match Agent::build(spec, lab) {
        Ok(mut agent) => {
            let built = Reply::Built(agent.network.has_v6());
            match channel.send(&built, &[]).and_then(|()| agent.serve(channel)) {
                Ok(()) => CLOSED,
                Err(error) => {
                    // No request is being served, so no reply can carry the error.
                    eprintln!("lab: {error}");
                    FAILED
                }
            }
        }
        Err(error) => {
            let _ = channel.send(&Reply::Failed(error), &[]);
            FAILED
        }
    }
}

struct Agent {
    topology: Topology,
    network: Network,
    plants: Plants,
    programs: Programs,
}

impl Agent {
    fn build(spec: &Spec, lab: u32) -> Result<Self, LabError> {
        let network = Network::build(spec)?;
        let mut agent = Self {
            topology: spec.topology,
            network,
            plants: Plants::of(lab),
            programs: Programs::default(),
        };
        for fault in &spec.faults {
            agent.plants.plant(&mut agent.network, fault)?;
        }
        Ok(agent)
    }

    /// Replies to requests until the owner closes the channel.
    fn serve(&mut self, channel: &Channel) -> Result<(), LabError> {
        loop {
            if self.wait(channel)? {
                let Some((request, descriptors)) = channel.receive::<Request>()? else {
                    return Ok(());
                };
                let reply = match request {
                    Request::Start(start) => {
                        let surroundings = self.plants.surroundings(start.host);
                        let started =
                            self.programs.start(&self.network, &start, surroundings, descriptors);
                        match started {
                            Ok(pidfd) => {
                                channel.send(&Reply::Started, &[pidfd])?;
                                continue;
                            }
                            Err(error) => Reply::Failed(error),
                        }
                    }
                    request => self.answer(request).unwrap_or_else(Reply::Failed),
                };
                channel.send(&reply, &[])?;
            }
        }
    }

    /// Waits for a request. In the meantime, collects ended programs and carries out actions that are due. Returns
    /// true when a request has arrived, or the channel has ended.
    fn wait(&mut self, channel: &Channel) -> Result<bool, LabError> {
        self.programs.collect()?;
        for act in self.plants.due() {
            match act {
                Act::Link(host, up) => self.network.switch_link(host, up)?,
                Act::Stop(host) => self.programs.signal(host, Signal::STOP)?,
                Act::Go(host) => self.programs.signal(host, Signal::CONT)?,
            }
        }
        let timeout = self.plants.next_due().map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        let watched: Vec<BorrowedFd<'_>> = self.programs.watched().collect();
        let mut all = vec![PollFd::from_borrowed_fd(channel.0.as_fd(), PollFlags::IN)];
        all.extend(watched.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        match rustix::event::poll(&mut all, timeout.as_ref()) {
            Ok(_) => Ok(!all[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(e) => Err(LabError::step("cannot wait for requests", &e.into())),
        }
    }

    fn answer(&mut self, request: Request) -> Result<Reply, LabError> {
        match request {
            Request::Ports(host) => {
                self.require(host)?;
                let ports = self.network.place(Spot::of(host)).netlink.ports();
                let ports = ports
                    .map_err(|e| LabError::step(format!("cannot read ports of {host}"), &e))?;
                Ok(Reply::Ports(ports))
            }
            Request::Plant(fault) => {
                self.plants.plant(&mut self.network, &fault)?;
                Ok(Reply::Done)
            }
            Request::Remove(fault) => {
                self.plants.remove(&mut self.network, &fault)?;
                Ok(Reply::Done)
            }
            Request::Link(host, up) => {
                self.require(host)?;
                self.network.switch_link(host, up)?;
                Ok(Reply::Done)
            }
            Request::Forwarded => self.plants.forwarded().map(Reply::Forwarded),
            Request::Start(_) => Err(LabError::gone("a request to start a program was misrouted")),
        }
    }

    fn require(&self, host: Host) -> Result<(), LabError> {
        if self.topology == Topology::Direct && host == Host::Router {
            return Err(LabError::NoSuchHost { host: host.to_string() });
        }
        Ok(())
    }
}
