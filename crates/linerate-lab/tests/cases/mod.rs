//! The cases of the tests of labs.

mod faults;
mod load;
mod traces;

use std::time::Duration;

use linerate_lab::{Fault, Finished, Host, Lab, LabError, PortStatus, Program, Spec, Topology};

use crate::harness::Case;
use crate::helper;

pub(crate) use traces::own_a_lab;

/// Cases that may depend on the user's rights: labs that are built and end, programs on their CPUs, refused requests.
pub(crate) const OF_RIGHTS: &[Case] = &[
    ("builds_and_runs_programs", builds_and_runs_programs),
    ("programs_stay_on_their_cpus", programs_stay_on_their_cpus),
    ("an_application_fault_reaches_its_side", an_application_fault_reaches_its_side),
    ("a_variable_reaches_the_programs_of_its_side", a_variable_reaches_the_programs_of_its_side),
    ("threads_are_refused", threads_are_refused),
    ("a_direct_lab_has_no_router", a_direct_lab_has_no_router),
    ("two_labs_live_and_die_apart", two_labs_live_and_die_apart),
    ("a_link_goes_down_and_up", a_link_goes_down_and_up),
    ("a_link_goes_down_for_a_time", a_link_goes_down_for_a_time),
    ("mtu_holds_on_every_port", mtu_holds_on_every_port),
    ("a_delay_keeps_other_faults", a_delay_keeps_other_faults),
    ("delay_is_what_was_asked_for", delay_is_what_was_asked_for),
    ("nothing_is_left_of_a_dropped_lab", traces::nothing_is_left_of_a_dropped_lab),
    ("nothing_is_left_of_a_killed_owner", traces::nothing_is_left_of_a_killed_owner),
    (
        "nothing_is_left_of_a_killed_outer_process",
        traces::nothing_is_left_of_a_killed_outer_process,
    ),
    ("tcp_crosses_the_router", load::tcp_crosses_the_router),
    ("programs_of_a_side_stay_on_a_cpu", faults::programs_of_a_side_stay_on_a_cpu),
    ("offloads_are_off_and_on_again", faults::offloads_are_off_and_on_again),
    ("a_quota_throttles_or_is_refused_in_words", faults::a_quota_throttles_or_is_refused_in_words),
    ("faults_are_planted_on_a_bridge", faults::faults_are_planted_on_a_bridge),
];

/// Cases about packets in a lab, which do not depend on the user's rights. Names that start with `long::` are run only
/// by `./test.sh --long`.
pub(crate) const OF_PATHS: &[Case] = &[
    ("congestion_control_is_chosen", load::congestion_control_is_chosen),
    ("long::token_bucket_holds_100_megabits", load::token_bucket_holds_100_megabits),
    ("token_bucket_holds_1_gigabit", load::token_bucket_holds_1_gigabit),
    ("long::token_bucket_holds_5_gigabits", load::token_bucket_holds_5_gigabits),
    ("long::small_buffers_bind", load::small_buffers_bind),
    ("long::delay_carries_2_gigabits", load::delay_carries_2_gigabits),
    ("a_policer_holds_all_flows_together", faults::a_policer_holds_all_flows_together),
    ("long::each_shaped_flow_has_its_rate", faults::each_shaped_flow_has_its_rate),
    ("long::each_policed_flow_has_its_rate", faults::each_policed_flow_has_its_rate),
    ("as_much_is_lost_as_was_asked", faults::as_much_is_lost_as_was_asked),
    ("packets_are_overtaken", faults::packets_are_overtaken),
    ("delays_wander", faults::delays_wander),
    ("packets_wait_for_a_tick", faults::packets_wait_for_a_tick),
    ("large_packets_vanish", faults::large_packets_vanish),
    ("a_host_shapes_its_own_port", faults::a_host_shapes_its_own_port),
    ("a_short_queue_drops_in_the_host", faults::a_short_queue_drops_in_the_host),
    ("long::other_traffic_crosses_the_path", faults::other_traffic_crosses_the_path),
    ("hogs_make_programs_wait", faults::hogs_make_programs_wait),
    ("programs_stop_and_go_on", faults::programs_stop_and_go_on),
    (
        "each_fault_is_planted_beside_another_and_undone",
        faults::each_fault_is_planted_beside_another_and_undone,
    ),
    ("long::any_two_faults_are_planted_and_undone", faults::any_two_faults_are_planted_and_undone),
];

