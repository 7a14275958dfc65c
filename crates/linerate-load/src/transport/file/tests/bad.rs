//! What cannot be measured, and what ends a measurement.

use std::cell::Cell;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixListener;

use linerate_plan::path::Direction;
use linerate_plan::transport::Setting;
use linerate_units::Bytes;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::super::Shape;
use super::super::own::own;
use super::super::way::Way;
use super::super::worker::Loads;
use super::{connected, load, ran, refused, run, shape, small};
use crate::LoadError;

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
    let empty = tempfile::NamedTempFile::new().unwrap();
    let (what, _) = refused(empty.path().to_str().unwrap(), &reads);
    assert!(what.contains("has 0 B, less than one operation"), "{what}");
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
fn what_is_no_file_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let (fifo, socket) = (folder.path().join("fifo"), folder.path().join("socket"));
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _listener = UnixListener::bind(&socket).unwrap();
    for path in [&fifo, &socket] {
        let (what, _) = refused(path.to_str().unwrap(), &load(Direction::Reverse, 1, &[]));
        assert!(what.contains("no file, no disk and no folder"), "{what}");
    }
}

#[test]
fn holes_are_told_and_refused_where_they_are_most_of_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let reads = load(Direction::Reverse, 1, &[]);
    let written = |share: u64| {
        file.as_file().set_len(0).unwrap();
        file.as_file().write_all_at(&vec![7; share as usize * 65_536], 0).unwrap();
        file.as_file().set_len(100 * 65_536).unwrap();
    };
    written(49);
    let (what, hint) = refused(path, &reads);
    assert!(what.contains("51 % of it are holes") && hint.contains("folder"), "{what}");
    written(51);
    let gaps = connected(path, &reads).unwrap().end.gaps;
    let gap = gaps.iter().find(|gap| gap.what == "set.holes").unwrap();
    assert!(gap.why.starts_with("49 % of it are holes"), "{}", gap.why);
    written(100);
    let gaps = connected(path, &reads).unwrap().end.gaps;
    assert!(gaps.iter().all(|gap| gap.what != "set.holes"), "{gaps:?}");
}

#[test]
fn a_file_is_not_laid_out_to_its_end_once_the_user_asks_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let looks = Cell::new(0);
    let stopped = own(path, 1 << 40, false, &|| {
        looks.set(looks.get() + 1);
        looks.get() == 4
    });
    assert!(matches!(stopped, Err(LoadError::Interrupted)), "{stopped:?}");
    assert_eq!(looks.get(), 4);
    assert_eq!(own(path, 1 << 20, false, &|| false).unwrap().len, 1 << 20);
}

#[test]
fn only_a_disk_that_is_named_twice_may_be_overwritten() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let named = [("write-to", Setting::Word(path.to_owned()))];
    for direction in Direction::ALL {
        let (what, hint) = refused(path, &load(direction, 1, &named));
        assert!(what.contains("no disk that could be overwritten"), "{what}");
        assert_eq!(hint, "leave out --write-to");
    }
}

#[test]
fn a_changed_byte_is_found_at_its_place_whichever_way_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let verify = [small(), ("verify", Setting::Switch(true))];
    for (way, depth) in [(Way::Ring, 4), (Way::Threads, 4), (Way::Calls, 1)] {
        let ran = |direction| {
            let shape = shape(path, &load(direction, depth, &verify)).unwrap();
            ran(Box::new(Loads::new(Shape { way, ..shape }, 0)))
        };
        // What is written later can be checked as well.
        ran(Direction::Forward).unwrap();
        ran(Direction::Reverse).unwrap();
        let own = own(path, 1 << 20, true, &|| panic!("it is there already")).unwrap();
        let file = File::options().read(true).write(true).open(own.path()).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 5_007).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 5_007).unwrap();
        let error = ran(Direction::Reverse).unwrap_err().to_string();
        assert!(error.contains("data at byte 4608 are not those"), "{way:?}: {error}");
        file.write_all_at(&byte, 5_007).unwrap();
    }
}

#[test]
fn what_linerate_did_not_write_cannot_be_verified() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&vec![7; 64 << 10]).unwrap();
    let verify = [("verify", Setting::Switch(true))];
    let reads = load(Direction::Reverse, 1, &verify);
    let (what, hint) = refused(file.path().to_str().unwrap(), &reads);
    assert!(what.contains("linerate has not written") && hint.contains("folder"), "{what}");
}
