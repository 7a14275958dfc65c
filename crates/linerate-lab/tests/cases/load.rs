//! Cases that load a lab with iperf3.

use std::ops::Range;
use std::time::Duration;

use linerate_lab::{Fault, Host, Lab, LabError, Program, Running, Spec};

use super::{lab, shell, text};
use crate::harness::{answer, need, skip};

/// The rate that an iperf3 server on far received from a client on near, in bits per second.
pub(super) fn iperf3(lab: &Lab, arguments: &[&str]) -> f64 {
    let result = iperf3_result(lab, arguments);
    let rate = result["end"]["sum_received"]["bits_per_second"].as_f64();
    rate.expect("a rate")
}

/// The rate without a fault. It must be higher than the fault permits, otherwise the fault would show no effect.
pub(super) fn free_rate(lab: &Lab, arguments: &[&str], most: f64) -> f64 {
    answer(|| exceeds(iperf3(lab, arguments), most))
}

fn exceeds(rate: f64, most: f64) -> Result<f64, String> {
    let more = rate > most * 1.1;
    more.then_some(rate)
        .ok_or_else(|| format!("without the fault {rate}, which with it is {most} at most"))
}

/// Checks that the rate is within the range. A machine that stands still for a while loses time that no shaper makes up
/// for; the measurement is then repeated.
pub(super) fn iperf3_within(lab: &Lab, arguments: &[&str], range: Range<f64>, free: f64) -> f64 {
    // Planted: the rate without the fault, as if the fault had no effect.
    assert!(within(free, &range).is_err(), "{free} without the fault");
    answer(|| within(iperf3(lab, arguments), &range))
}

pub(super) fn within(rate: f64, range: &Range<f64>) -> Result<f64, String> {
    let lies = range.contains(&rate);
    lies.then_some(rate).ok_or_else(|| format!("{rate} is not within {range:?}"))
}

pub(super) fn iperf3_result(lab: &Lab, arguments: &[&str]) -> serde_json::Value {
    let server = Program::new("iperf3").args(["-s", "-1"]);
    let mut server = lab.spawn(Host::Far, &server).expect("iperf3");
    wait_for_listener(lab, &mut server);
    let far = lab.addresses(Host::Far).v4.to_string();
    let client = Program::new("iperf3").args(["-J", "-c", &far]).args(arguments);
    let done = lab.spawn(Host::Near, &client).expect("iperf3").finish();
    let done = done.expect("its end");
    assert!(done.status.success(), "{}", text(&done.stdout));
    // The next iperf3 server needs the same TCP port.
    server.wait().expect("its end");
    serde_json::from_slice(&done.stdout).expect("JSON")
}

fn wait_for_listener(lab: &Lab, server: &mut Running) {
    for _ in 0..200 {
        // 1451 is iperf3's port 5201 in hexadecimal; 0A is the state of a listening socket.
        let done = shell(lab, Host::Far, "grep -q ':1451 .* 0A ' /proc/net/tcp /proc/net/tcp6");
        if done.status.success() {
            return;
        }
        let ended = server.wait_for(Duration::from_millis(10)).expect("a lab");
        assert!(ended.is_none(), "the server ended: {ended:?}");
    }
    panic!("the server does not listen");
}

pub(super) fn tcp_crosses_the_router() {
    need("iperf3");
    let lab = lab(&[]);
    let before = forwarded_bytes(&lab);
    let result = iperf3_result(&lab, &["-n", "20M"]);
    let received = result["end"]["sum_received"]["bytes"].as_u64();
    let received = received.expect("a number of bytes");
    assert!(received > 10 << 20, "{received}");
    let moved = forwarded_bytes(&lab) - before;
    assert!(moved >= received, "the router counted {moved} bytes of {received}");
}

fn forwarded_bytes(lab: &Lab) -> u64 {
    let ports = lab.ports(Host::Router).expect("ports");
    ports.iter().find(|p| p.name == "far").expect("a port").tx_bytes
}

fn token_bucket(rate: &str, bits: f64) {
    need("iperf3");
    let lab = lab(&[]);
    // Payload in frames of MTU 1500; preamble, gap and checksum are not counted.
    let most = bits * 1448.0 / 1514.0;
    let free = free_rate(&lab, &["-t", "1"], most);
    let fault: Fault = format!("path-rate:{rate},deep,forward").parse().expect("a fault");
    lab.plant(&fault).expect("planted");
    // On a machine that is hardly fast enough for the rate, the machine is sometimes the limit.
    let least = most.min(free / 3.0) * 0.9;
    let limited = iperf3_within(&lab, &["-t", "3", "-O", "1"], least..most * 1.02, free);
    println!("{rate}: {:.4} of what the bucket allows", limited / most);
    lab.remove(&fault).expect("removed");
    assert!(matches!(lab.remove(&fault), Err(LabError::NotPlanted { .. })));
}

