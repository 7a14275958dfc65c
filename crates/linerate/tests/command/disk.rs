//! Measurements of files and disks of this host.

use linerate_test::turn;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{run, words};
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
