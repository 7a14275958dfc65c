//! The verdict as text: the limit of each direction, its reason, its proof and its remedy.

use std::fmt::Write as _;

use linerate_facts::advice::Advice;
use linerate_judge::causes::cause;
use linerate_judge::model::{DirectionModel, Load, Model};
use linerate_judge::verdict::{Answered, Decided, Disturbance, Entry, Limit, Verdict, entries};
use linerate_plan::path::{Certainty, Direction, Measure, Place, Slowness};
use linerate_units::stats::Interval;
use linerate_units::{Nanos, PerSecond};

use super::super::advice::{advise, joint};
use super::super::document::{Columns, Item, width_of};
use super::super::names::Names;
use super::super::{Document, Tone, words};
use super::sound;

/// Writes the answer: a line for each direction, and for each further limit.
pub(super) fn answer(doc: &mut Document, model: &Model, verdict: &Verdict, names: &Names) {
    let lines: Vec<Line> = entries(model, verdict)
        .into_iter()
        .map(|entry| Line::of(model, verdict, entry, names))
        .collect();
    let column = |text: fn(&Line) -> &str| lines.iter().map(|l| width_of(text(l))).max();
    let way = column(|line| &line.way).unwrap_or(0);
    let rate = column(|line| &line.figure).unwrap_or(0);
    let margin = Columns { wide: way + rate + 4, narrow: 2 };
    let mut before = "";
    for line in &lines {
        let shown = if line.way == before { "" } else { &line.way };
        let state = format!("[{}]", line.state);
        let body =
            [(Tone::Plain, line.what.as_str()), (Tone::Plain, " "), (line.tone, state.as_str())];
        let head = [(shown, narrow(way)), (line.figure.as_str(), narrow(rate))];
        let item = Item::new(&body).head(Tone::Strong, &head).indent(0, margin);
        doc.item(item);
        if !line.gain.is_empty() {
            let item = Item::new(&[(Tone::Strong, &line.gain)]).depth(1);
            doc.item(item.indent(margin, margin));
        }
        before = &line.way;
    }
}

fn narrow(wide: usize) -> Columns {
    Columns { wide, narrow: 0 }
}

/// A line of the table of limits.
struct Line {
    /// The direction by its hosts: `ripple -> brook`.
    way: String,
    /// Goodput, or another limited quantity.
    figure: String,
    what: String,
    state: &'static str,
    tone: Tone,
    /// The rate that the first advice would give; empty if it is unknown.
    gain: String,
}

impl Line {
    fn of(model: &Model, verdict: &Verdict, entry: Entry<'_>, names: &Names) -> Self {
        match entry {
            Entry::Unknown(direction) => Self::unknown(model, verdict, direction, names),
            Entry::Limit(limit) if sound::is_as_fast_as_its_ends(model, verdict, limit) => Self {
                what: as_fast_as_the_ends(model, limit, names),
                tone: Tone::Good,
                gain: match first_gain(model, limit) {
                    gain if gain.is_empty() => NO_FAULT.to_owned(),
                    gain => format!("no fault was found; faster: {gain}"),
                },
                ..Self::limit(model, verdict, limit, names)
            },
            Entry::Limit(limit) => {
                let line = Self::limit(model, verdict, limit, names);
                let supported = limit.certainty == Certainty::Supported
                    && limit.metric.slowness() == Slowness::Rate;
                let disturbed = sound::disturbance(verdict, limit.direction).filter(|_| supported);
                let and = if line.gain.is_empty() { "" } else { "; " };
                let gain = disturbed.map_or(line.gain.clone(), |disturbance| {
                    let reported = disturbed_by(disturbance, names);
                    format!("disturbed, {reported}{and}{}", line.gain)
                });
                Self { gain, ..line }
            }
        }
    }

