//! RDMA beside perftest in the same guest: tables of all sizes, several operations, and stalls of the serving end.
//! Times are compared by `benches/peers/verbs/beside.py`, with a program that is optimized as perftest is.

use serde_json::Value;

use super::guest::{Guest, PROGRAM};
use super::rdma::beside;

const OPS: [&str; 3] = ["read", "write", "send"];

/// Runs both ends of a program of perftest, and prints what the client printed.
const PERFTEST: &str = r#"perftest() {
  timeout -k 5 110 "$@" -d rxe8 -x 1 -F >/run/perftest.server 2>&1 &
  local server=$!
  for _ in $(seq 100); do
    "$@" -d rxe8 -x 1 -F 10.9.8.1 >/run/perftest.client 2>&1 && break
    kill -0 $server || break
    sleep 0.2
  done
  wait $server || true
  cat /run/perftest.client
}
"#;

/// The rows of a table of perftest: those that begin with a number.
fn rows(table: &str) -> Vec<Vec<f64>> {
    let cells = |line: &str| {
        line.split_whitespace()
            .map(|cell| cell.parse().ok())
            .collect()
    };
    let rows = table.lines().filter_map(cells);
    rows.filter(|row: &Vec<f64>| row.len() > 4).collect()
}

fn perftest(guest: &mut Guest, words: &str) -> Vec<Vec<f64>> {
    let told = guest.ask(&format!("{PERFTEST}\nperftest {words}"));
    let rows = rows(&told);
    assert!(!rows.is_empty(), "{words}: {told}");
    rows
}

fn linerate(guest: &mut Guest, words: &str) -> Value {
    let words = format!("{PROGRAM} {words} --open --engine rdma --quiet --json");
    let told = guest.ask(&format!("{words} || [ $? = 3 ]"));
    serde_json::from_str(&told).unwrap()
}

/// Parts of a round trip that perftest prints: of operations that are answered it prints halves.
fn parts(op: &str) -> f64 {
    if op == "read" { 1.0 } else { 2.0 }
}

pub(crate) fn tables(guest: &mut Guest) {
    beside(guest, |guest| {
        for op in OPS {
            let sweep = format!("lat 10.9.8.1 --op {op} --sweep size --time 120s --no-save");
            let ours = linerate(guest, &sweep);
            let theirs = perftest(guest, &format!("ib_{op}_lat -a -n 20"));
            println!("{op}: whole round trips in us, typical: bytes, linerate, perftest");
            let sizes = ours["sizes"].as_array().unwrap();
            assert_eq!((sizes.len(), theirs.len()), (23, 23), "{op}: {ours}");
            for (size, row) in sizes.iter().zip(&theirs) {
                let bytes = size["size_bytes"].as_f64().unwrap();
                let least = size["least_ns"].as_f64();
                let typical = size["typical_ns"].as_f64().or(least);
                let typical = typical.unwrap_or_else(|| panic!("{op}: {size}"));
                println!("{bytes} {:.1} {:.1}", typical / 1e3, row[4] * parts(op));
                assert_eq!(row[0].to_bits(), bytes.to_bits(), "{op}: {row:?}");
            }
        }
    });
}

/// Length of a stall in nanoseconds. The histogram keeps three digits.
const STALL: f64 = 19.9e6;

/// Several operations, and several depths, by one command.
pub(crate) fn several(guest: &mut Guest) {
    beside(guest, |guest| {
        let told = linerate(
            guest,
            "lat 10.9.8.1 --op read,write,send --size 64B --time 1s",
        );
        let all = told["measurements"].as_array().unwrap();
        assert_eq!((all.len(), &told["complete"]), (3, &true.into()), "{told}");
        for (one, op) in all.iter().zip(OPS) {
            assert_eq!(
                (&one["value"], &one["record"]),
                (&op.into(), &Value::Null),
                "{told}"
            );
            assert!(one["result"]["samples"].as_u64() > Some(5), "{told}");
        }
        let words = "lat 10.9.8.1 --open --engine rdma --op read,send --size 64B --time 1s --quiet";
        let table = guest.ask(&format!("{PROGRAM} {words} --like perftest"));
        assert!(
            table.contains("op read\n") && table.contains("op send\n"),
            "{table}"
        );
        assert_eq!(rows(&table).len(), 2, "{table}");
        let told = linerate(
            guest,
            "bw 10.9.8.1 --op write --size 4KiB --sweep depth --time 60s",
        );
        let depths = told["settings"].as_array().unwrap();
        assert_eq!(
            (depths.len(), &depths[10]["depth"]),
            (11, &1024.into()),
            "{told}"
        );
        let rate = |at: usize| depths[at]["goodput_bps"].as_f64();
        println!(
            "write of 4 KiB by depth: {:?}",
            (0..11).map(rate).collect::<Vec<_>>()
        );
        println!("knee {}, {}", told["knee"], told["bandwidth_delay"]);
        assert!(rate(0) > Some(0.0) && rate(4) > rate(0), "{told}");
    });
}

/// Stops the serving end for 20 ms and longer again and again, while round trips are timed.
const STALLS: &str = "server=$(pgrep -f '[s]erve --open')
(while sleep 0.01; do
  kill -STOP $server; sleep 0.02; kill -CONT $server
done) & stalls=$!
LAT || code=$?
kill $stalls; kill -CONT $server
[ ${code:-0} = 0 ]";

/// Stalls of the program that answers stay in the longest round trip and, as they are more than one of a thousand, in p99.9.
pub(crate) fn stalls(guest: &mut Guest) {
    beside(guest, |guest| {
        for op in ["write", "send"] {
            let lat = format!(
                "{PROGRAM} lat 10.9.8.1 --open --engine rdma --op {op} --size 4KiB --time 20s --quiet --json"
            );
            let told = guest.ask(&STALLS.replace("LAT", &lat));
            let ours: Value = serde_json::from_str(&told).unwrap();
            println!("{op} with stalls: {}", ours["percentiles"]);
            assert!(ours["most_ns"].as_f64() >= Some(STALL), "{op}: {ours}");
            let share = stalled(&ours);
            println!(
                "{op}: {:.2} % of the round trips took as long as a stall",
                share * 100.0
            );
            let p999 = value(&ours, 99.9).filter(|_| share > 0.001);
            assert!(p999.is_none_or(|p999| p999 >= STALL), "{op}: {ours}");
        }
    });
}

/// Share of the round trips that took as long as a stall.
fn stalled(ours: &Value) -> f64 {
    let all: Vec<[f64; 2]> = serde_json::from_value(ours["histogram"].clone()).unwrap();
    let number = |least: f64| -> f64 {
        all.iter()
            .filter(|[ns, _]| *ns >= least)
            .map(|[_, n]| n)
            .sum()
    };
    number(STALL) / number(0.0)
}

/// A percentile; none if there are too few samples for it.
fn value(ours: &Value, percent: f64) -> Option<f64> {
    let all = ours["percentiles"].as_array().unwrap();
    let found = all.iter().find(|one| one["percent"] == percent)?;
    found["ns"].as_f64()
}
