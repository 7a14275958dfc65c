//! `--format markdown` of the built program, on kept records, captures and cases.

use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag};

use crate::program::{linerate, words};

/// What a command prints; the command must succeed.
fn printed(args: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = linerate(home.path()).args(args).output().unwrap();
    let reported = words(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {reported}");
    words(&output.stdout)
}

fn kept(name: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join(name).to_str().unwrap().to_owned()
}

#[test]
fn goldens_of_kept_records_a_capture_and_a_case() {
    let record = kept("records/receive-window-over.lnr");
    let other = kept("records/receive-window-under.lnr");
    let host = kept("hosts/40intel64-2g2n4c+pci.json");
    for (name, args) in [
        ("show", &["show", &record][..]),
        ("explain", &["show", &record, "--explain"]),
        ("diff", &["diff", &record, &other]),
        ("host", &["host", "--root", &host]),
        ("whatif", &["whatif", "case5"]),
        ("whatif_set", &["whatif", "case5", "--set", "streams=2"]),
    ] {
        // Neither `--color` nor the width of a terminal changes Markdown.
        let page = printed(&[args, &["--format", "markdown", "--color", "always"]].concat());
        assert!(!page.contains('\x1b'), "{page}");
        insta::assert_snapshot!(name, page);
    }
}

#[test]
fn a_reader_of_markdown_finds_nothing_but_what_documents_have() {
    let folder = kept("records");
    for entry in std::fs::read_dir(folder).unwrap() {
        let record = entry.unwrap().path().to_str().unwrap().to_owned();
        let page = printed(&["show", &record, "--explain", "--format", "markdown"]);
        let parsed = Parser::new_ext(&page, Options::all()).filter(|event| match event {
            Event::Start(tag) => !matches!(
                tag,
                Tag::Heading { .. }
                    | Tag::Paragraph
                    | Tag::List(None)
                    | Tag::Item
                    | Tag::CodeBlock(_)
                    | Tag::Table(_)
                    | Tag::TableHead
                    | Tag::TableRow
                    | Tag::TableCell
                    | Tag::Strong
            ),
            other => !matches!(other, Event::End(_) | Event::Text(_) | Event::Code(_)),
        });
        let wrong: Vec<Event<'_>> = parsed.collect();
        assert!(wrong.is_empty(), "{record}: {wrong:?}");
    }
}

#[test]
fn text_is_what_is_printed_where_nothing_is_said() {
    let record = kept("records/receive-window-over.lnr");
    let text = printed(&["show", &record]);
    assert_eq!(text, printed(&["show", &record, "--format", "text"]));
    assert!(text.starts_with("near -> far "), "{text}");
}

#[test]
fn the_page_of_a_cause_is_the_markdown_that_it_is_written_in() {
    let page = printed(&["causes", "receive-window", "--format", "markdown"]);
    assert!(page.starts_with("# receive-window\n\n**Meaning.**"), "{page}");
    let list = printed(&["causes", "--format=markdown"]);
    assert!(list.contains("\n- **receive-window, socket:** "), "{list}");
}

#[test]
fn a_form_for_people_and_json_exclude_each_other() {
    let home = tempfile::tempdir().unwrap();
    let record = kept("records/receive-window-over.lnr");
    for args in [
        &["show", &record, "--json"][..],
        &["host", "--json"],
        &["host", "--watch"],
        &["run", "brook", "--stream-json"],
        &["lat", "brook", "--stream-json"],
    ] {
        let mut command = linerate(home.path());
        let output = command.args(args).args(["--format", "markdown"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let reported = words(&output.stderr);
        assert!(reported.contains("cannot be used with"), "{reported}");
    }
}

#[test]
fn what_is_typed_outranks_the_file_and_the_file_the_default() {
    let home = tempfile::tempdir().unwrap();
    let record = kept("records/receive-window-over.lnr");
    let file = home.path().join("config.toml");
    let printed = |config: &str, args: &[&str]| {
        std::fs::write(&file, config).unwrap();
        let config = file.to_str().unwrap();
        printed(&[&["show", &record, "--config", config], args].concat())
    };
    let markdown = "[report]\nformat = 'markdown'\n";
    assert!(printed(markdown, &[]).starts_with("- **near -> far, "));
    assert!(printed(markdown, &["--format", "text"]).starts_with("near -> far "));
    assert!(printed(markdown, &["--json"]).starts_with('{'));
    let json = "[report]\njson = true\n";
    assert!(printed(json, &["--format", "markdown"]).starts_with("- **near -> far, "));
}