    /// The line of a direction whose limit was not found: what disturbed it, and what more streams would give.
    fn unknown(model: &Model, verdict: &Verdict, direction: Direction, names: &Names) -> Self {
        let found = model.direction(direction);
        let gain = found.and_then(|found| {
            let advice = sound::more_streams(model, found)?;
            let knee = found.knee();
            let rate = measured(knee);
            let times = advice.gain.unwrap_or(1.0);
            Some(format!("{} streams carried {rate} (x{times:.2})", knee.streams))
        });
        let disturbed = sound::disturbance(verdict, direction);
        Self {
            way: names.way(direction),
            figure: figure(model, direction, judged_by(model, direction)),
            what: disturbed.map_or_else(
                || "what limits it was not found".to_owned(),
                |disturbance| {
                    let reported = disturbed_by(disturbance, names);
                    format!("{reported}; what limits it else was not found")
                },
            ),
            state: "unknown",
            tone: Tone::Warning,
            gain: gain.unwrap_or_default(),
        }
    }

    fn limit(model: &Model, verdict: &Verdict, limit: &Limit, names: &Names) -> Self {
        let full = cause(limit.cause).is_some_and(|cause| cause.full_speed);
        let gain = first_gain(model, limit);
        let has_steps = limit.advice.iter().any(|advice| !advice.steps.is_empty());
        let alone = sound::is_alone(verdict, limit) && model.complete && !has_steps;
        Self {
            way: names.way(limit.direction),
            figure: figure(model, limit.direction, limit.metric),
            what: words::named(limit, names),
            state: limit.certainty.name(),
            tone: match (full, limit.certainty) {
                (true, _) => Tone::Good,
                (false, Certainty::Proved) => Tone::Strong,
                (false, Certainty::Supported) => Tone::Warning,
            },
            gain: match (gain.is_empty(), full && alone) {
                (true, true) => PORT_FULL.to_owned(),
                (true, false) => gain,
                (false, _) => format!("after the fix: {gain}"),
            },
        }
    }
}

/// A disturbance in words: `far: the hypervisor takes CPU time, explains about x1.32 of goodput`.
fn disturbed_by(disturbance: &Disturbance, names: &Names) -> String {
    let host = words::host(disturbance.side, names);
    let name = words::cause_of(disturbance);
    format!("{host}: {name}, {}", words::explains(disturbance))
}

/// The rate of a load, in the measure by which it is judged.
fn measured(load: &Load) -> String {
    let rate = load.rate().mean.max(0.0);
    match load.measure() {
        Measure::Operations => PerSecond(rate).to_string(),
        _ => words::rate(load, rate),
    }
}

/// The second line of an answer where nothing is wrong.
const NO_FAULT: &str = "no fault was found: nothing to mend";

/// The second line of an answer where a port is full: a run knows the port only at its present link speed.
const PORT_FULL: &str = "no fault was found as the port is linked";

/// The answer if only a CPU is full: `as fast as these machines are with 1 stream: one CPU of brook is full`.
fn as_fast_as_the_ends(model: &Model, limit: &Limit, names: &Names) -> String {
    let streams = model.direction(limit.direction).map(|d| d.base.streams);
    // If more streams carry more, the machines themselves are not the limit yet.
    let with = streams.filter(|_| limit.advice.iter().any(|advice| advice.gain.is_some()));
    let with =
        with.map_or(String::new(), |n| format!(" with {}", words::count(u64::from(n), "stream")));
    let host = words::host(limit.side, names);
    format!("as fast as these machines are{with}: one CPU of {host} is full")
}

/// The rate that the first advice would give; empty if it is unknown.
fn first_gain(model: &Model, limit: &Limit) -> String {
    let advice = limit.advice.first();
    advice.map_or(String::new(), |advice| gain(model, limit, advice))
}

/// The measure by which a direction is judged.
fn judged_by(model: &Model, direction: Direction) -> Measure {
    model.direction(direction).map_or(Measure::Goodput, |found| found.base.measure())
}

