//! Tests of the pages of imports, from sample outputs of other programs.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use linerate_explain::explain;
use linerate_plan::path::Side;
use linerate_record::{Blob, Import, Kept};

use super::{Args, material, record};
use linerate_show::import as view;
use linerate_show::{Document, Style};

pub(super) fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../linerate-import/tests/samples")
}

/// The page of an import; `line` holds its arguments: sample files, then options.
fn page(line: &[&str]) -> Document {
    named(line, &[])
}

/// The page of an import whose files are renamed to `names`.
pub(super) fn named(line: &[&str], names: &[&str]) -> Document {
    let args = Args::try_parse_from([&["import"], line].concat()).unwrap();
    let near = args.files.iter().map(|path| (Side::Near, path));
    let far = args.far.iter().map(|path| (Side::Far, path));
    let file = |(side, path): (Side, &PathBuf)| Import {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        side,
        kept: Kept::Bytes(Blob(fs::read(samples().join(path)).unwrap())),
    };
    let mut files: Vec<Import> = near.chain(far).map(file).collect();
    for (file, name) in files.iter_mut().zip(names) {
        (*name).clone_into(&mut file.name);
    }
    let material = material(&record(&args, files, String::new()));
    view::page(&explain(&material), None)
}

fn at(line: &[&str], width: usize) -> String {
    page(line).text(Style { width, color: false })
}

/// Paths of all samples.
fn all() -> Vec<String> {
    let folders = fs::read_dir(samples()).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let name = |path: PathBuf| path.strip_prefix(samples()).unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = files.map(|file| name(file.unwrap().path())).collect();
    names.sort();
    names
}

#[test]
fn goldens_of_pages() {
    let shown = |line: &[&str]| at(line, 80);
    insta::assert_snapshot!(
        "iperf3_and_ethtool",
        shown(&["iperf3-json/3.12-tcp.json", "--far", "ethtool/two-ports.txt"])
    );
    insta::assert_snapshot!(
        "perftest",
        shown(&["perftest/write-lat-three-columns.txt", "--claim", "latency<=2us"])
    );
    insta::assert_snapshot!("fio", shown(&["fio-json/cells-3.33.json"]));
    insta::assert_snapshot!("ibstat", shown(&["ibstat/two-ports.txt"]));
    insta::assert_snapshot!("perftest_narrow", at(&["perftest/write-lat-three-columns.txt"], 40));
}

/// First words of lines that are commands to copy.
const COMMANDS: [&str; 21] = [
    "lsblk ",
    "dd ",
    "nfsstat ",
    "pidstat ",
    "linerate ",
    "modinfo ",
    "grep ",
    "powercfg ",
    "echo options ",
    "ss ",
    "netsh ",
    "nstat ",
    "rdma ",
    "Get-NetAdapter",
    "sudo ",
    "ethtool ",
    "fio ",
    "cat ",
    "ib_send_lat ",
    "ip ",
    "lspci ",
];

#[test]
fn no_line_is_longer_than_the_page() {
    let names = all();
    assert!(names.len() > 200, "{} samples", names.len());
    for name in &names {
        for width in [40, 60, 80] {
            let page =
                at(&[name, "--claim", "goodput>=20Gbit/s", "--claim", "latency<=2us"], width);
            // A path has no spaces, and is not broken across lines.
            let is_word = |line: &str| !line.trim().contains(' ');
            let is_command = |line: &str| COMMANDS.iter().any(|word| line.starts_with(word));
            let mut lines = page.lines();
            let long = lines
                .find(|line| line.chars().count() > width && !is_command(line) && !is_word(line));
            assert_eq!(long, None, "{name} at {width}");
            assert!(!page.contains('\x1b'), "{name}");
        }
    }
}

#[test]
fn every_sample_is_read_and_shown_in_each_form() {
    for name in &all() {
        let page = page(&[name]);
        let text = page.text(Style::PLAIN);
        assert!(text.contains("Read "), "{name}: {text}");
        assert!(!page.markdown().is_empty());
    }
}
