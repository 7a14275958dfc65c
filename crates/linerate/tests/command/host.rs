//! `linerate host` on other machines: captures of trees, and trees with few files.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::document::document;
use serde_json::Value;
use tempfile::TempDir;

/// Names of the captures that `tests/hosts/README.md` describes.
const HOSTS: [&str; 3] =
    ["20em64t-hybrid-1p6c2t+2ca4co1t", "32em64t-2n8c+1mic", "40intel64-2g2n4c+pci"];

fn capture_of(host: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts");
    folder.join(format!("{host}.json"))
}

/// Runs `linerate host` in an empty home.
fn host(args: &[&str]) -> Output {
    let home = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.env_clear().env("HOME", home.path()).arg("host").args(args);
    command.output().unwrap()
}

/// The page or document that `linerate host` prints; it must succeed without a message.
pub(crate) fn printed(args: &[&str]) -> String {
    let output = host(args);
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*reported), (Some(0), ""), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn json(root: &Path) -> Value {
    document(&printed(&["--json", "--root", root.to_str().unwrap()]))
}

#[test]
fn the_page_of_each_machine() {
    for name in HOSTS {
        let page = printed(&["--root", capture_of(name).to_str().unwrap()]);
        insta::assert_snapshot!(format!("host_{name}"), page);
    }
}

#[test]
fn cards_hang_where_they_are_plugged_in() {
    let document = json(&capture_of("40intel64-2g2n4c+pci"));
    let devices = document["pci"].as_array().unwrap();
    let qib = devices.iter().find(|d| d["driver"] == "ib_qib").unwrap();
    assert_eq!(qib["address"], "0000:43:00.0");
    assert_eq!(qib["parent"], "0000:40:03.0");
    assert_eq!((&qib["node"], &qib["function"]), (&2.into(), &"InfiniBand".into()));
    assert_eq!(qib["names"], serde_json::json!(["qib0", "ib0"]));
    assert_eq!((document["cpus"]["packages"].clone(), devices.len()), (4.into(), 37));
}

