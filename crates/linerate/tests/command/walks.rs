//! `linerate fabric` on captured walks, made with ibsim 0.10 and opensm 3.3.23. Host SRV has two ports, with CLA and
//! CLB at their other ends; the manager serves only the first port.

use std::fs;
use std::path::Path;

use crate::program::{run, words};
use crate::schema::fits;

fn walk(name: &str) -> String {
    let walks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/walks");
    walks.join(name).to_str().unwrap().to_owned()
}

fn printed(args: &[&str]) -> (Option<i32>, String) {
    let output = run(&[&["fabric"], args].concat());
    assert_eq!(words(&output.stderr), "", "{args:?}");
    (output.status.code(), words(&output.stdout))
}

#[test]
fn goldens_of_both_ends_of_a_manager_on_the_wrong_port() {
    for name in ["trap-victim", "trap-served"] {
        let file = walk(&format!("{name}.txt"));
        let (code, page) = printed(&["--root", &file, "--explain"]);
        assert_eq!(code, Some(0));
        insta::assert_snapshot!(name, page);
    }
}

#[test]
fn a_check_fails_where_there_is_a_problem() {
    let (code, page) = printed(&["check", "--root", &walk("trap-victim.txt")]);
    assert_eq!(code, Some(4), "{page}");
    assert!(page.contains("(wrong-port)"), "{page}");
}

#[test]
fn the_document_fits_its_schema() {
    let (_, text) = printed(&["--json", "--root", &walk("trap-victim.txt")]);
    let document = serde_json::from_str(&text).unwrap();
    fits("fabric", &document);
    assert_eq!(document["findings"][0]["id"], "wrong-port");
    assert_eq!(document["findings"][0]["host"], "SRV");
    assert_eq!(document["ports"][2]["peer"]["node"], 0);
    let headline = &document["headline"];
    assert_eq!((&headline["stands"], &headline["cause"]), (&"limit".into(), &"wrong-port".into()));
}

#[test]
fn a_capture_that_ends_early_shows_what_it_has() {
    let whole = fs::read_to_string(walk("trap-victim.txt")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("part.txt");
    // The two lines of the file's head, and the replies about this host's own port.
    let part: Vec<&str> = whole.lines().take(5).collect();
    fs::write(&file, part.join("\n")).unwrap();
    let (code, page) = printed(&["--root", file.to_str().unwrap()]);
    assert_eq!(code, Some(3));
    for part in ["port did not answer", "Unknown         P_KeyTable of CLB: "] {
        assert!(page.contains(part), "{page}");
    }
}

#[test]
fn a_capture_without_its_last_line_is_cut_short() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.txt");
    let whole = fs::read_to_string(walk("trap-served.txt")).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    for count in [lines.len() - 1, lines.len() / 2, 4] {
        fs::write(&file, lines[..count].join("\n")).unwrap();
        let (code, page) = printed(&["check", "--root", file.to_str().unwrap()]);
        assert_eq!(code, Some(3), "{count}: {page}");
        // Parts that are missing in the file are unknown, and no node is reported as silent.
        assert!(!page.contains("silent-node"), "{page}");
    }
}

#[test]
fn what_a_capture_lacks_is_not_refused() {
    // A walk that was captured without `route` has no forwarding tables, though no switch refused them.
    let file = walk("trap-served.txt");
    let (code, page) = printed(&["route", "SRV", "--root", &file]);
    assert_eq!(code, Some(0), "{page}");
    assert!(
        page.contains("it could not be asked for from here") && !page.contains("refused"),
        "{page}"
    );
}

#[test]
fn a_route_is_a_document_too() {
    let (code, text) = printed(&["route", "SRV", "--json", "--root", &walk("trap-served.txt")]);
    let document = serde_json::from_str(&text).unwrap();
    fits("fabric-route", &document);
    assert_eq!((code, &document["end"]), (Some(0), &"arrives".into()));
    assert_eq!(document["links"][0]["to"]["name"], "SRV port 1");
}

#[test]
fn without_a_port_an_older_capture_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.txt");
    fs::write(&file, "older").unwrap();
    let args = ["fabric", "--capture", file.to_str().unwrap(), "--device", "none_0"];
    assert_eq!(run(&args).status.code(), Some(3));
    assert_eq!(fs::read_to_string(&file).unwrap(), "older");
}

#[test]
fn a_file_that_is_no_capture_is_refused_with_what_writes_one() {
    let output = run(&["fabric", "--root", "/dev/null"]);
    assert_eq!(output.status.code(), Some(2));
    let error = words(&output.stderr);
    assert!(
        error.contains("no capture of a network") && error.contains("--capture FILE"),
        "{error}"
    );
}
