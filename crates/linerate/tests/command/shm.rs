//! Shared memory between two processes, the second of which linerate starts.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use std::{fs, thread};

use linerate_test::{Turn, ask, turn};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{PROGRAM, Started, ended, words};
use crate::schema::fits;

/// Time limit of waits, long enough for everything that should happen.
const LONG: Duration = Duration::from_secs(30);

/// A copy of the program with its own path, so that its processes can be identified.
struct Copy {
    home: TempDir,
    program: PathBuf,
    turn: Turn,
}

impl Copy {
    fn new() -> Self {
        let (turn, home) = (turn(), TempDir::new().unwrap());
        let program = home.path().join("alone");
        fs::copy(PROGRAM, &program).unwrap();
        Self { home, program, turn }
    }

    /// The command that runs the program, or that runs `wrapper` with the program as its argument.
    fn under(&self, wrapper: &[&str], args: &[&str]) -> Command {
        let all: Vec<&Path> = wrapper.iter().map(Path::new).chain([&*self.program]).collect();
        let mut command = Command::new(all[0]);
        command.args(&all[1..]).args(args);
        command.env_clear().env("HOME", self.home.path());
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.current_dir(self.home.path());
        command
    }

    fn start(&self, args: &[&str]) -> Started {
        Started::new(self.under(&[], args).process_group(0))
    }

    /// The document of a measurement that succeeded; `None` if the machine was disturbed each time.
    fn json(&self, args: &[&str], schema: &str) -> Option<Value> {
        ask(&self.turn, || {
            let output = self.under(&[], &[args, &["--json"]].concat()).output().unwrap();
            let said = words(&output.stderr);
            let reported: Value = serde_json::from_slice(&output.stdout).expect(&said);
            fits(schema, &reported);
            if reported["complete"] == true { Ok(reported) } else { Err(said) }
        })
    }

    /// Process ids of this copy of the program.
    fn running(&self) -> Vec<Pid> {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let own = processes
            .filter(|p| fs::read_link(p.path().join("exe")).is_ok_and(|exe| exe == self.program));
        own.filter_map(|p| Pid::from_raw(p.file_name().to_str()?.parse().ok()?)).collect()
    }

