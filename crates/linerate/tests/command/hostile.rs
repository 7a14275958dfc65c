//! The built program when things go wrong: ends that stand still, hosts that lack what the program uses. Nothing may
//! hang or be lost, and no failure may pass for success.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use linerate_test::{Turn, free_ports, skip, turn};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::program::{PROGRAM, Started, linerate, words};

/// A command for another program in place of linerate; it finds programs by the tester's `PATH`.
fn command(program: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", home)
        .stdin(std::process::Stdio::null());
    command
}

/// A server without a key, on a free port.
struct Far {
    server: Started,
    port: u16,
    /// Lines that the server logs.
    log: Receiver<String>,
    /// Released once the server has ended. During another test's load, a second without samples would be lost in the
    /// noise.
    turn: Option<Turn>,
}

impl Far {
    fn start(home: &Path) -> Self {
        Self::start_by(PROGRAM, &[], home)
    }

    /// Starts the server by `program`, whose own arguments are `before`.
    fn start_by(program: &str, before: &[&str], home: &Path) -> Self {
        let turn = turn();
        let [port] = free_ports();
        let mut serve = command(program, home);
        serve.args(before);
        serve.args(["serve", "--open", "--listen", "127.0.0.1", "--port"]);
        let mut server = Started::new(serve.arg(port.to_string()));
        server.until("listening");
        let log = server.log();
        Self { server, port, log, turn: Some(turn) }
    }
}

/// A short run against the server on `port`, started by `program`, whose own arguments are `before`.
fn run(program: &str, before: &[&str], home: &Path, port: u16) -> Command {
    let mut run = command(program, home);
    run.args(before).args(["run", "127.0.0.1", "--open", "--port"]).arg(port.to_string()).args([
        "--time",
        "5s",
        "--no-trials",
        "--json",
    ]);
    run
}

/// The exit code of a run, its stdout and its stderr.
fn finish(near: Started) -> (Option<i32>, String, String) {
    let output = near.end();
    let [json, said] = [&output.stdout, &output.stderr].map(|bytes| words(bytes));
    (output.status.code(), json, said)
}

/// Time after the announcement of a step by which the step has begun: steps take most of a run's time.
const WELL_INTO: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_secs(1);

