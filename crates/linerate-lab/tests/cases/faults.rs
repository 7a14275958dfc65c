//! Checks that each fault has the described effect, and has none once it is removed.

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use linerate_lab::{Fault, Forwarded, Host, Lab, LabError, PortStatus, Program, Spec, Topology};
use linerate_test::program::{Outcome, outcome_of};

use super::load::{free_rate, iperf3, iperf3_result, iperf3_within, within};
use super::{lab, port, shell, text};
use crate::harness::{answer, is_root, need, skip};
use crate::helper;

fn plant(lab: &Lab, text: &str) -> Fault {
    let fault: Fault = text.parse().expect(text);
    lab.plant(&fault).expect(text);
    fault
}

fn forwarded(lab: &Lab) -> Forwarded {
    lab.forwarded().expect("a forwarder").expect("counters")
}

/// The share of a frame's bytes that is payload, with TCP's time stamps.
const PAYLOAD: f64 = 1448.0 / 1514.0;

pub(super) fn a_policer_holds_all_flows_together() {
    need("iperf3");
    let lab = lab(&["delay:2ms"]);
    let most = 200e6 * PAYLOAD;
    let free = free_rate(&lab, &["-t", "1"], most);
    let fault = plant(&lab, "police:200Mb/s,forward");
    for streams in ["1", "4"] {
        let least = most.min(free / 3.0) * 0.5;
        let load = ["-t", "3", "-O", "1", "-P", streams];
        let rate = iperf3_within(&lab, &load, least..most * 1.02, free);
        println!("{streams} streams: {:.1} Mb/s, {:.1} without", rate / 1e6, free / 1e6);
    }
    let counted = forwarded(&lab);
    assert!(counted.dropped[0] > 0 && counted.dropped[1] == 0, "{counted:?}");
    let back = iperf3(&lab, &["-t", "1", "-R"]);
    assert!(back > most.min(free / 3.0), "{back} in reverse");
    lab.remove(&fault).expect("removed");
    let retransmits = iperf3(&lab, &["-t", "1"]);
    assert!(retransmits > most.min(free / 3.0), "{retransmits} once it is removed");
    assert_eq!(forwarded(&lab).dropped, [0, 0]);
}

pub(super) fn each_shaped_flow_has_its_rate() {
    each_flow_has_its_rate("shaped", &[], PAYLOAD);
}

pub(super) fn each_policed_flow_has_its_rate() {
    // TCP stays below the rate of a policer, while datagrams are received at the full rate.
    let datagrams = ["-u", "-b", "80M", "-l", "1400"];
    each_flow_has_its_rate("policed", &datagrams, 1400.0 / 1442.0);
}

fn each_flow_has_its_rate(manner: &str, load: &[&str], payload: f64) {
    need("iperf3");
    let lab = lab(&[]);
    let most = 50e6 * payload;
    let flows = |streams| [load, &["-t", "3", "-O", "1", "-P", streams]].concat();
    let free = free_rate(&lab, &flows("3"), 3.0 * most);
    let rate = |streams, range| iperf3_within(&lab, &flows(streams), range, free);
    let fault = plant(&lab, &format!("flow-rate:50Mb/s,{manner},forward"));
    let one = rate("1", most.min(free / 9.0) * 0.5..most * 1.05);
    let three = rate("3", 2.0 * one..3.0 * most * 1.05);
    println!("{manner}: {:.1}, {:.1} Mb/s, {:.1} without", one / 1e6, three / 1e6, free / 1e6);
    lab.remove(&fault).expect("removed");
    assert_eq!(lab.forwarded(), Ok(None));
}

pub(super) fn as_much_is_lost_as_was_asked() {
    need("iperf3");
    let lab = lab(&[]);
    for (code, lossy) in
        [("loss:2%,forward", 0), ("loss:2%,reverse", 1), ("loss:2%,bursts=10,forward", 0)]
    {
        let fault = plant(&lab, code);
        // In reverse there are only acknowledgements, each for many packets, so more is sent to count enough of them.
        let amount = if lossy == 1 { "60M" } else { "20M" };
        let result = iperf3_result(&lab, &["-n", amount]);
        let counted = forwarded(&lab);
        let share = counted.dropped[lossy] as f64 / counted.packets[lossy] as f64;
        println!("{code}: {share:.4} of {:?}", counted.packets);
        // Rows of 10 packets are lost at a time, so the share varies.
        assert!((0.002..0.08).contains(&share), "{code}: {share}");
        assert_eq!(counted.dropped[1 - lossy], 0, "{code}");
        let retransmits = result["end"]["sum_sent"]["retransmits"].as_u64();
        let retransmits = retransmits.expect("a number");
        assert!(lossy == 1 || retransmits > 0, "{code}: {retransmits} retransmits");
        lab.remove(&fault).expect("removed");
    }
    let result = iperf3_result(&lab, &["-n", "20M"]);
    let retransmits = result["end"]["sum_sent"]["retransmits"].as_u64();
    println!("without: {retransmits:?} retransmits");
}

