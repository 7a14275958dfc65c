//! Checks that nothing of a lab is left, in whichever way it ends.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use linerate_lab::{Host, Lab, LabError, Program};

use super::{lab, shell, text};
use crate::helper;

/// The namespaces of the lab's programs, as the links in /proc name them.
fn namespaces(lab: &Lab) -> HashSet<String> {
    let script = "for n in user pid mnt net; do readlink /proc/self/ns/$n; done";
    let hosts = [Host::Near, Host::Router, Host::Far];
    let lines = hosts.map(|host| text(&shell(lab, host, script).stdout));
    lines.iter().flat_map(|all| all.lines().map(str::to_owned)).collect()
}

/// Starts a program in each host that would run forever.
fn keep_busy(lab: &Lab) {
    for host in [Host::Near, Host::Router, Host::Far] {
        let forever = Program::new("sh").args(["-c", "sleep 100000 & sleep 100000"]);
        lab.spawn(host, &forever).expect("a shell");
    }
}

/// The processes that are in one of the namespaces, or hold it open.
fn holders(namespaces: &HashSet<String>) -> Vec<PathBuf> {
    let links = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let processes = links("/proc".into()).filter(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().bytes().all(|b| b.is_ascii_digit())
    });
    let all = processes.flat_map(|process| {
        links(process.path().join("ns")).chain(links(process.path().join("fd")))
    });
    all.map(|link| link.path())
        .filter(|link| {
            let target = fs::read_link(link).unwrap_or_default();
            namespaces.contains(&*target.to_string_lossy())
        })
        .collect()
}

/// Waits until no process is left: the kernel ends a PID namespace soon, but not at once.
fn assert_gone(namespaces: &HashSet<String>) {
    let start = Instant::now();
    while !holders(namespaces).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "left: {:?}", holders(namespaces));
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(super) fn nothing_is_left_of_a_dropped_lab() {
    let lab = lab(&["delay:20ms"]);
    keep_busy(&lab);
    let namespaces = namespaces(&lab);
    // A user and a PID namespace, and for each host a network and a mount namespace.
    assert_eq!(namespaces.len(), 8, "{namespaces:?}");
    assert!(holders(&namespaces).len() > 8, "the search finds nothing");
    drop(lab);
    assert_gone(&namespaces);
}

/// Starts this program as the owner of a lab, and reads the lab's namespaces from its output.
fn owner() -> (Child, HashSet<String>) {
    let mut owner = Command::new(std::env::current_exe().expect("this program's path"))
        .args(["--helper", "owner"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("an owner");
    let output = BufReader::new(owner.stdout.take().expect("its output"));
    let lines = output.lines().map(|line| line.expect("a line"));
    let namespaces: HashSet<String> = lines.take_while(|line| line != "ready").collect();
    assert_eq!(namespaces.len(), 8, "{namespaces:?}");
    assert!(holders(&namespaces).len() > 8, "the search finds nothing");
    (owner, namespaces)
}

/// The owner's program: builds a lab, prints its namespaces, and waits to be killed.
pub(crate) fn own_a_lab() {
    let lab = lab(&["delay:20ms", "path-rate:1Gb/s,deep"]);
    keep_busy(&lab);
    let mut echo = helper::echo(&lab);
    for namespace in namespaces(&lab) {
        println!("{namespace}");
    }
    println!("ready");
    let ended = echo.wait();
    assert!(matches!(ended, Err(LabError::Gone { .. })), "{ended:?}");
}

pub(super) fn nothing_is_left_of_a_killed_owner() {
    let (mut owner, namespaces) = owner();
    owner.kill().expect("SIGKILL");
    owner.wait().expect("its end");
    assert_gone(&namespaces);
}

pub(super) fn nothing_is_left_of_a_killed_outer_process() {
    let (mut owner, namespaces) = owner();
    let children = format!("/proc/{0}/task/{0}/children", owner.id());
    let outer = fs::read_to_string(children).expect("the owner's children");
    let outer = outer.trim().parse().expect("one child");
    let outer = rustix::process::Pid::from_raw(outer).expect("a process");
    rustix::process::kill_process(outer, rustix::process::Signal::KILL).expect("SIGKILL");
    assert_gone(&namespaces);
    assert!(owner.wait().expect("its end").success());
}
