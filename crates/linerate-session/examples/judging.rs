//! Measures the time to derive and to judge a record: by default one with ten minutes of 64 streams and a row each 100
//! ms, else one of the given number of streams and rows, or the record in a file.
//!
//! `cargo run --release -p linerate-session --example judging [STREAMS ROWS | FILE]`

#[path = "../../linerate-record/tests/sample/mod.rs"]
mod sample;

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use linerate_judge::model::derive;
use linerate_judge::verdict::judge;
use linerate_record::{Record, frame};
use linerate_session::store::Store;

/// How many times the record is derived and judged.
const TIMES: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let record = match args.as_slice() {
        [file] => Store::new(Path::new(".")).load(file)?.record,
        [streams, rows] => sample::record(streams.parse()?, rows.parse()?, 1),
        _ => sample::record(64, 6000, 1),
    };
    let values: u64 = record.steps.iter().map(frame::values).sum();
    let [derived, judged] = times(&record);
    let limits = judge(&derive(&record)).limits.len();
    println!("{values} values, {} steps, {limits} limits", record.steps.len());
    println!("derived in {}", words(&derived));
    println!("judged in {}", words(&judged));
    let both: Vec<Duration> = derived.iter().zip(&judged).map(|(a, b)| *a + *b).collect();
    println!("together {}", words(&both));
    Ok(())
}

/// Returns the times that deriving took, and those that judging took.
fn times(record: &Record) -> [Vec<Duration>; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..TIMES {
        let began = Instant::now();
        let model = black_box(derive(black_box(record)));
        times[0].push(began.elapsed());
        let began = Instant::now();
        black_box(judge(&model));
        times[1].push(began.elapsed());
    }
    times
}

fn words(times: &[Duration]) -> String {
    let mut times = times.to_vec();
    times.sort_unstable();
    let [middle, most] = [times.len() / 2, times.len() - 1].map(|at| times[at]);
    format!("{middle:.2?} (median of {TIMES}; {most:.2?} at most)")
}
