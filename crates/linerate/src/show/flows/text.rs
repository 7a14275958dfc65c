//! Connections and what holds them, on a page.

use std::collections::BTreeSet;

use linerate_core::causes::Advice;
use linerate_core::model::TcpShares;
use linerate_core::path::Direction;
use linerate_core::verdict::Limit;

use super::super::words::{self, count};
use super::super::{Ink, Page, Style};
use super::{Judged, Look};

/// The page of a look.
pub fn text(look: &Look, style: Style) -> String {
    let mut page = Page::new(style);
    let all = count(look.connections as u64, "connection");
    let busy = match look.flows.len() {
        0 => "none of them carries a transfer".to_owned(),
        1 => "1 of them carries a transfer".to_owned(),
        n => format!("{n} of them carry transfers"),
    };
    let cut = if look.complete { "" } else { " (interrupted)" };
    let head = format!("{all}, {busy}; looked for {:.1} s{cut}", look.time.secs());
    page.line(&[(Ink::Dim, &head)], 0);
    for judged in &look.flows {
        page.gap();
        one(&mut page, judged);
    }
    for gap in &look.gaps {
        page.gap();
        let text = format!("{}: {}", gap.what, gap.why);
        page.entry("Unknown", &[(Ink::Plain, &text)], 2);
        if !gap.hint.is_empty() {
            page.entry("", &[(Ink::Dim, "hint: "), (Ink::Plain, &gap.hint)], 2);
        }
    }
    page.finish()
}

/// One connection.
pub(crate) fn one(page: &mut Page, judged: &Judged) {
    let Some(main) = judged.main() else {
        return;
    };
    let (way, toward) = match main.direction {
        Direction::Forward => ("out", "to"),
        Direction::Reverse => ("in", "from"),
    };
    let label = format!("{} {way}", judged.carried(main.direction));
    let ended = if judged.flow.ended { ", ended" } else { "" };
    let ends = format!("{} {toward} {}", judged.near(), judged.far());
    let who = format!("{}{ended}", owners(judged));
    page.entry(&label, &[(Ink::Bold, &ends), (Ink::Plain, &who)], 2);
    for limit in &judged.verdict.limits {
        supported(page, limit);
    }
    if judged.verdict.limits.is_empty() {
        suspected(page, judged);
    }
    for disturbance in &judged.verdict.disturbances {
        let what = words::disturbance(disturbance);
        let most = format!(": {}", words::explains(disturbance));
        let body = [
            (Ink::Plain, "disturbed by "),
            (Ink::Bold, &what),
            (Ink::Plain, &most),
        ];
        page.entry("", &body, 2);
        for evidence in &disturbance.evidence {
            page.entry("", &[(Ink::Dim, "- "), (Ink::Plain, evidence)], 2);
        }
    }
    if let Some(numbers) = numbers(&main.base.tcp, main.direction) {
        page.entry("", &[(Ink::Dim, &numbers)], 2);
    }
    for note in judged.notes() {
        page.entry("", &[(Ink::Dim, "note: "), (Ink::Plain, &note)], 2);
    }
    for advice in judged.verdict.limits.iter().flat_map(|l| &l.advice) {
        advise(page, advice);
    }
    if let Some(command) = judged.proof() {
        let text = format!("{command}, with `linerate serve` on that host");
        page.entry("", &[(Ink::Dim, "prove: "), (Ink::Plain, &text)], 2);
    }
}

/// `, curl 4711`.
fn owners(judged: &Judged) -> String {
    let named = |o: &linerate_core::model::Owner| format!(", {} {}", o.name, o.pid);
    judged.flow.owners.iter().map(named).collect()
}

fn supported(page: &mut Page, limit: &Limit) {
    let place = format!("{}: ", words::place(limit));
    let certainty = format!(" ({})", limit.certainty.name());
    let body = [
        (Ink::Plain, place.as_str()),
        (Ink::Bold, limit.cause),
        (Ink::Warn, &certainty),
    ];
    page.entry("", &body, 2);
    for evidence in &limit.evidence {
        page.entry("", &[(Ink::Dim, "- "), (Ink::Plain, evidence)], 2);
    }
}

