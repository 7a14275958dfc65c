//! Nodes that lose requests, and a simulator that is killed while a walk sends requests.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::simulated::{fabric, network, output, seen_from, started};

#[test]
fn a_node_that_loses_requests_ends_the_walk_and_is_named() {
    let Some(mut simulator) = started(network("fat-tree:4,4,2"), &["host-1-1:1"]) else {
        return;
    };
    // The node loses all requests, later half of them. A request is repeated, so that most then get a reply.
    simulator.command("Error \"host-3-2\" 100").unwrap();
    let seen = seen_from(&simulator, "host-4-4");
    let problems = seen.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let (id, subject, now) = problems[0];
    assert_eq!((id, now), ("silent-node", true));
    assert!(subject.contains("leaf3 port 2"), "{subject}");
    simulator.command("Error \"host-3-2\" 50").unwrap();
    // In one walk of 150 the node loses at most two datagrams and is not named, so there are several walks.
    let walks = std::iter::repeat_with(|| seen_from(&simulator, "host-4-4")).take(4);
    let found = walks.into_iter().find(|seen| !seen.problems().is_empty());
    let seen = found.expect("a node that loses half of the datagrams is named");
    for (id, subject, _) in seen.problems() {
        // ibsim counts datagrams that it drops as errors of the port.
        let ids = ["silent-node", "lossy-node", "link-errors"];
        assert!(ids.contains(&id), "{id}");
        // If the reply with the node's name is lost, the subject is its cable or its GUID.
        let is_it = subject.starts_with("host-3-2")
            || subject.contains("leaf3 port 2")
            || subject.starts_with(seen.guid_across("leaf3", 2));
        assert!(is_it, "{subject}");
    }
    simulator.command("Error \"host-3-2\" 0").unwrap();
    let seen = seen_from(&simulator, "host-4-4");
    assert!(seen.problems().iter().all(|(_, _, now)| !now), "{seen:?}");
}

/// Sends a signal to the simulator between two readings of a walk. Returns the exit code, the stdout and the stderr of
/// the walk.
fn struck(signal: Signal) -> Option<(Option<i32>, String, String)> {
    let simulator = started(network("star:3"), &["host-1:1"])?;
    let home = TempDir::new().unwrap();
    let args = ["--interval", "3s", "--time", "6s"];
    let child = fabric(&simulator, home.path(), "host-3", &args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The walk itself takes far less than the pause before the second reading.
    std::thread::sleep(Duration::from_millis(1500));
    let pid = Pid::from_raw(simulator.pid().try_into().unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Some((output.status.code(), text(output.stdout), text(output.stderr)))
}

#[test]
fn a_simulator_that_is_killed_or_stopped_leaves_what_was_seen() {
    for signal in [Signal::KILL, Signal::STOP] {
        let Some((code, out, errors)) = struck(signal) else {
            return;
        };
        assert_eq!(code, Some(3), "{signal:?}: {out}{errors}");
        assert!(out.contains("1 switch, 3 hosts, 3 links"), "{out}{errors}");
        assert!(out.contains("cut short"), "{out}");
        assert_eq!(errors.contains("ibsim"), signal == Signal::KILL, "{errors}");
    }
}

#[test]
fn a_capture_that_cannot_be_written_costs_no_result() {
    let Some(simulator) = started(network("star:3"), &["host-1:1"]) else {
        return;
    };
    for (file, is_shown) in [("/nonexistent/net.txt", false), ("/dev/full", true)] {
        let args = ["--interval", "0s", "--capture", file];
        let output = output(&simulator, "host-3", &args);
        let [out, errors] = [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap());
        assert_eq!(output.status.code(), Some(3), "{out}{errors}");
        assert!(errors.contains(&format!("failed to write {file}")), "{errors}");
        assert_eq!(out.contains("1 switch, 3 hosts"), is_shown, "{out}");
    }
}