pub(super) fn token_bucket_holds_100_megabits() {
    token_bucket("100Mb/s", 1e8);
}

pub(super) fn token_bucket_holds_1_gigabit() {
    token_bucket("1Gb/s", 1e9);
}

pub(super) fn token_bucket_holds_5_gigabits() {
    need("iperf3");
    let free = iperf3(&lab(&[]), &["-t", "1"]);
    // On a machine that cannot carry this rate the test shows nothing.
    if exceeds(free, 5e9).is_err() {
        skip("5-gigabits", &format!("a lab carries only {free} b/s here"));
    }
    token_bucket("5Gb/s", 5e9);
}

pub(super) fn congestion_control_is_chosen() {
    need("iperf3");
    for name in ["cubic", "bbr"] {
        let spec = Spec { congestion: Some(name.to_owned()), ..Spec::default() };
        let lab = Lab::build(&spec).expect("a lab");
        let result = iperf3_result(&lab, &["-n", "1M"]);
        assert_eq!(result["end"]["sender_tcp_congestion"], name);
        assert_eq!(result["end"]["receiver_tcp_congestion"], name);
    }
    let spec = Spec { congestion: Some("nonesuch".to_owned()), ..Spec::default() };
    let refused = Lab::build(&spec).expect_err("no such congestion control");
    assert!(refused.to_string().contains("nonesuch"), "{refused}");
}

pub(super) fn small_buffers_bind() {
    need("iperf3");
    let lab = lab(&["delay:20ms"]);
    let rate = || iperf3(&lab, &["-t", "2", "-O", "1"]);
    let free = rate();
    // Bytes in flight are at most the buffer, so the rate is at most this. On a busy machine the two ends of iperf3
    // begin to count at different times: one half is added for that.
    let most = 256.0 * 1024.0 * 8.0 / 0.02 * 1.5;
    for text in ["receive-window:far,256KiB", "send-buffer:near,256KiB"] {
        let fault: Fault = text.parse().expect("a fault");
        lab.plant(&fault).expect(text);
        let bound = rate();
        println!("{text}: {:.1} Mb/s, without {:.1} Mb/s", bound / 1e6, free / 1e6);
        assert!(bound < most, "{text}: {bound}");
        assert!(bound > most.min(free) / 8.0, "{text}: {bound} of {free}");
        lab.remove(&fault).expect("removed");
    }
    let restored = rate();
    assert!(restored > free / 4.0, "{restored} of {free} once the buffers are large again");
}

pub(super) fn delay_carries_2_gigabits() {
    need("iperf3");
    let lab = lab(&["path-rate:2Gb/s,deep,forward"]);
    let free = iperf3(&lab, &["-t", "2", "-O", "1", "-P", "4"]);
    // If the process on the wire loses its CPU for a tenth of a second, its ring has no room for packets, so it may
    // lose some.
    answer(|| nothing_is_lost(carries(&lab, free)));
    // Planted: one lost packet, in either direction.
    assert!(nothing_is_lost([1, 0]).is_err() && nothing_is_lost([0, 1]).is_err());
}

fn nothing_is_lost(lost: [u64; 2]) -> Result<(), String> {
    let none = lost == [0, 0];
    none.then_some(()).ok_or_else(|| format!("{lost:?} packets were lost"))
}

/// Frames that the process on the wire lost in each direction while four streams cross a delay.
fn carries(lab: &Lab, free: f64) -> [u64; 2] {
    let delay: Fault = "delay:20ms".parse().expect("a fault");
    lab.plant(&delay).expect("planted");
    // One stream would be limited by its send buffer.
    let rate = iperf3(lab, &["-t", "4", "-O", "2", "-P", "4"]);
    let forwarded = lab.forwarded().expect("a forwarder").expect("counters");
    println!("{:.3} Gb/s; {forwarded:?}", rate / 1e9);
    println!("{:?}", lab.ports(Host::Router));
    assert!(rate < 2e9 * 1.02, "{rate}");
    // On a machine that is too slow or too busy for the rate, the machine is the limit.
    assert!(rate > free / 4.0, "{rate} of {free}");
    lab.remove(&delay).expect("removed");
    forwarded.lost
}
