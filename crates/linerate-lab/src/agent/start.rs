//! Starts programs in the hosts, and collects them when they end.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use linerate_sys::process;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use rustix::thread::CpuSet;

use super::network::{Network, Spot};
use super::quota::Group;
use crate::error::LabError;
use crate::message::Start;
use crate::spec::Host;

struct Program {
    host: Host,
    pid: Pid,
    pidfd: OwnedFd,
    /// Pipe that receives the exit status of the program.
    exit: File,
}

/// Effects of planted faults on the programs that are started on a host.
#[derive(Default)]
pub(super) struct Surroundings {
    /// Environment variables that are added to those of the programs.
    pub(super) environment: Vec<(String, String)>,
    /// CPUs to which a program is bound if it chooses none itself; empty for all CPUs.
    pub(super) cpus: Vec<usize>,
    /// Control group of the programs; `None` for that of the agent.
    pub(super) group: Option<Group>,
}

/// The programs that are running in the lab.
#[derive(Default)]
pub(super) struct Programs {
    running: Vec<Program>,
}

impl Programs {
    /// Starts a program, and returns a descriptor of its process.
    pub(super) fn start(
        &mut self,
        network: &Network,
        start: &Start,
        surroundings: Surroundings,
        descriptors: Vec<OwnedFd>,
    ) -> Result<BorrowedFd<'_>, LabError> {
        let name = start.argv.first().map(Vec::as_slice).unwrap_or_default();
        let failed = |error: &io::Error| LabError::Spawn {
            program: String::from_utf8_lossy(name).into_owned(),
            host: start.host.to_string(),
            errno: error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error()),
        };
        let [stdin, stdout, stderr, exit] =
            <[OwnedFd; 4]>::try_from(descriptors).map_err(|_| failed(&Errno::BADF.into()))?;
        let mut command = Command::new(OsStr::from_bytes(name));
        command
            .args(start.argv.iter().skip(1).map(|a| OsStr::from_bytes(a)))
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr));
        // Settings of the lab's owner are for other paths: programs in the hosts do not inherit them.
        for (name, _) in std::env::vars_os() {
            let bytes = name.as_encoded_bytes();
            if bytes.starts_with(b"LINERATE_") && !bytes.starts_with(b"LINERATE_TEST_") {
                command.env_remove(name);
            }
        }
        command.envs(surroundings.environment);
        for (name, value) in &start.env {
            command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
        }
        let cpus = match &start.cpus[..] {
            [] => &surroundings.cpus[..],
            chosen => chosen,
        };
        let launch = || on_cpus(cpus, || self.launch(network, start, command, exit));
        let launched = match &surroundings.group {
            Some(group) => group.inside(launch),
            None => launch(),
        };
        launched.map_err(|e| failed(&e))?;
        let last = self.running.last().ok_or_else(|| failed(&Errno::SRCH.into()))?;
        Ok(last.pidfd.as_fd())
    }

    fn launch(
        &mut self,
        network: &Network,
        start: &Start,
        mut command: Command,
        exit: OwnedFd,
    ) -> io::Result<()> {
        let (net, mount) = network.spaces(Spot::of(start.host));
        let cwd = CString::new(start.cwd.clone())?;
        process::start_inside(&mut command, net.try_clone()?, mount.try_clone()?, cwd);
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        self.running.push(Program { host: start.host, pid, pidfd, exit: exit.into() });
        Ok(())
    }

    /// Sends a signal to the programs of a host.
    pub(super) fn signal(&self, host: Host, signal: Signal) -> Result<(), LabError> {
        let own = self.running.iter().filter(|program| program.host == host);
        for program in own {
            match rustix::process::pidfd_send_signal(&program.pidfd, signal) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(e) => return Err(LabError::step("cannot signal a program", &e.into())),
            }
        }
        Ok(())
    }

    /// Returns a descriptor of each program, which becomes readable when the program ends.
    pub(super) fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.running.iter().map(|program| program.pidfd.as_fd())
    }

    /// Collects ended processes, also orphans that programs left, and writes the exit statuses to the programs' pipes.
    pub(super) fn collect(&mut self) -> Result<(), LabError> {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    let own = self.running.iter().position(|program| program.pid == pid);
                    if let Some(mut program) = own.map(|at| self.running.swap_remove(at)) {
                        let raw = status.as_raw();
                        // If the owner has closed the pipe, it does not want the status, so errors are ignored.
                        let _ = program.exit.write_all(&raw.to_ne_bytes());
                    }
                }
                Ok(None) | Err(Errno::CHILD) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(e) => return Err(LabError::step("cannot wait for programs", &e.into())),
            }
        }
    }
}

/// Runs `action` with this thread bound to the given CPUs; programs that it starts stay on them.
pub(super) fn on_cpus<T>(cpus: &[usize], action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if cpus.is_empty() {
        return action();
    }
    let before = rustix::thread::sched_getaffinity(None)?;
    let mut wanted = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU {
            return Err(Errno::INVAL.into());
        }
        wanted.set(*cpu);
    }
    rustix::thread::sched_setaffinity(None, &wanted)?;
    let done = action();
    rustix::thread::sched_setaffinity(None, &before)?;
    done
}
