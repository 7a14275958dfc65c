//! `linerate diff` on kept records, as a user sees it.

use std::path::Path;
use std::process::{Command, Output};

use crate::schema::fits;
use serde_json::Value;

fn diff(args: &[&str]) -> Output {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.env_clear().env("HOME", "/nonexistent").arg("diff");
    command.arg("--save").arg(records).args(args);
    command.output().unwrap()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn document(args: &[&str]) -> Value {
    let output = diff(&[args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", words(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits("diff", &document);
    document
}

fn goodput(document: &Value) -> &Value {
    let figures = document["figures"].as_array().unwrap();
    let mut goodput = figures.iter().filter(|f| f["figure"] == "goodput_bps");
    goodput.next().unwrap()
}

#[test]
fn a_faster_path_is_told_by_its_goodput_and_limits_the_same() {
    let document = document(&["path-rate-1g", "path-rate-5g"]);
    let goodput = goodput(&document);
    assert_eq!(goodput["outcome"], "differ", "{goodput}");
    assert!((goodput["ratio"].as_f64().unwrap() - 5.0).abs() < 0.1);
    assert_eq!(document["limits"][0]["fate"], "still");
    assert_eq!(document["limits"][0]["cause"], "path-rate");
    assert_eq!(document["same_load"], true);
}

#[test]
fn a_wider_window_is_told_by_the_setting_and_by_the_limit_that_went() {
    let document = document(&["receive-window-over", "receive-window-under"]);
    let limits = document["limits"].as_array().unwrap();
    let limit = limits.iter().find(|l| l["cause"] == "receive-window");
    let limit = limit.unwrap();
    assert_eq!((&limit["fate"], &limit["before"]), (&"gone".into(), &"proved".into()));
    assert!(limit["why"].is_string());
    let facts = document["facts"].as_array().unwrap();
    let rmem = facts.iter().find(|f| f["what"] == "net.ipv4.tcp_rmem");
    assert_eq!(rmem.unwrap()["side"], "far");
    // The goodput of one record was not steady, and varied by more than the change of the window.
    assert_eq!(goodput(&document)["outcome"], "unclear");
}

#[test]
fn what_another_load_was_asked_for_is_not_compared() {
    let other = ["planted-two-streams", "planted-loss"];
    let document = document(&other);
    assert_eq!(document["same_load"], false);
    for figure in document["figures"].as_array().unwrap() {
        let both = figure["before"].is_object() && figure["after"].is_object();
        let loaded = figure["direction"].is_string();
        let refused = figure["outcome"] == "not-comparable";
        assert_eq!(refused, both && loaded, "{figure}");
    }
    let text = words(&diff(&other).stdout);
    assert!(text.contains("DIFFERENT PLANS") && text.contains("streams: 2 -> 1"), "{text}");
}

#[test]
fn a_comparison_turned_round_tells_the_inverse() {
    let of = |a, b| {
        let document = document(&[a, b]);
        let figures = document["figures"].as_array().unwrap().clone();
        let ratios = figures.iter().filter_map(|f| f["ratio"].as_f64());
        ratios.collect::<Vec<f64>>()
    };
    let there = of("path-rate-1g", "path-rate-5g");
    let back = of("path-rate-5g", "path-rate-1g");
    assert!(!there.is_empty() && there.len() == back.len());
    for (a, b) in there.iter().zip(&back) {
        assert!((a * b - 1.0).abs() < 1e-6, "{a} and {b}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused_in_words() {
    let records = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records");
    let path = format!("{records}/pacing-over.lnr");
    for (args, code, part) in [
        (["pacing-over", "pacing-over"], 2, "the same run"),
        (["pacing-over", &path], 2, "the same run"),
        (["pacing-over", "no-such-record"], 3, "`no-such-record`"),
        (["pacing-over", "/dev/null"], 3, "not a regular file"),
        (["pacing-over", file!()], 3, "there is no record"),
    ] {
        let output = diff(&args);
        let text = words(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(part), "{args:?}: {text}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_damaged_record_is_compared_as_far_as_it_goes_and_that_is_told() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let whole = std::fs::read(records.join("pacing-over.lnr")).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &whole[..whole.len() - 100]).unwrap();
    let name = file.path().to_str().unwrap();
    let output = diff(&["pacing-under", name]);
    assert_eq!(output.status.code(), Some(3));
    assert!(words(&output.stderr).contains("warning: "));
    assert!(words(&output.stdout).contains("the second run was cut short"));
    std::fs::write(file.path(), &whole[..whole.len() / 2]).unwrap();
    let output = diff(&["pacing-under", name]);
    assert_ne!(output.status.code(), Some(1), "{}", words(&output.stderr));
}
