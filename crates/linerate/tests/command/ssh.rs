//! `linerate run ssh://HOST`, with a real ssh server on this machine.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use linerate_test::{Turn, free_ports, turn};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{PROGRAM, linerate};

/// Time limit of waits, long enough for everything that should happen.
const LONG: Duration = Duration::from_secs(30);

/// An ssh server of the test's own, and an ssh client that knows it as `brook`.
struct Sshd {
    server: Child,
    home: TempDir,
    /// Released once the server has ended.
    _turn: Turn,
}

impl Sshd {
    /// `None`, with a message, if no ssh server is installed.
    fn start() -> Option<Self> {
        let program = ["/usr/sbin/sshd", "/usr/bin/sshd"];
        let Some(program) = program.into_iter().find(|p| Path::new(p).exists()) else {
            linerate_test::skip("sshd", "there is no ssh server (openssh-server)");
            return None;
        };
        let turn = turn();
        let home = TempDir::new().unwrap();
        let [port] = free_ports();
        let at = |name: &str| home.path().join(name);
        make_key(&at("host"));
        make_key(&at("user"));
        let shown = |name: &str| at(name).display().to_string();
        let server = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM no\nPidFile none\n",
            shown("host"),
            shown("user.pub")
        );
        let client = format!(
            "Host brook\n HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n UserKnownHostsFile {}\n \
             StrictHostKeyChecking accept-new\n LogLevel ERROR\n",
            shown("user"),
            shown("known")
        );
        fs::write(at("sshd_config"), server).unwrap();
        fs::write(at("ssh_config"), client).unwrap();
        let ssh = at("ssh");
        fs::write(
            &ssh,
            format!("#!/bin/sh\nexec {} -F {} \"$@\"\n", real_ssh(), shown("ssh_config")),
        )
        .unwrap();
        fs::set_permissions(&ssh, Permissions::from_mode(0o755)).unwrap();

        // If root starts sshd, its directory /run/sshd must exist; it is made in a private /run.
        let alone = "mount -t tmpfs none /run && mkdir /run/sshd && exec \"$0\" \"$@\"";
        let mut command = if rustix::process::getuid().is_root() {
            let mut command = Command::new("unshare");
            command.args(["-m", "sh", "-c", alone, program]);
            command
        } else {
            Command::new(program)
        };
        command.args(["-D", "-e", "-f"]).arg(at("sshd_config"));
        let server = command.stderr(fs::File::create(at("sshd.log")).unwrap());
        let server = server.stdin(Stdio::null()).spawn().unwrap();
        let sshd = Self { server, home, _turn: turn };
        let until = Instant::now() + LONG;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "{}", sshd.log());
            thread::sleep(Duration::from_millis(20));
        }
        Some(sshd)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("sshd.log")).unwrap()
    }

    fn linerate(&self, args: &[&str]) -> Command {
        let mut command = linerate(self.home.path());
        let path = format!("{}:/usr/bin:/bin", self.home.path().display());
        command.env("PATH", path).args(args);
        command
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn make_key(path: &Path) {
    let mut made = Command::new("ssh-keygen");
    made.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path);
    assert!(made.status().unwrap().success());
}

fn real_ssh() -> &'static str {
    ["/usr/bin/ssh", "/bin/ssh"].into_iter().find(|p| Path::new(p).exists()).unwrap()
}

/// Copies the program to its own path, so that far ends of this test can be identified; returns the path and the URL.
fn copy(sshd: &Sshd, name: &str) -> (PathBuf, String) {
    let program = sshd.home.path().join(name);
    fs::copy(PROGRAM, &program).unwrap();
    let url = format!("ssh://brook{}", program.display());
    (program, url)
}

/// Number of processes that run this program.
fn running(program: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let exe = processes.filter_map(|p| fs::read_link(p.path().join("exe")).ok());
    exe.filter(|exe| exe == program).count()
}

fn gone(program: &Path) {
    let until = Instant::now() + LONG;
    while running(program) > 0 {
        assert!(Instant::now() < until, "the far end is left behind");
        thread::sleep(Duration::from_millis(20));
    }
}

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(all).unwrap()
}

#[test]
fn a_far_end_is_started_measured_and_gone() {
    let Some(sshd) = Sshd::start() else { return };
    let (program, url) = copy(&sshd, "far");
    let args = ["run", &url, "--time", "5s", "--no-trials", "--quiet", "--json"];
    let output = sshd.linerate(&args).output().unwrap();
    let words = text(&output);
    assert_eq!(output.status.code(), Some(0), "{words}\n{}", sshd.log());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let forward = &result["directions"]["forward"];
    assert!(forward["goodput_bps"].as_u64().unwrap() > 0, "{forward}");
    assert_eq!(running(&program), 0);
    // Neither end saved a key.
    let kept = |name: &str| sshd.home.path().join(".config/linerate").join(name).exists();
    assert!(!kept("serve.key") && !kept("keys"));
}

#[test]
fn a_run_that_is_killed_or_interrupted_leaves_no_far_end() {
    let Some(sshd) = Sshd::start() else { return };
    let (program, url) = copy(&sshd, "far");
    for signal in [Signal::KILL, Signal::INT] {
        let mut command = sshd.linerate(&["run", &url, "--time", "60s"]);
        let child = command.stderr(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.process_group(0).spawn().unwrap();
        let mut words = BufReader::new(child.stderr.take().unwrap()).lines();
        // Once this line is shown, the forward direction has been measured.
        assert!(words.any(|line| line.unwrap().starts_with("reverse")), "{}", sshd.log());
        let drained = thread::spawn(move || words.for_each(drop));
        assert_eq!(running(&program), 1);
        let pid = Pid::from_child(&child);
        if signal == Signal::INT {
            // A terminal sends the signal to all processes in the foreground, ssh among them.
            kill_process_group(pid, signal).unwrap();
        } else {
            kill_process(pid, signal).unwrap();
        }
        let output = child.wait_with_output().unwrap();
        drained.join().unwrap();
        if signal == Signal::INT {
            assert_eq!(output.status.code(), Some(3), "{}", text(&output));
            assert!(text(&output).contains("goodput"), "{}", text(&output));
        }
        gone(&program);
    }
}

#[test]
fn why_there_is_no_far_end_is_told() {
    let Some(sshd) = Sshd::start() else { return };
    for (url, why, hint) in [
        ("ssh://brook/nosuch/linerate", "there is no `/nosuch/linerate` on `brook`", "scp"),
        ("ssh://brook/bin/true", "ended before it listened", "--version"),
        ("ssh://nohost.invalid", "ssh cannot connect to `nohost.invalid`", "must work first"),
    ] {
        let output = sshd.linerate(&["run", url, "--time", "5s"]).output().unwrap();
        let words = text(&output);
        assert_eq!(output.status.code(), Some(3), "{words}");
        assert!(words.contains(why) && words.contains(hint), "{words}");
    }
    let output = sshd.linerate(&["run", "ssh://a b"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
}
