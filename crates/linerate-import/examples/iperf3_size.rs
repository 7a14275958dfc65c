//! Measures time and memory to read a long JSON document of iperf3: by default 100 MB with 64 streams.
//!
//! `cargo run --release -p linerate-import --example iperf3_size [MEGABYTES STREAMS FOLDER]`
//!
//! With a folder the documents are written there and kept, so that another program can also read them.

#![expect(clippy::disallowed_methods, reason = "documents and counters of the kernel are files")]

use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use linerate_import::read;

const START: &str = r#""connected":[],"version":"iperf 3.18","system_info":"Linux host","timestamp":{"timesecs":1},"connecting_to":{"host":"192.0.2.1","port":5201},"cookie":"c","tcp_mss_default":1448,"test_start":{"protocol":"TCP","num_streams":STREAMS,"blksize":131072,"reverse":0}"#;
const SUM: &str = r#"{"start":0,"end":600.004,"seconds":600.004,"bytes":70000000000,"bits_per_second":941234567.1234567,"retransmits":12,"sender":true}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let megabytes: usize = args.next().map_or(Ok(100), |arg| arg.parse())?;
    let streams: usize = args.next().map_or(Ok(64), |arg| arg.parse())?;
    let folder = args.next();
    let start = START.replace("STREAMS", &streams.to_string());
    let documents = [
        ("document", document(&start, megabytes, streams)),
        ("stream", events(&start, megabytes, streams)),
    ];
    for (name, text) in documents {
        if let Some(folder) = &folder {
            std::fs::write(Path::new(folder).join(format!("{name}.json")), &text)?;
        }
        let before = most_memory()?;
        let began = cpu_seconds()?;
        let parsed = read(text.as_bytes())?;
        let took = cpu_seconds()? - began;
        let results: usize = parsed.parts.iter().map(|part| part.results.len()).sum();
        println!(
            "{name}: {:.1} MB, {results} result(s), read in {took:.2} s of CPU time; memory grew by {:.1} MB",
            text.len() as f64 / 1e6,
            (most_memory()? - before) / 1e3
        );
    }
    Ok(())
}

/// CPU time of this thread in seconds: unlike elapsed time, it is not longer on a busy machine.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = times.split_whitespace().next().ok_or("no CPU time")?;
    Ok(nanos.parse::<f64>()? / 1e9)
}

/// Largest resident memory of this process so far, in kB.
fn most_memory() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    Ok(kilobytes.ok_or("no VmHWM")?.parse()?)
}

/// A document with the layout of iperf3: indented by one tab for each level.
fn document(start: &str, megabytes: usize, streams: usize) -> String {
    let mut text = format!("{{\n\t\"start\":\t{{{start}}},\n\t\"intervals\":\t[");
    let mut number = 0;
    while text.len() < megabytes * 1_000_000 {
        text.push_str(if number == 0 { "{" } else { ", {" });
        interval(&mut text, number, streams, "\n\t\t\t\t\t", "\t");
        text.push('}');
        number += 1;
    }
    let _ = write!(text, "],\n\t\"end\":\t{{");
    end(&mut text);
    text.push_str("}\n}\n");
    text
}

/// The same measurement as [`document`], in the layout of `--json-stream`: one event per line.
fn events(start: &str, megabytes: usize, streams: usize) -> String {
    let mut text = format!("{{\"event\":\"start\",\"data\":{{{start}}}}}\n");
    let mut number = 0;
    while text.len() < megabytes * 1_000_000 {
        text.push_str("{\"event\":\"interval\",\"data\":{");
        interval(&mut text, number, streams, "", "");
        text.push_str("}}\n");
        number += 1;
    }
    text.push_str("{\"event\":\"end\",\"data\":{");
    end(&mut text);
    text.push_str("}}\n");
    text
}

fn interval(text: &mut String, number: usize, streams: usize, line: &str, tab: &str) {
    text.push_str("\"streams\":[");
    for stream in 0..streams {
        text.push_str(if stream == 0 { "{" } else { ", {" });
        row(text, number, stream, line, tab);
        text.push('}');
    }
    text.push_str("],\"sum\":{");
    row(text, number, 0, line, tab);
    text.push('}');
}

fn row(text: &mut String, number: usize, stream: usize, line: &str, tab: &str) {
    let from = number as f64 * 0.1;
    let bits = 14_709_413.123_456 + (number * 7_919 + stream * 104_729) as f64 / 97.0;
    let fields = [
        ("socket", (5 + 2 * stream).to_string()),
        ("start", format!("{from:.6}")),
        ("end", format!("{:.6}", from + 0.100_013)),
        ("seconds", format!("{:.17}", 0.100_013_002_753_257_75)),
        ("bytes", (183_000 + number % 1_000).to_string()),
        ("bits_per_second", format!("{bits:.10}")),
        ("retransmits", (number % 3).to_string()),
        ("snd_cwnd", (100_000 + number % 5_000).to_string()),
        ("snd_wnd", (3_000_000 + number % 7_000).to_string()),
        ("rtt", (500 + number % 300).to_string()),
        ("rttvar", (20 + number % 30).to_string()),
        ("pmtu", "1500".to_owned()),
        ("omitted", "false".to_owned()),
        ("sender", "true".to_owned()),
    ];
    for (place, (name, value)) in fields.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{line}\"{name}\":{tab}{value}");
    }
}

fn end(text: &mut String) {
    let _ = write!(
        text,
        "\"streams\":[],\"sum_sent\":{SUM},\"sum_received\":{SUM},\"cpu_utilization_percent\":{{\"host_total\":20.5,\"remote_total\":30.5}}"
    );
}
