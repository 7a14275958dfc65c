//! `linerate lat --sweep size` with `linerate serve` on this machine, and messages of two writes.

use super::*;

fn points(reported: &Value) -> &Vec<Value> {
    reported["points"].as_array().unwrap()
}

fn bytes(reported: &Value) -> Vec<u64> {
    let sizes = reported["axes"].as_array().unwrap().last().unwrap()["values"].as_array().unwrap();
    sizes.iter().map(|size| size["number"].as_u64().unwrap()).collect()
}

/// The value of a figure of a point; `percentile` is given for a percentile of times.
fn figure(point: &Value, key: &str, percentile: Option<f64>) -> Option<f64> {
    let mut figures = point["figures"].as_array().unwrap().iter();
    let is = |one: &&Value| one["figure"] == key && one["percentile"].as_f64() == percentile;
    figures.find(is)?["value"].as_f64()
}

/// Checks that each size has consistent times, or a reason why it was not timed.
fn are_consistent(reported: &Value) {
    for point in points(reported) {
        let time = |key: &str| figure(point, key, None);
        let Some(least) = time("least_round_trip_ns") else {
            assert!(point["not_measured"]["why"].is_string() && point["samples"] == 0, "{point}");
            continue;
        };
        let [mean, most] =
            ["mean_round_trip_ns", "most_round_trip_ns"].map(|key| time(key).unwrap());
        assert!(least <= mean && mean <= most, "{point}");
        let samples = point["samples"].as_f64().unwrap();
        let shares = [50.0, 99.0, 99.9].map(|share| figure(point, "round_trip_ns", Some(share)));
        assert_eq!(shares[0].is_some(), samples >= 6.0, "{point}");
        assert_eq!(shares[2].is_some(), samples >= 10_000.0, "{point}");
        for time in shares.into_iter().flatten() {
            assert!((least..=most).contains(&time), "{point}");
        }
    }
}

