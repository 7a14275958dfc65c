//! Kept records, as a user sees them: the list, notes, and comparing imports.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::program::{linerate, words};
use crate::schema::fits;
use serde_json::Value;
use tempfile::TempDir;

/// Path of a sample output of another program; the tests of imports have these samples.
fn sample(name: &str) -> String {
    format!("{}/../linerate-import/tests/samples/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn records() -> String {
    format!("{}/tests/records", env!("CARGO_MANIFEST_DIR"))
}

fn at(home: &Path, args: &[&str]) -> Output {
    linerate(home).args(args).output().unwrap()
}

/// What a command prints to stdout and stderr; it must end with this exit code.
#[track_caller]
fn result_of(home: &Path, args: &[&str], code: i32) -> (String, String) {
    let output = at(home, args);
    let (out, err) = (words(&output.stdout), words(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}: {out}{err}");
    (out, err)
}

#[track_caller]
fn document(home: &Path, args: &[&str], schema: &str) -> Value {
    let (out, _) = result_of(home, &[args, &["--json"]].concat(), 0);
    let document = serde_json::from_str(&out).unwrap();
    fits(schema, &document);
    document
}

fn names(list: &Value) -> Vec<&str> {
    let records = list["records"].as_array().unwrap().iter();
    records.map(|one| one["name"].as_str().unwrap()).collect()
}

/// A home with two imports of one path, with the notes `before` and `after it`.
fn two_imports() -> TempDir {
    let home = TempDir::new().unwrap();
    for (file, note) in [("3.12-tcp.json", "before"), ("3.20-tcp.json", "after it")] {
        let file = sample(&format!("iperf3-json/{file}"));
        result_of(home.path(), &["import", &file, "--note", note], 0);
    }
    home
}

#[test]
fn the_list_judges_the_newest_and_filters_by_name_and_number() {
    let home = TempDir::new().unwrap();
    let save = ["list", "--save", &records()].map(str::to_owned);
    let save: Vec<&str> = save.iter().map(String::as_str).collect();
    let with = |more: &[&'static str]| document(home.path(), &[&save, more].concat(), "list");
    let windows = with(&["receive-window"]);
    assert_eq!(names(&windows), ["receive-window-over", "receive-window-under"]);
    let goodput = &windows["records"][0]["answer"]["goodput"][0];
    assert_eq!(goodput["cause"], "receive-window", "{goodput}");
    assert_eq!(windows["records"][0]["kind"], "run");
    let last = with(&["planted", "--last", "3", "--judge", "1"]);
    assert!(last["left_out"].as_u64().unwrap() > 5);
    let judged = last["records"].as_array().unwrap().iter();
    let judged: Vec<bool> = judged.map(|one| !one["answer"].is_null()).collect();
    assert_eq!(judged, [false, false, true]);
}

#[test]
fn damaged_and_foreign_files_are_listed_as_such() {
    let home = TempDir::new().unwrap();
    let empty = document(home.path(), &["list"], "list");
    assert_eq!(names(&empty), [""; 0]);
    let dir = home.path().join("r");
    fs::create_dir(&dir).unwrap();
    let whole = fs::read(format!("{}/pacing-over.lnr", records())).unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(dir.join(name), bytes).unwrap();
    put("whole.lnr", &whole);
    put("cut.lnr", &whole[..whole.len() - 100]);
    put("short.lnr", &whole[..40]);
    put("foreign.lnr", b"a photo");
    put("empty.lnr", b"");
    put("notes.txt", b"no record");
    fs::create_dir(dir.join("folder.lnr")).unwrap();
    let list = document(home.path(), &["list", "--save", dir.to_str().unwrap()], "list");
    let problem = |name: &str| {
        let mut all = list["records"].as_array().unwrap().iter();
        let found = all.find(|one| one["name"] == name).unwrap();
        found["problem"].as_str().map(str::to_owned)
    };
    assert_eq!(problem("whole"), None);
    assert_eq!(names(&list).len(), 6);
    for (name, part) in [
        ("cut", "bytes from there on are lost"),
        ("short", "the start of the record cannot be read"),
        ("foreign", "not a record"),
        ("empty", "not a record"),
        ("folder", ""),
    ] {
        let why = problem(name).unwrap();
        assert!(why.contains(part), "{name}: {why}");
    }
}

#[test]
fn records_are_found_by_their_notes() {
    let home = two_imports();
    let home = home.path();
    let list = document(home, &["list", "after"], "list");
    assert_eq!(list["records"][0]["note"], "after it");
    assert_eq!(list["records"][0]["kind"], "import");
    for name in ["after it", "note:after it"] {
        let (page, note) = result_of(home, &["show", name], 0);
        assert!(page.contains("after it") && note.is_empty(), "{page}{note}");
    }
    let file = sample("iperf3-json/3.1.3-tcp.json");
    result_of(home, &["import", &file, "--note", "after it"], 0);
    let (page, note) = result_of(home, &["show", "after it"], 0);
    assert!(page.contains("3.1.3-tcp.json"), "{page}");
    assert!(note.contains("2 records have the note `after it`: this is the newest"), "{note}");
    result_of(home, &["show", "note:last"], 3);
    let (_, refused) = result_of(home, &["import", &file, "--note", "a\tb"], 2);
    assert!(refused.contains("no control characters"), "{refused}");
}

#[test]
fn a_kept_import_is_shown_as_it_was_printed() {
    let home = TempDir::new().unwrap();
    let file = sample("iperf3-json/3.12-tcp.json");
    let args = ["import", &file, "--claim", "goodput>=1Gbit/s"];
    let unsaved = [&args[..], &["--no-save"]].concat();
    let home = home.path();
    result_of(home, &args, 0);
    assert_eq!(result_of(home, &["show"], 0), result_of(home, &unsaved, 0));
    let second = document(home, &["show"], "import");
    assert_eq!(document(home, &unsaved, "import"), second);
    let bound = "goodput>=900Gbit/s";
    result_of(home, &["show", "--expect", bound], 4);
}

#[test]
fn an_expectation_of_an_import_holds_or_ends_with_its_code() {
    let home = TempDir::new().unwrap();
    let file = sample("iperf3-json/3.12-tcp.json");
    let import =
        |bound: &'static str| ["import", &file, "--no-save", "--expect", bound].map(str::to_owned);
    let end = |bound, code| {
        let args = import(bound);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        result_of(home.path(), &args, code).1
    };
    assert_eq!(end("goodput>=1kbit/s", 0), "");
    assert!(end("goodput>=900Gbit/s", 4).contains("expectation failed"));
    assert!(end("latency.p50<1s", 4).contains("expectation failed"));
}

#[test]
fn two_imports_are_compared() {
    let home = two_imports();
    let home = home.path();
    let document = document(home, &["diff", "before", "after it"], "diff");
    let figures = document["figures"].as_array().unwrap();
    let goodput = figures.iter().find(|f| f["figure"] == "goodput_bps").unwrap();
    assert!(goodput["before"].is_object() && goodput["after"].is_object());
    assert!(goodput["ratio"].is_f64() || goodput["why"].is_string(), "{goodput}");
    assert_eq!(document["plan"].as_array().unwrap().len(), 0);
    let (page, _) = result_of(home, &["diff", "before", "after it"], 0);
    assert!(page.contains("import of 3.12-tcp.json | before"), "{page}");
    result_of(home, &["diff", "before", "before"], 2);
}

#[test]
fn an_import_and_a_run_are_compared_where_they_measure_the_same() {
    let home = TempDir::new().unwrap();
    let home = home.path();
    let run = format!("{}/path-rate-1g.lnr", records());
    let why = |file: &str, figure: &str| {
        result_of(home, &["import", &sample(file)], 0);
        let document = document(home, &["diff", "last", &run], "diff");
        let figures = document["figures"].as_array().unwrap().clone();
        let mut of = figures.into_iter().filter(|f| f["figure"] == figure);
        let both = of.find(|f| f["before"].is_object() && f["after"].is_object());
        both.unwrap()["why"].clone()
    };
    let rate = why("iperf3-json/3.12-tcp.json", "goodput_bps");
    assert!(rate.is_null() || rate == "no interval", "{rate}");
    assert_eq!(
        why("perftest/send-lat-percentiles.txt", "round_trip_ns"),
        "verbs before, an application after"
    );
    let (page, _) = result_of(home, &["diff", "last", &run], 0);
    assert!(page.contains("halves of round trips"), "{page}");
}

/// Imports two outputs, and compares them.
fn diff_of(before: &str, after: &str, code: i32) -> (String, String) {
    let home = TempDir::new().unwrap();
    for (name, text) in [("before", before), ("after", after)] {
        let file = home.path().join(name);
        fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        result_of(home.path(), &["import", file, "--note", name], 0);
    }
    result_of(home.path(), &["diff", "note:before", "note:after"], code)
}

#[test]
fn imports_of_tables_and_disks_are_compared_row_by_row() {
    let text = |name: &str| fs::read_to_string(sample(name)).unwrap();
    let crystal = text("crystaldiskmark/6.0.2.txt");
    let sockets = text("columns/ge1000tc-sockets.txt");
    let mpich = text("columns/ge1000tc-mpich.txt");
    let udp = text("columns/sockperf-udp.txt");
    let tcp = text("columns/sockperf-tcp.txt");
    let fio = text("fio-text/cells-3.33.txt");
    for (before, after, part) in [
        (&sockets, &mpich, "ping-pong, whole round trips: mean"),
        (&udp, &tcp, "ping-pong, sockets, whole round trips: mean"),
        (
            &crystal,
            &crystal.replace("471.231", "235.615"),
            "471.2 MB/s        235.6 MB/s        x0.50, no interval",
        ),
        (&fio, &fio, "sequential read, 1 MiB, 4 in flight"),
    ] {
        let (page, _) = diff_of(before, after, 0);
        assert!(page.contains(part), "{part}: {page}");
        assert!(page.contains("no interval"), "{page}");
    }
    let (_, why) = diff_of(&crystal, &sockets, 3);
    assert!(why.contains("operations on a disk only before"), "{why}");
    let deeper = crystal.replace("(Q= 32", "(Q= 16");
    let (page, _) = diff_of(&crystal, &deeper, 0);
    assert!(page.contains("in flight 32 before, 16 after"), "{page}");
}

#[test]
fn an_import_without_figures_of_a_network_is_not_compared() {
    let home = TempDir::new().unwrap();
    let home = home.path();
    result_of(home, &["import", &sample("lspci/slot-wide.txt")], 0);
    let run = format!("{}/path-rate-1g.lnr", records());
    let (_, why) = result_of(home, &["diff", "last", &run], 3);
    assert!(why.contains("an import without transfers"), "{why}");
}

#[test]
fn a_case_is_made_of_an_import_with_a_port_and_refused_of_one_without() {
    let home = TempDir::new().unwrap();
    let home = home.path();
    let transfer = sample("iperf3-json/3.12-tcp.json");
    result_of(home, &["import", &transfer], 0);
    let (_, why) = result_of(home, &["whatif", "last"], 2);
    assert!(why.contains("the port of the path is not known"), "{why}");
    let ports = sample("ethtool/two-ports.txt");
    let port = fs::read_to_string(&ports).unwrap();
    let port = port.lines().find_map(|line| line.strip_prefix("Settings for "));
    let port = port.unwrap().trim_end_matches(':');
    result_of(home, &["import", &transfer, &ports, "--near-port", port], 0);
    let (page, _) = result_of(home, &["whatif", "last"], 0);
    assert!(page.contains("client to server, as measured"), "{page}");
    result_of(home, &["import", &sample("perftest/write-bw-client.txt")], 0);
    let (_, why) = result_of(home, &["whatif", "last"], 2);
    assert!(why.contains("no transfer over TCP"), "{why}");
}
