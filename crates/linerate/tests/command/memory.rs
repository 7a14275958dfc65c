//! Measurements of this host's memory, which have no far end: operations and dependent loads.

use std::time::Duration;

use linerate_test::turn;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Started, ended, linerate, run, stream_lines, words};
use crate::schema::fits;

/// Options with an array that is small enough for any machine that runs tests.
const SMALL: [&str; 4] = ["--engine", "memory", "--size", "1MiB"];

/// The document of a measurement of one second; even a disturbed machine gives a result.
fn document(verb: &str, more: &[&str], schema: &str) -> Value {
    let _turn = turn();
    let output = run(&[&[verb, "--json", "-q", "-t", "1s"], &SMALL[..], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", words(&output.stderr));
    let reported = serde_json::from_slice(&output.stdout).unwrap();
    fits(schema, &reported);
    reported
}

#[test]
fn every_access_has_a_rate_and_no_far_end() {
    for access in ["read", "write", "copy"] {
        let reported = document("bw", &["--access", access, "-P", "2"], "bw");
        let way = &reported["directions"]["forward"];
        assert!(way["goodput_bps"].as_u64() > Some(0), "{way}");
        assert_eq!(way["received_bytes"], way["near"]["bytes"]);
        assert_eq!((&way["far"], &reported["far_end"]), (&Value::Null, &"none".into()));
        assert_eq!(reported["options"], serde_json::json!({ "access": access }));
        assert_eq!(reported["memory"]["access"], access);
        assert_eq!(reported["memory"]["array_bytes"], 1 << 20);
        assert_eq!((&reported["streams"], &reported["target"]), (&2.into(), &"this host".into()));
    }
}

#[test]
fn loads_are_timed_and_their_mean_agrees_with_their_number() {
    let reported = document("lat", &[], "lat");
    assert_eq!(reported["array_bytes"], 1 << 20);
    let (mean, rate) = (reported["mean_load_ns"].as_f64(), reported["answered_per_sec"].as_f64());
    assert!((mean.unwrap() * rate.unwrap() - 1e9).abs() < 1.0, "{reported}");
    assert!(reported["samples"].as_u64() > Some(0) && reported["least_ns"].as_u64() > Some(0));
    assert_eq!(reported["lost"], Value::Null);
}

#[test]
fn the_first_interrupt_keeps_what_was_measured() {
    let _turn = turn();
    let home = TempDir::new().unwrap();
    let mut command = linerate(home.path());
    command.args([&["bw", "--json", "-t", "60s"], &SMALL[..]].concat());
    let mut run = Started::new(&mut command);
    run.until("1 stream");
    std::thread::sleep(Duration::from_secs(3));
    run.signal(Signal::INT);
    let output = run.end();
    assert_eq!(output.status.code(), Some(3));
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits("bw", &reported);
    assert_eq!(reported["ended_early"], "interrupted");
    assert!(reported["directions"]["forward"]["goodput_bps"].as_u64() > Some(0));
}

#[test]
fn what_memory_has_not_is_refused_before_anything_is_touched() {
    for (args, code, part) in [
        (&["bw", "brook"][..], 2, "leave out the far end"),
        (&["lat", "brook"], 2, "leave out the far end"),
        (&["run"], 2, "no path to judge"),
        (&["bw", "-d", "reverse"], 2, "no direction"),
        (&["bw", "--size", "0"], 2, "no unit"),
        (&["bw", "--size", "1B"], 2, "64 B to"),
        (&["bw", "--size", "17GiB"], 2, "to 16 GiB"),
        (&["bw", "--size", "16GiB", "-P", "64"], 3, "may be used"),
        (&["bw", "--write-size", "1MiB"], 2, "one size"),
        (&["bw", "-P", "10001"], 2, "1 to 10000"),
        (&["bw", "-P", "10000"], 2, "are possible"),
        (&["bw", "--memory-node", "1023"], 3, "nodes with memory: 0"),
        (&["bw", "--memory-node", "1024"], 2, "0 to 1023"),
        (&["bw", "--access", "move"], 2, "read, write, copy"),
        (&["bw", "--congestion", "bbr"], 2, "no congestion control"),
        (&["bw", "--pacing", "1Gbit/s"], 2, "no pace"),
        (&["bw", "--find-rate"], 2, "--engine udp"),
        (&["bw", "--sweep", "copy"], 2, "--sweep size"),
        (&["lat", "--rate", "10"], 2, "no rate"),
        (&["lat", "--busy-poll"], 2, "no sockets"),
        (&["lat", "--beside", "forward"], 2, "no path to judge"),
        (&["lat", "--access", "read"], 2, "unexpected argument"),
        (&["bw", "--port", "5201"], 2, "--port is not an option"),
        (&["lat", "--size", "5GiB"], 2, "to 4 GiB"),
    ] {
        let (ended, said) = ended(&[args, &["--engine", "memory"]].concat());
        assert_eq!(ended, Some(code), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
    }
}

#[test]
fn an_option_of_another_engine_is_refused_with_the_engine_that_has_it() {
    for (args, part) in [
        (&["bw", "brook", "--access", "read"], "--engine memory has it"),
        (&["lat", "brook", "--memory-node", "0"], "--engine memory has it"),
        (&["bw", "brook", "--ring", "1MiB"], "--engine shm has it"),
    ] {
        let (code, said) = ended(args);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(part), "{said}");
    }
    // `run` has no options of engines that it cannot use.
    let (code, said) = ended(&["run", "--access", "read"]);
    assert!(code == Some(2) && said.contains("unexpected argument"), "{said}");
}

#[test]
fn an_option_of_another_engine_in_the_environment_is_left_alone() {
    let home = TempDir::new().unwrap();
    let ended = |args: &[&str]| {
        let mut command = linerate(home.path());
        command.env("LINERATE_RING", "1MiB").env("LINERATE_MEMORY_NODE", "1023");
        let output = command.args(args).output().unwrap();
        (output.status.code(), words(&output.stderr))
    };
    // The error is a missing far end, not an option in the environment.
    for verb in ["bw", "lat"] {
        let (code, said) = ended(&[verb]);
        assert!(code == Some(2) && said.contains("a far end is missing"), "{said}");
    }
    let (code, said) = ended(&["bw", "--engine", "memory"]);
    assert!(code == Some(3) && said.contains("NUMA node 1023"), "{said}");
    // An option on the command line is refused, whatever the environment sets.
    let (code, said) = ended(&["bw", "brook", "--ring", "2MiB"]);
    assert!(code == Some(2) && said.contains("--engine shm has it"), "{said}");
}

#[test]
fn options_of_engines_are_read_from_a_file_and_hold_for_their_engine_alone() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("config.toml");
    let refused = |text: &str, args: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let config = ["--config", file.to_str().unwrap()];
        ended(&[args, &config].concat())
    };
    let node = "[engine]\nmemory-node = 1023\n";
    let (code, said) = refused(node, &["bw", "--engine", "memory"]);
    assert!(code == Some(3) && said.contains("NUMA node 1023"), "{said}");
    // The error is a missing far end, not an option in the file.
    let (_, said) = refused(node, &["bw"]);
    assert!(said.contains("a far end is missing"), "{said}");
    let (code, said) = refused("[engine]\nmemory-nod = 0\n", &["bw"]);
    assert!(code == Some(2) && said.contains("`memory-node`"), "{said}");
    // The kind of access is an option of operations, and is ignored for dependent loads.
    let loads = ["lat", "--engine", "memory", "--size", "1MiB", "-t", "1s"];
    let (code, said) = refused("[engine]\naccess = \"read\"\n", &loads);
    assert_eq!(code, Some(0), "{said}");
}