/// Segments that far received out of order since its namespace was made.
fn out_of_order(lab: &Lab) -> u64 {
    let done = shell(lab, Host::Far, "grep ^TcpExt: /proc/net/netstat");
    let table = text(&done.stdout);
    let mut lines = table.lines().map(str::split_whitespace);
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let mut pairs = names.zip(values);
    let found = pairs.find(|(name, _)| *name == "TCPOFOQueue");
    found.expect("a counter").1.parse().expect("a number")
}

pub(super) fn packets_are_overtaken() {
    need("iperf3");
    let lab = lab(&["delay:2ms"]);
    iperf3(&lab, &["-n", "5M"]);
    let before = out_of_order(&lab);
    let fault = plant(&lab, "reorder:3ms,every=50,forward");
    iperf3(&lab, &["-n", "5M"]);
    let during = out_of_order(&lab) - before;
    lab.remove(&fault).expect("removed");
    iperf3(&lab, &["-n", "5M"]);
    let after = out_of_order(&lab) - before - during;
    println!("out of order: {before} before, {during}, {after} after");
    assert!(during > 20 && during > 2 * (before + after), "{during}");
    assert_eq!(forwarded(&lab).dropped, [0, 0]);
}

pub(super) fn delays_wander() {
    let lab = lab(&["jitter:40ms,forward"]);
    let mut echo = helper::echo(&lab);
    let (mut least, mut most) = (f64::MAX, 0.0_f64);
    // A variation of 10 ms, of the planted 40 ms, is more than a busy machine causes by being late.
    let wanders = (0..40).any(|_| {
        let time = helper::round_trip(&lab);
        (least, most) = (least.min(time), most.max(time));
        most > least + 10.0
    });
    println!("round trips of {least:.1} to {most:.1} ms");
    assert!(wanders, "{least} to {most} ms");
    echo.kill().expect("its end");
}

/// Whether a round trip takes this number of periods; a busy machine may be a little late.
fn is_whole(time: f64, period: f64, periods: f64) -> Result<f64, String> {
    let off = (time / period - periods).abs();
    (off < 0.2)
        .then_some(time)
        .ok_or_else(|| format!("{time} ms are not {periods} times {period} ms"))
}

pub(super) fn packets_wait_for_a_tick() {
    const PERIOD: f64 = 4.0;
    let lab = lab(&["delay:6ms,reverse"]);
    let mut echo = helper::echo(&lab);
    for code in ["hold:far,4ms", "hold:near,4ms"] {
        // Planted: without a tick, a round trip is no whole number of periods.
        answer(|| match helper::round_trip(&lab) {
            free if is_whole(free, PERIOD, 2.0).is_err() => Ok(()),
            free => Err(format!("{free} ms without a tick")),
        });
        let fault = plant(&lab, code);
        let two = answer(|| is_whole(helper::round_trip(&lab), PERIOD, 2.0));
        let delay: Fault = "delay:6ms,reverse".parse().expect("a fault");
        lab.remove(&delay).expect("removed");
        let one = answer(|| is_whole(helper::round_trip(&lab), PERIOD, 1.0));
        println!("{code}: {one:.3} ms, {two:.3} ms with a delay of 6 ms");
        lab.remove(&fault).expect("removed");
        lab.plant(&delay).expect("planted");
    }
    assert_eq!(forwarded(&lab).dropped, [0, 0]);
    echo.kill().expect("its end");
}

pub(super) fn large_packets_vanish() {
    need("iperf3");
    let lab = lab(&["black-hole:1400,forward"]);
    let mut echo = helper::echo(&lab);
    helper::round_trip(&lab);
    echo.kill().expect("its end");
    let bytes = |arguments: &[&str]| {
        let result = iperf3_result(&lab, arguments);
        result["end"]["sum_received"]["bytes"].as_u64().expect("bytes")
    };
    let stalled = bytes(&["-t", "2"]);
    let small = bytes(&["-t", "1", "-M", "1200"]);
    println!("{stalled} bytes, {small} with a smaller MSS");
    assert!(stalled < 100_000, "{stalled}");
    assert!(small > 1_000_000, "{small}");
    assert!(forwarded(&lab).dropped[0] > 0);
    lab.remove(&"black-hole:1400,forward".parse().expect("a fault")).expect("removed");
    let flows = bytes(&["-t", "1"]);
    assert!(flows > 1_000_000, "{flows}");
}

