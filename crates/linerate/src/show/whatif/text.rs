//! A path described by hand, for people: ceilings with what they come from, and what a change
//! would bring.

use linerate_core::case::{Answer, Case, Host, Slot, Sweep, Told};
use linerate_core::ceiling::fingerprint::{Candidate, candidates, fit};
use linerate_core::ceiling::{Bounds, Ceiling, Input, Solution, Source};
use linerate_core::path::Direction;
use linerate_core::units::{Nanos, Rate};

use super::super::{Ink, Page, Style};
use super::Change;

/// The whole page.
pub(crate) fn page(change: &Change<'_>, style: Style) -> String {
    let mut page = Page::new(style);
    let (case, answer) = change.after.unwrap_or(change.before);
    page.line(&[(Ink::Bold, &case.title)], 0);
    if change.after.is_none() {
        story(&mut page, &case.story);
    }
    host(&mut page, "near", &case.near);
    host(&mut page, "far", &case.far);
    page.gap();
    match change.after {
        Some((_, after)) => compared(&mut page, change.before.1, after, change.sets),
        None => goodputs(&mut page, answer),
    }
    page.gap();
    ceilings(&mut page, answer);
    page.gap();
    beside(&mut page, answer);
    price(&mut page, change);
    media(&mut page, case, answer);
    if change.after.is_none() {
        page.gap();
        published(&mut page, change.told);
        sweeps(&mut page, &case.sweep);
    }
    page.finish()
}

/// Its paragraphs, wrapped anew.
fn story(page: &mut Page, story: &str) {
    for paragraph in story.split("\n\n").filter(|p| !p.trim().is_empty()) {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        page.gap();
        page.line(&[(Ink::Plain, &words.join(" "))], 0);
    }
    page.gap();
}

fn host(page: &mut Page, side: &str, host: &Host) {
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
    let words = if parts.is_empty() {
        "not described".to_owned()
    } else {
        parts.join(", ")
    };
    page.entry(side, &[(Ink::Plain, &words)], 2);
}

fn goodputs(page: &mut Page, answer: &Answer) {
    for way in Direction::ALL {
        match answer.way(way) {
            Some(solved) => goodput(page, way.name(), solved),
            None => unknown(page, way.name()),
        }
    }
    if let Some(both) = &answer.both {
        goodput(page, "both at once", both);
    }
}

/// Why there is no ceiling.
const NOT_DESCRIBED: &str = ": nothing on the way is described that has one";

fn unknown(page: &mut Page, label: &str) {
    let words = format!("no ceiling{NOT_DESCRIBED}");
    page.entry(label, &[(Ink::Warn, &words)], 2);
}

fn goodput(page: &mut Page, label: &str, solved: &Solution) {
    let goodput = rates(solved.goodput);
    let each = match solved.each.as_slice() {
        [forward, reverse] => format!(
            " ({} forward, {} reverse)",
            rates(*forward),
            rates(*reverse)
        ),
        _ => String::new(),
    };
    let rest = format!("{each}, {}", bound(solved));
    page.entry(label, &[(Ink::Bold, &goodput), (Ink::Plain, &rest)], 2);
}

/// What binds, and what would bind next.
fn bound(solved: &Solution) -> String {
    let first = format!("bound by the {}", solved.binding.join(" or the "));
    match &solved.next {
        Some(next) => {
            let names = next.binding.join(" or the ");
            format!("{first}; next the {names}, at {}", rates(next.goodput))
        }
        None => first,
    }
}

fn compared(page: &mut Page, before: &Answer, after: &Answer, sets: &[String]) {
    page.entry("what if", &[(Ink::Bold, &sets.join(", "))], 2);
    for way in Direction::ALL {
        compared_way(page, way.name(), before.way(way), after.way(way));
    }
    compared_way(
        page,
        "both at once",
        before.both.as_ref(),
        after.both.as_ref(),
    );
}

fn compared_way(page: &mut Page, label: &str, before: Option<&Solution>, after: Option<&Solution>) {
    if before.is_none() && after.is_none() {
        unknown(page, label);
        return;
    }
    let words = |solved: Option<&Solution>| match solved {
        Some(solved) => (rates(solved.goodput), format!(", {}", bound(solved))),
        None => ("no ceiling".to_owned(), NOT_DESCRIBED.to_owned()),
    };
    let (was, rest) = words(before);
    let was = was + &rest;
    page.entry(label, &[(Ink::Dim, "before: "), (Ink::Plain, &was)], 2);
    let (now, rest) = words(after);
    page.entry(
        "",
        &[
            (Ink::Dim, "after: "),
            (Ink::Bold, &now),
            (Ink::Plain, &rest),
        ],
        2,
    );
    if let (Some(before), Some(after)) = (before, after) {
        page.entry("", &[(Ink::Bold, &gain(before.goodput, after.goodput))], 2);
    }
}

