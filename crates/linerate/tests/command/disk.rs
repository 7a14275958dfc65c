//! Measurements of files and disks of this host.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use linerate_test::{free_ports, turn};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Started, linerate, run, words};
use crate::schema::fits;

/// The document of a measurement of a folder or a file.
fn document(args: &[&str], schema: &str) -> Value {
    let _turn = turn();
    let output = run(&[args, &["--json", "-q", "-t", "1s"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", words(&output.stderr));
    let reported = serde_json::from_slice(&output.stdout).unwrap();
    fits(schema, &reported);
    reported
}

fn refused(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(3), "{}", words(&output.stderr));
    words(&output.stderr)
}

#[test]
fn a_folder_is_measured_by_rows_and_holds_nothing_afterwards() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let reported = document(&["disk", path, "--rows", "real", "--size", "16MiB"], "study");
    let points = reported["points"].as_array().unwrap();
    let values: Vec<String> = points.iter().map(|point| point["values"].to_string()).collect();
    assert_eq!(
        values,
        [
            r#"["SEQ 1M Q1 T1","read"]"#,
            r#"["SEQ 1M Q1 T1","write"]"#,
            r#"["RND 4K Q1 T1","read"]"#,
            r#"["RND 4K Q1 T1","write"]"#,
        ]
    );
    for point in points {
        let figures = point["figures"].as_array().unwrap();
        for figure in ["goodput_bps", "operations_per_sec", "round_trip_ns"] {
            let found = figures.iter().find(|entry| entry["figure"] == figure);
            assert!(found.unwrap()["value"].as_f64() > Some(0.0), "{figure}: {point}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn reads_are_reverse_and_a_file_that_holds_data_is_never_written() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![7; 1 << 20]).unwrap();
    let path = file.path().to_str().unwrap();
    let own = ["--engine", "file", "--order", "random", "--size", "4KiB", "--depth", "8"];
    let reported = document(&[&["bw", path], &own[..]].concat(), "bw");
    let way = &reported["directions"]["reverse"];
    assert!(way["goodput_bps"].as_u64() > Some(0), "{way}");
    assert_eq!(reported["options"]["order"], "random");
    let timed = document(&["lat", path, "--engine", "file"], "lat");
    assert_eq!(timed["size_bytes"], 4096);
    assert!(timed["samples"].as_u64() > Some(0));
    let why = refused(&[&["bw", path, "--op", "write", "-t", "1s"], &own[..]].concat());
    assert!(why.contains("holds data, and is not written") && why.contains("hint: name a folder"));
    assert_eq!(std::fs::read(path).unwrap(), vec![7; 1 << 20]);
    let why = words(&run(&["bw", path, "--engine", "file", "-d", "forward"]).stderr);
    assert!(why.contains("--op write in place of --direction"), "{why}");
    assert!(refused(&["disk", "/nowhere"]).contains("cannot be opened"));
}

/// The program while it measures a folder, once its file is open.
fn started(folder: &TempDir, args: &[&str]) -> Started {
    let path = folder.path().to_str().unwrap();
    let program = Started::new(linerate(folder.path()).args([&["bw", path], args].concat()));
    let open = format!("/proc/{}/fd", program.pid().as_raw_nonzero());
    let is_own = |entry: std::io::Result<std::fs::DirEntry>| {
        let to = entry.and_then(|entry| std::fs::read_link(entry.path()));
        to.is_ok_and(|to| to.starts_with(folder.path()))
    };
    loop {
        let mut all = std::fs::read_dir(&open).unwrap().peekable();
        assert!(all.peek().is_some(), "it ended: {}", words(&program.end().stderr));
        if all.any(is_own) {
            return program;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_file_without_a_name_leaves_nothing_behind_a_program_that_is_killed() {
    let _turn = turn();
    let folder = TempDir::new().unwrap();
    let args = ["--engine", "file", "--op", "write", "--file-size", "16MiB", "--no-save"];
    let mut program = started(&folder, &args);
    program.until("forward");
    program.signal(Signal::KILL);
    assert_eq!(program.end().status.signal(), Some(Signal::KILL.as_raw()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_stop_ends_the_making_of_a_file() {
    let _turn = turn();
    let folder = TempDir::new().unwrap();
    // So large that it is not made in the time that making one may take.
    let program = started(&folder, &["--engine", "file", "--file-size", "1024GiB", "--no-save"]);
    program.signal(Signal::INT);
    let output = program.end();
    assert_eq!(output.status.code(), Some(3));
    let why = words(&output.stderr);
    assert!(why.contains("interrupted before anything was measured"), "{why}");
}

#[test]
fn a_file_that_shrinks_ends_the_measurement_in_words() {
    let _turn = turn();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let args = ["--engine", "file", "--size", "4KiB", "--no-save", "-t", "60s"];
    let path = file.to_str().unwrap();
    let mut program =
        Started::new(linerate(folder.path()).args([&["bw", path], &args[..]].concat()));
    program.until("reverse");
    // Longer than the part at the beginning that does not count.
    std::thread::sleep(Duration::from_secs(3));
    std::fs::File::options().write(true).open(&file).unwrap().set_len(0).unwrap();
    let output = program.end();
    assert_eq!(output.status.code(), Some(3));
    let shown = words(&output.stdout);
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("the file has become shorter since it was opened"), "{shown}");
    assert!(shown.contains("goodput"), "what was measured is kept: {shown}");
}

#[test]
fn the_disk_of_a_server_the_network_and_the_mount_are_measured_in_turn() {
    let [there, here] = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let [port] = free_ports().map(|port| port.to_string());
    let serve = |more: &[&str]| {
        let mut command = linerate(here.path());
        command.args(["serve", "--open", "--listen", "127.0.0.1", "--port", &port]).args(more);
        let mut server = Started::new(&mut command);
        server.until("listening");
        server
    };
    let disk = ["--server", "127.0.0.1", "--open", "--port", &port, "--size", "16MiB"];
    let mount = here.path().to_str().unwrap();
    let args = [&["disk", mount], &disk[..]].concat();
    let server = serve(&["--storage", there.path().to_str().unwrap()]);
    let reported = document(&args, "study");
    let points = reported["points"].as_array().unwrap();
    let places: Vec<&str> =
        points.iter().map(|point| point["values"][0].as_str().unwrap()).collect();
    assert_eq!(places, ["disk there", "disk there", "network", "network", "mount", "mount"]);
    for point in points {
        let figures = point["figures"].as_array().unwrap();
        let goodput = figures.iter().find(|entry| entry["figure"] == "goodput_bps").unwrap();
        assert!(goodput["value"].as_f64() > Some(0.0), "{point}");
    }
    assert_eq!(std::fs::read_dir(there.path()).unwrap().count(), 0);
    // A client may not fill the disk of the server.
    let large = ["bw", "127.0.0.1", "--engine", "file", "--open", "--port", &port];
    let why = refused(&[&large[..], &["--file-size", "17GiB", "-t", "1s"]].concat());
    assert!(why.contains("does not allow a file of 17 GiB (at most 16 GiB)"), "{why}");
    server.signal(Signal::INT);
    server.end();
    // Without --storage it lets nobody measure its disk.
    let server = serve(&[]);
    let why = refused(&[&large[..], &["-t", "1s"]].concat());
    assert!(why.contains("it lets nobody measure a disk") && why.contains("--storage"), "{why}");
    server.signal(Signal::INT);
    server.end();
}
