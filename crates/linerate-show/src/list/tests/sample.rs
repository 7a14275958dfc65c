//! An invented list of records for the tests of text and JSON.

use linerate_judge::figure::Summary;
use linerate_record::{Made, Start};
use linerate_units::Bytes;

use super::super::sample;
use super::{Answer, Listed, Row};

fn row(name: &str, start: Start, answer: Option<Answer>) -> Row {
    Row { name: name.to_owned(), start: Ok(start), answer, problem: String::new() }
}

/// Records of every kind: one that was not judged, one of which a part is missing, and a file that is no record.
pub(super) fn several() -> Listed {
    let (record, model, verdict) = sample::limited();
    let summary = Summary::of(&record, &model);
    let run = Answer::of(&record, &summary, None, Some(&verdict));
    let start = |made, note: &str| Start { made, note: note.to_owned(), ..record.start.clone() };
    let trip =
        |size| Answer { complete: true, round_trip: Some(41_300.0), size, ..Answer::default() };
    let files = ["before.json", "lspci.txt", "ethtool.txt"];
    let import = Answer {
        files: files.map(str::to_owned).to_vec(),
        ..Answer::of(&record, &summary, None, None)
    };
    let mut sweep = start(Made::Lat, "");
    sweep.plan.directions.clear();
    let stamp = linerate_units::stamp(record.start.wall_secs);
    let name = |more: &str| format!("{stamp}-{more}");
    let mut lost = row(&name("brook-5"), start(Made::Run, ""), Some(trip(None)));
    lost.problem =
        "the checksum of a frame is wrong at byte 512; 90 bytes from there on are lost".to_owned();
    let foreign = Row {
        start: Err("this is not a record of linerate".to_owned()),
        ..row("holiday", start(Made::Run, ""), None)
    };
    let rows = vec![
        row(&name("brook"), start(Made::Run, "before the new cable"), Some(run.clone())),
        row(&name("brook-2"), start(Made::Run, ""), None),
        row(&name("brook-3"), start(Made::Bw, ""), Some(Answer::of(&record, &summary, None, None))),
        row(&name("brook-4"), start(Made::Lat, "after"), Some(trip(None))),
        lost,
        row(&name("brook-6"), sweep, Some(trip(Some(Bytes(2))))),
        row(&name("before"), start(Made::Import, ""), Some(import)),
        row("renamed", start(Made::Run, ""), Some(run)),
        foreign,
    ];
    Listed { dir: "/srv/records".to_owned(), rows, left_out: 3 }
}
