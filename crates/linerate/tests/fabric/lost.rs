//! Nodes that lose requests, and a simulator that is killed while the network is asked.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::simulated::{fabric, network, seen_from, started};

#[test]
fn a_node_that_loses_requests_ends_the_walk_and_is_named_if_it_leaves_any() {
    let Some(mut simulator) = started(network("fat-tree:4,4,2"), &["host-1-1:1"]) else {
        return;
    };
    // All requests, and half of them: a request is repeated, so that most of those get a reply.
    simulator.command("Error \"host-3-2\" 100").unwrap();
    let seen = seen_from(&simulator, "host-4-4");
    let problems = seen.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let (id, subject, now) = problems[0];
    assert_eq!((id, now), ("silent-node", true));
    assert!(subject.contains("leaf3 port 2"), "{subject}");
    simulator.command("Error \"host-3-2\" 50").unwrap();
    let seen = seen_from(&simulator, "host-4-4");
    for (id, subject, _) in seen.problems() {
        // ibsim counts what it drops as errors of the port.
        let ids = ["silent-node", "lossy-node", "link-errors"];
        assert!(ids.contains(&id), "{id}");
        // Its description may be among what is lost.
        let is_it = subject.starts_with("host-3-2")
            || subject.contains("leaf3 port 2")
            || subject.starts_with(seen.guid_across("leaf3", 2));
        assert!(is_it, "{subject}");
    }
    simulator.command("Error \"host-3-2\" 0").unwrap();
    let seen = seen_from(&simulator, "host-4-4");
    assert!(seen.problems().iter().all(|(_, _, now)| !now), "{seen:?}");
}

#[test]
fn a_simulator_that_is_killed_between_two_readings_leaves_what_was_seen() {
    let Some(simulator) = started(network("star:3"), &["host-1:1"]) else {
        return;
    };
    let home = TempDir::new().unwrap();
    let capture = home.path().join("capture");
    let file = capture.to_str().unwrap();
    let args = ["--interval", "3s", "--time", "20s", "--capture", file];
    let mut child = fabric(&simulator, home.path(), "host-3", &args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The walk itself takes far less than the pause before the second reading.
    std::thread::sleep(Duration::from_millis(1500));
    let pid = Pid::from_raw(simulator.pid().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let killed = Instant::now();
    let (mut out, mut errors) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(3), "{out}{errors}");
    // It does not hang: the limit is that of the walk, with room for a busy machine.
    assert!(killed.elapsed() < Duration::from_secs(120));
    assert!(out.contains("1 switch, 3 hosts, 3 links"), "{out}{errors}");
    assert!(out.contains("cut short"), "{out}");
    assert!(errors.contains("ibsim"), "{errors}");
}
