//! `linerate run --stream-json`: its lines, while this machine is measured against itself.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::program::{Started, linerate, stream_lines, words};
use crate::schema::fits;
use linerate_judge::event::{Event, Sink};
use linerate_judge::model::derive;
use linerate_judge::verdict::judge;
use linerate_plan::Purpose;
use linerate_record::{Record, Step};
use linerate_session::store::Store;
use linerate_show::stream::Stream;
use linerate_test::turn;
use linerate_units::Nanos;
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn a_run_is_told_line_by_line_and_ends_with_what_show_says() {
    let _turn = turn();
    let home = TempDir::new().unwrap();
    let args = ["run", "--time", "10s", "--quiet", "--stream-json"];
    let output = linerate(home.path()).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let lines = stream_lines(&output.stdout);
    let events: Vec<&str> = lines.iter().map(|l| l["event"].as_str().unwrap()).collect();
    assert_eq!(events[..3], ["started", "host", "host"]);
    assert_eq!(events[events.len() - 2..], ["ended", "verdict"]);
    for event in ["step", "tick", "latency", "goodput"] {
        assert!(events.contains(&event), "no {event}");
    }

    let result = &lines[lines.len() - 1]["result"];
    fits("run", result);
    let shown = linerate(home.path()).args(["show", "--json"]).output();
    let shown = shown.unwrap();
    assert_eq!(&serde_json::from_slice::<Value>(&shown.stdout).unwrap(), result);
    let reported = lines.iter().find(|l| l["event"] == "goodput").unwrap();
    let base = &result["directions"]["forward"]["goodput_bps"];
    assert_eq!(&reported["goodput_bps"], base);
}

/// The lines that were written while a kept run was made.
fn told_again(record: &Record) -> Vec<Value> {
    let mut out = Vec::new();
    let mut stream = Stream::new(&mut out);
    stream.event(&Event::Started(&record.start));
    record.hosts.iter().for_each(|host| {
        stream.event(&Event::Host(host));
    });
    record.sets.iter().for_each(|set| {
        stream.event(&Event::Set(set));
    });
    let mut trials = record.trials.iter().peekable();
    for step in &record.steps {
        let of = match step.plan.purpose {
            Purpose::Warm { trial } | Purpose::Slice { trial, .. } => Some(trial),
            _ => None,
        };
        if let Some(plan) = trials.next_if(|plan| of == Some(plan.id)) {
            stream.event(&Event::Trial { plan, words: "testing" });
        }
        stream.event(&Event::Step(step));
    }
    stream.event(&Event::Ended(record.end.as_ref().unwrap()));
    stream.finish().unwrap();
    stream_lines(&out)
}

#[test]
fn what_a_trial_showed_is_told_when_it_is_over() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let record = Store::new(records).load("path-rate-5g").unwrap().record;
    let lines = told_again(&record);
    let trials = lines.iter().filter(|l| l["event"].as_str().unwrap().starts_with("trial"));
    let trials: Vec<&Value> = trials.collect();
    assert_eq!(trials.len(), 2 * record.trials.len());
    let model = derive(&record);
    assert!(!model.trials.is_empty());
    for (pair, trial) in trials.chunks(2).zip(&model.trials) {
        assert_eq!(
            (&pair[0]["event"], &pair[1]["event"]),
            (&"trial".into(), &"trial-ended".into())
        );
        assert_eq!(pair[0]["id"], pair[1]["id"]);
        let effect = trial.effect.map(|effect| effect.mid);
        assert_eq!(pair[1]["effect"].as_f64(), effect, "{}", pair[1]);
    }
}

#[test]
fn a_proof_follows_the_trial_that_gave_it() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let record = Store::new(records).load("path-rate-5g").unwrap().record;
    let verdict = judge(&derive(&record));
    let limit = verdict.limits.first().unwrap();
    let after = Nanos::from_secs(15);
    let mut out = Vec::new();
    let mut stream = Stream::new(&mut out);
    stream.event(&Event::Started(&record.start));
    let plan = &record.trials[0];
    let words = "testing";
    stream.event(&Event::Trial { plan, words });
    for step in &record.steps {
        stream.event(&Event::Step(step));
    }
    stream.event(&Event::Proved { limit, after });
    stream.finish().unwrap();
    let lines = stream_lines(&out);
    let [.., ended, proved] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert_eq!(ended["event"], "trial-ended");
    assert_eq!(
        (&proved["event"], &proved["cause"], &proved["after_ns"]),
        (&"proved".into(), &limit.cause.into(), &after.0.into())
    );
}

#[test]
fn a_step_without_a_load_repeats_no_figure() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let mut record = Store::new(records).load("path-rate-5g").unwrap().record;
    let figures = |record: &Record| {
        let lines = told_again(record).into_iter();
        lines.filter(|l| l["event"] == "goodput").count()
    };
    let sweep = |step: &&mut Step| matches!(step.plan.purpose, Purpose::Sweep { .. });
    let all = figures(&record);
    let mut last = record.steps.iter_mut().rfind(sweep).unwrap().clone();
    // A step whose connections were lost before a row was read.
    last.ends.iter_mut().for_each(|end| end.tables.clear());
    record.steps.push(last);
    assert_eq!(figures(&record), all);
}

#[test]
fn a_reader_that_goes_away_ends_the_run_in_order() {
    let _turn = turn();
    let home = TempDir::new().unwrap();
    let args = ["run", "--time", "60s", "--stream-json"];
    let mut run = Started::new(linerate(home.path()).args(args));
    let mut lines = BufReader::new(run.out()).lines();
    // Once the second step begins, the first has been measured.
    let second = |line: &String| line.contains("\"event\":\"step\"") && line.contains("forward");
    assert!(lines.any(|line| second(&line.unwrap())));
    drop(lines);
    let output = run.end();
    assert_eq!(output.status.code(), Some(0));
    let said = words(&output.stderr);
    assert!(!said.contains("error"), "{said}");
    let shown = linerate(home.path()).arg("show").output().unwrap();
    assert_eq!(shown.status.code(), Some(3));
    assert!(words(&shown.stdout).contains("interrupted"));
}

#[test]
fn a_full_disk_is_told() {
    let _turn = turn();
    let home = TempDir::new().unwrap();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let args = ["run", "--time", "5s", "--no-save", "--stream-json"];
    let mut run = linerate(home.path());
    let output = run.args(args).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = words(&output.stderr);
    assert!(said.contains("standard output"), "{said}");
}

/// Tests that only `./test.sh --long` runs.
mod long {
    use super::*;

    #[test]
    fn a_reader_that_stands_still_does_not_hold_up_the_run() {
        let _turn = turn();
        let home = TempDir::new().unwrap();
        let args = ["run", "--time", "6s", "--no-trials", "--quiet", "--stream-json"];
        let mut run = Started::new(linerate(home.path()).args(args));
        let mut out = run.out();
        rustix::pipe::fcntl_setpipe_size(&out, 4096).unwrap();
        // The record is written to its end although nobody reads the lines.
        let complete = || {
            let shown = linerate(home.path()).args(["show", "--json"]).output();
            let shown: Option<Value> = serde_json::from_slice(&shown.unwrap().stdout).ok();
            shown.is_some_and(|shown| shown["complete"] == true)
        };
        let began = Instant::now();
        while !complete() {
            assert!(began.elapsed() < Duration::from_secs(60), "it waits for its reader");
            std::thread::sleep(Duration::from_millis(100));
        }
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        assert!(run.end().status.success());
        assert!(text.len() > 4096, "it would have fitted the pipe");
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(last["event"], "verdict");
    }
}
