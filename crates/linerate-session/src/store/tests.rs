use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use linerate_facts::HostFacts;
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Knobs, Plan, Purpose, StepPlan};
use linerate_record::{End, FORMAT, Host, Start, Step};
use linerate_units::Nanos;

use super::recorder::name;
use super::{Recorder, Store, StoreError};
use linerate_judge::event::{Event, Sink};

const WALL: u64 = 1_795_257_067;

fn start() -> Start {
    Start {
        format: FORMAT,
        linerate: "0.1.0".to_owned(),
        wall_secs: WALL,
        plan: Plan {
            engine: "null".to_owned(),
            peer: Some("brook".to_owned()),
            reach: Vec::new(),
            knobs: Knobs::default(),
            directions: vec![Direction::Forward],
            time: Nanos::from_secs(1),
            sweep: true,
            trials: false,
        },
        made: linerate_record::Made::default(),
        note: String::new(),
        study: None,
    }
}

fn host(name: &str) -> Host {
    Host { side: Side::Near, facts: HostFacts { name: name.to_owned(), ..HostFacts::default() } }
}

fn step() -> Step {
    Step {
        plan: StepPlan {
            index: 0,
            purpose: Purpose::Both,
            sets: Vec::new(),
            washout: Nanos(0),
            measure: Nanos(1),
            tick: Nanos(1),
        },
        began: Nanos(0),
        ends: Vec::new(),
        clock: None,
        took: Nanos(0),
        trouble: None,
    }
}

/// Records a run with one host and one step.
fn run(recorder: &mut Recorder) {
    recorder.event(&Event::Started(&start()));
    recorder.event(&Event::Host(&host("ripple")));
    recorder.event(&Event::Step(&step()));
    recorder.event(&Event::Ended(&End::Complete));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_run_is_found_again_as_last_by_name_and_by_path() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::new(temp.path().join("a/b"));
    let mut recorder = store.recorder();
    run(&mut recorder);
    assert_eq!(recorder.problem(), None);
    let path = recorder.path().unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert_eq!(name, "2026-11-21T10-31-07-brook.lnr");
    for which in ["last", name, &name[..name.len() - 4], path.to_str().unwrap()] {
        let loaded = store.load(which).unwrap();
        assert_eq!(loaded.path, path);
        assert_eq!(loaded.warning(), None);
        assert_eq!(loaded.record.start, start());
        assert_eq!(loaded.record.hosts, [host("ripple")]);
        assert_eq!(loaded.record.steps, [step()]);
        assert_eq!(loaded.record.end, Some(End::Complete));
    }
}

#[test]
fn only_the_owner_may_read_and_nothing_is_overwritten() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::new(temp.path().join("records"));
    let paths: Vec<_> = (0..3)
        .map(|_| {
            let mut recorder = store.recorder();
            run(&mut recorder);
            recorder.path().unwrap().to_owned()
        })
        .collect();
    assert_eq!(mode(store.dir()), 0o700);
    assert!(paths.iter().all(|p| mode(p) == 0o600));
    assert!(paths[2].ends_with("2026-11-21T10-31-07-brook-3.lnr"));
    assert_eq!(store.list().unwrap().len(), 3);
}

#[test]
fn the_last_is_the_newest_by_the_time_in_its_name() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::new(temp.path());
    for name in ["2026-11-21T10-31-08-a.lnr", "2026-11-21T10-31-07-z.lnr", "x.txt"] {
        fs::write(temp.path().join(name), b"").unwrap();
    }
    assert!(store.last().unwrap().ends_with("2026-11-21T10-31-08-a.lnr"));
    // A file whose name has no time is never the newest record if there are others.
    fs::write(temp.path().join("z copy.lnr"), b"").unwrap();
    assert!(store.last().unwrap().ends_with("2026-11-21T10-31-08-a.lnr"));
    assert!(store.list().unwrap()[0].ends_with("z copy.lnr"));
}

