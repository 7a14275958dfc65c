//! Ways by which operations reach the kernel.

use std::io;
use std::path::Path;
use std::sync::Arc;

use linerate_plan::path::Direction;
use linerate_plan::transport::Setting;

use super::super::Shape;
use super::super::way::{Way, chosen};
use super::super::worker::Loads;
use super::{KIB_4, connected, load, ran, shape, small, word};
use crate::{Advice, Worker as _};

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
    let lives = |thread: &i32| Path::new(&format!("/proc/self/task/{thread}")).exists();
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
