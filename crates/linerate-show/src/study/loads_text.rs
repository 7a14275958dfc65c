//! A load measured with each value of a factor, as a page of text.

use linerate_ceiling::fingerprint::fit;
use linerate_judge::figure::{COPIED, Entry};
use linerate_judge::model::{Cost, Setting, same_machine};
use linerate_plan::Access;
use linerate_plan::path::Side;
use linerate_plan::transport::Swept;
use linerate_units::stats::Interval;
use linerate_units::{Bytes, Rate};

use super::super::super::words::{self, count};
use super::super::super::{Document, Tone, fitted};
use super::super::agreement;
use super::super::grid::Grid;
use super::{COPIED_LEAST, Held, Loads};

/// The page: the answer, the table, and what the times by size show.
pub(in super::super) fn page(probe: &Loads<'_>) -> Document {
    let mut doc = Document::new();
    match probe.swept {
        Swept::Size if probe.alone() => falls(&mut doc, probe),
        Swept::Copy => pays(&mut doc, probe),
        Swept::Depth => {
            knee(&mut doc, probe);
            held(&mut doc, probe);
        }
        Swept::Size | Swept::Streams | Swept::Qps => knee(&mut doc, probe),
    }
    doc.gap();
    let mut points = probe.points(&[]);
    for point in &mut points {
        // A very small share of copied sends is not shown.
        let is_news = |entry: &Entry| {
            *entry.figure != COPIED || entry.value.as_ref().is_ok_and(|v| v.mid >= COPIED_LEAST)
        };
        point.summary.entries.retain(is_news);
    }
    Grid::of_points(probe.swept.name(), &points).write(&mut doc);
    for (name, why) in points.iter().filter_map(|p| Some((p.values.last()?, p.lacks.as_ref()?))) {
        super::super::text::not_measured(&mut doc, name, why);
    }
    let times = probe.times();
    if !times.is_empty() {
        doc.gap();
        doc.heading("What times by size show");
        let what = "times of operations, size over goodput";
        fitted::rate(&mut doc, what, fit(&times).as_ref(), &agreement(probe.record));
    }
    doc
}

/// The last line of the page: what was measured, and how.
pub(in super::super) fn title(probe: &Loads<'_>) -> String {
    let (pace, plan) = (probe.pace, &probe.record.start.plan);
    let (noun, is_alone) = if probe.alone() { ("thread", true) } else { ("stream", false) };
    let what = match Access::of(&plan.knobs.options) {
        Access::Copy if is_alone => "memory of this host: copies between two arrays".to_owned(),
        Access::Read if is_alone => "memory of this host: reads of an array".to_owned(),
        Access::Write if is_alone => "memory of this host: writes to an array".to_owned(),
        _ => {
            let peer = plan.peer.as_deref().filter(|_| probe.address.is_empty());
            let far = words::server("linerate", peer.unwrap_or(probe.address));
            format!("{far}, {}", probe.direction.name())
        }
    };
    let first = probe.found.settings.first();
    let streams = first.map_or(1, |setting| u64::from(setting.knobs.streams));
    let load = match probe.swept {
        Swept::Streams => String::new(),
        _ => format!("{}, ", count(streams, noun)),
    };
    let shared = !is_alone && same_machine(probe.record);
    format!(
        "{what}, {load}{} in turn, {} of {} each{}{}",
        count(probe.found.settings.len() as u64, "setting"),
        rounds(probe),
        pace.measure,
        words::left_out(pace.washout),
        if shared { ", both ends on this machine" } else { "" },
    )
}

/// The measured rounds: `12 rounds`, or `3 to 4 of 12 rounds` if fewer than planned were measured.
fn rounds(probe: &Loads<'_>) -> String {
    let requested = u64::from(probe.pace.rounds);
    let settings = probe.found.settings.iter();
    let each = settings.map(|s| s.goodput.map_or(0, |goodput| goodput.samples as u64));
    let (least, most) = each.fold((requested, 0), |(least, most), n| (least.min(n), most.max(n)));
    let all = count(requested, "round");
    match (least, most) {
        (least, _) if least >= requested => all,
        (least, most) if least == most => format!("{least} of {all}"),
        (least, most) => format!("{least} to {most} of {all}"),
    }
}

/// Writes which way to hand payload over costs the sender least, and how each way compares with copies.
fn pays(doc: &mut Document, probe: &Loads<'_>) {
    doc.line(&[(Tone::Strong, &cheapest(probe))], 2);
    doc.gap();
    let place = match probe.direction.sender() {
        Side::Near => "here",
        Side::Far => "there",
    };
    for (at, setting) in probe.found.settings.iter().enumerate() {
        if Some(at) == probe.found.reference {
            continue;
        }
        let (label, tone, reported) = cost(setting);
        let reported = reported.replace("{}", place);
        let goodput = setting
            .goodput_ratio
            .map(|ratio| format!(", at {} of their goodput", words::effect(ratio)));
        let text = format!(": {reported}{}", goodput.unwrap_or_default());
        doc.entry(label, &[(tone, &probe.name(at)), (Tone::Plain, &text)], 2);
    }
}

