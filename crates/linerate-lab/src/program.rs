//! Programs that run in a host of a lab.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;
use rustix::process::Signal;

use crate::error::LabError;

/// Destination of a program's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Output {
    /// The output can be read from the [`Running`].
    #[default]
    Pipe,
    /// The output goes where the caller's output goes.
    Inherit,
    /// The output is discarded.
    Null,
}

/// A program to run in a host. It gets the environment that the caller had when it built the lab, and no input.
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cpus: Vec<usize>,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
    cwd: Option<PathBuf>,
}

impl Program {
    /// Makes a program from its path, or from a name that is searched in `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self::default().arg(program)
    }

    /// Adds an argument to the command line of the program.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.argv.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments to the command line of the program.
    #[must_use]
    pub fn args<T: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        let arguments = arguments.into_iter().map(|a| a.as_ref().to_owned());
        self.argv.extend(arguments);
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let pair = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.env.push(pair);
        self
    }

    /// Binds the program to CPUs; the default is all CPUs of the caller.
    #[must_use]
    pub fn cpus(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.cpus = cpus.into_iter().collect();
        self
    }

    /// Sets the destination of the program's standard output.
    #[must_use]
    pub fn stdout(mut self, output: Output) -> Self {
        self.stdout = output;
        self
    }

    /// Sets the destination of the program's standard error.
    #[must_use]
    pub fn stderr(mut self, output: Output) -> Self {
        self.stderr = output;
        self
    }

    /// Sets the working directory of the program; the default is the caller's.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    /// Returns the name of the program, for messages.
    pub(crate) fn name(&self) -> String {
        let name = self.argv.first().map(|n| n.to_string_lossy());
        name.unwrap_or_default().into_owned()
    }

    pub(crate) fn directory(&self) -> Result<PathBuf, LabError> {
        match &self.cwd {
            Some(directory) => Ok(directory.clone()),
            None => std::env::current_dir()
                .map_err(|e| LabError::step("cannot tell the working directory", &e)),
        }
    }
}

/// Descriptors for a program that is about to start: those that the program gets, and those that stay here.
pub(crate) struct Streams {
    inner: [OwnedFd; 4],
    stdout: Option<File>,
    stderr: Option<File>,
    exit: File,
}

impl Streams {
    pub(crate) fn open(program: &Program) -> Result<Self, LabError> {
        let open = || -> io::Result<Self> {
            let null = File::open("/dev/null")?;
            let (stdout, out) = stream(program.stdout, io::stdout().as_fd())?;
            let (stderr, err) = stream(program.stderr, io::stderr().as_fd())?;
            let (exit, status) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            Ok(Self { inner: [null.into(), out, err, status], stdout, stderr, exit: exit.into() })
        };
        open().map_err(|e| LabError::step("cannot make pipes for a program", &e))
    }

    pub(crate) fn inner(&self) -> [BorrowedFd<'_>; 4] {
        self.inner.each_ref().map(AsFd::as_fd)
    }

    pub(crate) fn running(self, pidfd: OwnedFd) -> Running {
        Running { stdout: self.stdout, stderr: self.stderr, exit: self.exit, pidfd, status: None }
    }
}

fn stream(output: Output, own: BorrowedFd<'_>) -> io::Result<(Option<File>, OwnedFd)> {
    match output {
        Output::Pipe => {
            let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            Ok((Some(read.into()), write))
        }
        Output::Inherit => Ok((None, own.try_clone_to_owned()?)),
        Output::Null => {
            let null = File::options().write(true).open("/dev/null")?;
            Ok((None, null.into()))
        }
    }
}

/// Exit status and output of a program.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How the program ended.
    pub status: ExitStatus,
    /// Text of the piped standard output.
    pub stdout: Vec<u8>,
    /// Text of the piped standard error.
    pub stderr: Vec<u8>,
}

/// A program that runs in a host. Dropping it lets the program run until the lab ends.
#[derive(Debug)]
pub struct Running {
    /// Standard output of the program, if it is piped and not taken yet.
    pub stdout: Option<File>,
    /// Standard error of the program, if it is piped and not taken yet.
    pub stderr: Option<File>,
    exit: File,
    pidfd: OwnedFd,
    status: Option<ExitStatus>,
}

impl Running {
    /// Waits until the program ends. Fails with [`LabError::Gone`] if the lab ends first.
    pub fn wait(&mut self) -> Result<ExitStatus, LabError> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let mut raw = [0; 4];
        self.exit
            .read_exact(&mut raw)
            .map_err(|_| LabError::gone("it ended before the program in it"))?;
        let status = ExitStatus::from_raw(i32::from_ne_bytes(raw));
        self.status = Some(status);
        Ok(status)
    }

    /// Waits until the program ends, but at most for `time`; returns `None` if it is still running.
    pub fn wait_for(&mut self, time: Duration) -> Result<Option<ExitStatus>, LabError> {
        if self.status.is_none() && !readable(&[self.exit.as_fd()], Some(time))? {
            return Ok(None);
        }
        self.wait().map(Some)
    }

    /// Sends a signal to the program. Does nothing if it has ended.
    pub fn signal(&self, signal: Signal) -> Result<(), LabError> {
        match rustix::process::pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(e) => Err(LabError::step("cannot signal a program", &e.into())),
        }
    }

    /// Kills the program and waits for its end.
    pub fn kill(&mut self) -> Result<ExitStatus, LabError> {
        self.signal(Signal::KILL)?;
        self.wait()
    }

    /// Reads the piped output to its end, then waits until the program ends.
    pub fn finish(mut self) -> Result<Finished, LabError> {
        let mut pipes = [self.stdout.take(), self.stderr.take()];
        let mut texts = [Vec::new(), Vec::new()];
        // Both pipes are read together: otherwise a program that fills the other one would wait forever.
        while pipes.iter().any(Option::is_some) {
            let open: Vec<_> = pipes.iter().flatten().map(AsFd::as_fd).collect();
            readable(&open, None)?;
            for (slot, text) in pipes.iter_mut().zip(&mut texts) {
                take(slot, text).map_err(|e| LabError::step("cannot read from a program", &e))?;
            }
        }
        let status = self.wait()?;
        let [stdout, stderr] = texts;
        Ok(Finished { status, stdout, stderr })
    }
}

/// Reads the available data of a pipe, and closes it at its end.
fn take(slot: &mut Option<File>, text: &mut Vec<u8>) -> io::Result<()> {
    let Some(pipe) = slot else {
        return Ok(());
    };
    if !readable(&[pipe.as_fd()], Some(Duration::ZERO)).map_err(io::Error::other)? {
        return Ok(());
    }
    let mut some = [0; 16 * 1024];
    match pipe.read(&mut some)? {
        0 => *slot = None,
        length => text.extend_from_slice(&some[..length]),
    }
    Ok(())
}

/// Waits until one of the descriptors can be read, but at most for `time`.
fn readable(all: &[BorrowedFd<'_>], time: Option<Duration>) -> Result<bool, LabError> {
    let timeout = time.map(|time| Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    });
    let mut polled: Vec<_> =
        all.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    loop {
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(LabError::step("cannot wait for a program", &e.into())),
        }
    }
}
