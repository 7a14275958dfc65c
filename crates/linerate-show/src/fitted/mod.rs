//! What the times of a sweep over sizes show: a rate, a timer, and the hardware whose ceiling agrees with the rate.
//! `whatif`, imports and sweeps over sizes use this module.

mod json;

use linerate_ceiling::Bounds;
use linerate_ceiling::fingerprint::{
    Candidate, Candidates, Excluded, Facts, Fit, Named, Setter, Standing, Stated, Timer,
    candidates, setters,
};
use linerate_units::Rate;

pub(super) use json::{FitOut, TimerOut, fit_out, timer_out};

use super::document::Item;
use super::{Document, Tone};

/// The hardware that a measured rate may be compared with.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Agreement {
    /// The hardware of a path, as far as these facts allow it.
    Path(Facts),
    /// No hardware: no link is on the path. The facts are those of its two ends.
    NoLink(Facts),
}

impl Agreement {
    /// Chooses by whether both ends are on one machine: then no link is on the path.
    pub(super) fn of(same_machine: bool, facts: Facts) -> Self {
        if same_machine { Self::NoLink(facts) } else { Self::Path(facts) }
    }

    /// The settings and clocks that may have set a timer.
    fn setters(&self, timer: &Timer) -> Vec<&'static Setter> {
        let (Self::Path(facts) | Self::NoLink(facts)) = self;
        setters(timer.period, facts)
    }
}

/// Largest number of candidates that the page names for one sweep.
const NAMED: usize = 5;

/// Writes the rate of large messages, and the hardware that it points to.
pub(super) fn rate(doc: &mut Document, what: &str, fit: Option<&Fit>, agrees: &Agreement) {
    let Some(fit) = fit else {
        let text = format!("{what}: too few large messages to show a rate");
        doc.item(Item::new(&[(Tone::Warning, &text)]).indent(0, 4));
        return;
    };
    let text = format!(
        ", {what}: the median of {} steps between sizes, uncertain within {}; half of it at {}, floor {}",
        fit.spans,
        fine(fit.interval),
        fit.half,
        fit.floor
    );
    let rate = fine(Bounds::exact(fit.rate));
    let body = [(Tone::Strong, rate.as_str()), (Tone::Plain, &text)];
    doc.item(Item::new(&body).indent(0, 4));
    let others: Vec<String> = fit
        .knees
        .iter()
        .map(|knee| format!("{} from {} to {}", Rate(knee.rate as u64), knee.from, knee.to))
        .collect();
    if !others.is_empty() {
        below(doc, &format!("but {}", others.join(", ")));
    }
    if let Agreement::Path(facts) = agrees {
        hardware(doc, &candidates(fit, facts));
    }
}

fn hardware(doc: &mut Document, found: &Candidates) {
    let all = &found.possible;
    if all.is_empty() {
        below(doc, "no standard link, slot or memory of such a path has this rate");
    }
    for candidate in all.iter().take(NAMED) {
        below(doc, &agrees(candidate));
    }
    if all.len() > NAMED {
        let more = all.len() - NAMED;
        below(doc, &format!("and {more} more that fit less: --json has them"));
    }
    let stated = found.stated.iter().filter_map(stated);
    stated.for_each(|text| below(doc, &text));
    ruled_out(doc, &found.excluded);
}

/// Writes the hardware whose ceiling agrees with the rate but which a fact rules out, a line for each fact.
fn ruled_out(doc: &mut Document, excluded: &[Excluded]) {
    let mut facts: Vec<&str> = Vec::new();
    for one in excluded {
        if !facts.contains(&one.by.as_str()) {
            facts.push(&one.by);
        }
    }
    for by in facts {
        let names = excluded.iter().filter(|one| one.by == by);
        let names: Vec<&str> = names.map(|one| one.named.name.as_str()).collect();
        below(doc, &format!("not {}: {by}", names.join(" nor ")));
    }
}

/// Writes the timer that sets the times, and the settings and clocks that may have set it.
pub(super) fn ticks(doc: &mut Document, what: &str, timer: &Timer, agrees: &Agreement) {
    let setters = agrees.setters(timer);
    let who = if setters.is_empty() {
        "a timer sets them, and no common one has this period"
    } else {
        "a timer sets them. It may be"
    };
    let period = timer.period.to_string();
    let text = format!(
        ", {what}: {} times stand at this or at whole multiples of it, whatever the size: {who}",
        timer.points
    );
    let body = [(Tone::Strong, period.as_str()), (Tone::Plain, &text)];
    doc.item(Item::new(&body).indent(0, 4));
    for setter in setters {
        below(doc, &format!("the {}; see {}", setter.name, setter.look));
    }
}

/// Writes an item one level below the item above it.
fn below(doc: &mut Document, text: &str) {
    doc.item(Item::new(&[(Tone::Plain, text)]).depth(1).indent(4, 8));
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
    let known = if candidate.is_known { ", which the path has" } else { "" };
    let nearest = candidate.names.first().map_or(String::new(), nearest);
    format!("{how} {}{known}: {}{nearest}", candidate.words(), fine(candidate.carries))
}

/// The way to use hardware nearest to the rate, in words: ` (13.84 Gb/s: reads of memory, payload 128 B)`.
fn nearest(named: &Named) -> String {
    let way = named.nearest;
    if way.name.is_empty() {
        return String::new();
    }
    format!(" ({}: {})", fine(Bounds::exact(way.rate)), way.name)
}

/// A ceiling that the facts state and that does not agree with the rate, in words; `None` if it agrees.
fn stated(stated: &Stated) -> Option<String> {
    let carries = fine(stated.carries);
    match stated.standing {
        Standing::Agrees => None,
        Standing::NotTheLimit => Some(format!(
            "{} is not the limit: {carries}, {:.1} times this rate",
            stated.name,
            stated.margin + 1.0
        )),
        Standing::Exceeded => Some(format!(
            "more than {} carries, {carries}: the case or the times are wrong",
            stated.name
        )),
    }
}

/// A rate in words, with one digit more than usual: candidates are a few percent apart.
fn fine(bits: Bounds) -> String {
    bits.words(
        |v| {
            if v < 1e9 { Rate(v as u64).to_string() } else { format!("{:.2} Gb/s", v / 1e9) }
        },
    )
}
