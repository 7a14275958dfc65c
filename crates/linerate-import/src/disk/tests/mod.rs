//! Tests that are the same for all readers of this folder: samples of real outputs, and damaged copies of them.

use std::fmt::Write as _;

use linerate_record::reported::{Disk, DiskRow, Measured};

use crate::{Parsed, read};

/// A sample of an output: the id of its format, the name of its file, and its bytes.
type Sample = (&'static str, &'static str, &'static [u8]);

macro_rules! samples {
    ($($format:literal: $($name:literal),+;)+) => {
        &[$($((
            $format,
            $name,
            include_bytes!(concat!("../../../tests/samples/", $format, "/", $name)),
        ),)+)+]
    };
}

/// The samples of all formats of this folder.
const SAMPLES: &[Sample] = samples! {
    "fio-json": "both-3.33.txt", "cells-3.33.json", "client-3.33.txt", "error-3.33.txt", "group-2.21.json", "group-3.33.json", "group-3.42.txt", "interval-3.33.txt", "mixed-3.33.txt", "plus-3.33.txt", "ramp-3.33.json", "single-2.2.10.json", "single-3.42.json", "steady-3.33.txt";
    "fio-text": "cells-3.33.txt", "group-3.42.txt", "mixed-group-3.42.txt", "shared-2.2.10.txt", "shared-2.21.txt", "shared-3.42.txt", "with-json-3.33.txt";
    "crystaldiskmark": "3.0.1.txt", "5.2.0.txt", "6.0.2.txt", "7.0.0.txt", "8.0.0-and-8.0.1.txt", "8.0.4-mix-utf16.txt";
    "kdiskmark": "1.6.0.txt", "2.2.1-start.txt", "3.0.0.txt", "3.2.0.txt";
    "diskspd": "2.0.21.txt", "2.2.txt";
    "hdparm": "9.65.txt";
    "dd": "9.1.txt";
    "robocopy": "german.txt", "older.txt", "server.txt";
    "rsync": "3.5.0.txt", "progress-3.5.0.txt";
    "scp": "9.8.txt";
    "iostat": "12.6.1.txt";
};

/// All that was read from a text, one line per result, for snapshots.
pub(super) fn shown(parsed: &Parsed) -> String {
    let mut text = String::new();
    for part in &parsed.parts {
        let version = part.tool.version.as_deref().unwrap_or("?");
        let (id, line, tool) = (part.format.id, part.line, &part.tool.name);
        writeln!(text, "{id} at {line}: {tool} {version}").unwrap();
        for result in &part.results {
            let Measured::Disk(disk) = &result.measured else {
                panic!("{id} has something else than disks");
            };
            writeln!(text, "  `{}` at {}: {}", result.title, result.line, headed(disk)).unwrap();
            for row in &disk.rows {
                writeln!(text, "    {}", line_of(row)).unwrap();
            }
        }
        for note in &part.notes {
            writeln!(text, "  {}: {}", note.line.unwrap_or_default(), note.what).unwrap();
        }
    }
    for note in &parsed.notes {
        writeln!(text, "outside, {}: {}", note.line.unwrap_or_default(), note.what).unwrap();
    }
    text
}

fn headed(disk: &Disk) -> String {
    let Disk { target, file, best_of, direct, .. } = disk;
    let file = file.map(|bytes| bytes.0);
    format!("`{target}` file {file:?} best of {best_of:?} direct {direct:?}")
}

fn line_of(row: &DiskRow) -> String {
    let nanos = [row.mean, row.typical, row.p99, row.p999, row.most];
    let nanos = nanos.map(|time| time.map_or("-".to_owned(), |time| time.0.to_string()));
    format!(
        "{:?} {:?} {:?} Q{:?} T{:?}: {:.0} B/s, {:?}/s, ns {}, {:?} s, at disk {:?}",
        row.access,
        row.does,
        row.block.map(|b| b.0),
        row.depth,
        row.threads,
        row.bytes_per_sec,
        row.operations,
        nanos.join(" "),
        row.seconds,
        row.at_disk.map(|b| b.0),
    )
}

#[test]
fn every_sample_reads_as_before() {
    for (format, name, bytes) in SAMPLES {
        assert!(bytes.len() < 64 << 10, "{format}/{name} is too long");
        let text = match read(bytes) {
            Ok(parsed) => shown(&parsed),
            Err(refused) => format!("{refused}\n"),
        };
        insta::assert_snapshot!(format!("{format}@{name}"), text);
    }
}
