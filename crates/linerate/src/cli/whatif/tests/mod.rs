//! Tests of `linerate whatif`.

mod said;

use std::fmt::Write as _;

use linerate_ceiling::Relation;
use linerate_record::frame::encode_all;

use super::*;
use fits::fits;
use linerate_show::Style;
use refuses::refuses;

#[path = "../../../../../linerate-show/src/tests/schema/fits.rs"]
mod fits;
#[path = "../../../../../linerate-show/src/tests/schema/refuses.rs"]
mod refuses;

use linerate_test::kept;

fn text_of(name: &str) -> Result<String, Failure> {
    let records = Records { save: Some("/nonexistent".into()), ..Records::default() };
    super::text_of(name, &records)
}

fn page(name: &str, sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let text = text_of(name).unwrap();
    let solved = Solved::of(&text, &sets).unwrap();
    of_case(&text, &solved, &sets, Style::PLAIN)
}

/// The page of a case, as text in `style`.
fn of_case(text: &str, solved: &Solved, sets: &[String], style: Style) -> String {
    let paths = explained::read(text).unwrap();
    let reported = explained::explained(&paths);
    view::page(&solved.change(sets, &reported)).text(style)
}

/// The document with the pages of all cases.
fn document() -> String {
    let mut text = String::from(
        "# Cases\n\nReal systems with published measurements, and the ceilings that linerate computes for \
         them.\n`linerate whatif NAME` prints one of them. Their files are in `crates/linerate/cases`. A \
         sample\nfile with every key is at the end. The tests of linerate generate this page.\n",
    );
    for (name, source) in CASES {
        let mut solved = Solved::of(source, &[]).unwrap();
        let case = &mut solved.before.0;
        let (title, story) = (case.title.clone(), std::mem::take(&mut case.story));
        let page = of_case(source, &solved, &[], Style::PLAIN);
        let _ = write!(
            text,
            "\n## {name}: {title}\n\n{}\n\n```\n$ linerate whatif {name}\n{page}```\n",
            story.trim(),
        );
    }
    let _ = write!(text, "\n## How a path is described\n\n```toml\n{SAMPLE}```\n\n{TIMES}");
    text
}

const TIMES: &str = "\
Times by size are read as a line: the slope of large messages is a rate, which is compared with those of slots and links; and times
that stand at whole multiples of one time, whatever the size, are those of a timer (a card that holds its interrupts back, a tick of
a kernel). In 900 simulated sweeps without a timer none is named, and of 500 with one 487 are found, each within 2 % of its period.
";

const SAMPLE: &str = include_str!("../../../../cases/sample.toml");

#[test]
fn the_sample_is_valid_and_names_every_key() {
    let checks = check_figures(SAMPLE).unwrap();
    assert_eq!(checks[0].relation, Some(Relation::Reached), "{checks:?}");
    assert_eq!(explained::read(SAMPLE).unwrap().len(), 2);
    let groups =
        ["", "near.", "near.memory.", "near.port.", "far.port.", "net.", "storage.", "price."];
    let mut known = 0;
    for group in groups {
        let refused = Case::read(SAMPLE, &[format!("{group}no-such-key=1")]).unwrap_err();
        let refused = refused.to_string();
        let (_, names) = refused.split_once("expected one of").unwrap();
        for name in names.split('`').skip(1).step_by(2) {
            let stands = |line: &str| {
                let line = line.trim_start_matches("#? ");
                let table = line.starts_with(['[']) && line.contains(name);
                line.starts_with(&format!("{name} = ")) || table
            };
            assert!(SAMPLE.lines().any(stands), "the sample lacks {group}{name}");
            known += 1;
        }
    }
    assert!(known > 40, "{known} keys");
}

#[test]
fn the_document_of_cases_says_what_the_program_says() {
    kept::check("docs/cases.md", &document());
}

#[test]
fn a_second_port_adds_nothing_to_a_full_slot_and_a_second_card_doubles() {
    let goodput = |sets: &[&str]| {
        let case = Case::read(&text_of("case3").unwrap(), sets).unwrap();
        answer(&case).unwrap().reverse.unwrap().goodput
    };
    let one = goodput(&["near.port.mps=128", "far.port.mps=128"]);
    let with = |key: &str| {
        let (near, far) = (format!("near.port.{key}=2"), format!("far.port.{key}=2"));
        goodput(&["near.port.mps=128", "far.port.mps=128", &near, &far])
    };
    assert!((with("ports").high() / one.high() - 1.0).abs() < 1e-9);
    assert!((with("cards").high() / one.high() - 2.0).abs() < 1e-9);
}

