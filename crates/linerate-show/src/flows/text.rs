//! The result of `linerate flows` as a page of text.

use std::collections::BTreeSet;

use linerate_judge::model::TcpShares;
use linerate_judge::verdict::Limit;
use linerate_plan::path::Direction;

use super::super::advice::advise;
use super::super::names::Names;
use super::super::words::{self, count};
use super::super::{Document, Tone};
use super::{Judged, Look};

/// The page of `linerate flows`: all observed connections.
pub fn page(look: &Look) -> Document {
    let mut doc = Document::new();
    let all = count(look.connections as u64, "connection");
    let busy = match look.flows.len() {
        0 => "none of them carries a transfer".to_owned(),
        1 => "1 of them carries a transfer".to_owned(),
        n => format!("{n} of them carry transfers"),
    };
    let cut = if look.complete { "" } else { " (interrupted)" };
    let head = format!("{all}, {busy}; looked for {:.1} s{cut}", look.time.secs());
    doc.line(&[(Tone::Dim, &head)], 0);
    for judged in &look.flows {
        doc.gap();
        one(&mut doc, judged);
    }
    for gap in &look.gaps {
        doc.gap();
        let text = format!("{}: {}", gap.what, gap.why);
        doc.entry("Unknown", &[(Tone::Plain, &text)], 2);
        if !gap.hint.is_empty() {
            doc.detail(&[(Tone::Dim, "hint: "), (Tone::Plain, &gap.hint)], 2);
        }
    }
    doc
}

/// Writes one connection with its limits, disturbances and advice.
pub fn one(doc: &mut Document, judged: &Judged) {
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
    doc.entry(&label, &[(Tone::Strong, &ends), (Tone::Plain, &who)], 2);
    for limit in &judged.verdict.limits {
        supported(doc, limit);
    }
    if judged.verdict.limits.is_empty() {
        suspected(doc, judged);
    }
    for disturbance in &judged.verdict.disturbances {
        let what = words::disturbance(disturbance);
        let most = format!(": {}", words::explains(disturbance));
        let body = [(Tone::Plain, "disturbed by "), (Tone::Strong, &what), (Tone::Plain, &most)];
        doc.entry("", &body, 2);
        for evidence in &disturbance.evidence {
            doc.evidence(evidence);
        }
    }
    if let Some(numbers) = numbers(&main.base.tcp, main.direction) {
        doc.entry("", &[(Tone::Dim, &numbers)], 2);
    }
    for note in judged.notes() {
        doc.entry("", &[(Tone::Dim, "note: "), (Tone::Plain, &note)], 2);
    }
    let names = Names::called(["this host", &judged.far()]);
    for advice in judged.verdict.limits.iter().flat_map(|l| &l.advice) {
        advise(doc, "do", advice, "", &names);
    }
    if let Some(command) = judged.proof() {
        let text = format!("{command}, with `linerate serve` on that host");
        doc.entry("", &[(Tone::Dim, "prove: "), (Tone::Plain, &text)], 2);
    }
}

/// Names and ids of the processes that hold the connection: `, curl 4711`.
fn owners(judged: &Judged) -> String {
    let named = |o: &linerate_record::flow::Owner| format!(", {} {}", o.name, o.pid);
    judged.flow.owners.iter().map(named).collect()
}

fn supported(doc: &mut Document, limit: &Limit) {
    let place = format!("{}: ", words::place(limit));
    let certainty = format!(" ({})", limit.certainty.name());
    let body =
        [(Tone::Plain, place.as_str()), (Tone::Strong, limit.cause), (Tone::Warning, &certainty)];
    doc.entry("", &body, 2);
    for evidence in &limit.evidence {
        doc.evidence(evidence);
    }
}

/// Writes the suspected causes, with their evidence and the command that would decide between them.
fn suspected(doc: &mut Document, judged: &Judged) {
    let suspects = judged.suspects();
    let names: Vec<&str> = suspects.iter().map(|s| s.cause).collect();
    let text = match names.split_last() {
        None => ": no cause that linerate knows fits".to_owned(),
        Some((one, [])) => format!(": it may be {one}"),
        Some((last, rest)) => format!(": it may be {} or {last}", rest.join(", ")),
    };
    doc.entry("", &[(Tone::Warning, "unknown"), (Tone::Plain, &text)], 2);
    let mut reported = BTreeSet::new();
    let found = suspects.iter().filter(|s| s.outcome == "finding");
    for why in found.flat_map(|s| &s.why).filter(|why| reported.insert(*why)) {
        doc.evidence(why);
    }
    if let Some(rate) = judged.network_rate() {
        let text = format!(
            "the network holds it at {rate}: one flow alone does not show whether that is a rate of the \
             whole path or a cap of each flow"
        );
        doc.evidence(&text);
    }
    let gaps = judged.unknown();
    for gap in &gaps {
        let text = format!("{}: {}", gap.what, gap.why);
        doc.evidence(&text);
    }
    let mut reported = BTreeSet::new();
    let hints = gaps.iter().map(|gap| &gap.hint).filter(|h| !h.is_empty());
    for hint in hints.filter(|hint| reported.insert(*hint)) {
        doc.detail(&[(Tone::Dim, "hint: "), (Tone::Plain, hint)], 2);
    }
}

/// The shares of time by what held the sender, as far as this end knows them; the round trip; the retransmitted share.
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
        Some(least) => format!("round trip {rtt}, minimum {least}"),
        None => format!("round trip {rtt}"),
    });
    let retransmitted = tcp.retransmitted.filter(|share| *share > 0.0);
    let retransmitted = retransmitted.map(|share| format!("{:.2} % retransmitted", share * 100.0));
    let sender = match direction {
        Direction::Forward => "held by",
        Direction::Reverse => "its sender held by",
    };
    let held = (!held.is_empty()).then(|| format!("{sender} {}", held.join(", ")));
    let parts: Vec<String> = [held, rtt, retransmitted].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::super::Style;
    use super::super::sample;
    use super::*;

    fn text(look: &Look, style: Style) -> String {
        page(look).text(style)
    }

    #[test]
    fn golden_of_a_look() {
        insta::assert_snapshot!("flows", text(&sample::look(), Style::PLAIN));
        insta::assert_snapshot!("flows_idle", text(&sample::idle(), Style::PLAIN));
        insta::assert_snapshot!("flows_nagle", text(&sample::small_writes(), Style::PLAIN));
        insta::assert_snapshot!("flows_markdown", page(&sample::look()).markdown());
    }

    #[test]
    fn what_the_network_holds_is_a_rate_or_a_cap() {
        let page = |look: &Look| {
            let text = text(look, Style::PLAIN);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let network = page(&sample::by_network());
        let reported = "the network holds it at 13.1 Mb/s: one flow alone does not show whether that is a rate \
                    of the whole path or a cap of each flow";
        assert!(network.contains(reported), "{network}");
        assert!(!page(&sample::look()).contains("the network holds it"));
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        for width in [60, 80] {
            let style = Style { width, color: false };
            let page = text(&sample::look(), style);
            let words_alone = |line: &&str| line.trim_start().contains(' ');
            let wide = page.lines().filter(words_alone).find(|l| l.chars().count() > width);
            assert_eq!(wide, None);
        }
    }
}
