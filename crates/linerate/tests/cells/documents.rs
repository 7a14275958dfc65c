//! Checks the documents of kept records against their schemas.

use std::collections::BTreeSet;
use std::path::Path;

use linerate_explain::diff::{Judged, diff};
use linerate_facts::Level;
use linerate_judge::event::{Event, Sink};
use linerate_plan::Purpose;
use linerate_plan::path::{Direction, Side};
use linerate_plan::study::Axis;
use linerate_record::{Record, frame};
use linerate_units::{Nanos, Rate};
use serde_json::Value;

use crate::schema::{fits, refused, validator};
use linerate_show::stream::Stream;
use linerate_show::study::{self, Found, Made, Part, RUN, Study};
use linerate_show::{diff as comparison, json};

/// All kept records, in the order of their names.
fn records() -> Vec<Record> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 30, "{files:?}");
    let read = |path: &_| frame::decode(&std::fs::read(path).unwrap()).unwrap().0;
    files.iter().map(read).collect()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The lines of `--stream-json` of the run that made this record, with a notice of each level.
fn lines(record: &Record, judged: &Judged<'_>) -> Vec<Value> {
    let mut out = Vec::new();
    let mut stream = Stream::new(&mut out);
    events(record, judged, &mut |event| _ = stream.event(&event));
    stream.result(record, &judged.model, &judged.verdict, false);
    stream.finish().unwrap();
    let lines = std::str::from_utf8(&out).unwrap().lines();
    lines.map(parsed).collect()
}

fn events<'a>(record: &'a Record, judged: &'a Judged<'_>, tell: &mut impl FnMut(Event<'a>)) {
    let left = Nanos::from_secs(1);
    tell(Event::Started(&record.start));
    record.hosts.iter().map(Event::Host).for_each(&mut *tell);
    record.sets.iter().map(Event::Set).for_each(&mut *tell);
    let gaps = record.hosts.iter().flat_map(|host| &host.facts.gaps);
    for (gap, level) in gaps.zip([Level::Fatal, Level::Hint, Level::Info]) {
        let side = Side::Far;
        tell(Event::Notice { level, side, gap });
    }
    let mut trials = record.trials.iter().peekable();
    for step in &record.steps {
        let of = match step.plan.purpose {
            Purpose::Warm { trial } | Purpose::Slice { trial, .. } => Some(trial),
            _ => None,
        };
        let words = "testing";
        if let Some(plan) = trials.next_if(|plan| of == Some(plan.id)) {
            tell(Event::Trial { plan, words });
        }
        let plan = &step.plan;
        tell(Event::StepBegan { plan, words, left });
        let (rate, direction) = (Some(Rate(1)), Some(Direction::Forward));
        tell(Event::Progress { rate, direction, left });
        tell(Event::Step(step));
    }
    for limit in &judged.verdict.limits {
        tell(Event::Proved { limit, after: left });
    }
    record.end.iter().map(Event::Ended).for_each(tell);
}

#[test]
fn documents_of_kept_records_fit_their_schemas() {
    let records = records();
    let judged: Vec<Judged<'_>> = records.iter().map(Judged::new).collect();
    let mut events = BTreeSet::new();
    // Compiling a schema takes longer than checking most lines, so it is done once.
    let of_lines = validator("stream");
    for (record, judged) in records.iter().zip(&judged) {
        for with_record in [false, true] {
            let text = json::verdict(record, &judged.model, &judged.verdict, with_record);
            fits("run", &parsed(&text.unwrap()));
        }
        let lines = lines(record, judged);
        for line in &lines {
            assert_eq!(refused(&of_lines, line), [""; 0], "{line}");
        }
        events.extend(lines.iter().map(|line| line["event"].to_string()));
    }
    let want = [
        "ended",
        "goodput",
        "host",
        "latency",
        "notice",
        "proved",
        "started",
        "step",
        "tick",
        "trial",
        "trial-ended",
        "trouble",
        "verdict",
    ];
    assert_eq!(events, want.map(|event| format!("{event:?}")).into());
    for pair in judged.windows(2) {
        let [before, after] = pair else { continue };
        // Runs in different directions have nothing to compare.
        let Ok(diff) = diff(before, after) else { continue };
        let compared = comparison::Compared { before, after, diff: &diff };
        fits("diff", &parsed(&comparison::json(&compared).unwrap()));
    }
    let parts = judged.into_iter().map(|judged| Part {
        values: vec![judged.record.start.wall_secs.to_string()],
        made: Ok(Made { record: judged.record, saved: None, found: Found::Run(Box::new(judged)) }),
    });
    let study = Study::new(None, &[Axis::of(RUN, [])], parts.collect());
    fits("study", &parsed(&study::json(&study, false).unwrap()));
}

#[test]
fn a_schema_refuses_keys_that_are_not_listed_and_keys_that_are_gone() {
    let records = records();
    let judged = Judged::new(&records[0]);
    let text = json::verdict(&records[0], &judged.model, &judged.verdict, false).unwrap();
    let good = parsed(&text);
    let refused = |document: &Value| refused(&validator("run"), document);
    assert_eq!(refused(&good), [""; 0]);
    let mut more = good.clone();
    more["verdict"]["surprise"] = 1.into();
    let mut less = good.clone();
    less["latency"].as_object_mut().unwrap().remove("idle");
    for bad in [more, less] {
        assert_ne!(refused(&bad), [""; 0], "{bad}");
    }
}