/// Stops one end for a second under load: the run must continue and name the interruption.
fn stands_still(near_end: bool) {
    let home = TempDir::new().unwrap();
    let far = Far::start(home.path());
    let mut near = Started::new(&mut run(PROGRAM, &[], home.path(), far.port));
    near.until("forward, 1 stream");
    thread::sleep(WELL_INTO);
    let (end, name) = if near_end { (&near, "near") } else { (&far.server, "far") };
    end.signal(Signal::STOP);
    thread::sleep(PAUSE);
    end.signal(Signal::CONT);
    let (code, json, said) = finish(near);
    assert_eq!(code, Some(0), "{said}");
    assert!(json.contains(r#""cause": "interrupted""#), "{json}");
    let still = format!("the {name} end took no sample");
    assert!(json.contains(&still), "{json}");
}

/// Starts a measurement of some seconds, and stops the far end once the load has begun.
fn far_end_stops(time: &str) -> (Far, Started, TempDir) {
    let home = TempDir::new().unwrap();
    let mut far = Far::start(home.path());
    let mut bw = command(PROGRAM, home.path());
    bw.args(["bw", "127.0.0.1", "--open", "--time", time, "--port"]);
    let mut near = Started::new(bw.arg(far.port.to_string()));
    near.until("forward, 1 stream");
    thread::sleep(WELL_INTO);
    far.server.signal(Signal::STOP);
    // While the far end is stopped there is no load, so other tests may measure.
    far.turn = None;
    (far, near, home)
}

#[test]
fn a_far_end_that_stops_is_told_of_and_given_up() {
    let began = Instant::now();
    let (_far, mut near, _home) = far_end_stops("2s");
    near.until("note: no answer from the far end for 5 s");
    let output = near.end();
    let [page, said] = [&output.stdout, &output.stderr].map(|bytes| words(bytes));
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(page.contains("Ended early: lost the far end"), "{page}");
    assert!(page.contains("sent  "), "{page}");
    assert!(said.contains("no answer for 12 s"), "{said}");
    // Waiting for every reply that the far end could still send would take two minutes.
    assert!(began.elapsed() < Duration::from_secs(70), "{said}");
}

#[test]
fn a_far_end_that_stops_for_some_seconds_is_measured_to_the_end() {
    let (far, mut near, _home) = far_end_stops("8s");
    near.until("note: no answer from the far end for 5 s");
    let _turn = turn();
    far.server.signal(Signal::CONT);
    near.until("note: the far end answers again");
    let (code, page, said) = finish(near);
    assert_eq!(code, Some(0), "{said}");
    assert!(page.contains("the far end took no sample for"), "{page}");
}

#[test]
fn the_first_ctrl_c_ends_a_run_that_has_not_begun() {
    let home = TempDir::new().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let near = Started::new(&mut run(PROGRAM, &[], home.path(), port));
    let _held = silent.accept().unwrap();
    near.signal(Signal::INT);
    let (code, _, said) = finish(near);
    assert_eq!((code, said.as_str()), (Some(3), ""));
}

/// A shell script that runs a program with at most this many open descriptors, set by `ulimit FLAG`.
fn descriptors(flag: &str, most: u32) -> String {
    format!("ulimit {flag} {most}; exec \"$0\" \"$@\"")
}

/// A run of sixty streams from a shell whose limit of open descriptors is 48.
fn sixty_streams(flag: &str) -> (Option<i32>, String, String) {
    let home = TempDir::new().unwrap();
    let far = Far::start(home.path());
    let script = descriptors(flag, 48);
    let mut near = run("sh", &["-c", &script, PROGRAM], home.path(), far.port);
    finish(Started::new(near.args(["--streams", "60", "--no-save"])))
}

#[test]
fn a_low_limit_of_descriptors_is_raised_or_named() {
    let (code, json, said) = sixty_streams("-Sn");
    assert_eq!(code, Some(0), "{said}");
    assert!(json.contains(r#""streams": 60"#), "{json}");
    let (code, _, said) = sixty_streams("-n");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("Too many open files"), "{said}");
    assert!(said.contains("hint: ") && said.contains("ulimit -Hn"), "{said}");
}

#[test]
fn more_streams_than_the_far_end_has_descriptors_for_are_refused_in_words_at_both_ends() {
    let home = TempDir::new().unwrap();
    let few = descriptors("-n", 64);
    let far = Far::start_by("sh", &["-c", &few, PROGRAM], home.path());
    for (streams, good) in [("10000", false), ("19", false), ("4", true)] {
        let mut near = run(PROGRAM, &[], home.path(), far.port);
        near.args(["--streams", streams, "--no-save"]);
        let (code, _, said) = finish(Started::new(&mut near));
        assert_eq!(code, Some(if good { 0 } else { 3 }), "{streams}: {said}");
        let reported = ["more than 18 streams at a time", "hint: ", "LimitNOFILE="];
        assert_eq!(reported.iter().all(|words| said.contains(words)), !good, "{streams}: {said}");
    }
    let refused = |line: &String| line.contains("refused more than 18 streams at a time");
    assert_eq!(far.log.try_iter().filter(refused).count(), 2);
}

/// Runs a script as root in its own namespaces; `None`, with a message, if that is not allowed.
fn apart(home: &Path, script: &str) -> Option<Output> {
    let unshare = |script: &str| {
        let mut unshare = command("unshare", home);
        unshare.args(["-rm", "sh", "-c", script, PROGRAM]).output()
    };
    if unshare("true").is_ok_and(|o| o.status.success()) {
        return Some(unshare(script).unwrap());
    }
    let why = "this case needs namespaces, which cannot be made here";
    skip("namespaces", why);
    None
}

#[test]
fn without_proc_and_sys_nothing_is_fine() {
    let _turn = turn();
    let home = TempDir::new().unwrap();
    let script = "mount -t tmpfs none /sys && mount -t tmpfs none /proc && \
                  exec \"$0\" run --time 5s --no-trials --quiet --json";
    let Some(output) = apart(home.path(), script) else {
        return;
    };
    let (json, said) = (words(&output.stdout), words(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    // Without /proc no core is known to have been idle or busy.
    assert!(!json.contains("-core\""), "{json}");
    assert!(json.contains("mount -t proc proc /proc"), "{json}");
}

#[test]
fn a_read_only_file_system_keeps_no_record_and_ends_no_run() {
    let _turn = turn();
    let home = TempDir::new().unwrap();
    let script = "mount --bind \"$HOME\" \"$HOME\" && mount -o remount,ro,bind \"$HOME\" && \
                  exec \"$0\" run --time 5s --no-trials --quiet --json";
    let Some(output) = apart(home.path(), script) else {
        return;
    };
    let said = words(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("Read-only file system"), "{said}");
    assert!(said.contains("hint: ") && said.contains("--save DIR"), "{said}");
}

#[test]
fn an_address_of_the_other_family_and_a_scope_that_is_none_are_told() {
    let home = TempDir::new().unwrap();
    for (peer, family, reported) in [
        ("::1", "-4", "IPv4"),
        ("127.0.0.1", "-6", "IPv6"),
        ("fe80::1%no-such-port", "-6", "fe80::1%no-such-port"),
    ] {
        let output = linerate(home.path())
            .args(["run", peer, family, "--open", "--no-save"])
            .output()
            .unwrap();
        let said = words(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{peer}: {said}");
        assert!(said.contains(reported) && said.contains("hint: "), "{peer}: {said}");
    }
}

mod long {
    use super::*;

    #[test]
    fn a_place_that_takes_no_record_ends_no_run() {
        let home = TempDir::new().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        let below = file.join("records");
        // Nobody can make a directory there, not even root.
        let places = [below.to_str().unwrap(), "/sys/linerate-records"];
        let _turn = turn();
        for place in places {
            let output = linerate(home.path())
                .args(["run", "--time", "5s", "--no-trials", "--quiet", "--json"])
                .args(["--save", place])
                .output()
                .unwrap();
            let said = words(&output.stderr);
            // The user requested the record, so this is a failure.
            assert_eq!(output.status.code(), Some(3), "{said}");
            assert!(words(&output.stdout).contains("\"complete\": true"));
            assert!(said.contains("warning: the record is not saved"), "{said}");
            assert!(said.contains(place) && said.contains("--save DIR"), "{said}");
        }
    }

    #[test]
    fn a_limit_of_file_sizes_ends_no_run() {
        let home = TempDir::new().unwrap();
        let _turn = turn();
        let output = command("prlimit", home.path())
            .args(["--fsize=1000", PROGRAM])
            .args(["run", "--time", "5s", "--no-trials", "--quiet", "--json"])
            .output()
            .unwrap();
        let said = words(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("not saved") && said.contains("too large"), "{said}");
    }

    #[test]
    fn a_near_end_that_stood_still_interrupted_the_run() {
        stands_still(true);
    }

    #[test]
    fn nobody_who_stops_a_run_waits_for_a_far_end_that_is_stopped() {
        let home = TempDir::new().unwrap();
        let far = Far::start(home.path());
        let mut near = Started::new(&mut run(PROGRAM, &[], home.path(), far.port));
        near.until("forward, 1 stream");
        thread::sleep(WELL_INTO);
        far.server.signal(Signal::STOP);
        // By then the near end has ended its step, and waits for the readings of the far end.
        thread::sleep(Duration::from_secs(6));
        near.signal(Signal::INT);
        let (code, json, said) = finish(near);
        assert_eq!(code, Some(3), "{said}");
        assert!(json.contains(r#""complete": false"#), "{json}");
        // The run must have ended by the signal, not by its own deadline, which is later.
        assert!(!said.contains("no answer for"), "{said}");
        assert!(json.contains(r#""idle": {"#), "{json}");
    }

    #[test]
    fn a_far_end_that_stood_still_interrupted_the_run() {
        stands_still(false);
    }
}