/// The measured value of the limited quantity.
fn figure(model: &Model, direction: Direction, metric: Measure) -> String {
    let Some(load) = model.direction(direction).map(|d| &d.base) else {
        return String::new();
    };
    match metric {
        Measure::Goodput => words::rate(load, load.goodput.mean),
        Measure::Operations => {
            load.operations.map_or(String::new(), |rate| PerSecond(rate.mean.max(0.0)).to_string())
        }
        Measure::Latency => {
            let median = load.latency.as_ref().and_then(|l| l.percentile(50.0));
            median.map_or(String::new(), |p50| format!("{p50} p50"))
        }
    }
}

/// The judged rate that an advice would give: `about 9.38 Gb/s (x1.99)`; empty if its gain is unknown.
fn gain(model: &Model, limit: &Limit, advice: &Advice) -> String {
    let found = model.direction(limit.direction);
    found.map_or(String::new(), |found| rate_after(found, advice))
}

/// The rate that an advice would give a direction; empty if its gain is unknown.
pub(super) fn rate_after(found: &DirectionModel, advice: &Advice) -> String {
    let Some(gain) = advice.gain else {
        return String::new();
    };
    let load = &found.base;
    if load.measure() == Measure::Operations {
        let rate = load.operations.map_or(0.0, |rate| rate.mean);
        return format!("about {} (x{gain:.2})", PerSecond(rate * gain));
    }
    let rate = (load.goodput.mean * gain).max(0.0);
    match found.ceiling().map(|ceiling| ceiling.rate) {
        Some(most) if rate > most.0 as f64 => format!("up to {most}, the ceiling"),
        _ => format!("about {} (x{gain:.2})", words::rate(load, rate)),
    }
}

/// Writes for each limit its cause, its evidence and its remedy. If the cause was explained above for another
/// limit, only the figures are written.
pub(super) fn limits(doc: &mut Document, model: &Model, verdict: &Verdict, names: &Names) {
    let entries = entries(model, verdict);
    let limits = entries.iter().filter_map(|entry| match entry {
        Entry::Limit(limit) => Some(*limit),
        Entry::Unknown(_) => None,
    });
    let mut above: Vec<&Limit> = Vec::new();
    for limit in limits {
        doc.gap();
        title(doc, limit, names);
        let alike = above.iter().copied().find(|l| l.cause == limit.cause);
        why(doc, limit, alike);
        let of = |answer: &&Answered| answer.direction == limit.direction;
        proof(doc, model, limit, alike, verdict.answers.iter().filter(of));
        let advised: Vec<&Advice> = above.iter().flat_map(|limit| &limit.advice).collect();
        let label =
            if sound::is_as_fast_as_its_ends(model, verdict, limit) { "Faster" } else { "Fix" };
        mend(doc, model, limit, label, &advised, names);
        above.push(limit);
    }
}

/// Writes the heading of a limit: `receive-window (socket of brook, ripple -> brook)`.
fn title(doc: &mut Document, limit: &Limit, names: &Names) {
    let stage = match limit.side {
        Place::Path => "network".to_owned(),
        side => format!("{} of {}", limit.stage.name(), words::host(side, names)),
    };
    let latency = match limit.metric.slowness() {
        Slowness::Latency => ", round trips",
        Slowness::Rate => "",
    };
    let text = format!(" ({stage}, {}{latency})", names.way(limit.direction));
    doc.line(&[(Tone::Strong, limit.cause), (Tone::Plain, &text)], 2);
}

/// Writes what the cause means, and its evidence, except what an earlier limit with the same cause has shown.
fn why(doc: &mut Document, limit: &Limit, alike: Option<&Limit>) {
    let summary = match (cause(limit.cause), alike) {
        (_, Some(other)) if other.direction == limit.direction => Some("as above".to_owned()),
        (_, Some(_)) => Some("the same in the other direction".to_owned()),
        (known, None) => known.map(|cause| words::summary(cause.page)),
    };
    let shown = alike.map_or(&[][..], |other| &other.evidence);
    let evidence = limit.evidence.iter().filter(|text| !shown.contains(text));
    let mut label = "Why";
    if let Some(summary) = summary {
        doc.entry(label, &[(Tone::Plain, &summary)], 0);
        label = "";
    }
    for evidence in evidence {
        if label.is_empty() {
            doc.evidence(evidence);
        } else {
            doc.entry(label, &[(Tone::Plain, evidence)], 0);
            label = "";
        }
    }
}