fn lab(faults: &[&str]) -> Lab {
    let faults = faults.iter().map(|text| text.parse().expect(text)).collect();
    let spec = Spec { faults, congestion: Some("cubic".to_owned()), ..Spec::default() };
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
        let done = shell(&lab, host, "ls /sys/class/net; test -d /proc/$$; echo $?; exit 3");
        assert_eq!(text(&done.stdout), "eth0\nlo\n0");
        assert_eq!(done.status.code(), Some(3));
    }
    let done = shell(&lab, Host::Router, "ls /sys/class/net; pwd; echo error >&2");
    assert_eq!(text(&done.stdout), "far\nlo\nnear\nothers\n/");
    assert_eq!(text(&done.stderr), "error");
    let missing = lab.spawn(Host::Near, &Program::new("/no/such/program"));
    assert!(matches!(missing, Err(LabError::Spawn { .. })), "{missing:?}");
    let mut sleeper = lab.spawn(Host::Far, &Program::new("sleep").arg("1000")).expect("sleep");
    let still = sleeper.wait_for(Duration::from_millis(50)).expect("a lab");
    assert!(still.is_none());
    assert!(!sleeper.kill().expect("its end").success());
}

fn threads_are_refused() {
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || wait.recv());
    let refused = Lab::build(&Spec::default());
    assert!(matches!(refused, Err(LabError::Threads)), "{refused:?}");
    drop(done);
    let _ = other.join();
    Lab::build(&Spec::default()).expect("a lab once the thread is gone");
}

fn delay_is_what_was_asked_for() {
    let lab = lab(&[]);
    let mut echo = helper::echo(&lab);
    let plain = helper::round_trip(&lab);
    let fault: Fault = "delay:20ms".parse().expect("a fault");
    lab.plant(&fault).expect("a delay");
    let delayed = helper::round_trip(&lab);
    println!("round trip {plain:.3} ms, with 20 ms of delay {delayed:.3} ms");
    // The round trip is never shorter than the delay; on a busy machine it may be much longer.
    assert!(delayed >= 20.0, "{delayed} after {plain}");
    let forwarded = lab.forwarded().expect("a forwarder").expect("counters");
    assert_eq!(forwarded.lost, [0, 0]);
    assert!(forwarded.frames.iter().all(|frames| *frames > 10), "{forwarded:?}");
    lab.remove(&fault).expect("removed");
    assert_eq!(lab.forwarded(), Ok(None));
    let one_way: Fault = "delay:300us,reverse".parse().expect("a fault");
    lab.plant(&one_way).expect("a delay");
    let short = helper::round_trip(&lab);
    println!("with 0.3 ms of delay {short:.3} ms");
    assert!(short >= 0.3, "{short} ms");
    lab.remove(&one_way).expect("removed");
    // The delay is gone if one of many round trips is shorter than it.
    assert!((0..100).any(|_| helper::round_trip(&lab) < 20.0));
    echo.kill().expect("its end");
}

fn programs_stay_on_their_cpus() {
    let lab = lab(&[]);
    let cpu = rustix::thread::sched_getcpu();
    let status = Program::new("grep").args(["Cpus_allowed_list", "/proc/self/status"]);
    let bound = lab.spawn(Host::Far, &status.clone().cpus([cpu])).expect("grep");
    let bound = bound.finish().expect("its end");
    assert_eq!(text(&bound.stdout), format!("Cpus_allowed_list:\t{cpu}"));
    let own = std::fs::read_to_string("/proc/self/status").expect("a status");
    let free = lab.spawn(Host::Far, &status).expect("grep").finish();
    let free = text(&free.expect("its end").stdout);
    assert!(own.contains(&free), "the agent's CPUs changed: {free}");
}

fn an_application_fault_reaches_its_side() {
    let lab = lab(&["application:far,receiver,work=800ps/B"]);
    let seen = |host| text(&shell(&lab, host, "echo $LINERATE_LAB_APPLICATION").stdout);
    assert_eq!(seen(Host::Far), "receiver,work=800ps/B");
    assert_eq!(seen(Host::Near), "");
    let fault: Fault = "application:near,pause=200us/op".parse().expect("a fault");
    lab.plant(&fault).expect("planted");
    assert_eq!(seen(Host::Near), "pause=200us/op");
    lab.remove(&fault).expect("removed");
    assert_eq!(seen(Host::Near), "");
}

fn a_variable_reaches_the_programs_of_its_side() {
    let lab = lab(&["environment:near,PLANTED=a, b=c"]);
    let seen = |host| text(&shell(&lab, host, "echo $PLANTED $ANOTHER").stdout);
    assert_eq!(seen(Host::Near), "a, b=c");
    assert_eq!(seen(Host::Far), "");
    let second: Fault = "environment:near,PLANTED=d".parse().expect("a fault");
    lab.plant(&second).expect_err("two values of one variable");
    let another: Fault = "environment:near,ANOTHER=d".parse().expect("a fault");
    lab.plant(&another).expect("planted");
    assert_eq!(seen(Host::Near), "a, b=c d");
    lab.remove(&another).expect("removed");
    assert_eq!(seen(Host::Near), "a, b=c");
}

