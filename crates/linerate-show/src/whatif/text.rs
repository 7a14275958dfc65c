//! The result of `linerate whatif` as a page of text: a path described by hand, its ceilings and their inputs, and
//! the effect of a change.

use linerate_ceiling::{Bounds, Ceiling, Input, Relation, Solution, Source};
use linerate_explain::case::{Answer, FigureCheck, Host, Slot};
use linerate_plan::path::Direction;
use linerate_units::{Nanos, Rate};

use super::super::document::Item;
use super::super::import::text as results;
use super::super::names::Names;
use super::super::{Document, Tone};
use super::{Change, PathResults, price};

/// The page of `linerate whatif`.
pub fn page(change: &Change<'_>) -> Document {
    let mut doc = Document::new();
    let (case, answer) = change.after.unwrap_or(change.before);
    doc.title(&case.title);
    doc.gap();
    match change.after {
        Some((_, after)) => compared(&mut doc, change.before.1, after, change.sets),
        None => goodputs(&mut doc, answer),
    }
    doc.gap();
    host(&mut doc, "near", &case.near);
    host(&mut doc, "far", &case.far);
    let (own, others): (Vec<&PathResults<'_>>, Vec<_>) =
        change.results.iter().partition(|reported| reported.set.is_empty());
    let (own, others) = match change.after {
        Some(_) => (Vec::new(), Vec::new()),
        None => (own, others),
    };
    if change.after.is_none() {
        story(&mut doc, &case.story);
    }
    for reported in &own {
        results::answer(&mut doc, &reported.explained);
    }
    doc.gap();
    ceilings(&mut doc, answer);
    doc.gap();
    beside(&mut doc, answer);
    price::price(&mut doc, change);
    price::reached(&mut doc, case, &own);
    price::media(&mut doc, case, answer);
    if change.after.is_none() {
        doc.gap();
        published(&mut doc, change.checks);
        doc.gap();
    }
    for reported in &own {
        results::figures(&mut doc, &reported.explained);
    }
    for reported in &others {
        doc.gap();
        doc.heading(&format!("With {}", reported.set.join(", ")));
        results::answer(&mut doc, &reported.explained);
        results::figures(&mut doc, &reported.explained);
    }
    doc
}

/// Writes the paragraphs of a case's story, wrapped anew.
fn story(doc: &mut Document, story: &str) {
    for paragraph in story.split("\n\n").filter(|p| !p.trim().is_empty()) {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        doc.gap();
        doc.line(&[(Tone::Plain, &words.join(" "))], 0);
    }
    doc.gap();
}

fn host(doc: &mut Document, side: &str, host: &Host) {
    let port = &host.port;
    let times = |n: Option<u32>, what: &str| n.filter(|n| *n > 1).map(|n| format!("{n} {what}"));
    let card = (!port.card.is_empty()).then(|| port.card.clone());
    let parts: Vec<String> = [
        (!host.name.is_empty()).then(|| host.name.clone()),
        times(port.cards, "cards"),
        card,
        times(port.ports, "ports"),
        port.link.map(|l| l.to_string()),
        port.mtu.map(|m| format!("MTU {m}")),
        port.pcie.map(|slot| match slot {
            Slot::NoSlot => "no slot".to_owned(),
            slot => format!("slot {slot}"),
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    let words = if parts.is_empty() { "not described".to_owned() } else { parts.join(", ") };
    doc.entry(side, &[(Tone::Plain, &words)], 2);
}

/// A direction, with the words `near` and `far` that keys and stages use: `near -> far`.
fn way_words(way: Direction) -> String {
    Names::sides().way(way)
}

fn goodputs(doc: &mut Document, answer: &Answer) {
    for way in Direction::ALL {
        let label = way_words(way);
        match answer.way(way) {
            Some(solved) => goodput(doc, &label, solved),
            None => unknown(doc, &label),
        }
    }
    if let Some(both) = &answer.both {
        goodput(doc, "both at once", both);
    }
}

/// The text for a path without any known ceiling.
pub(super) const NOT_DESCRIBED: &str = "no ceiling: no part of the described path has one";

fn unknown(doc: &mut Document, label: &str) {
    doc.entry(label, &[(Tone::Warning, NOT_DESCRIBED)], 2);
}

fn goodput(doc: &mut Document, label: &str, solved: &Solution) {
    let goodput = rates(solved.goodput);
    let each = match solved.each.as_slice() {
        [forward, reverse] => {
            let way = |way, bits: &Bounds| format!("{} {}", rates(*bits), way_words(way));
            let [forward, reverse] =
                [way(Direction::Forward, forward), way(Direction::Reverse, reverse)];
            format!(" ({forward}, {reverse})")
        }
        _ => String::new(),
    };
    let rest = format!("{each}, {}", bound(solved));
    doc.entry(label, &[(Tone::Strong, &goodput), (Tone::Plain, &rest)], 2);
}

/// The goodput of a direction in one line: `near -> far: 9.4 Gb/s, bound by the link`.
pub(super) fn bound_way(way: Direction, solved: &Solution) -> String {
    format!("{}: {}, {}", way_words(way), rates(solved.goodput), bound(solved))
}

/// Words for the first limit, and for the next one.
fn bound(solved: &Solution) -> String {
    let first = format!("bound by the {}", solved.binding.join(" or "));
    match &solved.next {
        Some(next) => {
            let names = next.binding.join(" or ");
            format!("{first}; next the {names}, at {}", rates(next.goodput))
        }
        None => first,
    }
}

fn compared(doc: &mut Document, before: &Answer, after: &Answer, sets: &[String]) {
    doc.entry("what if", &[(Tone::Strong, &sets.join(", "))], 2);
    for way in Direction::ALL {
        let label = way_words(way);
        compared_way(doc, &label, before.way(way), after.way(way));
    }
    compared_way(doc, "both at once", before.both.as_ref(), after.both.as_ref());
}

/// Writes the goodput before and after the change in one line, then what limits it; all in one line if nothing
/// changes.
fn compared_way(
    doc: &mut Document,
    label: &str,
    before: Option<&Solution>,
    after: Option<&Solution>,
) {
    let Some(after) = after else {
        let was = before.map_or(String::new(), |was| format!("{} -> ", rates(was.goodput)));
        let body = [(Tone::Plain, was.as_str()), (Tone::Warning, NOT_DESCRIBED)];
        return doc.entry(label, &body, 2);
    };
    let now = rates(after.goodput);
    if before.is_some_and(|before| before.goodput == after.goodput) {
        let rest = format!(": {now}, bound by the {}", after.binding.join(" or "));
        let body = [(Tone::Strong, "no change"), (Tone::Plain, rest.as_str())];
        return doc.entry(label, &body, 2);
    }
    let was = before.map_or("no ceiling".to_owned(), |was| rates(was.goodput));
    let gain = before.map(|before| format!(" ({})", gain(before.goodput, after.goodput)));
    let body = [
        (Tone::Plain, format!("{was} -> ")),
        (Tone::Strong, now),
        (Tone::Strong, gain.unwrap_or_default()),
    ];
    let body = body.each_ref().map(|(tone, text)| (*tone, text.as_str()));
    doc.entry(label, &body, 2);
    let old = before.filter(|before| before.binding != after.binding);
    let old = old.map(|old| format!("; before, the {}", old.binding.join(" or ")));
    let text = bound(after) + &old.unwrap_or_default();
    doc.detail(&[(Tone::Plain, &text)], 2);
}

/// The change of the goodput as a ratio, as far as the two intervals show it.
fn gain(before: Bounds, after: Bounds) -> String {
    let ratio = |a: f64, b: f64| a / b.max(1.0);
    // The same inputs are unknown before and after, so the lower ends of both intervals are compared, and the
    // upper ends.
    let low = ratio(after.low(), before.low());
    let high = ratio(after.high(), before.high());
    let (least, most) = (format!("x{:.2}", low.min(high)), format!("x{:.2}", low.max(high)));
    if least == most { least } else { format!("{least} to {most}") }
}

/// Writes the ceiling of each stage; those of the reverse direction only if they differ.
fn ceilings(doc: &mut Document, answer: &Answer) {
    let forward = answer.ceilings(Direction::Forward);
    let reverse = answer.ceilings(Direction::Reverse);
    let differs = |c: &&Ceiling<'_>| {
        let twin = forward.iter().find(|f| f.resource.name == c.resource.name);
        twin.is_none_or(|t| t.formula != c.formula)
    };
    stages(
        doc,
        &format!("Ceilings, {}", way_words(Direction::Forward)),
        forward.iter(),
        answer.forward.as_ref(),
    );
    let others: Vec<_> = reverse.iter().filter(differs).collect();
    if !others.is_empty() {
        doc.gap();
        let way = way_words(Direction::Reverse);
        let title = format!("Ceilings, {way}, where they differ");
        stages(doc, &title, others.into_iter(), answer.reverse.as_ref());
    }
}

fn stages<'a>(
    doc: &mut Document,
    title: &str,
    ceilings: impl Iterator<Item = &'a Ceiling<'a>>,
    solved: Option<&Solution>,
) {
    doc.heading(title);
    for ceiling in ceilings {
        let name = &ceiling.resource.name;
        let binds = solved.is_some_and(|s| s.binding.contains(name));
        let tone = if binds { Tone::Warning } else { Tone::Strong };
        let formula = format!(" = {}", ceiling.formula);
        doc.entry(name, &[(tone, &rates(ceiling.goodput)), (Tone::Plain, &formula)], 2);
        doc.detail(&[(Tone::Dim, &inputs(&ceiling.resource.inputs))], 2);
    }
}

/// Inputs in words: `near.port.pcie gen2, x8; near.port.mps 128 to 512 (assumed)`.
fn inputs(inputs: &[Input]) -> String {
    let one = |input: &Input| match input.source {
        Source::Given => format!("{} {}", input.key, input.value),
        Source::Assumed => format!("{} {} (assumed)", input.key, input.value),
    };
    inputs.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Writes the results that are no ceilings of goodput: estimates and the lower bound of the latency.
fn beside(doc: &mut Document, answer: &Answer) {
    for (i, estimate) in answer.estimates.iter().enumerate() {
        let label = if i == 0 { "estimate" } else { "" };
        let place = format!("{} {}: ", estimate.side.name(), estimate.stage.name());
        doc.entry(label, &[(Tone::Plain, &place), (Tone::Plain, &estimate.words)], 2);
    }
    if answer.floor.is_empty() {
        return;
    }
    let parts: Vec<&str> = answer.floor.iter().map(|part| part.words.as_str()).collect();
    let floor = Nanos((answer.floor_seconds() * 1e9) as u64).to_string();
    let rest = format!(" one way: {}", parts.join(", "));
    doc.entry("latency floor", &[(Tone::Strong, &floor), (Tone::Plain, &rest)], 2);
}

fn published(doc: &mut Document, checks: &[FigureCheck]) {
    if checks.is_empty() {
        return;
    }
    doc.heading("Published and computed figures");
    for one in checks {
        let words = format!(", {}; computed {}: ", one.what, one.computed);
        let relation = one.relation.map_or("nothing is computed", Relation::words);
        let change = one.change.as_ref();
        let change = change.map_or(String::new(), |change| format!("; {change}"));
        let body = [
            (Tone::Strong, one.figure.as_str()),
            (Tone::Plain, &words),
            (tone(one.relation), relation),
            (Tone::Plain, &change),
        ];
        doc.item(Item::new(&body).indent(0, 4));
    }
}

/// The tone of a published figure, by how it compares with the computed one.
const fn tone(relation: Option<Relation>) -> Tone {
    match relation {
        Some(Relation::Reached | Relation::Inside | Relation::About | Relation::AboveFloor) => {
            Tone::Good
        }
        _ => Tone::Warning,
    }
}

/// A rate in words, or both ends of an interval: `9.41 Gb/s`, or `9.41 to 9.49 Gb/s`.
pub(super) fn rates(bits: Bounds) -> String {
    bits.words(|v| Rate(v as u64).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_told_for_like_ends() {
        let (one, two) = (Bounds::new(1e9, 2e9), Bounds::new(2e9, 4e9));
        assert_eq!(gain(one, two), "x2.00");
        assert_eq!(gain(one, Bounds::new(1e9, 4e9)), "x1.00 to x2.00");
    }
}