#[test]
fn a_run_that_measured_nothing_leaves_no_record() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::new(temp.path());
    run(&mut store.recorder());
    let mut recorder = store.recorder();
    recorder.event(&Event::Started(&start()));
    assert_eq!(store.list().unwrap().len(), 2);
    recorder.event(&Event::Host(&host("ripple")));
    recorder.event(&Event::Ended(&End::Interrupted));
    assert_eq!((recorder.path(), recorder.problem()), (None, None));
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn a_copy_is_a_record_of_its_own() {
    let [from, to] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [from, to] = [&from, &to].map(|dir| Store::new(dir.path().join("records")));
    run(&mut from.recorder());
    let loaded = from.load("last").unwrap();
    for n in 1..=2 {
        let mut recorder = to.recorder();
        recorder.copy(&loaded);
        assert_eq!(recorder.problem(), None);
        let path = recorder.path().unwrap();
        assert_eq!(fs::read(path).unwrap(), fs::read(&loaded.path).unwrap());
        assert_eq!((mode(path), to.list().unwrap().len()), (0o600, n));
    }
    let mut recorder = Store::new("/dev/null/x").recorder();
    recorder.copy(&loaded);
    assert!(recorder.path().is_none() && recorder.problem().is_some());
}

#[test]
fn every_event_is_on_file_at_once() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::new(temp.path());
    let mut recorder = store.recorder();
    recorder.event(&Event::Started(&start()));
    recorder.event(&Event::Host(&host("ripple")));
    let loaded = store.load("last").unwrap();
    assert_eq!(loaded.record.hosts.len(), 1);
    assert_eq!((loaded.record.end, loaded.damage), (None, None));
}

#[test]
fn a_damaged_record_says_what_survived() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::new(temp.path());
    let mut recorder = store.recorder();
    run(&mut recorder);
    let path = recorder.path().unwrap();
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
    let loaded = store.load("last").unwrap();
    let warning = loaded.warning().unwrap();
    assert!(warning.contains("1 hosts and 1 steps survive"), "{warning}");
    assert_eq!(loaded.record.end, None);
}

#[test]
fn what_is_missing_is_said_with_what_helps() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::new(temp.path().join("none"));
    let error = store.load("last").unwrap_err();
    assert!(matches!(error, StoreError::NoneYet { .. }), "{error}");
    assert_eq!(error.hint(), "linerate run PEER");
    let error = store.load("yesterday").unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    let text = temp.path().join("text");
    fs::write(&text, "not a record at all").unwrap();
    let error = store.load(text.to_str().unwrap()).unwrap_err();
    assert!(error.to_string().ends_with("this is not a record of linerate"));
    // A device is refused because it may have no end.
    let error = store.load("/dev/zero").unwrap_err();
    assert!(matches!(error, StoreError::Read { .. }), "{error}");
}

#[test]
fn the_place_follows_the_environment() {
    let place = |state: Option<&str>, home: Option<&str>| {
        let lookup = |name: &str| match name {
            "XDG_STATE_HOME" => state.map(OsString::from),
            _ => home.map(OsString::from),
        };
        Store::of_user(lookup).map(|s| s.dir().to_owned())
    };
    let under = |dir: &str| Path::new(dir).join("linerate/records");
    assert_eq!(place(Some("/s"), Some("/h")).unwrap(), under("/s"));
    assert_eq!(place(Some("s"), Some("/h")).unwrap(), under("/h/.local/state"));
    assert_eq!(place(None, Some("/h")).unwrap(), under("/h/.local/state"));
    assert!(matches!(place(None, None), Err(StoreError::NoPlace)));
}

#[test]
fn names_are_plain_and_of_bounded_length() {
    assert_eq!(name(0, None), "1970-01-01T00-00-00-self");
    assert_eq!(name(951_782_400, Some("a")), "2000-02-29T00-00-00-a");
    assert_eq!(name(951_868_800, Some("a")), "2000-03-01T00-00-00-a");
    let odd = name(0, Some("ssh://me@[fe80::1%eth0]:22/../x"));
    assert_eq!(odd, "1970-01-01T00-00-00-me__fe80__1_eth0__22_.._x");
    assert!(name(u64::MAX, Some(&"x".repeat(1000))).len() < 100);
}

#[test]
fn a_place_that_cannot_be_made_is_a_problem_and_no_end_of_the_run() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("file");
    fs::write(&file, b"").unwrap();
    let mut recorder = Store::new(file.join("records")).recorder();
    run(&mut recorder);
    let problem = recorder.problem().unwrap();
    assert!(problem.why.contains("no file could be made"), "{problem:?}");
    assert!(problem.hint.contains("--save DIR"), "{problem:?}");
    assert_eq!(recorder.path(), None);
}

