//! Starts the built program for these tests.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::schema::fits;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

/// The program with `home` as its home directory, without the tester's environment.
pub(crate) fn linerate(home: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_clear().env("HOME", home).current_dir(home);
    command.stdin(Stdio::null());
    command
}

/// The output of the program with these arguments, in an empty home.
pub(crate) fn run(args: &[&str]) -> Output {
    let home = TempDir::new().unwrap();
    linerate(home.path()).args(args).output().unwrap()
}

/// The program's exit code with these arguments, and its stderr.
pub(crate) fn ended(args: &[&str]) -> (Option<i32>, String) {
    let output = run(args);
    (output.status.code(), words(&output.stderr))
}

pub(crate) fn words(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The lines of `--stream-json`, each of which must match its schema.
pub(crate) fn stream_lines(out: &[u8]) -> Vec<Value> {
    let text = words(out);
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    for line in &lines {
        fits("stream", line);
    }
    lines
}

/// A running program whose outputs are pipes. It is killed when the test ends, even while it is stopped.
pub(crate) struct Started {
    child: Child,
    /// Stderr of the program; `None` once `log` reads it.
    errors: Option<BufReader<ChildStderr>>,
}

impl Started {
    pub(crate) fn new(command: &mut Command) -> Self {
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let errors = child.stderr.take().map(BufReader::new);
        Self { child, errors }
    }

    /// Waits for a line on stderr that contains `part`.
    #[track_caller]
    pub(crate) fn until(&mut self, part: &str) -> String {
        let errors = self.errors.as_mut().unwrap();
        let mut seen = String::new();
        loop {
            let before = seen.len();
            let more = errors.read_line(&mut seen).unwrap();
            assert!(more > 0, "no `{part}` in: {seen}");
            let line = seen[before..].trim_end();
            if line.contains(part) {
                return line.to_owned();
            }
        }
    }

    /// The lines on stderr from now on. They are always read, so the program never waits to write them.
    pub(crate) fn log(&mut self) -> Receiver<String> {
        let errors = self.errors.take().unwrap();
        let (tell, reported) = channel();
        thread::spawn(move || {
            let lines = errors.lines();
            lines.for_each(|line| drop(tell.send(line.unwrap_or_default())));
        });
        reported
    }

    /// Stdout of the program, for a test that reads it while the program runs.
    pub(crate) fn out(&mut self) -> ChildStdout {
        self.child.stdout.take().unwrap()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits until the program ends; returns its status and the rest of its outputs.
    pub(crate) fn end(mut self) -> Output {
        let [mut stdout, mut stderr] = [Vec::new(), Vec::new()];
        let (out, errors) = (self.child.stdout.take(), self.errors.take());
        // Stdout and stderr are read at once: the program may fill one pipe before it closes the other.
        thread::scope(|scope| {
            scope.spawn(|| errors.map(|mut errors| errors.read_to_end(&mut stderr).unwrap()));
            out.map(|mut out| out.read_to_end(&mut stdout).unwrap());
        });
        let status = self.child.wait().unwrap();
        Output { status, stdout, stderr }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Errors are ignored, because the program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