#[test]
fn goldens_of_a_change() {
    let sets = ["near.port.pcie=gen2x4", "near.port.mps=128"];
    insta::assert_snapshot!("change", page("case5", &sets));
    insta::assert_snapshot!("no_gain", page("case3", &["near.port.ports=2", "far.port.ports=2"]));
}

#[test]
fn before_and_after_stand_once_where_they_are_the_same() {
    let same = page("case3", &["near.port.ports=2", "far.port.ports=2"]);
    let answer: Vec<&str> = same.lines().skip(2).take(5).collect();
    assert_eq!(answer[1..4].iter().filter(|l| l.contains("no change: ")).count(), 3);
    assert_eq!(answer[4], "", "{same}");
    let changed = page("case5", &["near.port.pcie=gen2x4"]);
    assert!(!changed.contains("no change"), "{changed}");
    assert!(changed.contains(" Gb/s -> "), "{changed}");
}

#[test]
fn a_ceiling_that_comes_or_goes_has_one_rate() {
    let slot = |pcie: &str| {
        format!(
            "title = 'x'\nprotocol = 'tcp'\nnear = {{ port = {{ pcie = '{pcie}' }} }}\nfar = {{ port = {{ pcie = 'none' }} }}\n"
        )
    };
    let line = |pcie: &str, set: &str| {
        let sets = [format!("near.port.pcie={set}")];
        let solved = Solved::of(&slot(pcie), &sets).unwrap();
        let page = of_case(&slot(pcie), &solved, &sets, Style::PLAIN);
        let line = page.lines().find(|line| line.starts_with("near -> far"));
        line.unwrap().to_owned()
    };
    assert!(line("none", "gen3x8").contains(" no ceiling -> "));
    assert!(line("gen3x8", "none").contains(" Gb/s -> no ceiling: no part"));
    assert!(line("none", "none").contains("  no ceiling: no part"));
}

#[test]
fn a_case_tells_its_story_and_a_change_does_not() {
    let explained = "which slot the cards were in";
    let alone = page("case5", &[]).replace('\n', " ");
    assert!(alone.contains(explained), "{alone}");
    let changed = page("case5", &["streams=2"]).replace('\n', " ");
    assert!(!changed.contains(explained), "{changed}");
}

#[test]
fn no_line_is_longer_than_the_page() {
    for (name, source) in CASES {
        let sets = ["streams=1".to_owned()];
        let paths = explained::read(source).unwrap();
        let reported = explained::explained(&paths);
        let remarks = reported.iter().flat_map(|reported| &reported.explained.remarks);
        let steps = remarks.flat_map(|remark| &remark.finding.fix.steps);
        // A command stays on one line, so that it can be copied.
        let commands: Vec<&str> = steps.map(|step| step.command.as_str()).collect();
        for sets in [&sets[..], &[]] {
            let solved = Solved::of(source, sets).unwrap();
            for width in [60, 80, 100] {
                let style = Style { width, color: false };
                let words = of_case(source, &solved, sets, style);
                let mut lines = words.lines().filter(|line| !commands.contains(line));
                let long = lines.find(|line| line.chars().count() > width);
                assert_eq!(long, None, "{name} at {width}");
            }
        }
    }
}

#[test]
fn every_document_fits_the_published_schema() {
    let nothing = "title = 'x'\nprotocol = 'tcp'\nnear = { port = { pcie = 'none' } }\n\
                   far = { port = { pcie = 'none' } }\n";
    let texts = CASES.iter().map(|(_, text)| *text).chain([nothing, SAMPLE]);
    for text in texts {
        let sets = ["streams=1".to_owned()];
        for sets in [&sets[..], &[]] {
            let solved = Solved::of(text, sets).unwrap();
            let paths = explained::read(text).unwrap();
            let reported = explained::explained(&paths);
            let document = view::document(&solved.change(sets, &reported)).unwrap();
            let document = serde_json::from_str(&document).unwrap();
            fits("whatif", &document);
            refuses("whatif", &document, [], "");
        }
    }
}

