//! Tests of `linerate run --repeat`.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use std::{fs, thread};

use linerate_record::wire::preamble::{HELLO_LEN, Hello, Kind};
use linerate_test::turn;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::{measured, serve};
use crate::program::{Started, linerate, words};
use crate::schema::fits;

#[test]
fn interrupted_by_ctrl_c_repeated_runs_end_and_what_was_measured_is_told() {
    let home = TempDir::new().unwrap();
    let _turn = turn();
    let args = ["run", "--time", "30s", "--no-trials", "--repeat", "3"];
    let mut run = Started::new(linerate(home.path()).args(args));
    // Once this step begins, the first step has been measured.
    run.until("forward, 1 stream");
    run.signal(Signal::INT);
    let output = run.end();
    let said = words(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let text = words(&output.stdout);
    assert!(text.starts_with("Run 1 of 3") && text.contains("ended early"), "{text}");
    assert!(!text.contains("Run 2"), "{text}");
}

/// Relays one session to the server on `port`. The next session is accepted but gets no reply; its connection is sent
/// to the returned receiver.
fn one_session(port: u16) -> (u16, Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let (tell, reported) = channel();
    thread::spawn(move || {
        let mut sessions = 0;
        for near in listener.incoming() {
            let mut near = near.unwrap();
            let mut hello = [0; HELLO_LEN];
            near.read_exact(&mut hello).unwrap();
            sessions += u32::from(Hello::decode(&hello).unwrap().kind == Kind::Control);
            if sessions > 1 {
                let _ = tell.send(near);
                continue;
            }
            let mut far = TcpStream::connect(("127.0.0.1", port)).unwrap();
            far.write_all(&hello).unwrap();
            for (mut from, mut to) in
                [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)]
            {
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    (own, reported)
}

mod long {
    use super::*;

    #[test]
    fn repeated_runs_are_kept_each_and_told_together() {
        let home = TempDir::new().unwrap();
        let args = ["--repeat", "2", "--json", "--expect", "goodput>=9000Gbit/s"];
        let output = measured(&turn(), home.path(), &args);
        let why = words(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{why}");
        assert_eq!(why.matches("expectation failed").count(), 2, "{why}");
        let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
        fits("study", &reported);
        let spreads = reported["together"]["figures"].as_array().unwrap().iter();
        let is = |one: &&Value| one["figure"] == "goodput_bps" && one["direction"] == "forward";
        let spread = spreads.clone().find(is).unwrap();
        assert_eq!((reported["points"].as_array().unwrap().len(), &spread["runs"]), (2, &2.into()));
        let goodput = |point: &Value| {
            let mut figures = point["figures"].as_array().unwrap().iter();
            figures.find(is).unwrap()["value"].as_f64().unwrap()
        };
        let mut each: Vec<f64> =
            reported["points"].as_array().unwrap().iter().map(goodput).collect();
        each.sort_by(f64::total_cmp);
        assert_eq!((&spread["lowest"], &spread["highest"]), (&each[0].into(), &each[1].into()));
        let runs = reported["parts"].as_array().unwrap();
        assert_ne!(runs[0]["saved"], runs[1]["saved"]);
        for run in runs {
            let name = run["saved"].as_str().unwrap();
            let show = linerate(home.path()).args(["show", name, "--json"]).output();
            let shown: Value = serde_json::from_slice(&show.unwrap().stdout).unwrap();
            assert_eq!(shown, run["result"]);
        }
        // Two runs of one study are compared as single records.
        let names = [0, 1].map(|at| runs[at]["saved"].as_str().unwrap());
        let diff = linerate(home.path()).args(["diff", names[0], names[1], "--json"]).output();
        let diff: Value = serde_json::from_slice(&diff.unwrap().stdout).unwrap();
        assert_eq!(diff["rows"], Value::Array(Vec::new()), "{diff}");
    }

    #[test]
    fn a_ctrl_c_while_a_later_run_connects_leaves_what_was_measured_before() {
        let home = TempDir::new().unwrap();
        let _turn = turn();
        let (_server, port, _) = serve(home.path());
        let (port, later) = one_session(port);
        let key = fs::read_to_string(home.path().join(".config/linerate/serve.key")).unwrap();
        let mut run = linerate(home.path());
        run.args(["run", "127.0.0.1", "--port", &port.to_string()]);
        run.args(["--time", "5s", "--no-trials", "--repeat", "3"]);
        run.args(["--save", "kept"]).env("LINERATE_KEY", key.trim());
        let run = Started::new(&mut run);
        let _held = later.recv_timeout(Duration::from_secs(60)).unwrap();
        run.signal(Signal::INT);
        let output = run.end();
        let why = words(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{why}");
        assert!(why.contains("interrupted"), "{why}");
        let text = words(&output.stdout);
        assert!(text.contains("Run 1 of 3") && text.contains("the median of 1 run"), "{text}");
        assert!(!text.contains("Run 2"), "{text}");
        let shown = text.lines().find_map(|line| line.split_once("linerate show "));
        assert!(shown.unwrap().1.ends_with(" --save kept"), "{text}");
    }
}