/// The answer: `zerocopy costs least: x0.55 (0.54 to 0.56) of the CPU time of copies`.
fn cheapest(probe: &Loads<'_>) -> String {
    let settings = probe.found.settings.iter().enumerate();
    let less = settings.filter(|(_, setting)| matches!(setting.cost(), Some(Cost::Less)));
    let less = less.filter_map(|(at, setting)| Some((at, setting.cpu_ratio?)));
    match less.min_by(|a, b| a.1.mid.total_cmp(&b.1.mid)) {
        Some((at, ratio)) => format!(
            "{} costs least: {} of the CPU time of copies",
            probe.name(at),
            words::effect(ratio)
        ),
        None => "No way was shown to cost less CPU time than copies".to_owned(),
    }
}

/// The CPU time of a setting compared with copies: label, tone and text. `{}` in the text is replaced by the place
/// of the sender: here or there.
fn cost(setting: &Setting) -> (&'static str, Tone, String) {
    let Some((cost, ratio)) = setting.cost().zip(setting.cpu_ratio) else {
        let why = "not compared with copies: too few rounds have both";
        return ("Unknown", Tone::Warning, why.to_owned());
    };
    let times = words::effect(ratio);
    let text = format!("{times} of the CPU time of copies for each byte {{}}");
    match cost {
        Cost::Less => ("Pays", Tone::Good, text),
        Cost::More => ("Costs", Tone::Warning, text),
        Cost::Same => ("No gain", Tone::Strong, format!("{text}, the same to within 3 %")),
        Cost::Unclear => {
            let text = format!("{text}: no measurable difference");
            ("Unclear", Tone::Strong, text)
        }
    }
}

/// The goodput of the setting at an index: `9.41 Gb/s`.
fn rate(probe: &Loads<'_>, at: usize) -> String {
    let found = probe.found.settings[at].goodput;
    found.map_or("unknown".to_owned(), |rate| Rate(rate.mean as u64).to_string())
}

/// Writes where the rate falls as arrays of memory grow: there a cache is full.
fn falls(doc: &mut Document, probe: &Loads<'_>) {
    let goodput = |at: &usize| probe.found.settings[*at].goodput.map_or(0.0, |rate| rate.mean);
    let all = 0..probe.found.settings.len();
    let best = all.max_by(|a, b| goodput(a).total_cmp(&goodput(b)));
    let most = best.map(|at| format!("{} at {}", rate(probe, at), probe.name(at)));
    let most = format!("Fastest: {}", most.as_deref().unwrap_or("unknown"));
    let none = if probe.found.falls.is_empty() { "; the rate falls at no larger size" } else { "" };
    doc.line(&[(Tone::Strong, &most), (Tone::Plain, none)], 2);
    for fall in &probe.found.falls {
        let text = format!(
            "falls after {}: {} -> {} at {}",
            probe.name(fall.from),
            rate(probe, fall.from),
            rate(probe, fall.to),
            probe.name(fall.to)
        );
        doc.line(&[(Tone::Plain, &text)], 2);
    }
}

/// Writes the knee, above which larger values gain nothing, and the value with the most goodput.
fn knee(doc: &mut Document, probe: &Loads<'_>) {
    let found = &probe.found;
    let what = if probe.alone() { "The rate" } else { "Goodput" };
    let (Some(knee), Some(best)) = (found.knee, found.reference) else {
        let why = format!(
            "Where {} stops growing is unknown: too few rounds of two settings were measured",
            what.to_lowercase()
        );
        doc.line(&[(Tone::Warning, &why)], 2);
        return;
    };
    let last = found.settings.iter().rposition(|s| s.goodput.is_some());
    let (name, value) = (probe.name(knee.at), rate(probe, knee.at));
    let (head, how) = if Some(knee.at) == last {
        let verb = if knee.from < knee.at { "may still grow" } else { "still grows" };
        let how = format!(": {value}, the most that was measured");
        (format!("{what} {verb} at {name}"), how)
    } else if knee.at == best {
        let how = format!(": {value}, the most of all");
        (format!("{what} stops growing at {name}"), how)
    } else {
        let (most, with) = (rate(probe, best), probe.name(best));
        let how = format!(": {value}, within 5 % of the most, {most} with {with}");
        (format!("{what} stops growing at {name}"), how)
    };
    let doubt = if knee.from == knee.to {
        String::new()
    } else {
        let (from, to) = (probe.name(knee.from), probe.name(knee.to));
        format!("; by the intervals it may stop anywhere from {from} to {to}")
    };
    doc.line(&[(Tone::Strong, &head), (Tone::Plain, &format!("{how}{doubt}"))], 2);
}

/// Writes the bandwidth-delay product: how many requests the path holds.
fn held(doc: &mut Document, probe: &Loads<'_>) {
    let Some(Held { size, time, requests }) = probe.held() else {
        return;
    };
    let Interval { low, mid, high } = requests;
    let bytes = Bytes((mid * size.0 as f64) as u64);
    let text = format!(
        "A request of {size} takes {time} if it is alone in flight. In that time the most goodput moves {mid:.1} \
         ({low:.1} to {high:.1}) of them on each queue pair, {bytes}: the bandwidth-delay product"
    );
    doc.line(&[(Tone::Plain, &text)], 2);
}