/// How the goodput changes, as far as the two intervals tell.
fn gain(before: Bounds, after: Bounds) -> String {
    if before == after {
        return "no change".to_owned();
    }
    let ratio = |a: f64, b: f64| a / b.max(1.0);
    // The same things are unknown before and after: like ends are compared.
    let low = ratio(after.low(), before.low());
    let high = ratio(after.high(), before.high());
    let (least, most) = (
        format!("x{:.2}", low.min(high)),
        format!("x{:.2}", low.max(high)),
    );
    if least == most {
        least
    } else {
        format!("{least} to {most}")
    }
}

/// Each stage; those of the way back only where they differ.
fn ceilings(page: &mut Page, answer: &Answer) {
    let forward = answer.ceilings(Direction::Forward);
    let reverse = answer.ceilings(Direction::Reverse);
    let differs = |c: &&Ceiling<'_>| {
        let twin = forward.iter().find(|f| f.resource.name == c.resource.name);
        twin.is_none_or(|t| t.formula != c.formula)
    };
    stages(
        page,
        "Ceilings, forward",
        forward.iter(),
        answer.forward.as_ref(),
    );
    let others: Vec<_> = reverse.iter().filter(differs).collect();
    if !others.is_empty() {
        page.gap();
        let title = "Ceilings, reverse, where they differ";
        stages(page, title, others.into_iter(), answer.reverse.as_ref());
    }
}

fn stages<'a>(
    page: &mut Page,
    title: &str,
    ceilings: impl Iterator<Item = &'a Ceiling<'a>>,
    solved: Option<&Solution>,
) {
    page.line(&[(Ink::Bold, title)], 0);
    for ceiling in ceilings {
        let name = &ceiling.resource.name;
        let binds = solved.is_some_and(|s| s.binding.contains(name));
        let ink = if binds { Ink::Warn } else { Ink::Bold };
        let formula = format!(" = {}", ceiling.formula);
        page.entry(
            name,
            &[(ink, &rates(ceiling.goodput)), (Ink::Plain, &formula)],
            2,
        );
        page.entry("", &[(Ink::Dim, &inputs(&ceiling.resource.inputs))], 2);
    }
}