#[test]
fn a_record_is_a_case_by_its_name_its_path_and_as_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let (record, ..) = linerate_sim::sample::healthy();
    let path = folder.path().join("2026-11-21T10-31-07-brook.lnr");
    std::fs::write(&path, encode_all(&record).unwrap()).unwrap();
    let records = Records { save: Some(folder.path().into()), ..Records::default() };
    let path = path.to_str().unwrap();
    for name in ["last", "2026-11-21T10-31-07-brook", path] {
        let text = super::text_of(name, &records).unwrap();
        let sets = ["near.port.pcie=gen3x16".to_owned()];
        let solved = Solved::of(&text, &sets).unwrap();
        let slots = [&solved.before.0, &solved.after.as_ref().unwrap().0];
        let slots = slots.map(|case| case.near.port.pcie.unwrap().to_string());
        assert_eq!(slots, ["gen3x4", "gen3x16"], "{name}");
        assert_eq!(solved.before.0.title, "ripple to brook, as measured");
    }
    std::fs::write(path, &encode_all(&record).unwrap()[..9]).unwrap();
    let cut = super::text_of("last", &records).unwrap_err();
    assert_eq!(cut.exit, Exit::NotMeasured, "a record that is cut is none");
}

#[test]
fn a_case_that_is_not_there_is_refused_with_those_that_are() {
    let failure = text_of("case6").unwrap_err();
    assert_eq!(failure.exit, Exit::Usage);
    let words = failure.words();
    assert!(words.contains("case6") && words.contains("case5"), "{words}");
    assert!(text_of("/dev/zero").is_err(), "a device that never ends");
}

#[test]
fn several_paths_stand_in_one_table() {
    use linerate_show::whatif::compare as table;
    let rows: Vec<_> = CASES.iter().map(|(name, text)| compare::row(name, text).unwrap()).collect();
    let page = table::page(&rows);
    let text = page.text(Style::PLAIN);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in [
        "each Gb/s at the ceiling: 277 to 314 JPY; each Gb/s at the best: 814 JPY",
        "next limit: near slot, 1.07 Gb/s",
    ] {
        let words = linerate_test::unwrapped(&text);
        assert!(words.contains(part), "{text}");
    }
    let markdown = page.markdown();
    let row = markdown.lines().find(|line| line.starts_with("| case4 ")).unwrap();
    assert!(row.contains("| 10.00 JPY per hour ") && row.contains("| 100 Gb/s "), "{row}");
    let document = serde_json::from_str(&table::document(&rows).unwrap()).unwrap();
    fits("whatif-compare", &document);
    refuses(
        "whatif-compare",
        &document,
        [
            ("/paths/0/best_bps", serde_json::json!("fast")),
            ("/paths/0/watts", serde_json::json!(-1)),
        ],
        "/paths/0",
    );
    let csv = table::csv(&rows);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 6, "{csv}");
    assert!(lines[1].starts_with("case1,\"20 Gb/s at home for 15,000 yen\","), "{}", lines[1]);
    let numbers = linerate_import::read(csv.as_bytes());
    assert!(numbers.is_err(), "ceilings are no results");
}

#[test]
fn watts_and_what_is_not_known_are_cells() {
    use linerate_show::whatif::compare as table;
    let bare = "title = 'a, \"b\"'\nprotocol = 'tcp'\nwatts = 18.5\nnear = { port = { pcie = 'none' } }\n\
                far = { port = { pcie = 'none' } }\n";
    let row = compare::row("x", bare).unwrap();
    let csv = table::csv(&[row]);
    assert_eq!(csv.lines().nth(1), Some("x,\"a, \"\"b\"\"\",,,,,,,,,,,,18.5,,,"));
    let refused = Case::read(&bare.replace("18.5", "-1"), &[""; 0]).unwrap_err();
    assert!(refused.to_string().contains("out of range"), "{refused}");
}

#[test]
fn an_output_that_cannot_be_read_is_refused_by_its_name() {
    let case =
        "title = 'x'\nprotocol = 'tcp'\nnear = {}\n[[output]]\nname = 'notes'\ntext = 'nothing'\n";
    let why = explained::read(case).err().unwrap().to_string();
    assert!(why.contains("the output `notes`"), "{why}");
    let good = case.replace("'nothing'", "\"streams,gbit_per_s\\n1,9.4\\n\"");
    assert_eq!(explained::read(&good).unwrap().len(), 1);
}
