//! What times by size show: a rate, a timer, and the links that agree with the rate. `whatif` and sweeps over sizes share
//! it.

mod json;

use linerate_core::ceiling::Bounds;
use linerate_core::ceiling::fingerprint::{Candidate, Fit, Timer, candidates};
use linerate_core::units::Rate;

pub(super) use json::{FitOut, TimerOut, fit_out, timer_out};

use super::document::Item;
use super::{Document, Tone};

/// What a rate may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    /// The links whose rate is near.
    Links,
    /// Nothing: no link is on the path.
    NoLink,
}

impl Agreement {
    /// What a rate between two ends may be compared with: on one machine no link is on the path.
    pub(super) const fn of(same_machine: bool) -> Self {
        if same_machine {
            Self::NoLink
        } else {
            Self::Links
        }
    }

    fn with(self, fit: &Fit) -> Vec<Candidate> {
        match self {
            Self::Links => candidates(fit.rate),
            Self::NoLink => Vec::new(),
        }
    }
}

/// Candidates of one sweep that are named.
const NAMED: usize = 5;

/// Writes the rate of large messages, and the links that agree with it.
pub(super) fn rate(doc: &mut Document, what: &str, fit: Option<&Fit>, agrees: Agreement) {
    let Some(fit) = fit else {
        let text = format!("{what}: too few large messages to show a rate");
        doc.item(Item::new(&[(Tone::Warning, &text)]).indent(0, 4));
        return;
    };
    let text = format!(
        ", {what}: the median of {} steps between sizes, uncertain within {}; half of it at {}, \
         floor {}",
        fit.spans,
        fine(fit.interval),
        fit.half,
        fit.floor
    );
    let rate = fine(Bounds::exact(fit.rate));
    let body = [(Tone::Strong, rate.as_str()), (Tone::Plain, &text)];
    doc.item(Item::new(&body).indent(0, 4));
    for knee in &fit.knees {
        let rate = Rate(knee.rate as u64);
        below(
            doc,
            &format!("but {rate} from {} to {}", knee.from, knee.to),
        );
    }
    let all = agrees.with(fit);
    for candidate in all.iter().take(NAMED) {
        below(doc, &agreement(candidate));
    }
    if all.len() > NAMED {
        let more = all.len() - NAMED;
        below(
            doc,
            &format!("and {more} more links within 5 %: --json has them"),
        );
    }
}

/// Writes a timer that sets the times.
pub(super) fn ticks(doc: &mut Document, what: &str, timer: &Timer) {
    let period = timer.period.to_string();
    let text = format!(
        ", {what}: {} times stand at this or at whole multiples of it, whatever the size. A timer sets them: a card that holds \
         its interrupts back (ethtool -c, or a parameter of its driver), or a tick of a kernel",
        timer.points
    );
    let body = [(Tone::Strong, period.as_str()), (Tone::Plain, &text)];
    doc.item(Item::new(&body).indent(0, 4));
}

/// Writes an item below the one above it.
fn below(doc: &mut Document, text: &str) {
    doc.item(Item::new(&[(Tone::Plain, text)]).depth(1).indent(4, 8));
}

fn agreement(candidate: &Candidate) -> String {
    let percent = candidate.off.abs() * 100.0;
    let how = if candidate.off > 0.0 {
        format!("{percent:.1} % more than")
    } else if candidate.off < 0.0 {
        format!("{percent:.1} % less than")
    } else {
        "agrees with".to_owned()
    };
    format!("{how} {}: {}", candidate.name, fine(candidate.carries))
}

/// A rate with one digit more than usual: candidates are a few percent apart.
fn fine(bits: Bounds) -> String {
    bits.words(|v| {
        if v < 1e9 {
            Rate(v as u64).to_string()
        } else {
            format!("{:.2} Gb/s", v / 1e9)
        }
    })
}