    /// Waits for the process that `first` starts; returns its process id.
    fn second(&self, first: Pid) -> Pid {
        let until = Instant::now() + LONG;
        loop {
            if let Some(second) = self.running().into_iter().find(|pid| *pid != first) {
                return second;
            }
            assert!(Instant::now() < until, "there is no second process");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn gone(&self) {
        let until = Instant::now() + LONG;
        while !self.running().is_empty() {
            assert!(Instant::now() < until, "a process is left behind");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn text(output: &Output) -> String {
    words(&[&output.stdout[..], &output.stderr].concat())
}

#[test]
fn streams_and_round_trips_go_through_the_memory_of_two_processes() {
    let copy = Copy::new();
    let args = ["bw", "--engine", "shm", "-t", "1s", "-d", "both", "-P", "2"];
    if let Some(reported) = copy.json(&args, "bw") {
        assert_eq!((&reported["engine"], &reported["same_machine"]), (&"shm".into(), &true.into()));
        for way in ["forward", "reverse"] {
            let way = &reported["directions"][way];
            assert!(way["goodput_bps"].as_f64() > Some(1e6), "{way}");
            assert!(way["retransmits"].is_null(), "{way}");
        }
        assert_eq!(reported["unknown"], Value::Array(Vec::new()));
    }
    for more in [&["--busy-poll"][..], &["--rate", "500"], &["--size", "3MiB"]] {
        let args = [&["lat", "--engine", "shm", "-t", "1s"], more].concat();
        if let Some(reported) = copy.json(&args, "lat") {
            assert!(reported["percentiles"][0]["ns"].as_u64() > Some(0), "{reported}");
            assert!(reported["lost"].is_null(), "{reported}");
        }
    }
    copy.gone();
}

#[test]
fn a_far_end_is_named_where_there_is_one_and_nowhere_else() {
    for verb in ["bw", "lat", "run"] {
        for far in ["brook", "ssh://brook", "127.0.0.1:1"] {
            let (code, said) = ended(&[verb, far, "--engine", "shm"]);
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains("between two processes of this host"), "{said}");
        }
    }
    for verb in ["bw", "lat"] {
        let (code, said) = ended(&[verb]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("linerate serve"), "{said}");
    }
    for (args, why) in [
        (&["lat", "--size", "0B"][..], "0"),
        (&["lat", "--size", "17MiB"], "16 MiB"),
        (&["bw", "--mss", "1000"], "segment"),
        (&["bw", "--pacing", "1Gbit/s"], "pace"),
    ] {
        let (code, said) = ended(&[args, &["--engine", "shm"]].concat());
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn neither_process_outlives_the_other() {
    let copy = Copy::new();
    let args = ["bw", "--engine", "shm", "-t", "60s"];
    // The first process is killed, so no process is left to report it; the second must end too.
    let mut first = copy.start(&args);
    first.until("forward");
    copy.second(first.pid());
    first.signal(Signal::KILL);
    drop(first);
    copy.gone();
    // A terminal sends Ctrl-C to all processes in the foreground: the run ends in order.
    let mut first = copy.start(&args);
    first.until("forward");
    thread::sleep(Duration::from_millis(1500));
    kill_process_group(first.pid(), Signal::INT).unwrap();
    let output = first.end();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    assert!(text(&output).contains("goodput"), "{}", text(&output));
    copy.gone();
    // The second process is killed, or stops responding: the first must report that.
    let mut first = copy.start(&args);
    first.until("forward");
    kill_process(copy.second(first.pid()), Signal::KILL).unwrap();
    let output = first.end();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("lost the far end"), "{said}");
    assert!(said.contains("second process of linerate was ended"), "{said}");
    copy.gone();
}

mod long {
    use super::*;

    #[test]
    fn memory_that_cannot_be_had_is_told_and_that_of_file_systems_does_not_matter() {
        let copy = Copy::new();
        let args = ["bw", "--engine", "shm", "-t", "1s"];
        let limited = copy.under(&["prlimit", "--fsize=65536"], &args).output();
        let output = limited.unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        assert!(text(&output).contains("of shared memory cannot be had"), "{}", text(&output));
        copy.gone();
        // Cases in which /dev/shm is full, and in which it does not exist.
        let full = "mount -t tmpfs -o size=4k none /dev/shm; head -c 1M /dev/zero > /dev/shm/x || true; exec \"$0\" \"$@\"";
        let none = "mkdir dev; mount --rbind /dev dev; mount -t tmpfs none /dev; \
                    for file in null urandom; do touch /dev/$file; mount --bind dev/$file /dev/$file; done; \
                    exec \"$0\" \"$@\"";
        for script in [full, none] {
            let output =
                copy.under(&["unshare", "-rm", "sh", "-ec", script], &args).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", text(&output));
            assert!(text(&output).contains("goodput"), "{}", text(&output));
        }
    }

    /// The reading application works on each byte: its thread uses all of its CPU time, which a trial proves.
    #[test]
    fn a_slow_reader_is_named_and_proved_by_a_trial() {
        let copy = Copy::new();
        let args = [
            "run",
            "--engine",
            "shm",
            "-d",
            "forward",
            "-P",
            "1",
            "--time",
            "20s",
            "--json",
            "--no-save",
        ];
        let found = ask(&copy.turn, || {
            let mut command = copy.under(&[], &args);
            command.env("LINERATE_LAB_APPLICATION", "receiver,work=2000ps/B");
            let output = command.output().unwrap();
            let said = words(&output.stderr);
            let reported: Value = serde_json::from_slice(&output.stdout).expect(&said);
            fits("run", &reported);
            let limits = reported["verdict"]["limits"].as_array().unwrap();
            let limit = limits.first().cloned().unwrap_or_default();
            if limit["cause"] == "receiver-core" && limit["certainty"] == "proved" {
                Ok(reported)
            } else {
                Err(reported["verdict"].to_string())
            }
        });
        if let Some(reported) = found {
            assert_eq!(reported["verdict"]["limits"].as_array().unwrap().len(), 1);
            for host in reported["hosts"].as_array().unwrap() {
                assert!(host["port"].is_null(), "{host}");
            }
        }
        copy.gone();
    }
}
