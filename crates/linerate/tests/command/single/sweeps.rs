//! `linerate bw --sweep` with `linerate serve` on this machine.

use super::*;

fn points(reported: &Value) -> &Vec<Value> {
    reported["points"].as_array().unwrap()
}

/// The value of a figure of a point; `side` is given if each end has one.
fn figure(point: &Value, key: &str, side: Option<&str>) -> Option<f64> {
    let mut figures = point["figures"].as_array().unwrap().iter();
    figures.find(|one| one["figure"] == key && one["side"].as_str() == side)?["value"].as_f64()
}

#[test]
fn a_sweep_streams_lines_and_its_document_comes_last() {
    let far = Far::start();
    let args = ["bw", "--sweep", "streams", "-P", "1", "-t", "3s"];
    let Some(lines) = far.stream(&args) else {
        return;
    };
    let last = &lines[lines.len() - 1];
    assert_eq!(last["event"], "study");
    fits("study", &last["result"]);
    let slices = lines.iter().filter(|line| line["event"] == "step").count();
    assert_eq!(slices, 5, "a round that warms up, and four");
}

#[test]
fn a_sweep_that_was_kept_is_shown_again_and_compared_with_another() {
    let far = Far::start();
    let at_home = |args: &[&str]| linerate(far.home.path()).args(args).output().unwrap();
    for note in ["a", "b"] {
        let args = ["bw", "--sweep", "streams", "-P", "1", "-t", "3s", "--json", "--note", note];
        let reported: Value = serde_json::from_slice(&far.run(&args).stdout).unwrap();
        let shown = at_home(&["show", &format!("note:{note}"), "--json"]).stdout;
        let shown: Value = serde_json::from_slice(&shown).unwrap();
        fits("study", &shown);
        assert_eq!(shown["points"], reported["points"]);
    }
    let output = at_home(&["diff", "note:a", "note:b", "--json"]);
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits("diff", &reported);
    let figures = reported["rows"].as_array().unwrap().iter().map(|row| row["figure"].clone());
    assert!(figures.clone().any(|figure| figure == "goodput_bps"), "{reported}");
    assert!(figures.clone().any(|figure| figure == "near_cpu_ns_per_byte"), "{reported}");
}

#[test]
fn what_contradicts_a_sweep_is_refused_in_words() {
    let refused = |args: &[&str], hint: &str| {
        let (code, reported) = ended(&[&["bw"], args].concat());
        assert_eq!(code, Some(2), "{args:?}");
        assert!(reported.contains(&format!("hint: {hint}")), "{reported}");
    };
    let host = "127.0.0.1";
    refused(&["iperf3://127.0.0.1", "--sweep", "copy"], "linerate bw iperf3");
    refused(&[host, "--sweep", "copy", "-d", "both"], "-d forward");
    refused(&[host, "--sweep", "copy", "--copy", "sendfile"], "leave out --copy");
    refused(&[host, "--sweep", "size", "--read-size", "1KiB"], "leave out --size");
    refused(&[host, "--sweep", "size", "-t", "31s"], "--time 32s");
    refused(&[host, "--sweep", "size", "--engine", "udp"], "--engine tcp or rdma or memory");
    refused(
        &[host, "--sweep", "depth"],
        "--engine rdma or file, or --sweep copy or size or streams",
    );
    refused(&[host, "--sweep", "size", "--find-rate"], "leave out --sweep or");
}

mod long {
    use super::*;

    #[test]
    fn every_way_to_copy_is_measured_in_as_many_rounds_and_what_the_kernel_made_of_it_is_told() {
        let far = Far::start();
        let args = ["bw", "--sweep", "copy", "-t", "10s", "-d", "reverse"];
        let Some(reported) = far.json(&args, "study") else {
            return;
        };
        assert_eq!(
            (&reported["axes"][0]["name"], &reported["complete"]),
            (&"copy".into(), &true.into())
        );
        assert_eq!(reported["parts"][0]["loads"]["reference"], 0);
        let ways: Vec<_> =
            points(&reported).iter().map(|point| point["values"][0].clone()).collect();
        assert_eq!(ways, ["copy", "zerocopy", "sendfile", "io-uring"]);
        for point in points(&reported) {
            assert!(figure(point, "goodput_bps", None).unwrap() > 0.0, "{point}");
            for end in ["near", "far"] {
                assert!(figure(point, "cpu_ns_per_byte", Some(end)).unwrap() > 0.0, "{point}");
            }
            // Other programs on a busy machine, or another session, may disturb some rounds.
            let rounds = point["samples"].as_u64().unwrap();
            assert!((1..=4).contains(&rounds), "{point}");
        }
        // On loopback the sender's pages go to a receiver on this host, which has to copy them.
        let copied = |at: usize| figure(&points(&reported)[at], "copied_share", None);
        assert_eq!(copied(1), Some(1.0), "{reported}");
        // A machine without io_uring copies, and reports that. A share of 0.9997 was seen on a busy machine; the reason
        // is unknown.
        let unknown = reported["parts"][0]["unknown"].to_string();
        let is_copied = copied(3).is_some_and(|share| share > 0.99);
        assert!(is_copied || unknown.contains("set.copy"), "{reported}");
        assert_eq!(copied(0), None);
    }

    #[test]
    fn ctrl_c_keeps_the_rounds_that_were_measured() {
        let far = Far::start();
        let args = ["bw", "--sweep", "streams", "-P", "2", "--json"];
        let mut run = Started::new(&mut far.command(&args));
        // By the third line both settings have been warmed up and measured once.
        for _ in 0..3 {
            run.until("1 stream ");
        }
        run.signal(Signal::INT);
        let output = run.end();
        assert_eq!(output.status.code(), Some(3));
        let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
        fits("study", &reported);
        assert_eq!(reported["parts"][0]["ended_early"], "interrupted");
        let rounds = |at: usize| points(&reported)[at]["samples"].as_u64().unwrap();
        assert!(rounds(1) >= 1 && rounds(0) < 12, "{reported}");
        assert_eq!(reported["parts"][0]["loads"]["knee"], Value::Null);
    }
}