fn dropped_by_queue(port: &PortStatus) -> u64 {
    port.queue.as_ref().expect("a queue").drops
}

pub(super) fn a_host_shapes_its_own_port() {
    need("iperf3");
    let lab = lab(&[]);
    let most = 300e6 * PAYLOAD;
    let free = free_rate(&lab, &["-t", "1"], most);
    let shape = plant(&lab, "shape:near,300Mb/s");
    let least = most.min(free / 3.0) * 0.9;
    let shaped = iperf3_within(&lab, &["-t", "2", "-O", "1"], least..most * 1.02, free);
    let back = iperf3(&lab, &["-t", "1", "-R"]);
    println!("{:.1} Mb/s, {:.1} in reverse", shaped / 1e6, back / 1e6);
    assert!(back > shaped * 1.5 || free < 2.0 * most, "{back} in reverse");
    let retransmits = lab.plant(&"queue:near,1Gb/s,30KiB".parse().expect("a fault"));
    assert!(matches!(retransmits, Err(LabError::NotPlantable { .. })), "{retransmits:?}");
    lab.remove(&shape).expect("removed");
    assert_eq!(port(&lab, Host::Near, "eth0").queue, None);
}

pub(super) fn a_short_queue_drops_in_the_host() {
    need("iperf3");
    let lab = lab(&[]);
    for (code, drops) in [("queue:near,300Mb/s,20KiB", true), ("queue:near,300Mb/s,4MiB", false)] {
        let fault = plant(&lab, code);
        iperf3(&lab, &["-t", "1"]);
        let dropped = dropped_by_queue(&port(&lab, Host::Near, "eth0"));
        println!("{code}: {dropped} dropped");
        assert_eq!(dropped > 0, drops, "{code}: {dropped}");
        lab.remove(&fault).expect("removed");
    }
}

/// The rate at which a host's port moves bytes, in bits per second; `of` selects received or sent bytes.
fn moved(lab: &Lab, host: Host, of: impl Fn(&PortStatus) -> u64) -> f64 {
    let (start, before) = (Instant::now(), of(&port(lab, host, "eth0")));
    std::thread::sleep(Duration::from_millis(700));
    let bytes = of(&port(lab, host, "eth0")) - before;
    bytes as f64 * 8.0 / start.elapsed().as_secs_f64()
}

/// Whether as much traffic arrived as was planted, and whether the host at the other end sent it.
fn crosses(received: f64, sent: f64, by_end: bool) -> Result<(), String> {
    // The port also counts headers, and a busy machine sends late.
    within(received, &(60e6..250e6))?;
    let as_said = (sent > 50e6) == by_end;
    as_said.then_some(()).ok_or_else(|| format!("{sent} sent by the other end"))
}

pub(super) fn other_traffic_crosses_the_path() {
    let lab = lab(&[]);
    let sent = |host| moved(&lab, host, |port| port.tx_bytes);
    let received = |host| moved(&lab, host, |port| port.rx_bytes);
    for (code, sender, receiver) in [
        ("traffic:200Mb/s,forward", None, Host::Far),
        ("traffic:200Mb/s,reverse", None, Host::Near),
        ("traffic:200Mb/s,reverse,ends", Some(Host::Far), Host::Near),
    ] {
        let fault = plant(&lab, code);
        let other = match receiver {
            Host::Far => Host::Near,
            _ => Host::Far,
        };
        answer(|| crosses(received(receiver), sent(other), sender.is_some()));
        lab.remove(&fault).expect("removed");
        let rest = received(receiver);
        assert!(rest < 1e6, "{code}: {rest} once it is removed");
    }
    // Planted: traffic with the wrong origin, no traffic, and too much.
    assert!(crosses(200e6, 200e6, false).is_err() && crosses(200e6, 0.0, true).is_err());
    assert!(crosses(0.0, 0.0, false).is_err() && crosses(900e6, 0.0, false).is_err());
}

/// Time that a busy program waited for a CPU, over the time that it ran on it.
fn waiting(lab: &Lab, cpu: usize) -> f64 {
    let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; cat /proc/$$/schedstat";
    let program = Program::new("sh").args(["-c", script]).cpus([cpu]);
    let done = lab.spawn(Host::Near, &program).expect("a shell").finish();
    let line = text(&done.expect("its end").stdout);
    let times: Vec<f64> = line.split(' ').map(|n| n.parse().expect("a time")).collect();
    times[1] / times[0]
}

