//! Ports that no manager serves: the manager serves another port of the host, or there is none.

use std::process::Command;

use linerate_lab::ib::{Manager, Simulator};

use crate::simulated::{PROGRAM, network, output, port, seen_from, started};

#[test]
fn a_manager_at_another_port_of_the_far_host_is_named_and_the_cure_makes_the_port_active() {
    let Some(mut simulator) = started(network("two-ports"), &["SRV:1"]) else {
        return;
    };
    let seen = seen_from(&simulator, "CLB");
    assert_eq!(seen.problems(), [("wrong-port", "CLB port 1", true)]);
    let problem = seen.problem("wrong-port");
    let why = problem["why"].as_str().unwrap();
    assert!(why.contains("ends in SRV port 2"), "{why}");
    assert!(why.contains("serves port 1 only"), "{why}");
    assert_eq!(problem["host"], "SRV");
    let guid = seen.port("SRV", 2)["guid"].as_str().unwrap();
    let command = problem["fix"]["steps"][0]["command"].as_str().unwrap();
    assert_eq!(command, format!("sudo opensm -B -g {guid}"));
    assert_eq!(seen.port("CLB", 1)["state"], "initializing");
    // The manager serves the network of the other client.
    let other = seen_from(&simulator, "CLA");
    assert_eq!(other.port("CLA", 1)["state"], "active");
    // ibsim cannot attach a manager to port 2 of SRV, so the same cable is served from its other end.
    simulator.manage(&Manager::at(port("CLB:1"))).unwrap();
    let cured = seen_from(&simulator, "CLB");
    assert_eq!(cured.problems(), []);
    let own = cured.port("CLB", 1);
    assert_eq!(own["state"], "active");
    assert!(own["lid"].as_u64().unwrap() > 0, "{own}");
}

#[test]
fn without_a_manager_there_is_none_and_no_port_is_wrong_on_this_side() {
    let Some(simulator) = started(network("two-ports"), &[]) else {
        return;
    };
    let seen = seen_from(&simulator, "CLB");
    let of_own = |(_, subject, _): &(&str, &str, bool)| *subject == "CLB port 1";
    let own: Vec<_> = seen.problems().into_iter().filter(of_own).collect();
    assert_eq!(own, [("no-manager", "CLB port 1", true)]);
    // One switch without a manager: no other network exists, so no wrong port can be the reason.
    let Some(simulator) = started(network("star:2"), &[]) else {
        return;
    };
    let seen = seen_from(&simulator, "host-2");
    assert_eq!(seen.problems(), [("no-manager", "host-2 port 1", true)]);
}

#[test]
fn networks_with_a_manager_have_no_problem() {
    let Some(simulator) = started(network("two-ports"), &["SRV:1", "CLB:1"]) else {
        return;
    };
    for node in ["CLA", "CLB"] {
        assert_eq!(seen_from(&simulator, node).problems(), [], "{node}");
    }
    let Some(simulator) = started(network("star:3"), &["host-1:1"]) else {
        return;
    };
    assert_eq!(seen_from(&simulator, "host-3").problems(), []);
}

/// Runs `linerate lab ib` with these arguments; returns its exit code, stdout and stderr.
fn lab(args: &[&str]) -> (Option<i32>, [String; 2]) {
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["lab", "ib"])
        .args(args)
        .output()
        .unwrap();
    let outputs = [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap());
    (output.status.code(), outputs)
}

#[test]
fn the_lab_runs_a_command_as_a_host_and_refuses_what_ibsim_cannot_do() {
    if started(network("star:1"), &[]).is_none() {
        return;
    }
    let (code, [out, _]) = lab(&[]);
    assert_eq!(code, Some(0));
    assert!(out.contains("wrong-port (CLB port 1)"), "{out}");
    let (code, [out, _]) = lab(&["--sm", "CLB:1", "--", "sh", "-c", "echo $SIM_HOST; exit 7"]);
    assert_eq!((code, &*out), (Some(3), "CLB\n"));
    let (code, [_, errors]) = lab(&["--sm", "SRV:2"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("CLB:1 is the other end"), "{errors}");
    let (code, [_, errors]) = lab(&["--as", "nobody", "--sm", "none"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("has no node nobody"), "{errors}");
    let (code, [_, errors]) = lab(&["--sm", "none", "--fault", "Unlink \"nobody\"[1]"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("ibsim refused"), "{errors}");
}

#[test]
fn the_demo_names_the_port_and_proves_it() {
    if started(network("two-ports"), &[]).is_none() {
        return;
    }
    let output = Command::new(PROGRAM).args(["demo", "ib-wrong-port"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for part in ["right: it named SRV port 2", "initializing to active"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_check_a_ping_and_a_route_say_how_they_ended() {
    let Some(mut simulator) = started(network("fat-tree:2,2,2"), &["host-1-1:1"]) else {
        return;
    };
    let of = |simulator: &Simulator, args: &[&str]| {
        let output = output(simulator, "host-2-2", args);
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text)
    };
    let (code, text) = of(&simulator, &["check"]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = of(&simulator, &["ping", "host-1-1", "--count", "2"]);
    assert!(code == Some(0) && text.contains("2 of 2 requests"), "{text}");
    assert!(text.contains("management path"), "{text}");
    let (code, text) = of(&simulator, &["route", "host-1-1"]);
    assert!(code == Some(0) && text.contains("4 links"), "{text}");
    assert!(text.contains("host-2-2 port 1 - leaf2 port 2"), "{text}");
    let (code, text) = of(&simulator, &["ping", "host-1-1", "--count", "2", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let trips = document["trips_ns"].as_array().unwrap().len();
    assert_eq!((code, trips, &document["sent"]), (Some(0), 2, &2.into()));
    assert!(text.contains("\"to\": \"host-1-1 port 1\""), "{text}");
    // The field `path` holds what the subnet manager reports about this path.
    let (_, text) = of(&simulator, &["route", "host-1-1", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["links"].as_array().unwrap().len(), 4, "{text}");
    assert!(document["path"]["mtu_bytes"].is_number(), "{text}");
    assert_eq!(of(&simulator, &["ping", "nobody"]).0, Some(2));
    // The forwarding tables still lead over the missing cable until the manager sweeps again.
    simulator.command("Unlink \"leaf1\"[1]").unwrap();
    let (code, text) = of(&simulator, &["check"]);
    // The manager ran on the host behind that cable.
    assert!(code == Some(4) && text.contains("(manager-gone)"), "{text}");
    assert_eq!(of(&simulator, &["route", "host-1-1"]).0, Some(2));
    // In a lab, the exit code of `fabric check` is passed on.
    let mut lab = Command::new(PROGRAM);
    lab.args(["lab", "ib", "--", PROGRAM, "fabric", "check"]);
    assert_eq!(lab.output().unwrap().status.code(), Some(4));
}
