//! `linerate import` with input that is damaged, unknown, endless or missing.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::program::{linerate, words};

/// A sample of another program's output.
fn sample(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../linerate-import/tests/samples");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn import(home: &Path, file: &str) -> Output {
    let mut command = linerate(home);
    command.args(["import", "--no-save", file]).output().unwrap()
}

/// The page of an input, which must be accepted.
fn page(bytes: &[u8]) -> String {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("input"), bytes).unwrap();
    let output = import(home.path(), "input");
    let page = words(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{page}{}", words(&output.stderr));
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    linerate_test::unwrapped(&page)
}

/// Checks that a file is refused with an error, its reason `why`, and a hint.
#[track_caller]
fn refused(output: &Output, why: &str) {
    let said = words(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    assert!(said.starts_with("error: ") && said.contains("hint: "), "{said}");
    let line = linerate_test::unwrapped(&said);
    assert!(line.contains(why), "no `{why}` in: {said}");
}

#[track_caller]
fn refused_bytes(bytes: &[u8], why: &str) {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("input"), bytes).unwrap();
    refused(&import(home.path(), "input"), why);
}

#[test]
fn what_has_nothing_to_read_is_refused() {
    refused_bytes(b"", "it is empty");
    refused_bytes(b"\n \r\n\t\n", "it is empty");
    refused_bytes(b"\x7fELF\0\0\x01", "it is binary");
    refused_bytes(b"hello\nworld\n", "its first line is `hello`");
    refused_bytes(b"{\"a\": 1}", "its first line is `{\"a\": 1}`");
}

#[test]
fn a_document_that_is_cut_is_read_as_far_as_it_goes_or_refused() {
    let iperf3 = sample("iperf3-json/3.12-tcp.json");
    let half = &iperf3[..iperf3.len() / 2];
    let page = page(half.as_bytes());
    let last = half.lines().count();
    assert!(page.contains(&format!("line {last}: the document ends early")), "{page}");
    let start = &iperf3[..800];
    let end = format!(
        "it has no interval and no sum; line {}: the document ends early",
        start.matches('\n').count() + 1
    );
    refused_bytes(start.as_bytes(), &end);
    let fio = sample("fio-json/single-3.42.json");
    refused_bytes(&fio.as_bytes()[..fio.len() / 2], "line 1 looks like output of fio, JSON");
}

#[test]
fn a_table_that_is_cut_in_a_row_keeps_the_rows_before() {
    let table = sample("perftest/write-lat-three-columns.txt");
    let row = table.find(" 64  ").unwrap();
    let page = page(&table.as_bytes()[..row + 30]);
    assert!(page.contains("32 B") && !page.contains("64 B"), "{page}");
    assert!(page.contains("line 12: not understood: `64 1000 1.34`"), "{page}");
}

#[test]
fn two_tools_in_one_file_are_two_outputs() {
    let both =
        sample("iperf3-text/3.12-tcp.txt") + "see below\n" + &sample("ethtool/two-ports.txt");
    let line = both.lines().position(|line| line == "see below").unwrap() + 1;
    let page = page(both.as_bytes());
    assert!(page.contains("input: iperf3, text") && page.contains("input: ethtool"), "{page}");
    assert!(page.contains(&format!("line {line}: ")) && page.contains("see below"), "{page}");
}

#[test]
fn the_name_of_a_file_does_not_count() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("a.png"), sample("iperf3-json/3.12-tcp.json")).unwrap();
    let output = import(home.path(), "a.png");
    assert_eq!(output.status.code(), Some(0));
    assert!(words(&output.stdout).contains("a.png: iperf3, JSON"));
}

#[test]
fn text_of_windows_is_the_same_text() {
    let unix = sample("iperf3-text/3.12-tcp.txt");
    let windows = unix.replace('\n', "\r\n");
    let wide: Vec<u8> =
        format!("\u{feff}{windows}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let expected = page(unix.as_bytes());
    assert_eq!(page(windows.as_bytes()), expected);
    assert_eq!(page(&wide), expected);
}

#[test]
fn a_comma_of_a_locale_is_no_other_number() {
    let table = sample("perftest/write-lat-three-columns.txt");
    let comma = table.replace("1.28", "1,28");
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("input"), &comma).unwrap();
    let output = import(home.path(), "input");
    let page = words(&output.stdout) + &words(&output.stderr);
    assert!(!page.contains("128.00"), "{page}");
    assert!(page.contains("line 7: `1,28` is no number and is left out"), "{page}");
}