/// Checks that the saved record shows the same document as `reported`, except for its name.
fn shown_from_record_is(far: &Far, mut reported: Value) {
    let mut show = linerate(far.home.path());
    let output = show.args(["show", "last", "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(reported["parts"][0]["saved"].is_string(), "{reported}");
    reported["parts"][0]["saved"] = Value::Null;
    assert_eq!(shown, reported);
}

#[test]
fn every_size_is_timed_in_the_time_and_the_record_shows_it_again() {
    let far = Far::start();
    let output = far.run(&["lat", "--sweep", "size", "-t", "4s", "--json"]);
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits("study", &reported);
    are_consistent(&reported);
    let all = bytes(&reported);
    assert_eq!((all.len(), all[0], all[22]), (23, 2, 8 << 20));
    shown_from_record_is(&far, reported.clone());
    let timed = |point: &&Value| point["samples"].as_u64() > Some(0);
    let timed = points(&reported).iter().filter(timed).count();
    // On a busy machine some sizes may not be timed.
    let code = output.status.code();
    let complete = reported["complete"] == true;
    assert_eq!(code, Some(if complete { 0 } else { 3 }), "{reported}");
    assert!(timed > 0, "{reported}");
}

#[test]
fn engines_go_as_far_as_they_carry() {
    let far = Far::start();
    for (engine, last) in [("udp", 65_507), ("connect", 16 << 10)] {
        let output = far.run(&["lat", "--sweep", "size", "-t", "1s", "--json", "--engine", engine]);
        let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
        fits("study", &reported);
        are_consistent(&reported);
        assert_eq!(bytes(&reported).last(), Some(&last), "{reported}");
    }
    let mut alone = linerate(far.home.path());
    let args = ["lat", "--engine", "shm", "--sweep", "size", "-t", "1s", "--json", "--no-save"];
    let reported: Value =
        serde_json::from_slice(&alone.args(args).output().unwrap().stdout).unwrap();
    are_consistent(&reported);
    assert_eq!((&reported["target"], bytes(&reported).len()), (&Value::Null, 23));
}

#[test]
fn transports_are_timed_beside_each_other_and_one_that_fails_ends_nothing() {
    let far = Far::start();
    // For `shm` the program starts the far end itself, so a named far end is refused.
    let args = ["lat", "--engine", "shm,udp,tcp", "--sweep", "size", "-t", "1s", "--json"];
    let output = far.run(&[&args[..], &["--no-save"]].concat());
    let said = words(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("engine shm was not measured"), "{said}");
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits("study", &reported);
    assert_eq!(reported["axes"][0]["name"], "engine");
    let lacks = &points(&reported)[0];
    assert_eq!(lacks["values"], serde_json::json!(["shm"]));
    assert!(lacks["not_measured"]["why"].as_str().unwrap().contains("two processes"), "{lacks}");
    for engine in ["udp", "tcp"] {
        let timed = points(&reported).iter().filter(|point| point["values"][0] == engine);
        assert!(timed.clone().count() > 10, "{engine}: {reported}");
        assert!(
            timed.clone().any(|point| point["samples"].as_u64() > Some(0)),
            "{engine}: {reported}"
        );
    }
    let refused = ended(&["lat", "127.0.0.1", "--engine", "tcp,pigeon"]);
    assert_eq!(refused.0, Some(2), "{}", refused.1);
}

#[test]
fn what_contradicts_a_sweep_of_round_trips_is_refused_in_words() {
    let refused = |args: &[&str], hint: &str| {
        let (code, reported) = ended(&[&["lat"], args].concat());
        assert_eq!(code, Some(2), "{args:?}");
        assert!(reported.contains(&format!("hint: {hint}")), "{reported}");
    };
    let sweep = ["127.0.0.1", "--sweep", "size"];
    let with = |more: &[&'static str]| [&sweep[..], more].concat();
    refused(&with(&["--size", "64B"]), "leave out --size");
    refused(&with(&["--rate", "100"]), "leave out --rate");
    refused(&with(&["--beside", "both"]), "leave out --beside");
    refused(&with(&["--expect", "latency.p50<1s"]), "--size with");
    refused(&["--sweep", "size", "--engine", "memory"], "linerate bw");
    refused(&["127.0.0.1", "--no-save"], "add --sweep size");
    let verbs = |more: &[&'static str]| [&["127.0.0.1", "--engine", "rdma"], more].concat();
    refused(&verbs(&["--op", "read,send,read"]), "name each value once");
    refused(&verbs(&["--op", "read,send", "--stream-json"]), "--json prints one document");
    refused(
        &["127.0.0.1", "--pattern", "write-write-read", "--engine", "udp"],
        "--engine tcp has it",
    );
    let tiny = ["lat", "127.0.0.1", "--pattern", "write-write-read", "--size", "1B"];
    let (code, reported) = ended(&tiny);
    assert_eq!(code, Some(2));
    assert!(reported.contains("cannot be sent in two writes"), "{reported}");
}

#[test]
fn ctrl_c_keeps_the_sizes_that_were_timed() {
    let far = Far::start();
    let args = ["lat", "--sweep", "size", "-t", "30s", "--json"];
    let mut run = Started::new(&mut far.command(&args));
    // A first pass times each size once; then the rounds follow, in the same order.
    for words in
        ["round trips of 2 B", "round trips of 2 B", "round trips of 4 B", "round trips of 8 B"]
    {
        run.until(words);
    }
    run.signal(Signal::INT);
    let output = run.end();
    assert_eq!(output.status.code(), Some(3));
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits("study", &reported);
    assert_eq!(reported["parts"][0]["ended_early"], "interrupted");
    assert!(points(&reported)[0]["samples"].as_u64() > Some(0), "{reported}");
    assert_eq!(points(&reported)[22]["not_measured"]["why"], "the sweep ended before");
    shown_from_record_is(&far, reported);
}

/// Tests that only `./test.sh --long` runs.
mod long {
    use super::*;

    #[test]
    fn two_sweeps_of_one_protocol_are_compared_size_by_size() {
        let far = Far::start();
        for (engine, note) in [("tcp", "a"), ("tcp", "b"), ("udp", "c")] {
            far.run(&["lat", "--sweep", "size", "-t", "2s", "--engine", engine, "--note", note]);
        }
        let diff = |before, after| {
            let mut diff = linerate(far.home.path());
            diff.args(["diff", before, after, "--json"]).output().unwrap()
        };
        let output = diff("note:a", "note:b");
        let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
        fits("diff", &reported);
        let rows = reported["rows"].as_array().unwrap();
        let has_ratio = |row: &Value| row["figure"] == "median_ns" && row["ratio"].is_f64();
        assert!(rows.iter().any(has_ratio), "{reported}");
        assert!(rows.iter().all(|row| row["size_bytes"].is_u64()), "{reported}");
        assert_eq!(reported["figures"].as_array().unwrap().len(), 0);
        let refused = diff("note:a", "note:c");
        let why = words(&refused.stderr);
        assert_eq!(refused.status.code(), Some(3), "{why}");
        assert!(why.contains("protocol TCP before, UDP after"), "{why}");
    }

    #[test]
    fn two_writes_wait_for_an_acknowledgement_where_nagles_algorithm_is_on() {
        let far = Far::start();
        let two = ["lat", "-t", "1s", "--pattern", "write-write-read"];
        for (more, is_delayed) in [(&["--nodelay=false"][..], true), (&[], false)] {
            let Some(reported) = far.json(&[&two[..], more].concat(), "lat") else {
                return;
            };
            assert_eq!(
                (&reported["nagle"], &reported["two_writes"]),
                (&is_delayed.into(), &true.into())
            );
            assert_eq!(reported["delayed_ns"].is_u64(), is_delayed, "{reported}");
        }
    }

    #[test]
    fn a_sweep_of_round_trips_streams_its_document_last_and_prints_tables_of_other_tools() {
        let far = Far::start();
        let args = ["lat", "--sweep", "size", "-t", "1s", "--engine", "connect"];
        let output = far.run(&[&args[..], &["--stream-json"]].concat());
        let lines = stream_lines(&output.stdout);
        let last = &lines[lines.len() - 1];
        assert_eq!(last["event"], "study");
        fits("study", &last["result"]);
        let output = far.run(&[&args[..], &["--like", "perftest"]].concat());
        let text = words(&output.stdout);
        let rows =
            text.lines().filter(|line| line.split_whitespace().count() == 9 && !line.contains('#'));
        assert!(rows.count() > 0, "{text}");
        let output = far.run(&["lat", "-t", "1s", "--like", "sockperf"]);
        let text = words(&output.stdout);
        assert!(text.contains("sockperf: ---> <MIN> observation = "), "{text}");
    }
}
