//! Prints the size of a record and the times to write and to read
//! it: by default ten minutes of 64 streams with a row each 100 ms.
//!
//! `cargo run --release -p linerate-session --example record_size [STREAMS ROWS]`

#[path = "../../linerate-record/tests/sample/mod.rs"]
mod sample;

use std::error::Error;
use std::time::Instant;

use linerate_judge::event::{Event, Sink};
use linerate_record::frame;
use linerate_session::store::Store;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: usize| args.next().map_or(Ok(default), |arg| arg.parse());
    let (streams, rows) = (number(64)?, number(6000)?);
    let record = sample::record(streams as u32, rows, 1);
    let values: u64 = record.steps.iter().map(frame::values).sum();

    let temp = std::env::temp_dir().join(format!("linerate-record-size-{}", std::process::id()));
    let store = Store::new(&temp);
    let began = Instant::now();
    let mut recorder = store.recorder();
    recorder.event(&Event::Started(&record.start));
    for step in &record.steps {
        recorder.event(&Event::Step(step));
    }
    let wrote = began.elapsed();
    if let Some(problem) = recorder.problem() {
        return Err(problem.why.clone().into());
    }

    let bytes = std::fs::metadata(store.last()?)?.len();
    let began = Instant::now();
    let loaded = store.load("last")?;
    let read = began.elapsed();
    std::fs::remove_dir_all(&temp)?;
    if loaded.record.steps != record.steps {
        return Err("the record did not come back".into());
    }

    let plain = values as f64 * 8.0;
    println!("{streams} streams, {rows} rows, both ends: {values} values");
    println!(
        "file {:.1} MB, {:.2} bytes a value, {:.1} times smaller than 8 bytes each",
        bytes as f64 / 1e6,
        bytes as f64 / values as f64,
        plain / bytes as f64
    );
    println!("wrote in {wrote:.2?}, read in {read:.2?}");
    Ok(())
}