#[test]
fn a_table_without_units_is_not_guessed() {
    let why = "the column `latency` does not say its unit of time";
    refused_bytes(b"size latency\n1 2.5\n2 2.6\n4 2.7\n", why);
}

#[test]
fn what_has_no_end_or_no_right_is_refused_without_waiting() {
    let home = TempDir::new().unwrap();
    let at = |name: &str| home.path().join(name);
    refused(&import(home.path(), "."), "it is a directory");
    refused(&import(home.path(), "/dev/zero"), "it is a device");
    refused(&import(home.path(), "missing"), "No such file");
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), 0o600.into()).unwrap();
    refused(&import(home.path(), "pipe"), "it is a named pipe");
    File::create(at("sparse")).unwrap().set_len(2 << 30).unwrap();
    refused(&import(home.path(), "sparse"), "it is longer than 256 MiB");
    fs::write(at("closed"), "x").unwrap();
    fs::set_permissions(at("closed"), Permissions::from_mode(0o000)).unwrap();
    // Root may read every file; `./test.sh` also runs this test as an ordinary user.
    if File::open(at("closed")).is_ok() {
        return;
    }
    refused(&import(home.path(), "closed"), "Permission denied");
}

#[test]
fn a_file_with_nothing_to_read_is_a_note_where_another_has_something() {
    let home = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(home.path().join(name), text).unwrap();
    write("ping", &sample("ping/ipv4.txt"));
    write("hello", "hello\n");
    write("empty", "");
    let import = |files: &[&str]| {
        let mut command = linerate(home.path());
        command.args(["import", "--no-save"]).args(files);
        command.output().unwrap()
    };
    for files in [["hello", "ping", "empty"], ["ping", "--far", "hello"]] {
        let output = import(&files);
        let page = words(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{page}{}", words(&output.stderr));
        let page = linerate_test::unwrapped(&page);
        assert!(page.contains("ping: ping") && page.contains("hello: not read"), "{page}");
        assert!(page.contains("its first line is `hello`"), "{page}");
    }
    refused(&import(&["hello", "empty"]), "hello: no output of a known program");
    // If one file does not exist, the results of the others are shown, and the missing one is reported.
    let output = import(&["ping", "nowhere"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(words(&output.stderr).contains("failed to read nowhere"));
}

/// The output of an import that reads this standard input.
fn piped(args: &[&str], input: impl Into<Stdio>) -> Output {
    let home = TempDir::new().unwrap();
    let mut command: Command = linerate(home.path());
    command.args(["import", "--no-save"]).args(args).stdin(input);
    command.output().unwrap()
}

#[test]
fn standard_input_is_read_to_the_limit() {
    refused(&piped(&["-"], File::open("/dev/zero").unwrap()), "it is longer than 256 MiB");
    let path: PathBuf = TempDir::new().unwrap().keep().join("input");
    let mut file = File::create(&path).unwrap();
    file.write_all(sample("ping/ipv4.txt").as_bytes()).unwrap();
    let output = piped(&["-"], File::open(&path).unwrap());
    assert!(words(&output.stdout).contains("standard input: ping"));
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn a_file_that_cannot_be_opened_beside_others_is_told_and_ends_with_3() {
    let home = TempDir::new().unwrap();
    let text = sample("iperf3-text/3.12-tcp.txt");
    fs::write(home.path().join("input"), text).unwrap();
    let with = |files: &[&str]| {
        let mut command = linerate(home.path());
        command.args(["import", "--no-save"]).args(files);
        command.output().unwrap()
    };
    let output = with(&["input", "not; there"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(words(&output.stdout).contains("Transfers"));
    let said = words(&output.stderr);
    assert!(said.contains("hint: ls -l 'not; there'"), "{said}");
    // A single missing file is refused, and so are two.
    assert_eq!(with(&["absent"]).status.code(), Some(2));
    assert_eq!(with(&["absent", "away"]).status.code(), Some(2));
}

#[test]
fn a_reader_that_leaves_does_not_change_the_exit_code() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("input"), sample("iperf3-text/3.12-tcp.txt")).unwrap();
    let mut command = linerate(home.path());
    let args = ["import", "--no-save", "input", "--expect", "goodput>=900Gbit/s"];
    let mut running = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
    drop(running.stdout.take());
    assert_eq!(running.wait().unwrap().code(), Some(4));
}
