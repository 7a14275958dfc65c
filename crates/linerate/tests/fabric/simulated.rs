//! Simulated networks for these tests. Each simulator has its own name, so that several tests can run at the same time.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use linerate_lab::ib::{IbError, Link, Manager, Network, PortName, Simulator, installed};
use linerate_test::{has, skip};
use tempfile::TempDir;

use crate::seen::Seen;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

/// A network in which all links may use the same lanes and speed.
pub(crate) fn network(topology: &str) -> Network {
    Network::new(topology.parse().unwrap(), Link::default()).unwrap()
}

/// Starts a network with managers at these ports. `None`, with a message, if ibsim or opensm is not installed.
pub(crate) fn started(network: Network, managers: &[&str]) -> Option<Simulator> {
    if !has("ibsim") || !has("opensm") {
        return None;
    }
    if let Err(error @ IbError::Missing { .. }) = installed() {
        skip("libumad2sim", &error.to_string());
        return None;
    }
    let mut simulator = Simulator::start(network).unwrap();
    for at in managers {
        simulator.manage(&Manager::at(port(at))).unwrap();
    }
    Some(simulator)
}

pub(crate) fn port(text: &str) -> PortName {
    text.parse().unwrap()
}

/// A command that runs `linerate fabric` at a node, with `home` as its home directory.
pub(crate) fn fabric(simulator: &Simulator, home: &Path, node: &str, args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .env_clear()
        .env("HOME", home)
        .envs(simulator.environment(node))
        .arg("fabric")
        .args(args)
        .stdin(Stdio::null());
    command
}

/// Runs `linerate fabric` at a node, in an empty home.
pub(crate) fn output(simulator: &Simulator, node: &str, args: &[&str]) -> Output {
    let home = TempDir::new().unwrap();
    fabric(simulator, home.path(), node, args).output().unwrap()
}

/// The document of `linerate fabric` at a node, with one reading of the counters.
pub(crate) fn seen_from(simulator: &Simulator, node: &str) -> Seen {
    let output = output(simulator, node, &["--json", "--interval", "0s"]);
    Seen::of(&output)
}