/// `near.port.pcie gen2, x8; near.port.mps 128 to 512 (assumed)`.
fn inputs(inputs: &[Input]) -> String {
    let one = |input: &Input| match input.source {
        Source::Given => format!("{} {}", input.key, input.value),
        Source::Assumed => format!("{} {} (assumed)", input.key, input.value),
    };
    inputs.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// What is no ceiling of goodput.
fn beside(page: &mut Page, answer: &Answer) {
    for (i, estimate) in answer.estimates.iter().enumerate() {
        let label = if i == 0 { "estimate" } else { "" };
        let place = format!("{} {}: ", estimate.side.name(), estimate.stage.name());
        page.entry(
            label,
            &[(Ink::Plain, &place), (Ink::Plain, &estimate.words)],
            2,
        );
    }
    if answer.floor.is_empty() {
        return;
    }
    let parts: Vec<&str> = answer
        .floor
        .iter()
        .map(|part| part.words.as_str())
        .collect();
    let floor = Nanos((answer.floor_seconds() * 1e9) as u64).to_string();
    let rest = format!(" one way: {}", parts.join(", "));
    page.entry(
        "latency floor",
        &[(Ink::Bold, &floor), (Ink::Plain, &rest)],
        2,
    );
}

fn price(page: &mut Page, change: &Change<'_>) {
    let words = |answer: &Answer| {
        let price = answer.price.as_ref()?;
        let digits = |v: f64| format!("{v:.0$}", if v < 100.0 { 2 } else { 0 });
        let amount = price.per_gigabit.words(digits);
        let per = if price.per.is_empty() {
            String::new()
        } else {
            format!(" per {}", price.per)
        };
        Some(format!("{amount} {}{per} for each Gb/s", price.currency))
    };
    let before = words(change.before.1);
    let after = change.after.and_then(|(_, answer)| words(answer));
    match (before, after) {
        (Some(before), Some(after)) if before != after => {
            page.entry(
                "cost",
                &[(Ink::Plain, &format!("before: {before}; after: {after}"))],
                2,
            );
        }
        (Some(one), _) | (None, Some(one)) => page.entry("cost", &[(Ink::Plain, &one)], 2),
        (None, None) => {}
    }
}

/// The path among other things that move bytes, slowest first.
fn media(page: &mut Page, case: &Case, answer: &Answer) {
    let Some(solved) = answer.forward.as_ref().filter(|_| !case.media.is_empty()) else {
        return;
    };
    let row = |rate: Bounds, name, ink| {
        let words = rate.words(|bits| format!("{:.0} MB/s", bits / 8e6));
        (rate.low(), format!("{words} {name}"), ink)
    };
    let media = case.media.iter();
    let mut rows: Vec<(f64, String, Ink)> = media
        .map(|m| row(Bounds::exact(m.rate.0 as f64), m.name.as_str(), Ink::Plain))
        .chain([row(solved.goodput, "this path", Ink::Bold)])
        .collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (i, (_, words, ink)) in rows.iter().enumerate() {
        let label = if i == 0 { "beside others" } else { "" };
        page.entry(label, &[(*ink, words)], 2);
    }
}

fn published(page: &mut Page, told: &[Told]) {
    if told.is_empty() {
        return;
    }
    page.line(&[(Ink::Bold, "Published, and what is computed for it")], 0);
    for one in told {
        let words = format!(", {}; computed {}: ", one.what, one.computed);
        let (ink, claim) = if one.holds {
            (Ink::Good, one.claim.to_owned())
        } else {
            (Ink::Warn, format!("it is not so that it {}", one.claim))
        };
        page.line(
            &[
                (Ink::Bold, &one.figure),
                (Ink::Plain, &words),
                (ink, &claim),
            ],
            4,
        );
    }
}

/// Candidates of one sweep that are named.
const NAMED: usize = 5;

/// What the slopes of times over sizes agree with.
fn sweeps(page: &mut Page, sweeps: &[Sweep]) {
    if sweeps.is_empty() {
        return;
    }
    page.gap();
    page.line(&[(Ink::Bold, "What times by size say of the hardware")], 0);
    for sweep in sweeps {
        let Some(fit) = fit(&sweep.points) else {
            let text = format!("{}: too few large messages to show a rate", sweep.what);
            page.line(&[(Ink::Warn, &text)], 4);
            continue;
        };
        let text = format!(
            ", {}: the median of {} spans from size to size, {} as far as that can be told; half of \
             it at {}, floor {}",
            sweep.what,
            fit.spans,
            fine(fit.interval),
            fit.half,
            fit.floor
        );
        let rate = fine(Bounds::exact(fit.rate));
        page.line(&[(Ink::Bold, &rate), (Ink::Plain, &text)], 4);
        for knee in &fit.knees {
            let rate = Rate(knee.rate as u64);
            below(
                page,
                &format!("but {rate} from {} to {}", knee.from, knee.to),
            );
        }
        let all = candidates(fit.rate);
        for candidate in all.iter().take(NAMED) {
            below(page, &agrees(candidate));
        }
        if all.len() > NAMED {
            let more = all.len() - NAMED;
            below(
                page,
                &format!("and {more} more links within 5 %: --json has them"),
            );
        }
    }
}

/// A line that belongs to the one above it.
fn below(page: &mut Page, text: &str) {
    page.columns(Ink::Plain, "  ", text, 8);
}

fn agrees(candidate: &Candidate) -> String {
    let percent = candidate.off.abs() * 100.0;
    let how = if candidate.off > 0.0 {
        format!("{percent:.1} % more than")
    } else if candidate.off < 0.0 {
        format!("{percent:.1} % less than")
    } else {
        "as".to_owned()
    };
    format!("{how} {}: {}", candidate.name, fine(candidate.carries))
}

/// With one digit more than usual: candidates are a few percent apart.
fn fine(bits: Bounds) -> String {
    bits.words(|v| {
        if v < 1e9 {
            Rate(v as u64).to_string()
        } else {
            format!("{:.2} Gb/s", v / 1e9)
        }
    })
}

/// `9.41 Gb/s`, or `9.41 to 9.49 Gb/s`.
fn rates(bits: Bounds) -> String {
    bits.words(|v| Rate(v as u64).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_told_for_like_ends() {
        let (one, two) = (Bounds::new(1e9, 2e9), Bounds::new(2e9, 4e9));
        assert_eq!(gain(one, two), "x2.00");
        assert_eq!(gain(one, one), "no change");
        assert_eq!(gain(one, Bounds::new(1e9, 4e9)), "x1.00 to x2.00");
    }
}