pub(super) fn hogs_make_programs_wait() {
    let lab = lab(&[]);
    let cpu = rustix::thread::sched_getcpu();
    let fault = plant(&lab, &format!("hog:cpu={cpu},threads=3"));
    let hogged = waiting(&lab, cpu);
    lab.remove(&fault).expect("removed");
    let free = waiting(&lab, cpu);
    println!("waits {hogged:.2} of what it runs, {free:.2} without");
    assert!(hogged > 1.5 && hogged > free, "{hogged}, {free} without");
    let beyond = "hog:cpu=1023,threads=1".parse().expect("a fault");
    let refused = lab.plant(&beyond).expect_err("no such CPU").to_string();
    assert!(refused.contains("CPU 1023"), "{refused}");
}

pub(super) fn programs_of_a_side_stay_on_a_cpu() {
    let lab = lab(&[]);
    let cpu = rustix::thread::sched_getcpu();
    let script = "grep Cpus_allowed_list /proc/self/status";
    let allowed = |host| text(&shell(&lab, host, script).stdout);
    let free = allowed(Host::Near);
    let fault = plant(&lab, &format!("cpus:near,{cpu}"));
    assert_eq!(allowed(Host::Near), format!("Cpus_allowed_list:\t{cpu}"));
    assert_eq!(allowed(Host::Far), free);
    lab.remove(&fault).expect("removed");
    assert_eq!(allowed(Host::Near), free);
}

pub(super) fn offloads_are_off_and_on_again() {
    need("iperf3");
    let lab = lab(&[]);
    let packet = || {
        let before = port(&lab, Host::Near, "eth0");
        iperf3(&lab, &["-n", "20M"]);
        let after = port(&lab, Host::Near, "eth0");
        (after.tx_bytes - before.tx_bytes) / (after.tx_packets - before.tx_packets)
    };
    assert!(packet() > 1514);
    let fault = plant(&lab, "offloads:near,off");
    let single = packet();
    assert!(single <= 1514, "{single} bytes at once");
    lab.remove(&fault).expect("removed");
    assert!(packet() > 1514);
}