/// Writes the trial that proved the limit, with what it changed in absolute figures.
fn proof<'a>(
    doc: &mut Document,
    model: &Model,
    limit: &Limit,
    alike: Option<&Limit>,
    answers: impl Iterator<Item = &'a Answered>,
) {
    let Some(trial) = &limit.trial else {
        if alike.is_some_and(|l| l.trial.is_none() && l.certainty == limit.certainty) {
            return;
        }
        let text = match limit.certainty {
            Certainty::Proved => {
                "what is used and what can be used were both read: no experiment is needed"
            }
            Certainty::Supported => "none yet: counters speak for it, no experiment decided",
        };
        doc.entry("Proof", &[(Tone::Plain, text)], 2);
        return;
    };
    let mut text = format!("tried {}: {}", trial.words, effect(model, limit, trial));
    let slices = words::count(u64::from(trial.slices), "measurement");
    let _ = write!(text, ", {slices}, without and with it in turn");
    doc.entry("Proof", &[(Tone::Plain, &text)], 2);
    if !trial.excluded.is_empty() {
        let text = format!("that fits this cause and excludes {}", excluded(trial, answers));
        doc.detail(&[(Tone::Plain, &text)], 2);
    }
}

/// The effect of a trial in words: `4.71 Gb/s -> 2.36 Gb/s (x0.50, 95 %: 0.49 to 0.51)`.
fn effect(model: &Model, limit: &Limit, trial: &Decided) -> String {
    let load = model.direction(limit.direction).map(|d| &d.base);
    // A trial that loss or latency decided shows that figure: its goodput is only a consequence.
    match (trial.loss, trial.latency) {
        (Some(loss), _) => {
            let what = words::share_lost(trial.transport);
            let became = if is_one(loss) { "did not change" } else { "changed" };
            format!("the share {what} {became} ({})", ratio(loss))
        }
        (None, Some(latency)) => {
            let before = load.and_then(|load| load.latency.as_ref()?.percentile(50.0));
            let after = |before: Nanos| Nanos((before.0 as f64 * latency.mid) as u64);
            let times = before.map(|before| format!("{before} -> about {} ", after(before)));
            format!("round trip {}({})", times.unwrap_or_default(), ratio(latency))
        }
        (None, None) => {
            let found = model.trials.iter().find(|t| t.plan.id == trial.id);
            let of = |bits: f64| load.map_or(String::new(), |load| words::rate(load, bits));
            let rates = found.map(|found| found.goodput.map(of));
            let rates = rates.map(|[before, after]| format!("{before} -> {after} "));
            let same = if is_one(trial.effect) { ", no change" } else { "" };
            format!("{}({}){same}", rates.unwrap_or_default(), ratio(trial.effect))
        }
    }
}

/// Whether the interval of a ratio contains 1.
fn is_one(ratio: Interval) -> bool {
    ratio.low < 1.0 && ratio.high > 1.0
}

fn ratio(effect: Interval) -> String {
    let Interval { low, mid, high } = effect;
    let digits = if mid < 0.1 { 3 } else { 2 };
    format!("x{mid:.digits$}, 95 %: {low:.digits$} to {high:.digits$}")
}