#[test]
fn firmware_tells_of_modules_and_unlike_cpus_are_told_apart() {
    let document = json(&capture_of("32em64t-2n8c+1mic"));
    let slots = document["memory"]["slots"].as_array().unwrap();
    let filled: Vec<_> = slots.iter().filter(|s| !s["size_bytes"].is_null()).collect();
    assert_eq!((slots.len(), filled.len()), (24, 8));
    assert_eq!(filled[0]["locator"], "DIMM_A1");
    assert_eq!(filled[0]["transfers_per_sec"], 1_600_000_000u64);

    let document = json(&capture_of("20em64t-hybrid-1p6c2t+2ca4co1t"));
    let kinds = document["cpus"]["kinds"].as_array().unwrap();
    let sizes: Vec<usize> = kinds.iter().map(|k| k["cpus"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [12, 8]);
    assert_eq!(document["cpus"]["cores"], 14);
}

#[test]
fn a_tree_without_sys_has_gaps_and_no_facts_of_this_machine() {
    let root = TempDir::new().unwrap();
    std::fs::create_dir(root.path().join("proc")).unwrap();
    let document = json(root.path());
    assert_eq!(document["cpus"]["online"], serde_json::json!([]));
    assert_eq!(
        (&document["machine"]["kernel"], &document["live_busy"]),
        (&Value::Null, &Value::Null)
    );
    let unknown = document["unknown"].as_array().unwrap();
    for fact in ["facts.cpu", "facts.kernel", "facts.pci", "facts.memory.total", "facts.busy"] {
        assert!(unknown.iter().any(|gap| gap["what"] == fact), "{fact}");
    }

    let cpuinfo = "processor : 0\nmodel name : A\nprocessor : 1\nmodel name : A\n";
    std::fs::write(root.path().join("proc/cpuinfo"), cpuinfo).unwrap();
    let document = json(root.path());
    assert_eq!(document["cpus"]["online"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&document["cpus"]["model"], &document["cpus"]["cores"]),
        (&"A".into(), &Value::Null)
    );
}

#[test]
fn links_inside_a_tree_are_followed_and_what_leads_nowhere_is_a_gap() {
    let root = TempDir::new().unwrap();
    let at = |path: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    let device = "sys/devices/pci0000:00/0000:00:02.0";
    let mut space = [0u8; 64];
    space[..4].copy_from_slice(&[0xb3, 0x15, 0x17, 0x10]);
    space[9..12].copy_from_slice(&[0, 0, 2]);
    std::fs::write(at(&format!("{device}/config")), space).unwrap();
    std::fs::write(at(&format!("{device}/numa_node")), "-1\n").unwrap();
    let target = "../../../devices/pci0000:00/0000:00:02.0";
    symlink(target, at("sys/bus/pci/devices/0000:00:02.0")).unwrap();
    symlink("0000:00:03.0", at("sys/bus/pci/devices/0000:00:03.0")).unwrap();
    symlink("/etc/hostname", at("proc/sys/kernel/hostname")).unwrap();
    symlink("meminfo", at("proc/meminfo")).unwrap();

    let document = json(root.path());
    let devices = document["pci"].as_array().unwrap();
    assert_eq!(devices[0]["vendor_id"], 0x15b3);
    assert_eq!((devices.len(), &devices[1]["vendor_id"]), (2, &0.into()));
    assert_eq!(document["machine"]["name"], Value::Null);
    let unknown = document["unknown"].as_array().unwrap();
    for fact in ["facts.pci.config", "facts.name", "facts.memory.total"] {
        assert!(unknown.iter().any(|gap| gap["what"] == fact), "{fact}");
    }
}

#[test]
fn a_capture_shows_what_was_shown_when_it_was_made() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("capture.json");
    let path = file.to_str().unwrap();
    let live = printed(&["--json", "--capture", path, "--unmasked"]);
    assert_eq!(live, printed(&["--json", "--root", path]));

    let masked = folder.path().join("masked.json");
    printed(&["--root", path, "--capture", masked.to_str().unwrap()]);
    let (mut open, mut masked) = (json(&file), json(&masked));
    assert_eq!(masked["machine"]["name"], "masked");
    for document in [&mut open, &mut masked] {
        document["machine"]["name"].take();
        document["live_busy"].take();
        for filesystem in document["filesystems"].as_array_mut().unwrap() {
            filesystem["point"].take();
        }
        // Masking replaces these by numbers.
        for port in document["ports"].as_array_mut().unwrap() {
            port["hardware_address"].take();
            port["addresses"].take();
        }
        // The findings and the headline may contain names of processes.
        document["findings"].take();
        document["headline"].take();
    }
    assert_eq!(open, masked);
}

#[test]
fn what_changes_is_shown_until_it_is_ended() {
    let home = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.env_clear().env("HOME", home.path());
    command.args(["host", "--watch"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("Busy            CPUs "), "{first}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    for other in ["--json", "--root=/", "--capture=x"] {
        assert_eq!(host(&["--watch", other]).status.code(), Some(2), "{other}");
    }
}

#[test]
fn what_cannot_be_shown_is_refused_with_a_hint() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("x");
    let refused = |args: &[&str]| {
        let output = host(args);
        assert!(output.stdout.is_empty(), "{args:?} wrote to stdout");
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let path = file.to_str().unwrap();
    let (code, reported) = refused(&["--root", path]);
    assert_eq!(code, Some(2));
    assert!(reported.contains("failed to read") && reported.contains("hint:"), "{reported}");
    std::fs::write(&file, [0xff, 0, 1]).unwrap();
    let (code, reported) = refused(&["--root", path]);
    assert_eq!(code, Some(2));
    assert!(reported.contains("is not a capture of a machine"), "{reported}");
    let nowhere = folder.path().join("no/where");
    std::fs::create_dir(folder.path().join("proc")).unwrap();
    let empty = folder.path().to_str().unwrap();
    let (code, reported) = refused(&["--root", empty, "--capture", nowhere.to_str().unwrap()]);
    assert_eq!(code, Some(3));
    assert!(reported.contains("failed to write"), "{reported}");
    assert_eq!(refused(&["--unmasked"]).0, Some(2));
}