pub(super) fn programs_stop_and_go_on() {
    let lab = lab(&[]);
    let program = Program::new("sh").args(["-c", "echo $$; while :; do sleep 1000; done"]);
    let mut running = lab.spawn(Host::Far, &program).expect("a shell");
    let mut line = String::new();
    let output = running.stdout.take().expect("an output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    let script = format!("cut -d' ' -f3 /proc/{}/stat", line.trim());
    let stopped = || text(&shell(&lab, Host::Near, &script).stdout) == "T";
    let wait = |wanted: bool| {
        let start = Instant::now();
        while stopped() != wanted {
            assert!(start.elapsed() < Duration::from_secs(20), "{wanted}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    assert!(!stopped());
    let often = plant(&lab, "stall:far,300ms,every=600ms");
    for wanted in [true, false, true] {
        wait(wanted);
    }
    lab.remove(&often).expect("removed");
    wait(false);
    let once = plant(&lab, "stall:far,2s,500ms");
    wait(true);
    wait(false);
    lab.remove(&once).expect("removed");
    running.kill().expect("its end");
}

/// Checks three shares of a CPU: a quota of 20 % throttles only its own side, and no longer once it is removed. On a
/// machine that others use, a side that is not throttled gets less than a whole CPU.
fn is_throttled([throttled, other, free]: [f64; 3]) -> Result<(), String> {
    assert!(throttled < 0.25, "{throttled}");
    within(other, &(0.3..2.0))?;
    within(free, &(0.3..2.0)).map(drop)
}

pub(super) fn a_quota_throttles_or_is_refused_in_words() {
    let lab = lab(&[]);
    let spin = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; cat /proc/$$/schedstat";
    // CPU time of the program over the time that passed.
    let share = |host| {
        let start = Instant::now();
        let line = text(&shell(&lab, host, spin).stdout);
        let ran: f64 = line.split(' ').next().and_then(|n| n.parse().ok()).expect("a time");
        ran / start.elapsed().as_nanos() as f64
    };
    let fault: Fault = "quota:near,20%".parse().expect("a fault");
    answer(|| {
        if let Err(refused) = lab.plant(&fault) {
            let refused = refused.to_string();
            assert!(refused.contains("control group"), "{refused}");
            println!("{refused}");
            if is_root() {
                skip("cgroups", &refused);
            }
            return Ok(());
        }
        let (throttled, other) = (share(Host::Near), share(Host::Far));
        lab.remove(&fault).expect("removed");
        let free = share(Host::Near);
        println!("{throttled:.2} of a CPU, {other:.2} on the other side, {free:.2} without");
        is_throttled([throttled, other, free])
    });
    // Planted: the other side is throttled too; the quota still throttles after it was removed; or no side is
    // throttled.
    assert!(is_throttled([0.2, 0.2, 0.9]).is_err() && is_throttled([0.2, 0.9, 0.2]).is_err());
    let nobody = outcome_of(|| drop(is_throttled([0.9; 3])));
    assert_eq!(nobody, Outcome::Failed);
    drop(lab);
    let left = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"].map(|base| {
        let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
        entries.filter(|e| e.file_name().to_string_lossy().starts_with("linerate-lab-")).count()
    });
    assert_eq!(left, [0, 0]);
}

pub(super) fn faults_are_planted_on_a_bridge() {
    let bridged = Spec { topology: Topology::Bridged, ..Spec::default() };
    let lab = Lab::build(&bridged).expect("a lab");
    let mut echo = helper::echo(&lab);
    helper::round_trip(&lab);
    let before = state(&lab);
    for code in ["delay:20ms", "path-rate:1Gb/s,deep", "mtu:9000"] {
        let fault = plant(&lab, code);
        let time = helper::round_trip(&lab);
        assert!(code != "delay:20ms" || time >= 20.0, "{time} ms");
        lab.remove(&fault).expect("removed");
        assert_eq!(state(&lab), before, "{code}");
    }
    let traffic = plant(&lab, "traffic:50Mb/s,reverse");
    assert!(moved(&lab, Host::Near, |port| port.rx_bytes) > 10e6);
    lab.remove(&traffic).expect("removed");
    for host in [Host::Near, Host::Far] {
        lab.link(host, false).expect("down");
        assert!(!port(&lab, host, "eth0").up);
        lab.link(host, true).expect("up");
        helper::round_trip(&lab);
    }
    echo.kill().expect("its end");
}

/// One fault of each kind that can be planted in any lab.
const ALL: &[&str] = &[
    "path-rate:100Mb/s,shallow,forward",
    "police:500Mb/s,forward",
    "flow-rate:500Mb/s,shaped,forward",
    "loss:1%,reverse",
    "reorder:1ms,every=100,forward",
    "jitter:2ms,forward",
    "delay:2ms",
    "hold:near,200us",
    "black-hole:1400,reverse",
    "mtu:1280",
    "traffic:5Mb/s,forward",
    "link-down:far,100s,500ms",
    "receive-window:far,256KiB",
    "send-buffer:near,64KiB",
    "shape:near,500Mb/s",
    "offloads:near,off",
    "hog:cpu=0,threads=1",
    "cpus:near,0",
    "stall:far,200ms,every=100s",
    "application:far,receiver,work=800ps/B",
    "environment:near,PLANTED=1",
];

/// Everything in the hosts that a removed fault might have left changed.
fn state(lab: &Lab) -> String {
    let hosts = [Host::Near, Host::Router, Host::Far];
    let ports = hosts.map(|host| lab.ports(host).expect("ports")).concat();
    let ports = ports.into_iter();
    let ports = ports.map(|p| format!("{:?}\n", (p.name, p.up, p.mtu, p.queue.map(|q| q.kind))));
    let script = "cat /proc/sys/net/ipv4/tcp_[rw]mem; grep Cpus_allowed_list /proc/self/status; \
                  echo $PLANTED $LINERATE_LAB_APPLICATION";
    let settings = [Host::Near, Host::Far].map(|host| text(&shell(lab, host, script).stdout));
    ports.chain(settings).collect()
}

pub(super) fn each_fault_is_planted_beside_another_and_undone() {
    planted_and_undone(1);
}

pub(super) fn any_two_faults_are_planted_and_undone() {
    planted_and_undone(ALL.len());
}

/// Plants each fault together with each of up to `beside` faults that follow it in the list, and removes both.
fn planted_and_undone(beside: usize) {
    let lab = lab(&[]);
    let before = state(&lab);
    for (number, first) in ALL.iter().enumerate() {
        for second in ALL[number + 1..].iter().take(beside) {
            let (a, b) = (plant(&lab, first), plant(&lab, second));
            let both = state(&lab);
            lab.remove(&a).expect(first);
            plant(&lab, first);
            assert_eq!(state(&lab), both, "{first} and {second}, in the other order");
            lab.remove(&a).expect(first);
            lab.remove(&b).expect(second);
            assert_eq!(state(&lab), before, "once {first} and {second} are removed");
            assert_eq!(lab.forwarded(), Ok(None), "{first} and {second}");
        }
    }
    let mut echo = helper::echo(&lab);
    helper::round_trip(&lab);
    echo.kill().expect("its end");
}
