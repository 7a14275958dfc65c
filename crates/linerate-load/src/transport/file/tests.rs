use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_plan::path::{Direction, Side};
use linerate_plan::subject::Subject;
use linerate_plan::transport::{Options, Setting};
use linerate_plan::{Knobs, Pattern, SetPlan};
use linerate_units::{Bytes, Nanos};

use super::way::{Way, chosen};
use super::worker::Loads;
use super::{File, Shape, shape};
use crate::transport::{NoLines, Transport, possible};
use crate::{Advice, LoadError, Op, Worker};

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
fn each_way_moves_what_was_planned_and_its_threads_end_with_the_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for (way, depth) in [(Way::Ring, 8), (Way::Threads, 8), (Way::Calls, 1)] {
        for direction in Direction::ALL {
            let more = [small(), ("order", word("random")), ("sync", Setting::Switch(true))];
            let shape = Shape { way, ..shape(path, &load(direction, depth, &more)).unwrap() };
            let (bytes, times) = ran(Box::new(Loads::new(shape, 0))).unwrap();
            assert!(bytes > 0 && bytes == times * KIB_4, "{way:?} {direction:?}");
        }
    }
    let more = [small()];
    let shape =
        Shape { way: Way::Threads, ..shape(path, &load(Direction::Reverse, 4, &more)).unwrap() };
    let mut worker = Loads::new(shape, 0);
    worker.begin(&Arc::new(Advice::new(0, 1))).unwrap();
    let threads = worker.helpers();
    let lives = |thread: &i32| std::path::Path::new(&format!("/proc/self/task/{thread}")).exists();
    assert!(threads.len() == 4 && threads.iter().all(lives), "{threads:?}");
    drop(worker);
    assert!(!threads.iter().any(lives));
}

#[test]
fn without_io_uring_threads_make_the_calls_up_to_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let forbidden = || Err(io::Error::from_raw_os_error(rustix::io::Errno::PERM.raw_os_error()));
    let of = |depth, streams| {
        let mut plan = load(Direction::Reverse, depth, &[small()]);
        plan.knobs.streams = streams;
        chosen(&shape(path, &plan).unwrap(), forbidden())
    };
    assert_eq!(of(1, 9).unwrap(), Way::Calls);
    assert_eq!(of(1024, 1).unwrap(), Way::Threads);
    let error = of(1024, 2).unwrap_err();
    assert!(error.to_string().contains("more than 1024 threads"), "{error}");
    assert!(error.hint().contains("--depth"));
}

#[test]
fn memory_that_is_no_disk_is_reached_by_the_faster_way() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return eprintln!("not tested here: there is no /dev/shm");
    };
    let path = folder.path().to_str().unwrap();
    let way = |depth| {
        let connected = connected(path, &load(Direction::Reverse, depth, &[small()])).unwrap();
        connected.end.way
    };
    assert_eq!(way(1), "calls");
    let found = way(8);
    assert!(["threads", "io_uring, by kernel workers"].contains(&found.as_str()), "{found}");
    assert_eq!(way(8), found, "it is tried once");
}

#[test]
fn a_file_that_shrinks_ends_its_load_in_words() {
    for way in [Way::Ring, Way::Threads, Way::Calls] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; 64 << 10]).unwrap();
        let plan = load(Direction::Reverse, if way == Way::Calls { 1 } else { 4 }, &[]);
        let shape = shape(file.path().to_str().unwrap(), &plan).unwrap();
        file.as_file().set_len(0).unwrap();
        let error = ran(Box::new(Loads::new(Shape { way, ..shape }, 0))).unwrap_err();
        assert!(error.to_string().contains("has become shorter"), "{way:?}: {error}");
    }
}

#[test]
fn what_holds_data_is_read_and_never_written() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&vec![7; 64 << 10]).unwrap();
    let path = file.path().to_str().unwrap();
    assert!(run(path, &load(Direction::Reverse, 4, &[])).0 > 0);
    let (what, hint) = refused(path, &load(Direction::Forward, 4, &[]));
    assert!(what.contains("holds data") && hint.contains("folder"), "{what}: {hint}");
    assert_eq!(std::fs::read(path).unwrap(), vec![7; 64 << 10]);
}

#[test]
fn what_cannot_be_measured_is_refused_in_words() {
    let mut tiny = tempfile::NamedTempFile::new().unwrap();
    tiny.write_all(&[1]).unwrap();
    let reads = load(Direction::Reverse, 1, &[]);
    let (what, _) = refused(tiny.path().to_str().unwrap(), &reads);
    assert!(what.contains("has 1 B, less than one operation"), "{what}");
    assert!(refused("/nowhere", &reads).0.contains("cannot be opened"));
    assert!(refused("/dev/null", &reads).0.contains("no file, no disk and no folder"));
    let (what, hint) = refused("/proc", &load(Direction::Forward, 1, &[small()]));
    assert!(what.starts_with("/proc cannot hold a file"), "{what}: {hint}");
}

#[test]
fn a_block_that_does_not_fit_is_refused_past_the_page_cache_alone() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&vec![7; 64 << 10]).unwrap();
    let path = file.path().to_str().unwrap();
    let mut odd = load(Direction::Reverse, 1, &[]);
    odd.knobs.write_size = Bytes(1000);
    match connected(path, &odd) {
        Err(error) => {
            assert!(error.to_string().contains("multiples of"), "{error}");
            assert!(error.hint().contains("--buffered"));
        }
        // tmpfs of old kernels has no O_DIRECT.
        Ok(connected) => assert_eq!(connected.end.gaps[0].what, "set.direct"),
    }
    odd.knobs.options.set("buffered", Setting::Switch(true));
    assert!(connected(path, &odd).is_ok());
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
