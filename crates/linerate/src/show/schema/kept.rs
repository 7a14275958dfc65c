//! Documents of kept records against their schemas.

use std::path::Path;

use linerate_core::diff::{Judged, diff};
use linerate_core::plan::Purpose;
use linerate_core::record::{Record, frame};
use linerate_engine::event::{Event, Sink};
use serde_json::Value;

use super::super::repeat::Run;
use super::super::stream::Stream;
use super::super::{diff as comparison, json, repeat, stream};
use super::fits;
use super::shared::errors_by_hand;

/// All kept records, in the order of their names.
fn records() -> Vec<Record> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 30, "{files:?}");
    let read = |path: &_| frame::decode(&std::fs::read(path).unwrap()).unwrap().0;
    files.iter().map(read).collect()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The lines of the run that left this record.
fn lines(record: &Record, judged: &Judged<'_>) -> Vec<Value> {
    let mut out = Vec::new();
    let mut stream = Stream::new(&mut out);
    stream.event(&Event::Started(&record.start));
    record
        .hosts
        .iter()
        .for_each(|host| _ = stream.event(&Event::Host(host)));
    let mut trials = record.trials.iter().peekable();
    for step in &record.steps {
        let of = match step.plan.purpose {
            Purpose::Warm { trial } | Purpose::Slice { trial, .. } => Some(trial),
            _ => None,
        };
        if let Some(plan) = trials.next_if(|plan| of == Some(plan.id)) {
            stream.event(&Event::Trial {
                plan,
                words: "testing",
            });
        }
        stream.event(&Event::Step(step));
    }
    record
        .end
        .iter()
        .for_each(|end| _ = stream.event(&Event::Ended(end)));
    stream.result(record, &judged.model, &judged.verdict, false);
    stream.finish().unwrap();
    std::str::from_utf8(&out)
        .unwrap()
        .lines()
        .map(parsed)
        .collect()
}

#[test]
fn documents_of_kept_records_fit_their_schemas() {
    let records = records();
    let judged: Vec<Judged<'_>> = records.iter().map(Judged::new).collect();
    for (record, judged) in records.iter().zip(&judged) {
        for with_record in [false, true] {
            let text = json::verdict(record, &judged.model, &judged.verdict, with_record);
            fits(json::SCHEMA, &parsed(&text.unwrap()));
        }
        for line in lines(record, judged) {
            fits(stream::SCHEMA, &line);
        }
    }
    for pair in judged.windows(2) {
        let [before, after] = pair else { continue };
        let diff = diff(before, after).unwrap();
        let compared = comparison::Compared {
            before,
            after,
            diff: &diff,
        };
        fits(
            comparison::SCHEMA,
            &parsed(&comparison::json(&compared).unwrap()),
        );
    }
    let runs = judged.into_iter().map(|judged| Run {
        judged,
        saved: None,
    });
    let runs: Vec<Run<'_>> = runs.collect();
    let text = repeat::json(&runs, runs.len(), false).unwrap();
    fits(repeat::SCHEMA, &parsed(&text));
}

#[test]
fn a_schema_by_hand_refuses_keys_that_are_not_listed_and_keys_that_are_gone() {
    let records = records();
    let judged = Judged::new(&records[0]);
    let text = json::verdict(&records[0], &judged.model, &judged.verdict, false).unwrap();
    let good = parsed(&text);
    assert_eq!(errors_by_hand("run", &good), [""; 0]);
    let mut more = good.clone();
    more["verdict"]["surprise"] = 1.into();
    let mut less = good.clone();
    less["latency"].as_object_mut().unwrap().remove("idle");
    for bad in [more, less] {
        assert_ne!(errors_by_hand("run", &bad), [""; 0], "{bad}");
    }
}
