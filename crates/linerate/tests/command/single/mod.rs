//! `linerate bw` and `linerate lat` with `linerate serve` on this machine.

mod ordinary;
mod sizes;
mod sweeps;
mod trips;

use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use crate::program::{Started, ended, linerate, stream_lines, words};
use crate::schema::fits;
use linerate_test::program::{Outcome, outcome_of};
use linerate_test::{Turn, ask, free_ports, turn};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// A server without a key, on a free port.
struct Far {
    home: TempDir,
    server: Started,
    port: String,
    /// Released once the server has ended.
    turn: Turn,
}

impl Far {
    fn start() -> Self {
        let turn = turn();
        let home = TempDir::new().unwrap();
        let [port] = free_ports().map(|port| port.to_string());
        let mut serve = linerate(home.path());
        serve.args(["serve", "--open", "--listen", "127.0.0.1", "--port", &port]);
        let mut server = Started::new(&mut serve);
        server.until("listening");
        server.log();
        Self { home, server, port, turn }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = linerate(self.home.path());
        command.args(args).args(["127.0.0.1", "--open", "--port", &self.port]);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The document of a measurement that succeeded; `None` if the machine was disturbed each time.
    fn json(&self, args: &[&str], schema: &str) -> Option<Value> {
        ask(&self.turn, || {
            let output = self.run(&[args, &["--json"]].concat());
            let reported = serde_json::from_slice(&output.stdout).unwrap_or_default();
            went_as_requested(&output, &reported)?;
            fits(schema, &reported);
            Ok(reported)
        })
    }

    /// The lines of `--stream-json` of a measurement that succeeded; the last one holds the document.
    fn stream(&self, args: &[&str]) -> Option<Vec<Value>> {
        ask(&self.turn, || {
            let output = self.run(&[args, &["--stream-json"]].concat());
            let lines = stream_lines(&output.stdout);
            let last = lines.last().unwrap_or(&Value::Null);
            went_as_requested(&output, &last["result"])?;
            Ok(lines)
        })
    }
}

/// Whether a measurement succeeded. A machine that stood still may end one early (exit code 3): its document shows
/// that.
fn went_as_requested(output: &Output, reported: &Value) -> Result<(), String> {
    let said = words(&output.stderr);
    match output.status.code() {
        Some(0) => Ok(()),
        Some(3) if reported["complete"] == false => Err(said),
        other => panic!("{other:?}: {said}"),
    }
}

/// Planted: measurements that fail in other ways.
#[test]
fn only_a_measurement_that_ended_early_is_asked_for_again() {
    let went = |code: i32, complete: Value| {
        let output = Output {
            status: std::os::unix::process::ExitStatusExt::from_raw(code << 8),
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        went_as_requested(&output, &serde_json::json!({"complete": complete}))
    };
    assert_eq!(went(0, true.into()), Ok(()));
    assert!(went(3, false.into()).is_err());
    for (code, complete) in [(3, true.into()), (3, Value::Null), (4, false.into())] {
        let failed = outcome_of(|| drop(went(code, complete)));
        assert_eq!(failed, Outcome::Failed, "{code}");
    }
}

#[test]
fn bw_tells_what_both_ends_counted_one_way_and_both_at_once() {
    let far = Far::start();
    for (direction, ways) in [("reverse", &["reverse"][..]), ("both", &["forward", "reverse"])] {
        let args = ["bw", "-t", "2s", "-d", direction, "-P", "2"];
        let Some(reported) = far.json(&args, "bw") else {
            return;
        };
        assert_eq!(reported["far_end"], "linerate");
        assert_eq!((&reported["streams"], &reported["complete"]), (&2.into(), &true.into()));
        for way in ["forward", "reverse"] {
            let reported = &reported["directions"][way];
            assert_eq!(reported.is_object(), ways.contains(&way), "{way}: {reported}");
            if reported.is_null() {
                continue;
            }
            let number = |value: &Value| value.as_f64().unwrap();
            let (from, to) = if way == "forward" { ("near", "far") } else { ("far", "near") };
            let sent = number(&reported[from]["bytes"]);
            let received = number(&reported["received_bytes"]);
            assert_eq!(reported["received_bytes"], reported[to]["bytes"]);
            assert!(sent > 0.0 && (received / sent - 1.0).abs() < 0.25, "{received} of {sent}");
            let parts = reported["intervals"].as_array().unwrap().iter();
            let sum: u64 = parts.map(|part| part["bytes"].as_u64().unwrap()).sum();
            assert_eq!(reported["received_bytes"], sum, "{reported}");
            let rate = received * 8e9 / number(&reported["received_ns"]);
            assert!((number(&reported["goodput_bps"]) / rate - 1.0).abs() < 0.05, "{reported}");
            assert!(number(&reported[from]["cpu_ns_per_byte"]) > 0.0);
            assert!(number(&reported[to]["cpu_ns_per_byte"]) > 0.0);
            assert!(reported["retransmits"].is_u64() && number(&reported["rtt_ns"]) > 0.0);
            assert_eq!(reported["discarded"], false);
        }
    }
}

#[test]
fn bw_by_datagrams_tells_what_was_asked_for_what_was_sent_and_what_arrived() {
    let far = Far::start();
    is_reported_by_datagrams(&far, "forward", "near");
    let args = [&["bw", "-t", "1s"], &PACED_DATAGRAMS[..]].concat();
    let page = String::from_utf8(far.run(&args).stdout).unwrap();
    assert!(page.contains("8 Mb/s requested") && page.contains("UDP"), "{page}");
}

/// Options for datagrams of 1000 bytes, 1000 a second.
const PACED_DATAGRAMS: [&str; 6] =
    ["--engine", "udp", "--pacing", "8Mbit/s", "--write-size", "1000B"];

/// Checks the document of a load of datagrams in one direction; `from` is the sender.
fn is_reported_by_datagrams(far: &Far, direction: &str, from: &str) {
    let args = [&["bw", "-t", "2s", "-d", direction], &PACED_DATAGRAMS[..]].concat();
    let Some(reported) = far.json(&args, "bw") else {
        return;
    };
    assert_eq!(reported["engine"], "udp");
    let way = &reported["directions"][direction];
    let found = &way["datagrams"];
    let number = |key: &str| found[key].as_f64().unwrap();
    assert_eq!((number("size_bytes"), number("requested_bps")), (1000.0, 8e6));
    // A sender that waits for its CPU sends less than the pace, but never more, except in a burst.
    let sent = number("sent_bps");
    assert!(sent > 0.0 && sent < 8.8e6, "{found}");
    let [sent, received] = ["sent", "received"].map(number);
    assert!(received > 0.0 && received + number("lost") < sent * 1.2, "{found}");
    assert_eq!(way[from]["bytes"].as_u64().unwrap() % 1000, 0);
    let bursts = &found["bursts"];
    assert_eq!(bursts["requested_gap_ns"], 1_000_000);
    // A sender that is late sends two bursts at once.
    assert!(bursts["p50_ns"].as_u64() <= bursts["p99_ns"].as_u64(), "{bursts}");
    assert_eq!((&way["retransmits"], &way["rtt_ns"]), (&Value::Null, &Value::Null));
    assert_eq!(reported["unknown"].to_string().matches("TCP").count(), 0);
}

#[test]
fn bw_streams_lines_and_its_document_comes_last() {
    let far = Far::start();
    let Some(lines) = far.stream(&["bw", "-t", "1s", "--with-record"]) else {
        return;
    };
    let events: Vec<&str> = lines.iter().map(|l| l["event"].as_str().unwrap()).collect();
    assert_eq!(events[..4], ["started", "host", "host", "step"]);
    assert_eq!(events[events.len() - 3..], ["goodput", "ended", "bw"]);
    let result = &lines[lines.len() - 1]["result"];
    fits("bw", result);
    let reported = &lines[lines.len() - 3]["goodput_bps"];
    assert_eq!(reported, &result["directions"]["forward"]["goodput_bps"]);
    assert_eq!(result["record"]["steps"].as_array().unwrap().len(), 1);
}

#[test]
fn bounds_decide_the_exit_code_and_what_was_not_judged_does_not_hold() {
    let far = Far::start();
    let judged = |bounds: &[&str]| {
        let expect = bounds.iter().flat_map(|bound| ["--expect", *bound]);
        let args = ["bw", "-t", "1s", "--quiet"].into_iter().chain(expect);
        let output = far.run(&args.collect::<Vec<_>>());
        (output.status.code(), words(&output.stderr))
    };
    assert_eq!(judged(&["goodput>=1kbit/s"]), (Some(0), String::new()));
    let (exit, why) =
        judged(&["forward.goodput<1kbit/s", "reverse.goodput>=1kbit/s", "cause=path-rate"]);
    assert_eq!(exit, Some(4), "{why}");
    for part in ["forward goodput was", "not measured", "no causes were looked for"] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured_until_then() {
    let far = Far::start();
    let mut run = Started::new(&mut far.command(&["bw", "-t", "60min", "--json"]));
    run.until("forward, 1 stream");
    // By then the time that does not count is over, and the server measures the step too.
    thread::sleep(Duration::from_secs(4));
    run.signal(Signal::INT);
    let output = run.end();
    assert_eq!(output.status.code(), Some(3));
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits("bw", &reported);
    assert_eq!(
        (&reported["complete"], &reported["ended_early"]),
        (&false.into(), &"interrupted".into())
    );
    assert!(reported["measured_ns"].as_u64() < reported["time_ns"].as_u64());
    assert!(reported["directions"]["forward"]["goodput_bps"].as_u64().unwrap() > 0);
}

/// The error message of a command that requests something impossible.
fn refused(args: &[&str]) -> String {
    let (code, words) = ended(args);
    assert_eq!(code, Some(2), "{args:?}");
    words
}

#[test]
fn what_cannot_be_asked_of_an_iperf3_server_is_refused_in_words() {
    let of = |more: &[&str]| refused(&[&["bw", "iperf3://127.0.0.1"], more].concat());
    let both = of(&["-d", "both"]);
    assert!(both.contains("linerate at both ends") && both.contains("hint: "), "{both}");
    let copy = of(&["-d", "reverse", "--copy", "zerocopy"]);
    assert!(copy.contains("with copies or sendfile"), "{copy}");
    let mss = of(&["--engine", "udp", "--mss", "1000"]);
    assert!(mss.contains("no maximum segment size"), "{mss}");
    let size = of(&["--engine", "udp", "--write-size", "64KiB"]);
    assert!(size.contains("16 B to 65507 B"), "{size}");
    let unread = of(&["--discard"]);
    assert!(unread.contains("-d reverse"), "{unread}");
    let unread = of(&["--engine", "udp", "-d", "reverse", "--discard"]);
    assert!(unread.contains("unread"), "{unread}");
    assert!(of(&["--find-rate"]).contains("linerate serve"));
    let trips = refused(&["lat", "iperf3://127.0.0.1"]);
    assert!(trips.contains("hint: linerate bw iperf3://127.0.0.1 "), "{trips}");
}

#[test]
fn options_of_a_load_are_refused_where_there_is_none() {
    for (option, value) in [("-P", "4"), ("--pacing", "1Gbit/s")] {
        let words = refused(&["lat", "127.0.0.1:1", option, value]);
        let named = if option == "-P" { "--streams" } else { option };
        assert!(words.contains(&format!("{named} is of the load")), "{words}");
        assert!(words.contains("hint: add --beside"), "{words}");
    }
}

#[test]
fn what_cannot_be_asked_of_a_far_end_is_refused_in_words() {
    let of = |more: &[&str]| refused(&[&["bw", "127.0.0.1"], more].concat());
    assert!(of(&["-t", "3601s"]).contains("1 s to 3600 s"));
    assert!(of(&["--discard", "--sweep=size"]).contains("--discard"));
    assert!(of(&["--find-rate"]).contains("--engine udp"));
    let both = of(&["--engine", "udp", "--find-rate", "-d", "both"]);
    assert!(both.contains("one direction at a time"), "{both}");
    assert!(of(&["--find-rate=51%"]).contains("50%"));
    let long = of(&["--engine", "udp", "--find-rate", "-t", "1201s"]);
    assert!(long.contains("--time 20min"), "{long}");
    assert!(of(&["--find-rate=0.1"]).contains("0.1%"));
    assert!(refused(&["lat", "127.0.0.1", "--engine", "pigeon"]).contains("udp"));
    let http = refused(&["bw", "http://127.0.0.1"]);
    assert!(http.contains("`http://`") && http.contains("ssh://127.0.0.1"));
    let pair = refused(&["pair", "ssh://127.0.0.1"]);
    assert!(pair.contains("hint: linerate run ssh://127.0.0.1"), "{pair}");
}

/// The request is refused before linerate connects: no server runs here.
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
        is_reported_by_datagrams(&Far::start(), "reverse", "far");
    }

    #[test]
    fn a_receiver_that_discards_is_named_and_counts_the_same() {
        let far = Far::start();
        let Some(reported) = far.json(&["bw", "-t", "1s", "--discard"], "bw") else {
            return;
        };
        let way = &reported["directions"]["forward"];
        assert_eq!(way["discarded"], true);
        assert_eq!(way["received_bytes"], way["far"]["bytes"]);
        assert!(way["received_bytes"].as_u64() > Some(0));
        let page = far.run(&["bw", "-t", "1s", "--discard"]);
        let page = String::from_utf8(page.stdout).unwrap();
        assert!(page.contains("discarded, no program read it"), "{page}");
    }

    #[test]
    fn a_rate_that_the_path_carries_is_the_most_that_a_bound_allows() {
        let far = Far::start();
        let args = ["bw", "-t", "1s", "--engine", "udp", "--pacing", "4Mbit/s"];
        // A busy machine may lose some datagrams, so this search allows that.
        let Some(reported) = far.json(&[&args[..], &["--find-rate=20%"]].concat(), "bw") else {
            return;
        };
        let search = &reported["search"];
        assert_eq!(search["allowed_share"], 0.2);
        let rate = search["rate_bps"].as_f64().unwrap();
        assert!((1e6..4.4e6).contains(&rate), "{search}");
        assert_eq!(search["above"], Value::Null);
        let steps = search["steps"].as_array().unwrap();
        assert_eq!(steps[0]["requested_bps"], 4_000_000);
        assert_eq!(steps.last().unwrap()["long"], true);
    }
}

#[test]
fn a_measurement_is_kept_with_a_note_and_shown_again() {
    let far = Far::start();
    let at_home = |args: &[&str]| linerate(far.home.path()).args(args).output().unwrap();
    let list = || words(&at_home(&["list"]).stdout);
    far.run(&["bw", "--time", "1s"]);
    assert!(list().starts_with("no record in"), "{}", list());
    for verb in ["bw", "lat"] {
        let note = format!("{verb} of today");
        let reported = far.run(&[verb, "--time", "1s", "--note", &note]);
        assert!(words(&reported.stderr).contains("saved as "), "{reported:?}");
        let shown = words(&at_home(&["show", &note]).stdout);
        let printed = words(&reported.stdout);
        let head = |text: &str| text.lines().nth(1).map(str::to_owned);
        assert_eq!(head(&printed), head(&shown), "{printed}{shown}");
        let list = list();
        let line = list.lines().find(|line| line.contains(&note));
        assert!(line.unwrap().contains(&format!(" {verb} ")), "{list}");
    }
    let (code, why) = ended(&["bw", "127.0.0.1", "--engine", "udp", "--find-rate", "--note", "x"]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("keeps no record"), "{why}");
}
