use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_plan::path::{Direction, Side};
use linerate_plan::subject::Subject;
use linerate_plan::transport::{Options, Setting};
use linerate_plan::{Knobs, Pattern, SetPlan};
use linerate_units::{Bytes, Nanos};

use super::{File, Shape};
use crate::transport::{NoLines, Transport, possible};
use crate::{Advice, LoadError, Op, Worker};

mod bad;
mod ways;

const KIB_4: u64 = 4096;

fn options(all: &[(&str, Setting)]) -> Options {
    let mut options = Options::default();
    for (key, setting) in all {
        options.set(key, setting.clone());
    }
    options
}

fn word(word: &str) -> Setting {
    Setting::Word(word.to_owned())
}

/// The file of a set that is not given up.
fn shape(path: &str, plan: &SetPlan) -> Result<Shape, LoadError> {
    super::shape(path, plan, &|| false)
}

/// A load of one direction at a depth, by blocks of 4 KiB.
fn load(direction: Direction, depth: u32, more: &[(&str, Setting)]) -> SetPlan {
    let mut own = options(more);
    own.set("depth", Setting::Number(depth.into()));
    let knobs = Knobs { write_size: Bytes(KIB_4), options: own, ..Knobs::default() };
    SetPlan::of("file", 0, Pattern::Stream { direction }, knobs)
}

fn connected(path: &str, plan: &SetPlan) -> Result<super::Connected, LoadError> {
    possible(&File, plan).map_err(|what| LoadError::Unsupported { what })?;
    let prepared = File.prepare(Side::Near, plan)?;
    prepared.connect(&Vec::new(), &mut NoLines(&Subject::File(path.to_owned())))
}

/// Runs operations for a moment; returns the bytes that they moved, and the number of times.
fn run(path: &str, plan: &SetPlan) -> (u64, u64) {
    ran(connected(path, plan).unwrap().workers.remove(0)).unwrap()
}

fn ran(mut worker: Box<dyn Worker>) -> Result<(u64, u64), LoadError> {
    let advice = Arc::new(Advice::new(0, 1));
    advice.count_from(1);
    // An earlier step ran on another thread.
    let mut worker = std::thread::scope(|scope| {
        let earlier = scope.spawn(|| {
            worker.begin(&advice).unwrap();
            worker
        });
        earlier.join().unwrap()
    });
    worker.begin(&advice)?;
    let (mut done, began) = (Vec::new(), Instant::now());
    while began.elapsed() < Duration::from_millis(50) || done.is_empty() {
        worker.submit(&[Op::Send(1); 32])?;
        worker.reap(1, Duration::from_millis(100), &mut done)?;
    }
    while !worker.finish()? {
        worker.reap(1, Duration::from_millis(100), &mut done)?;
    }
    let times = worker.timed().trips.iter().map(|(_, n)| n).sum();
    assert_eq!(times, done.len() as u64, "each operation has a time");
    Ok((done.iter().map(|done| u64::from(done.bytes)).sum(), times))
}

fn refused(path: &str, plan: &SetPlan) -> (String, &'static str) {
    let error = connected(path, plan).err().expect("it is refused");
    (error.to_string(), error.hint())
}

fn small() -> (&'static str, Setting) {
    ("file-size", Setting::Number(1 << 20))
}

#[test]
fn a_folder_is_written_and_read_at_any_depth_and_holds_nothing_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for direction in Direction::ALL {
        for (depth, order) in [(1, "sequential"), (8, "random")] {
            for buffered in [false, true] {
                let more =
                    [small(), ("order", word(order)), ("buffered", Setting::Switch(buffered))];
                let (bytes, times) = run(path, &load(direction, depth, &more));
                assert!(bytes > 0 && bytes == times * KIB_4, "{direction:?} {depth} {order}");
            }
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_single_operation_is_timed_as_a_round_trip() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&vec![7; 64 << 10]).unwrap();
    let pattern = Pattern::PingPong { size: Bytes(KIB_4), interval: Nanos(0) };
    let plan = SetPlan::of("file", 0, pattern, Knobs::default());
    let mut worker = connected(file.path().to_str().unwrap(), &plan).unwrap().workers.remove(0);
    let advice = Advice::new(0, 1);
    advice.count_from(1);
    worker.begin(&Arc::new(advice)).unwrap();
    let mut done = Vec::new();
    for _ in 0..100 {
        worker.submit(&[Op::Send(1); 32]).unwrap();
        worker.reap(1, Duration::from_millis(100), &mut done).unwrap();
    }
    while !worker.finish().unwrap() {
        worker.reap(1, Duration::from_millis(100), &mut done).unwrap();
    }
    assert!(worker.timed().trips.iter().map(|(_, n)| n).sum::<u64>() > 0);
}
