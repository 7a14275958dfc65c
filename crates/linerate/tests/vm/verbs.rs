//! RDMA in a guest: several operations by one command, depths, and stalls of the server.
//! `benches/peers/verbs/beside.py` compares times with those of perftest, with a release build.

use serde_json::Value;

use super::guest::{Guest, PROGRAM};
use super::rdma::beside;

const OPS: [&str; 3] = ["read", "write", "send"];

/// The rows of a table in perftest's form: those that begin with a number.
fn rows(table: &str) -> Vec<Vec<f64>> {
    let cells = |line: &str| line.split_whitespace().map(|cell| cell.parse().ok()).collect();
    let rows = table.lines().filter_map(cells);
    rows.filter(|row: &Vec<f64>| row.len() > 4).collect()
}

fn linerate(guest: &mut Guest, words: &str) -> Value {
    let words = format!("{PROGRAM} {words} --open --engine rdma --quiet --json");
    let reported = guest.ask(&format!("{words} || [ $? = 3 ]"));
    serde_json::from_str(&reported).unwrap()
}

/// Length of a stall in nanoseconds, slightly less than 20 ms, because the histogram has three digits.
const STALL: f64 = 19.9e6;

/// Checks that one command measures several operations, and one measures several depths.
pub(crate) fn several(guest: &mut Guest) {
    beside(guest, |guest| {
        let reported = linerate(guest, "lat 10.9.8.1 --op read,write,send --size 64B --time 1s");
        let all = reported["parts"].as_array().unwrap();
        assert_eq!((all.len(), &reported["complete"]), (3, &true.into()), "{reported}");
        for (one, op) in all.iter().zip(OPS) {
            assert_eq!(
                (&one["values"][0], &one["saved"]),
                (&op.into(), &Value::Null),
                "{reported}"
            );
            assert!(one["result"]["samples"].as_u64() > Some(5), "{reported}");
        }
        let words = "lat 10.9.8.1 --open --engine rdma --op read,send --size 64B --time 1s --quiet";
        let table = guest.ask(&format!("{PROGRAM} {words} --like perftest"));
        assert!(table.contains("op read\n") && table.contains("op send\n"), "{table}");
        assert_eq!(rows(&table).len(), 2, "{table}");
        let reported =
            linerate(guest, "bw 10.9.8.1 --op write --size 4KiB --sweep depth --time 60s");
        let depths = reported["points"].as_array().unwrap();
        assert_eq!(
            (depths.len(), &depths[10]["values"][0]),
            (11, &"depth 1024".into()),
            "{reported}"
        );
        // Without a delay, more requests in flight may gain nothing; `faults::queues` tests the gain.
        let rates = depths.iter().map(|depth| depth["figures"][0]["value"].as_f64());
        let rates: Vec<_> = rates.collect();
        println!("write of 4 KiB by depth: {rates:?}");
        let loads = &reported["parts"][0]["loads"];
        println!("knee {}, {}", loads["knee"], loads["bandwidth_delay"]);
        assert!(rates.iter().all(|rate| *rate > Some(0.0)), "{reported}");
    });
}

/// Stops the server for at least 20 ms again and again, while round trips are timed.
const STALLS: &str = "server=$(pgrep -f '[s]erve --open')
(while sleep 0.01; do
  kill -STOP $server; sleep 0.02; kill -CONT $server
done) & stalls=$!
LAT || code=$?
kill $stalls; kill -CONT $server
[ ${code:-0} = 0 ]";

/// Checks that stalls of the server appear in the longest round trip and, if they are more than one of a thousand, in
/// p99.9.
pub(crate) fn stalls(guest: &mut Guest) {
    beside(guest, |guest| {
        for op in ["write", "send"] {
            let lat = format!(
                "{PROGRAM} lat 10.9.8.1 --open --engine rdma --op {op} --size 4KiB --time 20s --quiet --json"
            );
            let reported = guest.ask(&STALLS.replace("LAT", &lat));
            let ours: Value = serde_json::from_str(&reported).unwrap();
            println!("{op} with stalls: {}", ours["percentiles"]);
            assert!(ours["most_ns"].as_f64() >= Some(STALL), "{op}: {ours}");
            let share = stalled(&ours);
            println!("{op}: {:.2} % of the round trips took as long as a stall", share * 100.0);
            let p999 = value(&ours, 99.9).filter(|_| share > 0.001);
            assert!(p999.is_none_or(|p999| p999 >= STALL), "{op}: {ours}");
        }
    });
}

/// Share of the round trips that took at least as long as a stall.
fn stalled(ours: &Value) -> f64 {
    let all: Vec<[f64; 2]> = serde_json::from_value(ours["histogram"].clone()).unwrap();
    let number =
        |least: f64| -> f64 { all.iter().filter(|[ns, _]| *ns >= least).map(|[_, n]| n).sum() };
    number(STALL) / number(0.0)
}

/// A percentile of the round trips; `None` if there are too few samples for it.
fn value(ours: &Value, percent: f64) -> Option<f64> {
    let all = ours["percentiles"].as_array().unwrap();
    let found = all.iter().find(|one| one["percent"] == percent)?;
    found["ns"].as_f64()
}