/// What it may be, with what speaks for it, and what would tell.
fn suspected(page: &mut Page, judged: &Judged) {
    let suspects = judged.suspects();
    let names: Vec<&str> = suspects.iter().map(|s| s.cause).collect();
    let text = match names.split_last() {
        None => ": no cause that linerate knows fits".to_owned(),
        Some((one, [])) => format!(": it may be {one}"),
        Some((last, rest)) => format!(": it may be {} or {last}", rest.join(", ")),
    };
    page.entry("", &[(Ink::Warn, "unknown"), (Ink::Plain, &text)], 2);
    let mut told = BTreeSet::new();
    let found = suspects.iter().filter(|s| s.outcome == "finding");
    for why in found.flat_map(|s| &s.why).filter(|why| told.insert(*why)) {
        page.entry("", &[(Ink::Dim, "- "), (Ink::Plain, why)], 2);
    }
    if let Some(rate) = judged.network_rate() {
        let text = format!(
            "the network holds it at {rate}: one flow alone does not show whether that is a rate of the \
             whole path or a cap of each flow"
        );
        page.entry("", &[(Ink::Dim, "- "), (Ink::Plain, &text)], 2);
    }
    let gaps = judged.unknown();
    for gap in &gaps {
        let text = format!("{}: {}", gap.what, gap.why);
        page.entry("", &[(Ink::Dim, "- "), (Ink::Plain, &text)], 2);
    }
    let mut told = BTreeSet::new();
    let hints = gaps.iter().map(|gap| &gap.hint).filter(|h| !h.is_empty());
    for hint in hints.filter(|hint| told.insert(*hint)) {
        page.entry("", &[(Ink::Dim, "hint: "), (Ink::Plain, hint)], 2);
    }
}

fn advise(page: &mut Page, advice: &Advice) {
    page.entry("", &[(Ink::Dim, "do: "), (Ink::Bold, &advice.action)], 2);
    if !advice.undo.is_empty() {
        page.entry("", &[(Ink::Dim, "undo: "), (Ink::Dim, &advice.undo)], 2);
    }
}

/// What held the sender, as far as this end knows, and the round trip.
fn numbers(tcp: &TcpShares, direction: Direction) -> Option<String> {
    let share = |share: Option<f64>, what: &str| Some(format!("{what} {:.0} %", share? * 100.0));
    let held: Vec<String> = [
        share(tcp.rwnd_limited, "the window"),
        share(tcp.sndbuf_limited, "the send buffer"),
        share(tcp.starved, "the program"),
        share(tcp.nagle.filter(|n| *n >= 0.005), "Nagle's algorithm"),
        share(tcp.network, "the network"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let rtt = tcp.rtt.map(|rtt| match tcp.min_rtt {
        Some(least) => format!("round trip {rtt}, {least} at least"),
        None => format!("round trip {rtt}"),
    });
    let again = tcp.retransmitted.filter(|share| *share > 0.0);
    let again = again.map(|share| format!("{:.2} % sent again", share * 100.0));
    let sender = match direction {
        Direction::Forward => "held by",
        Direction::Reverse => "its sender held by",
    };
    let held = (!held.is_empty()).then(|| format!("{sender} {}", held.join(", ")));
    let parts: Vec<String> = [held, rtt, again].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn golden_of_a_look() {
        insta::assert_snapshot!("flows", text(&sample::look(), Style::PLAIN));
        insta::assert_snapshot!("flows_idle", text(&sample::idle(), Style::PLAIN));
        insta::assert_snapshot!("flows_nagle", text(&sample::small_writes(), Style::PLAIN));
    }

    #[test]
    fn what_the_network_holds_is_a_rate_or_a_cap() {
        let page = |look: &Look| {
            let text = text(look, Style::PLAIN);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let network = page(&sample::by_network());
        let told = "the network holds it at 13.1 Mb/s: one flow alone does not show whether that is a rate \
                    of the whole path or a cap of each flow";
        assert!(network.contains(told), "{network}");
        assert!(!page(&sample::look()).contains("the network holds it"));
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        for width in [60, 80] {
            let style = Style {
                width,
                color: false,
            };
            let page = text(&sample::look(), style);
            let words_alone = |line: &&str| line.trim_start().contains(' ');
            let wide = page
                .lines()
                .filter(words_alone)
                .find(|l| l.chars().count() > width);
            assert_eq!(wide, None);
        }
    }
}
