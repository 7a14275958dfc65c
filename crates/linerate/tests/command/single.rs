//! `linerate bw` and `linerate lat` with `linerate serve` on this machine.

mod sweeps;
mod trips;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::sync::MutexGuard;
use std::thread;
use std::time::Duration;

use crate::schema::fits;
use crate::turn::turn;
use linerate::show::{bw, stream};
use linerate_test::ask;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A server that is open to anyone, at a port of its own.
struct Far {
    home: TempDir,
    server: Child,
    port: String,
    /// Given back once the server has ended.
    _turn: MutexGuard<'static, ()>,
}

impl Far {
    fn start() -> Self {
        let turn = turn();
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
        Self {
            home,
            server,
            port,
            _turn: turn,
        }
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

    /// The document of a measurement that went as asked. A machine that stood still may end one early (3).
    fn json(&self, args: &[&str], schema: &str) -> Value {
        let output = ask(|| {
            let output = self.run(&[args, &["--json"]].concat());
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                Some(0) => Ok(output),
                Some(3) => Err(words),
                other => panic!("{other:?}: {words}"),
            }
        });
        let output = output.expect("one of three measurements went as asked");
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
fn bw_tells_what_both_ends_counted_one_way_and_both_at_once() {
    let far = Far::start();
    for (direction, ways) in [
        ("reverse", &["reverse"][..]),
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
fn a_receiver_that_discards_is_named_and_counts_the_same() {
    let far = Far::start();
    for (more, discarded) in [(&[][..], false), (&["--discard"], true)] {
        let args = [&["bw", "-t", "1s"][..], more].concat();
        let told = far.json(&args, bw::SCHEMA);
        let way = &told["directions"]["forward"];
        assert_eq!(way["discarded"], discarded);
        assert_eq!(way["received_bytes"], way["far"]["bytes"]);
        assert!(way["received_bytes"].as_u64() > Some(0));
    }
    let page = far.run(&["bw", "-t", "1s", "--discard"]);
    let page = String::from_utf8(page.stdout).unwrap();
    assert!(page.contains("discarded, no program read it"), "{page}");
}

#[test]
fn bw_by_datagrams_tells_what_was_asked_for_what_was_sent_and_what_arrived() {
    let far = Far::start();
    is_told_by_datagrams(&far, "forward", "near");
    let args = [&["bw", "-t", "1s"], &PACED_DATAGRAMS[..]].concat();
    let page = String::from_utf8(far.run(&args).stdout).unwrap();
    assert!(
        page.contains("8 Mb/s asked for") && page.contains("UDP"),
        "{page}"
    );
}

/// Datagrams of 1000 bytes, 1000 a second.
const PACED_DATAGRAMS: [&str; 6] = [
    "--engine",
    "udp",
    "--pacing",
    "8Mbit/s",
    "--write-size",
    "1000B",
];

/// Checks the document of a load of datagrams one way, which is sent by `from`.
fn is_told_by_datagrams(far: &Far, direction: &str, from: &str) {
    let args = [&["bw", "-t", "2s", "-d", direction], &PACED_DATAGRAMS[..]].concat();
    let told = far.json(&args, bw::SCHEMA);
    assert_eq!(told["engine"], "udp");
    let way = &told["directions"][direction];
    let found = &way["datagrams"];
    let number = |key: &str| found[key].as_f64().unwrap();
    assert_eq!((number("size_bytes"), number("asked_bps")), (1000.0, 8e6));
    // A sender that waits for its CPU sends less; never more, but for a burst.
    let sent = number("sent_bps");
    assert!(sent > 0.0 && sent < 8.8e6, "{found}");
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
    let ended = |bounds: &[&str]| {
        let expect = bounds.iter().flat_map(|bound| ["--expect", *bound]);
        let args = ["bw", "-t", "1s", "--quiet"].into_iter().chain(expect);
        let output = far.run(&args.collect::<Vec<_>>());
        let words = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), words)
    };
    assert_eq!(ended(&["goodput>=1kbit/s"]), (Some(0), String::new()));
    let (exit, why) = ended(&[
        "forward.goodput<1kbit/s",
        "reverse.goodput>=1kbit/s",
        "cause=path-rate",
    ]);
    assert_eq!(exit, Some(4), "{why}");
    for part in [
        "forward goodput was",
        "not measured",
        "no causes were looked for",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
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

/// How the program ends with these arguments, without a far end, and what it says.
fn ended(args: &[&str]) -> (Option<i32>, String) {
    let home = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    let command = command.env_clear().env("HOME", home.path());
    let output = command.args(args).output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), words)
}

#[test]
fn what_cannot_be_asked_of_a_far_end_is_refused_in_words() {
    let refused = |args: &[&str]| {
        let (code, words) = ended(args);
        assert_eq!(code, Some(2), "{args:?}");
        words
    };
    let both = refused(&["bw", "iperf3://127.0.0.1", "-d", "both"]);
    assert!(
        both.contains("linerate at both ends") && both.contains("hint: "),
        "{both}"
    );
    assert!(refused(&["bw", "iperf3://127.0.0.1", "--stream-json"]).contains("--json"));
    assert!(refused(&["bw", "iperf3://127.0.0.1", "--with-record"]).contains("no record"));
    assert!(refused(&["bw", "127.0.0.1", "-t", "3601s"]).contains("1 s to 3600 s"));
    let udp = ["bw", "iperf3://127.0.0.1", "--engine", "udp"];
    let mss = refused(&[&udp[..], &["--mss", "1000"]].concat());
    assert!(mss.contains("no maximum segment size"), "{mss}");
    let size = refused(&[&udp[..], &["--write-size", "64KiB"]].concat());
    assert!(size.contains("16 B to 65507 B"), "{size}");
    let unread = refused(&["bw", "iperf3://127.0.0.1", "--discard"]);
    assert!(unread.contains("-d reverse"), "{unread}");
    assert!(refused(&["bw", "127.0.0.1", "--discard", "--sweep=size"]).contains("--discard"));
    assert!(refused(&[&udp[..], &["-d", "reverse", "--discard"]].concat()).contains("unread"));
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
    let http = refused(&["bw", "http://127.0.0.1"]);
    assert!(http.contains("`http://`") && http.contains("ssh://127.0.0.1"));
    let pair = refused(&["pair", "ssh://127.0.0.1"]);
    assert!(
        pair.contains("hint: linerate run ssh://127.0.0.1"),
        "{pair}"
    );
    let iperf3 = refused(&["lat", "iperf3://127.0.0.1"]);
    assert!(
        iperf3.contains("hint: linerate bw iperf3://127.0.0.1 "),
        "{iperf3}"
    );
}

/// Before anybody is called: nobody serves here.
#[test]
fn what_an_engine_cannot_do_is_a_usage_error() {
    let code = |args: &[&str]| ended(&[args, &["--open", "--port", "1"]].concat());
    let udp = ["bw", "127.0.0.1", "--engine", "udp"];
    for (more, why) in [
        (&["--discard"][..], "drop payload unread"),
        (&["--copy", "zerocopy"], "but a copy"),
        (&["--mss", "1000"], "maximum segment size"),
        (&["--streams", "65"], "1 to 64"),
    ] {
        let (code, words) = code(&[&udp[..], more].concat());
        assert_eq!(code, Some(2), "{words}");
        let hinted = words.contains("hint: --engine tcp can");
        assert!(words.contains(why) && hinted, "{words}");
    }
    let run = ["run", "127.0.0.1", "--engine", "udp", "--streams", "65"];
    assert_eq!(code(&run).0, Some(2));
    let (connect, words) = code(&["lat", "127.0.0.1", "--engine", "connect", "--busy-poll"]);
    assert_eq!(connect, Some(2), "{words}");
    let last = [&udp[..], &["--streams", "64"]].concat();
    assert_eq!(code(&last).0, Some(3));
}

mod long {
    use super::*;

    #[test]
    fn bw_by_datagrams_in_reverse_tells_the_same() {
        is_told_by_datagrams(&Far::start(), "reverse", "far");
    }
}
