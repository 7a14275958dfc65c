//! Checks the list of ids: the code uses only ids of the list, and each id of the list is used.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use linerate_explain::RULES;
use linerate_facts::ids::{By, IDS};
use linerate_judge::causes::CAUSES;
use linerate_test::kept;

/// Adds the quoted words after each text of `before` in the source files of a folder, without its tests.
fn literals(folder: &Path, before: &[&str], found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            literals(&path, before, found);
        } else if !path.ends_with("tests.rs") && !folder.ends_with("tests") {
            let text = fs::read_to_string(path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for before in before {
                for rest in code.split(before).skip(1) {
                    // The quoted words end at the closing bracket.
                    let (list, _) = rest.split_once([')', ']']).unwrap();
                    let words = list.split(',').map(str::trim);
                    let quoted =
                        |word: &str| Some(word.strip_prefix('"')?.strip_suffix('"')?.to_owned());
                    let most = if *before == "&[" { usize::MAX } else { 1 };
                    found.extend(words.take(most).map_while(quoted));
                }
            }
        }
    }
}

/// The ids that the code of `by` gives to its findings.
fn used(by: By) -> BTreeSet<String> {
    let folder = |name: &str, before: &[&str]| {
        let mut found = BTreeSet::new();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        literals(&crates.join(name), before, &mut found);
        found
    };
    match by {
        By::Judge => CAUSES.iter().map(|cause| cause.id.to_owned()).collect(),
        By::Host => folder(
            "linerate-facts/src/odd",
            &["Finding::new(", "ports(inventory,", "clocks(\n        inventory,"],
        ),
        By::Network => folder("linerate-fabric/src/finding", &["Finding::new("]),
        By::Guide => folder("linerate-fabric/src/guide", &["row(", " wrong("]),
        By::Rules => {
            let mut all = folder("linerate-explain/src/rule", &["&["]);
            all.retain(|id| CAUSES.iter().all(|cause| cause.id != id));
            all.extend(RULES.iter().map(|rule| rule.id.to_owned()));
            all
        }
    }
}

#[test]
fn every_id_is_a_row_and_every_row_is_used() {
    for by in By::ALL {
        let rows = IDS.iter().filter(|row| row.by.contains(&by));
        let rows: BTreeSet<String> = rows.map(|row| row.id.to_owned()).collect();
        assert_eq!(used(by), rows, "ids of {by:?}: `facts/src/ids.rs` has the right side");
    }
    assert!(IDS.is_sorted_by(|a, b| a.id < b.id));
}

#[test]
fn a_row_says_what_the_cause_says() {
    for cause in CAUSES {
        let row = IDS.iter().find(|row| row.id == cause.id).unwrap();
        assert_eq!(row.meaning, cause.name, "{}", cause.id);
    }
}

#[test]
fn the_document_of_ids_says_what_the_table_says() {
    let mut text = String::from(
        "# Ids\n\nWhat linerate can find, and which of its commands shows it first: one id for one fault. Generated \
         from the program by its\ntests. [Causes](causes.md) have pages; `run` stands for all that the judge reads, \
         and what `host` finds stands in `import` and\n`guide` too.\n\n| id | meaning | found by |\n|---|---|---|\n",
    );
    for row in IDS {
        let by: Vec<&str> = row.by.iter().map(|by| by.shown_by()).collect();
        let _ = writeln!(text, "| `{}` | {} | {} |", row.id, row.meaning, by.join(", "));
    }
    kept::check("docs/ids.md", &text);
}
