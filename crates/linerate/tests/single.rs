//! `linerate bw` and `linerate lat` with `linerate serve` on this machine.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not take for tests"
)]

mod lab;
mod schema;
mod skip;
mod sweeps;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use linerate::show::{bw, lat, stream};
use rustix::process::{Pid, Signal, kill_process};
use schema::fits;
use serde_json::Value;
use tempfile::TempDir;

/// A server that is open to anyone, at a port of its own.
struct Far {
    home: TempDir,
    server: Child,
    port: String,
}

impl Far {
    fn start() -> Self {
        let home = TempDir::new().unwrap();
        // A port that nobody has now.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port().to_string();
        drop(free);
        let mut serve = Command::new(env!("CARGO_BIN_EXE_linerate"));
        serve.env_clear().env("HOME", home.path());
        serve.args(["serve", "--open", "--listen", "127.0.0.1", "--port", &port]);
        serve.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = serve.spawn().unwrap();
        let mut told = BufReader::new(server.stderr.take().unwrap()).lines();
        assert!(told.any(|line| line.unwrap().contains("listening")));
        Self { home, server, port }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.env_clear().env("HOME", self.home.path());
        command
            .args(args)
            .args(["127.0.0.1", "--open", "--port", &self.port]);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The document of a measurement that went as asked.
    fn json(&self, args: &[&str], schema: &str) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{words}");
        let told = serde_json::from_slice(&output.stdout).unwrap();
        fits(schema, &told);
        told
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn bw_tells_what_both_ends_counted_either_way_and_both_at_once() {
    let far = Far::start();
    for (direction, ways) in [
        ("forward", &["forward"][..]),
        ("reverse", &["reverse"]),
        ("both", &["forward", "reverse"]),
    ] {
        let told = far.json(&["bw", "-t", "2s", "-d", direction, "-P", "2"], bw::SCHEMA);
        assert_eq!(told["far_end"], "linerate");
        assert_eq!(
            (&told["streams"], &told["complete"]),
            (&2.into(), &true.into())
        );
        for way in ["forward", "reverse"] {
            let told = &told["directions"][way];
            assert_eq!(told.is_object(), ways.contains(&way), "{way}: {told}");
            if told.is_null() {
                continue;
            }
            let number = |value: &Value| value.as_f64().unwrap();
            let (from, to) = if way == "forward" {
                ("near", "far")
            } else {
                ("far", "near")
            };
            let sent = number(&told[from]["bytes"]);
            let received = number(&told["received_bytes"]);
            assert_eq!(told["received_bytes"], told[to]["bytes"]);
            assert!(
                sent > 0.0 && (received / sent - 1.0).abs() < 0.25,
                "{received} of {sent}"
            );
            let parts = told["intervals"].as_array().unwrap().iter();
            let sum: u64 = parts.map(|part| part["bytes"].as_u64().unwrap()).sum();
            assert_eq!(told["received_bytes"], sum, "{told}");
            let rate = received * 8e9 / number(&told["received_ns"]);
            assert!(
                (number(&told["goodput_bps"]) / rate - 1.0).abs() < 0.05,
                "{told}"
            );
            assert!(number(&told[from]["cpu_ns_per_byte"]) > 0.0);
            assert!(number(&told[to]["cpu_ns_per_byte"]) > 0.0);
            assert!(told["retransmits"].is_u64() && number(&told["rtt_ns"]) > 0.0);
        }
    }
}

#[test]
fn bw_by_datagrams_tells_what_was_asked_for_what_was_sent_and_what_arrived() {
    let far = Far::start();
    for (direction, from) in [("forward", "near"), ("reverse", "far")] {
        let load = [
            "--engine",
            "udp",
            "--pacing",
            "8Mbit/s",
            "--write-size",
            "1000B",
        ];
        let args = [&["bw", "-t", "2s", "-d", direction][..], &load].concat();
        let told = far.json(&args, bw::SCHEMA);
        assert_eq!(told["engine"], "udp");
        let way = &told["directions"][direction];
        let found = &way["datagrams"];
        let number = |key: &str| found[key].as_f64().unwrap();
        assert_eq!((number("size_bytes"), number("asked_bps")), (1000.0, 8e6));
        // A sender that waits for its CPU sends less; never more, but for a burst.
        let sent = number("sent_bps");
        assert!((2e6..8.8e6).contains(&sent), "{found}");
        let [sent, received] = ["sent", "received"].map(number);
        assert!(
            received > 0.0 && received + number("lost") < sent * 1.2,
            "{found}"
        );
        assert_eq!(way[from]["bytes"].as_u64().unwrap() % 1000, 0);
        let bursts = &found["bursts"];
        assert_eq!(bursts["asked_gap_ns"], 1_000_000);
        // A sender that was late sends two bursts at once.
        assert!(
            bursts["p50_ns"].as_u64() <= bursts["p99_ns"].as_u64(),
            "{bursts}"
        );
        assert_eq!(
            (&way["retransmits"], &way["rtt_ns"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(told["unknown"].to_string().matches("TCP").count(), 0);
        let page = String::from_utf8(far.run(&args).stdout).unwrap();
        assert!(
            page.contains("8 Mb/s asked for") && page.contains("UDP"),
            "{page}"
        );
    }
}

#[test]
fn a_rate_that_the_path_carries_is_the_most_that_a_bound_allows() {
    let far = Far::start();
    let args = ["bw", "-t", "1s", "--engine", "udp", "--pacing", "4Mbit/s"];
    // A busy machine may lose some: that is allowed here.
    let told = far.json(&[&args[..], &["--find-rate=20%"]].concat(), bw::SCHEMA);
    let search = &told["search"];
    assert_eq!(search["allowed_share"], 0.2);
    let rate = search["rate_bps"].as_f64().unwrap();
    assert!((1e6..4.4e6).contains(&rate), "{search}");
    assert_eq!(search["above"], Value::Null);
    let steps = search["steps"].as_array().unwrap();
    assert_eq!(steps[0]["asked_bps"], 4_000_000);
    assert_eq!(steps.last().unwrap()["long"], true);
}

#[test]
fn bw_streams_lines_and_its_document_comes_last() {
    let far = Far::start();
    let output = far.run(&["bw", "-t", "1s", "--stream-json", "--with-record"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    for line in &lines {
        fits(stream::SCHEMA, line);
    }
    let events: Vec<&str> = lines.iter().map(|l| l["event"].as_str().unwrap()).collect();
    assert_eq!(events[..4], ["started", "host", "host", "step"]);
    assert_eq!(events[events.len() - 3..], ["goodput", "ended", "bw"]);
    let result = &lines[lines.len() - 1]["result"];
    fits(bw::SCHEMA, result);
    let told = &lines[lines.len() - 3]["goodput_bps"];
    assert_eq!(told, &result["directions"]["forward"]["goodput_bps"]);
    assert_eq!(result["record"]["steps"].as_array().unwrap().len(), 1);
}

#[test]
fn bounds_decide_the_exit_code_and_what_was_not_judged_does_not_hold() {
    let far = Far::start();
    let code = |expect: &str| {
        let output = far.run(&["bw", "-t", "1s", "--quiet", "--expect", expect]);
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(code("goodput>=1kbit/s"), (Some(0), String::new()));
    let (exit, why) = code("forward.goodput<1kbit/s");
    assert!(
        exit == Some(4) && why.contains("forward goodput was"),
        "{why}"
    );
    let (exit, why) = code("reverse.goodput>=1kbit/s");
    assert!(exit == Some(4) && why.contains("not measured"), "{why}");
    let (exit, why) = code("cause=path-rate");
    assert!(
        exit == Some(4) && why.contains("no causes were looked for"),
        "{why}"
    );
}

#[test]
fn ctrl_c_keeps_what_was_measured_until_then() {
    let far = Far::start();
    let mut command = far.command(&["bw", "-t", "60min", "--json"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(told.any(|line| line.unwrap().contains("forward, 1 stream")));
    // Past the part that does not count: the server's part of the step is under way as well.
    thread::sleep(Duration::from_secs(4));
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits(bw::SCHEMA, &told);
    assert_eq!(
        (&told["complete"], &told["ended_early"]),
        (&false.into(), &"interrupted".into())
    );
    assert!(told["measured_ns"].as_u64() < told["time_ns"].as_u64());
    assert!(
        told["directions"]["forward"]["goodput_bps"]
            .as_u64()
            .unwrap()
            > 0
    );
}

#[test]
fn what_cannot_be_asked_of_a_far_end_is_refused_in_words() {
    let home = TempDir::new().unwrap();
    let refused = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        let output = command
            .env_clear()
            .env("HOME", home.path())
            .args(args)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let both = refused(&["bw", "iperf3://127.0.0.1", "-d", "both"]);
    assert!(
        both.contains("linerate at both ends") && both.contains("hint: "),
        "{both}"
    );
    assert!(refused(&["bw", "iperf3://127.0.0.1", "--stream-json"]).contains("--json"));
    assert!(refused(&["bw", "iperf3://127.0.0.1", "--with-record"]).contains("no record"));
    assert!(refused(&["bw", "127.0.0.1", "-t", "3601s"]).contains("1 s to 3600 s"));
    let udp = refused(&["bw", "iperf3://127.0.0.1", "--engine", "udp"]);
    assert!(
        udp.contains("is by TCP") && udp.contains("linerate serve"),
        "{udp}"
    );
    assert!(refused(&["bw", "iperf3://127.0.0.1", "--find-rate"]).contains("linerate serve"));
    assert!(refused(&["bw", "127.0.0.1", "--find-rate"]).contains("--engine udp"));
    let both = [
        "bw",
        "127.0.0.1",
        "--engine",
        "udp",
        "--find-rate",
        "-d",
        "both",
    ];
    assert!(refused(&both).contains("one way at a time"));
    assert!(refused(&["bw", "127.0.0.1", "--find-rate=51%"]).contains("50%"));
    let long = [
        "bw",
        "127.0.0.1",
        "--engine",
        "udp",
        "--find-rate",
        "-t",
        "1201s",
    ];
    assert!(refused(&long).contains("--time 20min"));
    assert!(refused(&["bw", "127.0.0.1", "--find-rate=0.1"]).contains("0.1%"));
    assert!(refused(&["lat", "127.0.0.1", "--engine", "pigeon"]).contains("udp"));
    assert!(refused(&["bw", "http://127.0.0.1"]).contains("`http://` is unknown"));
}

/// All that was due is timed, answered or not: so many as the time that counts holds, which ends as late
/// as the machine lets it.
fn due_is_timed(told: &Value) {
    let number = |key: &str| told[key].as_f64().unwrap();
    let due = number("measured_ns") / number("interval_ns");
    assert!(number("samples") >= due / 2.0, "{due}: {told}");
    let asked = number("asked_per_sec") * number("interval_ns");
    assert!((asked / 1e9 - 1.0).abs() < 1e-6, "{told}");
    assert_eq!(told["unanswered"], 0);
}

#[test]
fn a_rate_that_is_not_achieved_is_told_and_what_was_due_is_late() {
    let far = Far::start();
    let args = ["lat", "-t", "1s", "--rate", "1000000", "--size", "16KiB"];
    let output = far.run(&[&args[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(3));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits(lat::SCHEMA, &told);
    let number = |key: &str| told[key].as_f64().unwrap();
    assert_eq!(told["complete"], false);
    assert!(number("samples") >= 900_000.0, "{told}");
    // Maybe none of them is answered: what was due in the time that does not count goes before.
    assert!(number("unanswered") > 0.0 && number("unanswered") <= number("samples"));
    assert!(number("answered_per_sec") < number("asked_per_sec"));
    let why = told["unknown"].to_string();
    assert!(why.contains("1000000 a second were asked for"), "{why}");
    let page = String::from_utf8(far.run(&args).stdout).unwrap();
    assert!(page.contains("1000000 a second asked for"), "{page}");
}

#[test]
fn lat_times_round_trips_closed_and_open_blocking_and_busy() {
    let far = Far::start();
    for (args, interval, busy) in [
        (&["lat", "-t", "1s"][..], Value::Null, false),
        (&["lat", "-t", "1s", "--busy-poll"], Value::Null, true),
        (
            &["lat", "-t", "1s", "--rate", "500"],
            2_000_000.into(),
            false,
        ),
        (
            &[
                "lat",
                "-t",
                "1s",
                "--rate",
                "500",
                "--busy-poll",
                "--size",
                "100KiB",
            ],
            2_000_000.into(),
            true,
        ),
    ] {
        let told = far.json(args, lat::SCHEMA);
        assert_eq!(
            (&told["interval_ns"], &told["busy_poll"]),
            (&interval, &busy.into())
        );
        let samples = told["samples"].as_u64().unwrap();
        if interval.is_null() {
            assert!(samples > 0, "{told}");
        } else {
            due_is_timed(&told);
        }
        let histogram = told["histogram"].as_array().unwrap();
        let counted: u64 = histogram.iter().map(|bin| bin[1].as_u64().unwrap()).sum();
        assert_eq!(counted, samples);
    }
    let told = far.json(&["lat", "-t", "1s", "--beside", "forward"], lat::SCHEMA);
    assert!(
        told["beside"][0]["goodput_bps"].as_u64().unwrap() > 0,
        "{told}"
    );
}

#[test]
fn lat_by_datagrams_tells_what_was_lost_and_how_long_answers_were_unread() {
    let far = Far::start();
    for args in [
        &["lat", "-t", "1s"][..],
        &["lat", "-t", "1s", "--busy-poll"],
        &["lat", "-t", "1s", "--rate", "500"],
        &[
            "lat",
            "-t",
            "1s",
            "--rate",
            "500",
            "--busy-poll",
            "--size",
            "1KiB",
        ],
    ] {
        let told = far.json(&[args, &["--engine", "udp"]].concat(), lat::SCHEMA);
        assert_eq!(told["engine"], "udp");
        let [samples, lost] = ["samples", "lost"].map(|key| told[key].as_u64().unwrap());
        assert!(samples > 10 && lost <= samples, "{told}");
        let p50 = |of: &Value| of["percentiles"][0]["ns"].as_u64().unwrap();
        assert!(p50(&told["unread"]) < p50(&told), "{told}");
        let histogram = told["unread"]["histogram"].as_array().unwrap();
        let counted: u64 = histogram.iter().map(|bin| bin[1].as_u64().unwrap()).sum();
        assert_eq!(counted, samples - told["unanswered"].as_u64().unwrap());
    }
    let beside = [
        "lat", "-t", "1s", "--beside", "forward", "-P", "2", "--pacing", "4Mbit/s",
    ];
    let told = far.json(&[&beside[..], &["--engine", "udp"]].concat(), lat::SCHEMA);
    let load = &told["beside"][0];
    assert_eq!(
        (&load["streams"], &load["pacing_bps"]),
        (&2.into(), &4_000_000.into())
    );
    assert!(load["goodput_bps"].as_u64().unwrap() > 0, "{told}");
}

/// Round trips during which the server does nothing for a while, so long after they began.
fn stalled(args: &[&str], after: Duration, stall: Duration) -> Value {
    let far = Far::start();
    let args = [&["lat", "-t", "4s", "--json"], args].concat();
    let mut command = far.command(&args);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(told.any(|line| line.unwrap().contains("round trips on the idle path")));
    thread::sleep(after);
    let server = Pid::from_child(&far.server);
    kill_process(server, Signal::STOP).unwrap();
    thread::sleep(stall);
    kill_process(server, Signal::CONT).unwrap();
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The 99.9th percentile in nanoseconds.
fn rare(told: &Value) -> f64 {
    let percentiles = told["percentiles"].as_array().unwrap();
    let found = percentiles.iter().find(|p| p["percent"] == 99.9);
    found.unwrap()["ns"].as_f64().unwrap()
}

#[test]
fn an_open_loop_shows_a_stall_of_the_server_that_a_closed_one_hides() {
    let stall = Duration::from_millis(200);
    let half = stall.as_nanos() as f64 / 2.0;
    // In the middle of the time that counts.
    let after = Duration::from_secs(3);
    let open = rare(&stalled(&["--rate", "5000"], after, stall));
    let closed = rare(&stalled(&[], after, stall));
    assert!(open > half, "{open}");
    assert!(closed < half, "{closed}");
}

#[test]
fn a_stall_that_covers_the_end_is_seen_in_either_loop() {
    // Time that does not count and time that does end in the middle of it.
    let (after, stall) = (Duration::from_secs(4), Duration::from_millis(1500));
    for args in [&["--rate", "5000"][..], &[]] {
        let told = stalled(args, after, stall);
        let most = told["most_ns"].as_f64().unwrap();
        assert!(most > stall.as_nanos() as f64 / 2.0, "{args:?}: {told}");
    }
}

/// The lab's hosts have it in their routes, which a socket that connects goes by.
#[test]
fn a_congestion_control_that_is_asked_for_outranks_that_of_the_route() {
    let home = TempDir::new().unwrap();
    for way in ["forward", "reverse"] {
        let script = format!(
            "$PROGRAM bw $1 --open --time 1s --congestion reno --direction {way} --json --quiet"
        );
        let near = [
            "--congestion",
            "cubic",
            "--",
            "sh",
            "-c",
            &script,
            "sh",
            "FAR",
        ];
        let Some([out, _]) = lab::run(home.path(), &near) else {
            return;
        };
        let told: Value = serde_json::from_str(&out).unwrap();
        let measured = &told["directions"][way];
        for end in ["near", "far"] {
            assert_eq!(measured[end]["congestion"], "reno", "{way}, {end}");
        }
    }
}