fn a_direct_lab_has_no_router() {
    let direct = Spec { topology: Topology::Direct, ..Spec::default() };
    let lab = Lab::build(&direct).expect("a lab");
    let mut echo = helper::echo(&lab);
    helper::round_trip(&lab);
    echo.kill().expect("its end");
    for what in ["delay:20ms", "path-rate:1Gb/s,deep"] {
        let refused = lab.plant(&what.parse().expect("a fault"));
        let refused = refused.expect_err("no router to plant it in").to_string();
        assert!(refused.contains("router"), "{refused}");
    }
    let router = lab.ports(Host::Router);
    assert!(matches!(router, Err(LabError::NoSuchHost { .. })), "{router:?}");
}

fn two_labs_live_and_die_apart() {
    let first = lab(&[]);
    let second = lab(&["delay:1ms"]);
    // This would wait forever if the second lab's processes held the first lab's socket.
    drop(first);
    let done = shell(&second, Host::Near, "echo alive");
    assert_eq!(text(&done.stdout), "alive");
}

fn port(lab: &Lab, host: Host, name: &str) -> PortStatus {
    let ports = lab.ports(host).expect("ports");
    ports.into_iter().find(|port| port.name == name).expect("a port")
}

fn a_link_goes_down_and_up() {
    for faults in [&[][..], &["delay:2ms"]] {
        let lab = lab(faults);
        let mut echo = helper::echo(&lab);
        for host in [Host::Near, Host::Far] {
            lab.link(host, false).expect("down");
            assert!(!port(&lab, host, "eth0").up, "{host} {faults:?}");
            lab.link(host, true).expect("up");
            assert!(port(&lab, host, "eth0").up, "{host} {faults:?}");
            helper::round_trip(&lab);
        }
        echo.kill().expect("its end");
    }
}

fn a_link_goes_down_for_a_time() {
    let lab = lab(&["link-down:far,2s,1s"]);
    let up = || port(&lab, Host::Far, "eth0").up;
    let wait = |wanted: bool| {
        let start = std::time::Instant::now();
        while up() != wanted {
            assert!(start.elapsed() < Duration::from_secs(20), "{wanted}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait(true);
    wait(false);
    wait(true);
}

fn mtu_holds_on_every_port() {
    let lab = lab(&["delay:2ms"]);
    let mut echo = helper::echo(&lab);
    let mtus = || {
        let hosts = [Host::Near, Host::Router, Host::Far];
        let ports = hosts.map(|host| lab.ports(host).expect("ports"));
        ports.concat().iter().map(|port| port.mtu).collect::<Vec<_>>()
    };
    for mtu in [9000, 1280] {
        let fault: Fault = format!("mtu:{mtu}").parse().expect("a fault");
        lab.plant(&fault).expect("planted");
        assert_eq!(mtus(), [mtu; 5]);
        helper::round_trip(&lab);
        lab.remove(&fault).expect("removed");
        assert_eq!(mtus(), [1500; 5]);
    }
    // IPv6 disappears at an MTU below 1280, and must be restored.
    let fault: Fault = "mtu:1000".parse().expect("a fault");
    lab.plant(&fault).expect("planted");
    lab.remove(&fault).expect("removed");
    helper::round_trip(&lab);
    echo.kill().expect("its end");
}

fn a_delay_keeps_other_faults() {
    let lab = lab(&["path-rate:1Gb/s,deep", "receive-window:near,1MiB"]);
    let kinds =
        || ["near", "far"].map(|name| port(&lab, Host::Router, name).queue.map(|queue| queue.kind));
    let both = [Some("tbf".to_owned()), Some("tbf".to_owned())];
    assert_eq!(kinds(), both);
    let delay: Fault = "delay:1ms".parse().expect("a fault");
    lab.plant(&delay).expect("planted");
    assert_eq!(kinds(), both);
    let second = lab.plant(&delay).expect_err("it is there already");
    assert!(matches!(second, LabError::NotPlantable { .. }), "{second}");
    lab.remove(&delay).expect("removed");
    assert_eq!(kinds(), both);
    let rmem = shell(&lab, Host::Near, "cut -f3 /proc/sys/net/ipv4/tcp_rmem");
    assert_eq!(text(&rmem.stdout), "1048576");
    lab.remove(&"path-rate:1Gb/s,deep".parse().expect("a fault")).expect("removed");
    assert_eq!(kinds(), [None, None]);
}