#[test]
fn a_full_disk_is_said_once_with_what_helps() {
    let temp = tempfile::tempdir().unwrap();
    let mut recorder = Store::new(temp.path()).recorder();
    recorder.event(&Event::Started(&start()));
    recorder.replace_file(File::options().write(true).open("/dev/full").unwrap());
    recorder.event(&Event::Host(&host("ripple")));
    let first = recorder.problem().cloned().unwrap();
    assert!(first.hint.contains("free some space"), "{first:?}");
    recorder.event(&Event::Step(&step()));
    recorder.event(&Event::Ended(&End::Complete));
    assert_eq!(recorder.problem(), Some(&first));
}

/// Writes a run of a thousand hosts in a child process whose files may have at
/// most `blocks` blocks. This simulates a disk that fills up, and works for every
/// user. `test` names the calling test, which does only this in the child process.
fn with_full_disk(test: &str, blocks: u32) -> Option<Store> {
    const CHILD: &str = "LINERATE_TEST_FULL_DISK";
    if let Some(dir) = std::env::var_os(CHILD) {
        fill(Path::new(&dir));
        return None;
    }
    let dir = tempfile::tempdir().unwrap().keep();
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" --exact \"$1\"");
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .arg(format!("store::tests::{test}"))
        .env(CHILD, &dir)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    Some(Store::new(dir))
}

/// Writes until the file may not grow, and checks that the run would have continued.
fn fill(dir: &Path) {
    let mut recorder = Store::new(dir).recorder();
    recorder.event(&Event::Started(&start()));
    for _ in 0..1000 {
        recorder.event(&Event::Host(&host("ripple")));
    }
    recorder.event(&Event::Ended(&End::Complete));
    let problem = recorder.problem().unwrap();
    assert!(problem.why.contains("writing failed"), "{problem:?}");
}

#[test]
fn what_was_written_before_the_disk_was_full_stands() {
    let test = "what_was_written_before_the_disk_was_full_stands";
    let Some(store) = with_full_disk(test, 16) else {
        return;
    };
    let loaded = store.load("last").unwrap();
    fs::remove_dir_all(store.dir()).unwrap();
    assert_eq!((loaded.warning(), loaded.record.end), (None, None));
    assert!((1..1000).contains(&loaded.record.hosts.len()));
}

#[test]
fn a_file_without_even_a_start_is_not_left_behind() {
    let test = "a_file_without_even_a_start_is_not_left_behind";
    let Some(store) = with_full_disk(test, 0) else {
        return;
    };
    let error = store.last().unwrap_err();
    fs::remove_dir_all(store.dir()).unwrap();
    assert!(matches!(error, StoreError::NoneYet { .. }), "{error}");
}

/// Records a run with a note; returns the record's name.
fn noted(store: &Store, note: &str) -> String {
    let mut recorder = store.recorder();
    let note = note.to_owned();
    recorder.event(&Event::Started(&Start { note, ..start() }));
    recorder.event(&Event::Step(&step()));
    recorder.event(&Event::Ended(&End::Complete));
    let name = recorder.path().unwrap().file_stem().unwrap();
    name.to_string_lossy().into_owned()
}

#[test]
fn a_record_is_found_by_its_note_and_the_newest_of_several() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::new(temp.path());
    let before = noted(&store, "before");
    noted(&store, "after it");
    let after = noted(&store, "after it");
    fs::write(temp.path().join("2099-01-01T00-00-00-x.lnr"), "after it").unwrap();
    let of = |which: &str| {
        let loaded = store.load(which).unwrap();
        let name = loaded.path.file_stem().unwrap().to_string_lossy();
        (name.into_owned(), loaded.choice())
    };
    assert_eq!(of("before"), (before.clone(), None));
    assert_eq!(of("note:before"), (before, None));
    let (name, choice) = of("after it");
    assert_eq!(name, after);
    assert!(choice.unwrap().starts_with("2 records have the note `after it`"));
    for none in ["", "note:", "note:last", "after"] {
        let found = store.load(none);
        assert!(matches!(found, Err(StoreError::NotFound { .. })), "{none}");
    }
}

#[test]
fn a_name_goes_before_a_note() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::new(temp.path());
    let first = noted(&store, "");
    let second = noted(&store, &first);
    let stem = |which: &str| store.find(which).unwrap().file_stem().unwrap().to_owned();
    assert_eq!(stem(&first), OsString::from(&first));
    assert_eq!(stem(&format!("note:{first}")), OsString::from(second));
}
