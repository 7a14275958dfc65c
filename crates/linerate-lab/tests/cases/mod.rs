//! The cases.

use std::time::Duration;

use linerate_lab::{Fault, Finished, Host, Lab, LabError, Program, Running, Spec, Topology};

use crate::harness::{Case, need};
use crate::helper;

pub(crate) const ALL: &[Case] = &[
    ("builds_and_runs_programs", builds_and_runs_programs),
    ("tcp_crosses_the_router", tcp_crosses_the_router),
    ("token_bucket_holds_100_megabits", || {
        token_bucket("100Mb/s", 1e8)
    }),
    ("token_bucket_holds_1_gigabit", || {
        token_bucket("1Gb/s", 1e9)
    }),
    ("token_bucket_holds_5_gigabits", || {
        token_bucket("5Gb/s", 5e9)
    }),
    ("delay_is_what_was_asked_for", delay_is_what_was_asked_for),
    ("delay_carries_2_gigabits", delay_carries_2_gigabits),
    ("threads_are_refused", threads_are_refused),
];

fn lab(faults: &[&str]) -> Lab {
    let faults = faults
        .iter()
        .map(|text| text.parse().expect(text))
        .collect();
    let spec = Spec {
        faults,
        congestion: Some("cubic".to_owned()),
        ..Spec::default()
    };
    Lab::build(&spec).expect("a lab")
}

