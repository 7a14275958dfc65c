//! Engine `program`: linerate starts an ordinary program at each end. Without the preload the programs use the kernel's
//! TCP.

use std::fs;
use std::time::Instant;

use rustix::process::{Pid, kill_process};

use super::*;

/// Time limit of waits, long enough for everything that should happen.
const LONG: Duration = Duration::from_secs(30);

/// The ordinary programs that a process of linerate has started.
fn programs_of(parent: Pid) -> Vec<Pid> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let own = all.filter(|process| {
        let file = |name| fs::read_to_string(process.path().join(name)).unwrap_or_default();
        let status = file("status");
        let started_by = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        started_by.is_some_and(|id| id.trim() == parent.as_raw_nonzero().to_string())
            && file("cmdline").contains("socket-program")
    });
    own.filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?)).collect()
}

/// Waits until a process has started this number of programs; returns their process ids.
fn until_there_are(number: usize, parent: Pid) -> Vec<Pid> {
    let until = Instant::now() + LONG;
    loop {
        let all = programs_of(parent);
        if all.len() == number {
            return all;
        }
        assert!(Instant::now() < until, "{all:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn round_trips_and_loads_of_programs_are_counted_at_both_ends() {
    let far = Far::start();
    let Some(reported) = far.json(&["lat", "--engine", "program", "-t", "1s"], "lat") else {
        return;
    };
    assert!(reported["samples"].as_u64() > Some(10), "{reported}");
    assert!(reported["least_ns"].as_u64() > Some(0), "{reported}");
    let args = ["bw", "--engine", "program", "-t", "1s", "-d", "both", "-P", "2"];
    let Some(reported) = far.json(&args, "bw") else {
        return;
    };
    for direction in ["forward", "reverse"] {
        let flow = &reported["directions"][direction];
        assert!(flow["received_bytes"].as_u64() > Some(1 << 20), "{reported}");
        for end in ["near", "far"] {
            // The CPU time is that of the programs: the threads of linerate only read their reports.
            assert!(flow[end]["cpu_ns_per_byte"].as_f64() > Some(0.0), "{reported}");
        }
    }
    until_there_are(0, far.server.pid());
}

#[test]
fn a_connection_that_the_preload_leaves_to_tcp_is_no_result_of_the_preload() {
    let far = Far::start();
    // Loopback belongs to no RDMA device. The preload library may also be missing.
    let (code, said) = ended_of(&far, &["lat", "--engine", "program", "--preload", "-t", "1s"]);
    assert_eq!(code, Some(3), "{said}");
    let why = ["left the connection to the kernel's TCP", "no librspreload"];
    assert!(why.iter().any(|why| said.contains(why)), "{said}");
    assert!(said.contains("\nhint: "), "{said}");
}

#[test]
fn a_killed_program_ends_the_measurement_and_not_the_server() {
    let far = Far::start();
    for of_server in [false, true] {
        let mut command = far.command(&["lat", "--engine", "program", "-t", "60s"]);
        let near = Started::new(&mut command);
        let parent = if of_server { far.server.pid() } else { near.pid() };
        let [program] = until_there_are(1, parent)[..] else { panic!("several programs") };
        kill_process(program, Signal::KILL).unwrap();
        let output = near.end();
        // If the measurement had begun, the page names the reason; else it is an error.
        let said = [&output.stdout, &output.stderr].map(|bytes| words(bytes));
        let said = said.concat().replace('\n', " ");
        assert_eq!(output.status.code(), Some(3), "{said}");
        let why = ["program ended", "closed", "Connection reset"];
        assert!(why.iter().any(|why| said.contains(why)), "{said}");
        until_there_are(0, far.server.pid());
    }
}

#[test]
fn programs_end_with_what_started_them() {
    let far = Far::start();
    let mut command = far.command(&["lat", "--engine", "program", "-t", "60s"]);
    let near = Started::new(&mut command);
    let programs = until_there_are(1, near.pid());
    near.signal(Signal::KILL);
    drop(near);
    let until = Instant::now() + LONG;
    let lives = |pid: &Pid| {
        let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
        fs::read_to_string(path).is_ok_and(|line| line.contains("socket-program"))
    };
    while programs.iter().any(lives) {
        assert!(Instant::now() < until, "a program is left behind");
        thread::sleep(Duration::from_millis(20));
    }
    until_there_are(0, far.server.pid());
}

#[test]
fn what_programs_cannot_do_is_refused_in_words() {
    let far = Far::start();
    for (args, wanted) in [
        (&["lat", "--busy-poll"][..], "has no busy poll"),
        (&["lat", "--rate", "100"], "has no rate of messages"),
        (&["bw", "-P", "9"], "1 to 8 are possible"),
        (&["bw", "--congestion", "cubic"], "has no congestion control"),
    ] {
        let (code, said) = ended_of(&far, &[args, &["--engine", "program"]].concat());
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(said.contains(wanted), "{args:?}: {said}");
    }
}

/// The exit code and the stderr of a command that connects to `far`.
fn ended_of(far: &Far, args: &[&str]) -> (Option<i32>, String) {
    let output = far.run(args);
    (output.status.code(), words(&output.stderr))
}