mod long {
    use super::*;

    #[test]
    fn a_sweep_of_threads_measures_each_number() {
        let _turn = turn();
        let args = ["bw", "--json", "-q", "-t", "12s", "--sweep", "streams", "-P", "2"];
        let output = run(&[&args[..], &["--engine", "memory"]].concat());
        let reported: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", words(&output.stderr)));
        fits("study", &reported);
        let threads = reported["axes"][0]["values"].as_array().unwrap();
        assert_eq!(threads.iter().map(|one| &one["number"]).collect::<Vec<_>>(), [1, 2]);
        let points = reported["points"].as_array().unwrap();
        let goodput = |point: &Value| point["figures"][0]["value"].as_f64();
        assert!(points.iter().all(|point| goodput(point) > Some(0.0)), "{reported}");
    }

    #[test]
    fn a_stream_of_lines_ends_with_the_result_and_bounds_are_heeded() {
        let _turn = turn();
        let args = [&["bw", "-q", "-t", "1s", "--stream-json"], &SMALL[..]].concat();
        let lines = stream_lines(&run(&args).stdout);
        assert_eq!(lines[0]["engine"], "memory");
        assert_eq!(lines[0]["peer"], Value::Null);
        assert_eq!(lines.last().unwrap()["event"], "bw");
        for (bound, code) in [("goodput>=1kbit/s", 0), ("goodput<1kbit/s", 4)] {
            let bound = ["bw", "-q", "-t", "1s", "--expect", bound];
            let (ended, said) = ended(&[&bound[..], &SMALL].concat());
            assert_eq!(ended, Some(code), "{said}");
        }
    }

    #[test]
    fn text_in_a_pipe_is_narrow_and_has_no_colour() {
        let _turn = turn();
        let pages = [
            run(&[&["bw", "-q", "-t", "1s"], &SMALL[..]].concat()),
            run(&[&["lat", "-q", "-t", "1s"], &SMALL[..]].concat()),
        ];
        for page in pages {
            let text = words(&page.stdout);
            assert!(text.contains("memory of this host: "), "{text}");
            assert!(
                !text.contains('\u{1b}') && text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
            for word in ["TCP", "far", "connection", "round trip"] {
                assert!(!text.contains(word), "{word}: {text}");
            }
        }
    }
}