fn shell(lab: &Lab, host: Host, script: &str) -> Finished {
    let program = Program::new("sh").args(["-c", script]);
    let running = lab.spawn(host, &program).expect("a shell");
    running.finish().expect("its end")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn builds_and_runs_programs() {
    let lab = lab(&[]);
    for host in [Host::Near, Host::Far] {
        let done = shell(
            &lab,
            host,
            "ls /sys/class/net; test -d /proc/$$; echo $?; exit 3",
        );
        assert_eq!(text(&done.stdout), "eth0\nlo\n0");
        assert_eq!(done.status.code(), Some(3));
    }
    let done = shell(&lab, Host::Router, "ls /sys/class/net; pwd; echo error >&2");
    assert_eq!(text(&done.stdout), "far\nlo\nnear\n/");
    assert_eq!(text(&done.stderr), "error");
    let missing = lab.spawn(Host::Near, &Program::new("/no/such/program"));
    assert!(
        matches!(missing, Err(LabError::Spawn { .. })),
        "{missing:?}"
    );
    let mut sleeper = lab
        .spawn(Host::Far, &Program::new("sleep").arg("1000"))
        .expect("sleep");
    let still = sleeper.wait_for(Duration::from_millis(50)).expect("a lab");
    assert!(still.is_none());
    assert!(!sleeper.kill().expect("its end").success());
}

/// An iperf3 server in far; a client in near; the receiver's bits per second.
fn iperf3(lab: &Lab, arguments: &[&str]) -> f64 {
    let server = Program::new("iperf3").args(["-s", "-1"]);
    let mut server = lab.spawn(Host::Far, &server).expect("iperf3");
    wait_for_listener(lab, &mut server);
    let far = lab.addresses(Host::Far).v4.to_string();
    let client = Program::new("iperf3")
        .args(["-J", "-c", &far])
        .args(arguments);
    let done = lab.spawn(Host::Near, &client).expect("iperf3").finish();
    let done = done.expect("its end");
    assert!(done.status.success(), "{}", text(&done.stdout));
    let result: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    result["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .expect("a rate")
}

fn wait_for_listener(lab: &Lab, server: &mut Running) {
    for _ in 0..200 {
        // 1451 is 5201, iperf3's port; 0A is the state of a listener.
        let done = shell(
            lab,
            Host::Far,
            "grep -q ':1451 .* 0A ' /proc/net/tcp /proc/net/tcp6",
        );
        if done.status.success() {
            return;
        }
        let ended = server.wait_for(Duration::from_millis(10)).expect("a lab");
        assert!(ended.is_none(), "the server ended: {ended:?}");
    }
    panic!("the server does not listen");
}

fn tcp_crosses_the_router() {
    need("iperf3");
    let lab = lab(&[]);
    let before = forwarded_bytes(&lab);
    let rate = iperf3(&lab, &["-n", "20M"]);
    assert!(rate > 0.0);
    let moved = forwarded_bytes(&lab) - before;
    assert!(moved >= 20 << 20, "the router counted {moved} bytes");
}

fn forwarded_bytes(lab: &Lab) -> u64 {
    let ports = lab.ports(Host::Router).expect("ports");
    ports
        .iter()
        .find(|p| p.name == "far")
        .expect("a port")
        .tx_bytes
}

fn token_bucket(rate: &str, bits: f64) {
    need("iperf3");
    let fault = format!("path-rate:{rate},deep,forward");
    let lab = lab(&[&fault]);
    let limited = iperf3(&lab, &["-t", "3", "-O", "1"]);
    // Payload of a frame of MTU 1500, without preamble, gap and checksum.
    let most = bits * 1448.0 / 1514.0;
    println!("{rate}: {:.4} of what the bucket allows", limited / most);
    assert!(limited < most * 1.01, "{limited} of {most}");
    assert!(limited > most * 0.93, "{limited} of {most}");
    let fault: Fault = fault.parse().expect("a fault");
    lab.remove(&fault).expect("removed");
    assert!(matches!(
        lab.remove(&fault),
        Err(LabError::NotPlanted { .. })
    ));
}

fn threads_are_refused() {
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || wait.recv());
    let refused = Lab::build(&Spec::default());
    assert!(matches!(refused, Err(LabError::Threads)), "{refused:?}");
    drop(done);
    let _ = other.join();
    let direct = Spec {
        topology: Topology::Direct,
        ..Spec::default()
    };
    Lab::build(&direct).expect("a lab once the thread is gone");
}

fn delay_is_what_was_asked_for() {
    let lab = lab(&[]);
    let mut echo = helper::echo(&lab);
    let plain = helper::round_trip(&lab);
    let fault: Fault = "delay:20ms".parse().expect("a fault");
    lab.plant(&fault).expect("a delay");
    let delayed = helper::round_trip(&lab);
    println!("round trip {plain:.3} ms, with 20 ms of delay {delayed:.3} ms");
    assert!(
        (20.0..21.0).contains(&(delayed - plain)),
        "{delayed} after {plain}"
    );
    let forwarded = lab.forwarded().expect("a forwarder").expect("counters");
    assert_eq!(forwarded.lost, [0, 0]);
    assert!(
        forwarded.frames.iter().all(|frames| *frames > 10),
        "{forwarded:?}"
    );
    lab.remove(&fault).expect("removed");
    assert_eq!(lab.forwarded(), Ok(None));
    let one_way: Fault = "delay:300us,reverse".parse().expect("a fault");
    lab.plant(&one_way).expect("a delay");
    let short = helper::round_trip(&lab) - plain;
    println!("with 0.3 ms of delay {short:.3} ms more");
    assert!((0.3..0.6).contains(&short), "{short} ms");
    lab.remove(&one_way).expect("removed");
    let again = helper::round_trip(&lab);
    assert!(again < 10.0, "{again} ms once the delay is gone");
    echo.kill().expect("its end");
}

fn delay_carries_2_gigabits() {
    need("iperf3");
    let lab = lab(&["delay:20ms", "path-rate:2Gb/s,deep,forward"]);
    // One stream would be held back by its send buffer.
    let rate = iperf3(&lab, &["-t", "4", "-O", "2", "-P", "4"]);
    let forwarded = lab.forwarded().expect("a forwarder").expect("counters");
    println!("{:.3} Gb/s; {forwarded:?}", rate / 1e9);
    println!("{:?}", lab.ports(Host::Router));
    assert_eq!(forwarded.lost, [0, 0]);
    assert!(rate > 1.8e9);
}