/// The causes that a trial excluded, in words: by name those that had evidence, or all if they are few.
fn excluded<'a>(trial: &Decided, answers: impl Iterator<Item = &'a Answered>) -> String {
    const FEW: usize = 3;
    let all = &trial.excluded;
    if all.len() <= FEW {
        return all.join(", ");
    }
    let spoken_for = answers.filter(|a| a.outcome == "excluded" && all.contains(&a.cause));
    let names: Vec<&str> = spoken_for.map(|a| a.cause).collect();
    let rest = all.len() - names.len();
    match (names.is_empty(), rest) {
        (true, rest) => format!("{rest} other causes"),
        (false, 0) => names.join(", "),
        (false, rest) => format!("{} and {rest} other causes", names.join(", ")),
    }
}

/// Writes the remedies of a limit. Commands that were written above are not repeated.
fn mend(
    doc: &mut Document,
    model: &Model,
    limit: &Limit,
    first: &str,
    advised: &[&Advice],
    names: &Names,
) {
    for (i, advice) in limit.advice.iter().enumerate() {
        let label = if i == 0 { first } else { joint(advice) };
        let gain = gain(model, limit, advice);
        if advised.iter().any(|other| is_same(other, advice)) {
            let gain = if gain.is_empty() { gain } else { format!(": {gain}") };
            // If there are several advices, the sentence tells them apart.
            let what = match limit.advice.len() {
                1 => "as above".to_owned(),
                _ => format!("as above: {}", advice.what),
            };
            doc.entry(label, &[(Tone::Plain, &what), (Tone::Strong, &gain)], 2);
        } else {
            advise(doc, label, advice, &gain, names);
        }
    }
}

/// Whether two advices are equal except for their gains. Commands are compared; if there are none, the sentences.
fn is_same(a: &Advice, b: &Advice) -> bool {
    if a.steps.is_empty() {
        a.what == b.what && b.steps.is_empty()
    } else {
        a.steps == b.steps && a.undo == b.undo
    }
}

/// Writes the disturbances of the measurement: how much goodput each can explain, and its remedy.
pub(super) fn disturbances(doc: &mut Document, verdict: &Verdict, names: &Names) {
    let mut known: Vec<&Advice> = Vec::new();
    for (i, disturbance) in verdict.disturbances.iter().enumerate() {
        let label = if i == 0 { "Disturbed by" } else { "" };
        disturbed(doc, label, disturbance, names);
        for advice in &disturbance.advice {
            // A disturbance in both directions shows its remedy once.
            if !known.iter().any(|other| other.what == advice.what) {
                advise(doc, "", advice, "", names);
                known.push(advice);
            }
        }
    }
}

fn disturbed(doc: &mut Document, label: &str, disturbance: &Disturbance, names: &Names) {
    let what = words::disturbed(disturbance, names);
    doc.entry(label, &[(Tone::Strong, &what)], 2);
    doc.evidence(&words::explains(disturbance));
    for evidence in &disturbance.evidence {
        doc.evidence(evidence);
    }
}

/// Writes the limits that are expected once the limits above are removed.
pub(super) fn next(doc: &mut Document, verdict: &Verdict, names: &Names) {
    for (i, limit) in verdict.next.iter().enumerate() {
        let label = if i == 0 { "Next limit" } else { "" };
        let mut text = format!(
            "{}, {} ({})",
            names.way(limit.direction),
            words::named(limit, names),
            limit.cause
        );
        if let Some(evidence) = limit.evidence.first() {
            let _ = write!(text, ": {evidence}");
        }
        doc.entry(label, &[(Tone::Plain, &text)], 2);
    }
}

/// Writes what the shown words of certainty mean.
pub(super) fn signs(doc: &mut Document, verdict: &Verdict) {
    let has = |certainty| verdict.limits.iter().any(|limit| limit.certainty == certainty);
    let mut parts = Vec::new();
    if has(Certainty::Proved) {
        parts.push("[proved]: an experiment, or a ceiling that was reached, leaves no other cause");
    }
    if has(Certainty::Supported) {
        parts.push("[supported]: counters speak for it, no experiment decided");
    }
    if !parts.is_empty() {
        doc.line(&[(Tone::Dim, &format!("{}.", parts.join("; ")))], 0);
    }
}
