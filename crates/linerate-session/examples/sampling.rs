//! Measures the cost of sampling. Compares goodput over loopback with a row of every table each
//! 100 ms against goodput with only a first and a last row. Both settings are measured on the same
//! connections, in pairs A B, B A and so on. Also prints the CPU time of the sampling threads,
//! which is known far more precisely. Both ends are in this process, and both are sampled.
//!
//! `cargo run --release -p linerate-session --example sampling [PAIRS STREAMS]`

#[path = "../tests/sockets/support.rs"]
#[expect(dead_code, reason = "tests use the rest")]
#[expect(clippy::unwrap_used, reason = "it is made for tests")]
mod support;

use std::error::Error;
use std::time::{Duration, Instant};
use std::{fs, thread};

use linerate_facts::metric::WORKER_BYTES;
use linerate_plan::Knobs;
use linerate_plan::path::Direction;
use linerate_record::{EndReadings, Table};
use linerate_session::end::Running;
use linerate_units::stats::rounds_ratio;
use support::{Pair, step, stream};

/// Default number of pairs, and of streams.
const PAIRS: usize = 100;
const STREAMS: u32 = 1;
/// Length of a step's measured part and of its washout, in milliseconds.
const MEASURE: u64 = 1000;
const WASHOUT: u64 = 200;
/// Time between rows of a run, in milliseconds.
const TICK: u64 = 100;
/// With BBR on loopback, the rate varies: the goodput of its steps differs by a sixth.
const CONGESTION: &str = "cubic";

/// Figures of one step.
#[derive(Clone, Copy)]
struct Seen {
    /// Payload that arrived, in bytes per second.
    goodput: f64,
    /// CPU time of the sampling threads, as a share of one CPU.
    sampling: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let pairs = args.next().map_or(Ok(PAIRS), |arg| arg.parse())?;
    let streams = args.next().map_or(Ok(STREAMS), |arg| arg.parse())?;
    let mut ends = Pair::new();
    let knobs = Knobs { streams, congestion: Some(CONGESTION.to_owned()), ..Knobs::default() };
    ends.connect(&stream(0, Direction::Forward, knobs));
    // The first step is slower because socket buffers still grow, so its result is dropped.
    look(&mut ends, TICK)?;
    let mut found = Vec::new();
    for pair in 0..pairs {
        let mut ticks = [TICK, MEASURE];
        if pair % 2 == 1 {
            ticks.reverse();
        }
        let (first, second) = (look(&mut ends, ticks[0])?, look(&mut ends, ticks[1])?);
        found.push(if pair % 2 == 1 { (second, first) } else { (first, second) });
    }
    tell(&found, streams)
}

/// Runs one step with a row every `tick` milliseconds.
fn look(ends: &mut Pair, tick: u64) -> Result<Seen, Box<dyn Error>> {
    let running = ends.start(&step(&[0], WASHOUT, MEASURE, tick));
    let began = Instant::now();
    // The sleep ends before the step does, because the kernel drops the CPU time of a thread that has exited.
    thread::sleep(Duration::from_millis(WASHOUT + MEASURE - TICK / 4));
    let sampling = sampled()?.as_secs_f64() / began.elapsed().as_secs_f64();
    let [_, far] = running.map(Running::finish);
    let goodput = received(&far).ok_or("a step without rows")?;
    Ok(Seen { goodput, sampling })
}

/// Returns the CPU time that the sampling threads of this process have used so far.
fn sampled() -> Result<Duration, Box<dyn Error>> {
    let mut all = Duration::ZERO;
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        // A thread that has exited in the meantime has no `comm` file, and is skipped.
        let name = fs::read_to_string(task.join("comm"));
        if name.is_ok_and(|name| name.trim() == "sampler") {
            let used = fs::read_to_string(task.join("schedstat"))?;
            let used = used.split_whitespace().next().ok_or("no CPU time")?;
            all += Duration::from_nanos(used.parse()?);
        }
    }
    Ok(all)
}

fn tell(pairs: &[(Seen, Seen)], streams: u32) -> Result<(), Box<dyn Error>> {
    let rates: Vec<(f64, f64)> =
        pairs.iter().map(|(often, seldom)| (often.goodput, seldom.goodput)).collect();
    let ratio = rounds_ratio(&rates).ok_or("four pairs at least are needed")?;
    let median = |of: fn(&(Seen, Seen)) -> f64| {
        let mut all: Vec<f64> = pairs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    println!("{streams} streams, {CONGESTION}, {} pairs of {MEASURE} ms, medians:", pairs.len());
    println!(
        "rows each {TICK} ms: {:.2} Gb/s, sampling takes {:.3} % of one CPU",
        median(|pair| pair.0.goodput) * 8e-9,
        median(|pair| pair.0.sampling) * 100.0
    );
    println!(
        "a row at each end: {:.2} Gb/s, sampling takes {:.3} % of one CPU",
        median(|pair| pair.1.goodput) * 8e-9,
        median(|pair| pair.1.sampling) * 100.0
    );
    println!("ratio {:.4} (95 %: {:.4} to {:.4})", ratio.mid, ratio.low, ratio.high);
    Ok(())
}

/// Returns the payload that an end received, in bytes per second, from the row after the washout to the last row.
fn received(end: &EndReadings) -> Option<f64> {
    let workers = end.tables.iter().filter(|table| table.source == "worker");
    workers.map(rate).sum()
}

fn rate(worker: &Table) -> Option<f64> {
    let bytes = worker.column(WORKER_BYTES)?;
    let (first, last) = (bytes.get(1)?, bytes.last()?);
    let time = worker.at.last()? - worker.at.get(1)?;
    Some((last - first) as f64 * 1e9 / time as f64)
}
