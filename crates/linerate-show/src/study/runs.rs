//! Sums up several runs of one plan: which results repeat, and which differ.

use std::cmp::Reverse;

use linerate_explain::diff::Judged;
use linerate_judge::figure::{ALL, Figure, GOODPUT, LATENCY, Merge, Spread, Subject, Summary};
use linerate_judge::model::far_slower;
use linerate_judge::verdict::{Disturbance, Entry, Limit, entries};
use linerate_plan::path::{Certainty, Direction, Slowness};

use super::super::{Document, Tone, words};

/// The spread of a figure over the runs that have it.
pub(super) fn spread(runs: &[&Judged<'_>], figure: &'static Figure, of: Subject) -> Option<Spread> {
    let values = runs.iter().filter_map(|run| run.summary.value(figure, of));
    Spread::of(figure, &values.collect::<Vec<_>>())
}

/// The spread of every figure that any run has.
pub(super) fn spreads(runs: &[&Judged<'_>]) -> Vec<(&'static Figure, Subject, Spread)> {
    let entries = runs.iter().flat_map(|run| &run.summary.entries);
    let mut all: Vec<(&'static Figure, Subject, Spread)> = Vec::new();
    for entry in Summary::sorted(entries.cloned()).entries {
        let (figure, of) = (entry.figure, entry.of);
        let is_known = all.iter().any(|(f, o, _)| *f == figure && *o == of);
        let spread = spread(runs, figure, of).filter(|_| !is_known);
        all.extend(spread.map(|spread| (figure, of, spread)));
    }
    all
}

/// The spread of the goodput of a direction.
pub(super) fn goodput(runs: &[&Judged<'_>], direction: Direction) -> Option<Spread> {
    spread(runs, &GOODPUT, Subject::load(direction))
}

/// Names the median round trip on the idle path among the figures.
pub(super) const IDLE: Subject = Subject { direction: None, side: None, percentile: Some(50.0) };

/// A limit, or a direction without one, and the number of runs that found it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer<'a> {
    pub(super) entry: Entry<'a>,
    pub(super) runs: usize,
    pub(super) proved: usize,
}

/// The direction that carries less than half of the other one, by the medians of all runs.
fn slower(runs: &[&Judged<'_>]) -> Option<Direction> {
    far_slower(|direction| Some(goodput(runs, direction)?.middle))
}

/// The directions that any run measured, in reading order: a much slower one first.
fn directions(runs: &[&Judged<'_>]) -> Vec<Direction> {
    let slow = slower(runs);
    let measured = |d: &Direction| goodput(runs, *d).is_some();
    let mut all: Vec<Direction> = Direction::ALL.into_iter().filter(measured).collect();
    all.sort_by_key(|direction| Some(*direction) != slow);
    all
}

/// The answers of all runs, in the order of one run's answers: goodput before latency, a much slower direction
/// before the other one. Then answers that more runs found come first, then those that more runs proved.
pub(super) fn answers<'a>(runs: &[&'a Judged<'_>]) -> Vec<Answer<'a>> {
    let mut all: Vec<Answer<'a>> = Vec::new();
    let each = runs.iter();
    for entry in each.flat_map(|run| entries(&run.model, &run.verdict)) {
        let is_proof = |l: &Limit| l.certainty == Certainty::Proved;
        let proved = usize::from(limit_of(entry).is_some_and(is_proof));
        match all.iter_mut().find(|known| same(known.entry, entry)) {
            Some(known) => {
                known.runs += 1;
                known.proved += proved;
            }
            None => all.push(Answer { entry, runs: 1, proved }),
        }
    }
    let slow = slower(runs);
    let rank = |answer: &Answer<'_>| {
        let (direction, slowness) = match answer.entry {
            Entry::Limit(limit) => (limit.direction, limit.metric.slowness()),
            Entry::Unknown(direction) => (direction, Slowness::Rate),
        };
        let is_latency = slowness == Slowness::Latency;
        (is_latency, Some(direction) != slow, Reverse(answer.runs), Reverse(answer.proved))
    };
    // The sort is stable: of equal answers, the one that a run named first comes first.
    all.sort_by_key(rank);
    all
}

pub(super) fn limit_of(entry: Entry<'_>) -> Option<&Limit> {
    match entry {
        Entry::Limit(limit) => Some(limit),
        Entry::Unknown(_) => None,
    }
}

fn same(a: Entry<'_>, b: Entry<'_>) -> bool {
    let key = |l: &Limit| (l.cause, l.metric, l.direction, l.side);
    match (a, b) {
        (Entry::Limit(a), Entry::Limit(b)) => key(a) == key(b),
        (Entry::Unknown(a), Entry::Unknown(b)) => a == b,
        _ => false,
    }
}

/// The disturbances of any run, and the number of runs that had each; with the largest share that it had in a run.
pub(super) fn disturbances<'a>(runs: &[&'a Judged<'_>]) -> Vec<(&'a Disturbance, usize)> {
    let key = |d: &Disturbance| (d.cause, d.side, d.direction);
    let mut all: Vec<(&Disturbance, usize)> = Vec::new();
    for one in runs.iter().flat_map(|run| &run.verdict.disturbances) {
        match all.iter_mut().find(|(known, _)| key(known) == key(one)) {
            Some((most, runs)) => {
                *runs += 1;
                if one.share > most.share {
                    *most = one;
                }
            }
            None => all.push((one, 1)),
        }
    }
    all.sort_by_key(|(_, runs)| Reverse(*runs));
    all
}

/// The summary of one run, shown once it has ended: goodput and limits of each direction, and the command that
/// shows the run, if it was saved.
pub fn run(run: &Judged<'_>, number: usize, of: usize, shown_by: Option<&str>) -> Document {
    let mut doc = Document::new();
    let mut label = format!("Run {number} of {of}");
    let alone = &[run];
    for direction in directions(alone) {
        if let Some(text) = measured(run, direction) {
            doc.entry(&label, &[(Tone::Plain, &text)], 2);
            label.clear();
        }
    }
    for (disturbance, _) in disturbances(alone) {
        let text = format!("disturbed by {}", words::disturbance(disturbance));
        doc.entry(&label, &[(Tone::Plain, &text)], 2);
        label.clear();
    }
    if !run.model.complete {
        let text = "ended early: not all of it was measured";
        doc.entry(&label, &[(Tone::Warning, text)], 2);
        label.clear();
    }
    if let Some(command) = shown_by {
        doc.command(&label, (Tone::Dim, command), 2);
    }
    doc
}

/// Goodput and limits of a direction: `forward 4.71 Gb/s ±0.4 %, 1 stream: receive-window (proved)`.
fn measured(judged: &Judged<'_>, direction: Direction) -> Option<String> {
    let load = &judged.model.direction(direction)?.base;
    let upheld = judged.verdict.limits.iter();
    let limits: Vec<String> = upheld
        .filter(|limit| limit.direction == direction && limit.metric.slowness() == Slowness::Rate)
        .map(|limit| format!("{} ({})", limit.cause, limit.certainty.name()))
        .collect();
    let limits = if limits.is_empty() { "unknown".to_owned() } else { limits.join(", ") };
    Some(format!("{} {}: {limits}", direction.name(), words::base(load)))
}

/// The summary of all runs.
pub(super) fn summary(runs: &[&Judged<'_>]) -> Document {
    let mut doc = Document::new();
    for direction in directions(runs) {
        let mut label = direction.name();
        for text in measured_together(runs, direction) {
            doc.entry(label, &[(Tone::Plain, &text)], 2);
            label = "";
        }
    }
    if let Some(spread) = spread(runs, &LATENCY, IDLE) {
        let text = format!("p50 on the idle path {}", mean_words(&LATENCY, spread));
        doc.entry("Round trip", &[(Tone::Plain, &text)], 2);
    }
    doc.gap();
    let of = words::count(runs.len() as u64, "run");
    let mut label = "Limited by";
    for answer in answers(runs) {
        answered(&mut doc, label, &answer, &of);
        label = "";
    }
    let mut label = "Disturbed by";
    for (disturbance, runs) in disturbances(runs) {
        let what = words::disturbance(disturbance);
        let text = format!(" in {runs} of {of}: {}", words::explains(disturbance));
        doc.entry(label, &[(Tone::Strong, &what), (Tone::Plain, &text)], 2);
        label = "";
    }
    doc
}

fn answered(doc: &mut Document, label: &str, answer: &Answer<'_>, of: &str) {
    let runs = answer.runs;
    match answer.entry {
        Entry::Limit(limit) => {
            let (place, metric) = (words::place(limit), words::metric(limit));
            let name = format!("{place}: {}, {metric}", limit.cause);
            let text = format!(" in {runs} of {of}, proved in {}", answer.proved);
            doc.entry(label, &[(Tone::Strong, &name), (Tone::Plain, &text)], 2);
        }
        Entry::Unknown(direction) => {
            let text = format!(", {}, in {runs} of {of}", direction.name());
            doc.entry(label, &[(Tone::Warning, "unknown"), (Tone::Plain, &text)], 2);
        }
    }
}

/// Goodput, loss and other figures of a direction over the runs, in words; all but goodput with their names.
fn measured_together(runs: &[&Judged<'_>], direction: Direction) -> Vec<String> {
    let is_shown = |figure: &&&Figure| !figure.percentiles && !figure.ends;
    let figures = ALL.iter().filter(is_shown);
    let all: Vec<(&Figure, Spread)> = figures
        .filter_map(|figure| Some((*figure, spread(runs, figure, Subject::load(direction))?)))
        .collect();
    let text = |(figure, spread): &(&Figure, Spread)| {
        let name = if *figure == &GOODPUT { String::new() } else { format!("{} ", figure.label) };
        format!("{name}{}", mean_words(figure, *spread))
    };
    all.iter().map(text).collect()
}

/// The spread of a figure in words: `4.71 Gb/s, the median of 5 runs, 4.68 Gb/s to 4.75 Gb/s`.
fn mean_words(figure: &Figure, spread: Spread) -> String {
    let runs = words::count(spread.runs as u64, "run");
    let merged = match spread.merge {
        Merge::Median => format!("the median of {runs}"),
        Merge::Pooled => format!("{runs} together"),
    };
    let [low, middle, high] =
        [spread.low, spread.middle, spread.high].map(|value| figure.unit.words(value));
    format!("{middle}, {merged}, {low} to {high}")
}

#[cfg(test)]
pub(super) mod tests {
    use linerate_explain::diff::Basis;

    use super::*;
    use crate::sample;

    #[test]
    fn a_limit_is_counted_once_a_run_and_the_commonest_comes_first() {
        let results = [sample::healthy(), sample::limited(), sample::limited()];
        let runs = judged(&results);
        let runs: Vec<&Judged<'_>> = runs.iter().collect();
        let answers = answers(&runs);
        let counted = answers.iter().map(|a| {
            let cause = limit_of(a.entry).map_or("unknown", |l| l.cause);
            (cause, a.runs, a.proved)
        });
        // The same cause in two directions counts as two limits.
        let expected = [("wire-full", 3, 3), ("receive-window", 2, 2), ("wire-full", 1, 1)];
        assert_eq!(counted.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_direction_below_half_of_the_other_is_answered_first_also_by_unknown() {
        use Direction::{Forward, Reverse};
        let first = |share: f64| {
            let (record, mut model, mut verdict) = sample::healthy();
            model.directions[1].base.goodput.mean *= share;
            // In two of three runs, the limit of the reverse direction is unknown.
            let proved = verdict.clone();
            verdict.limits.truncate(1);
            let unknown = (record.clone(), model.clone(), verdict);
            let results = [unknown.clone(), (record, model, proved), unknown];
            let runs = judged(&results);
            let runs: Vec<&Judged<'_>> = runs.iter().collect();
            let answers = answers(&runs);
            let named =
                |a: &Answer<'_>| (limit_of(a.entry).map(|l| (l.cause, l.direction)), a.runs);
            let all: Vec<_> = answers.iter().map(named).collect();
            (directions(&runs), all)
        };
        let path = |direction, runs| (Some(("wire-full", direction)), runs);
        let slow = vec![(None, 2), path(Reverse, 1), path(Forward, 3)];
        assert_eq!(first(0.49), (vec![Reverse, Forward], slow));
        let alike = vec![path(Forward, 3), (None, 2), path(Reverse, 1)];
        assert_eq!(first(0.51), (vec![Forward, Reverse], alike));
    }

    /// Judged runs, made from invented results.
    pub(in super::super) fn judged(results: &[sample::Result]) -> Vec<Judged<'_>> {
        let mut runs = Vec::new();
        for (record, model, verdict) in results {
            runs.push(Judged {
                record,
                summary: Summary::of(record, model),
                model: model.clone(),
                verdict: verdict.clone(),
                headline: linerate_explain::Headline::of_run(model, verdict),
                basis: Basis::default(),
            });
        }
        runs
    }
}
