//! Checks the text of a limit of each cause, from the file of a record to the page.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use linerate_explain::diff::Judged;
use linerate_judge::causes::CAUSES;
use linerate_plan::study::Axis;
use linerate_show::Style;
use linerate_show::study::{self, ACCESS, Found, Made, Part, ROW, Study};

use super::{CELLS, Cell, OF_FLOWS, kept, operations};

/// The page that `linerate show` prints for a cell.
fn page(cell: &Cell, file: &Path) -> String {
    std::fs::write(file, &cell.bytes).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_linerate")).arg("show").arg(file).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {words}", cell.name);
    String::from_utf8(output.stdout).unwrap()
}

/// The block of the page about this cause, as a limit or a disturbance.
fn shown(cell: &Cell, cause: &str, file: &Path) -> String {
    let page = page(cell, file);
    let is_first =
        |line: &&str| line.starts_with(&format!("{cause} (")) || line.starts_with("Disturbed by");
    let lines = page.lines().skip_while(|line| !is_first(line));
    let block: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    assert!(!block.is_empty(), "{cause} has no block on {}: {page}", cell.name);
    block.join("\n")
}

#[test]
fn golden_of_a_limit_of_each_cause() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    let of_runs = CAUSES.iter().filter(|cause| !OF_FLOWS.contains(&cause.id));
    for cause in of_runs {
        let named = CELLS.iter().filter(|c| c.place_of(cause.id).is_some());
        // The cell in whose expected answers the cause is nearest to the front.
        let cell = named.min_by_key(|c| c.place_of(cause.id));
        let Some(cell) = cell else {
            panic!("{} is named on no cell", cause.id);
        };
        let shown = shown(cell, cause.id, &folder.path().join("cell.lnr"));
        let _ = writeln!(text, "# {}, on {}\n\n{shown}\n", cause.id, cell.name);
    }
    insta::assert_snapshot!("limits", text);
}

/// Loads of transports that do not exist: the page shows their rates as counted.
#[test]
fn golden_of_operations_and_of_messages() {
    let folder = tempfile::tempdir().unwrap();
    let [few, _] = operations::cells();
    let messages = operations::of_messages();
    let pages = [few, messages].map(|cell| page(&cell, &folder.path().join("cell.lnr")));
    insta::assert_snapshot!("operations", pages.join("\n"));
}

/// The page of `linerate disk`: what limits reads and writes, then a table, and what the disk did of it.
#[test]
fn golden_of_the_rows_of_a_disk() {
    let records = [kept::record("disk-reads"), kept::record("disk-writes")];
    let access = ["read", "write"].map(str::to_owned);
    let row = "RND 128K Q32 T1".to_owned();
    let axes = [Axis::of(ROW, [row.clone()]), Axis::of(ACCESS, access.clone())];
    let part = |(record, access): (_, &String)| Part {
        values: vec![row.clone(), access.clone()],
        made: Ok(Made { record, saved: None, found: Found::Run(Box::new(Judged::new(record))) }),
    };
    let study =
        Study::new(Some("/srv/data/d"), &axes, records.iter().zip(&access).map(part).collect());
    let text = study::page(&study).text(Style { width: 80, color: false });
    assert!(text.lines().all(|line| line.chars().count() <= 80 || line.starts_with("linerate ")));
    insta::assert_snapshot!("rows", text);
}
