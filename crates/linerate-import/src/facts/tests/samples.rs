//! Samples of facts for tests, and tests that are the same for all samples.

use std::path::{Path, PathBuf};

use linerate_facts::{Inventory, odd};
use linerate_record::reported::Note;

use crate::format::Holds;
use crate::{FORMATS, Parsed, merge, read};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

/// The text of a sample, such as `ibstat/two-ports.txt`.
#[expect(clippy::disallowed_methods, reason = "samples are files")]
pub(crate) fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

/// The facts in texts about one host, merged, with all notes.
pub(crate) fn merged(texts: &[&str]) -> (Inventory, Vec<Note>) {
    let (mut all, mut notes) = (Inventory::default(), Vec::new());
    for text in texts {
        let parsed = read(text.as_bytes()).unwrap();
        notes.extend(parsed.notes);
        for part in parsed.parts {
            notes.extend(part.notes);
            notes.extend(merge(&mut all, part.facts));
        }
    }
    (all, notes)
}

/// The facts in samples of one host, merged, with all notes.
pub(crate) fn of(names: &[&str]) -> (Inventory, Vec<Note>) {
    let texts: Vec<String> = names.iter().map(|name| text(name)).collect();
    merged(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The texts of notes.
pub(crate) fn words(notes: &[Note]) -> Vec<String> {
    notes.iter().map(|note| note.what.clone()).collect()
}

/// Ids of the oddities that are found in the facts.
pub(crate) fn ids(all: &Inventory) -> Vec<&'static str> {
    odd::find(all).into_iter().map(|odd| odd.id).collect()
}

/// The samples of all formats of facts: id of the format, and name of the file.
#[expect(clippy::disallowed_methods, reason = "samples are files")]
fn all() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for format in FORMATS.iter().filter(|format| format.holds == Holds::Facts) {
        for entry in std::fs::read_dir(folder().join(format.id)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            all.push((format.id.to_owned(), format!("{}/{name}", format.id)));
        }
    }
    all.sort();
    all
}

fn ids_of(parsed: &Parsed) -> Vec<&str> {
    let mut ids: Vec<&str> = parsed.parts.iter().map(|part| part.format.id).collect();
    ids.dedup();
    ids
}

#[test]
fn each_sample_is_read_by_its_own_format() {
    for (id, name) in all() {
        let text = text(&name);
        assert!(text.len() < 64 << 10, "{name}");
        let parsed = read(text.as_bytes()).unwrap();
        assert_eq!(ids_of(&parsed), [id.as_str()], "{name}");
    }
}

#[test]
fn lines_that_are_not_understood_are_few() {
    for (_, name) in all() {
        let (_, notes) = of(&[&name]);
        let strange = words(&notes).into_iter().filter(|what| what.contains("not understood"));
        let strange: Vec<String> = strange.collect();
        let expected = match name.as_str() {
            "ibstat/two-ports.txt" => 1,
            _ => 0,
        };
        assert_eq!(strange.len(), expected, "{name}: {strange:?}");
    }
}

/// The oddities that some samples really have. No other sample may have any, whatever facts it lacks.
const ODD: [(&str, &[&str]); 15] = [
    ("multipath/failed.txt", &["disk-path-failed"]),
    ("ifconfig/linux.txt", &["port-damaged"]),
    ("ifconfig/old.txt", &["port-damaged"]),
    ("perfquery/plain.txt", &["link-errors"]),
    ("ibqueryerrors/star.txt", &["link-errors", "link-errors"]),
    ("mlxlink/infiniband.txt", &["link-errors"]),
    ("dmesg/bandwidth.txt", &["pcie-slot"]),
    ("lspci/alone.txt", &["pcie-slot"]),
    ("ibstat/before-manager.txt", &["unserved-port", "ib-no-link"]),
    ("ibstat/ibsim-initializing.txt", &["unserved-port"]),
    ("ibstat/two-ports.txt", &["ib-no-link"]),
    ("ibv-devinfo/verbose.txt", &["ib-no-link"]),
    ("lspci/slot-narrow.txt", &["pcie-slot"]),
    ("lspci/switch.txt", &[]),
    ("ethtool/two-ports.txt", &["port-no-link"]),
];

#[test]
fn nothing_is_odd_for_want_of_facts() {
    for (_, name) in all() {
        let (all, _) = of(&[&name]);
        let expected = ODD.iter().find(|(odd, _)| *odd == name).map_or(&[][..], |(_, ids)| ids);
        assert_eq!(ids(&all), expected, "{name}: {:?}", odd::find(&all));
    }
}
