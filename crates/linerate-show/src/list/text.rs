//! The result of `linerate list` as a page of text.

use linerate_judge::figure::{GOODPUT, LATENCY};
use linerate_plan::path::Side;
use linerate_record::Start;
use linerate_units::stamp;

use super::super::document::{Item, width_of};
use super::super::{Document, Tone, words};
use super::{Answer, Goodput, Listed, Row};

/// Largest width of the column of names; longer names push the rest of their line to the right.
const WIDEST: usize = 32;

/// Largest number of files of an import that are named.
const FILES: usize = 2;

/// Largest number of characters of a note that are shown: records of other users may have longer notes.
const NOTE: usize = 100;

/// The page: one line for each record, the newest last.
pub fn page(listed: &Listed) -> Document {
    let mut doc = Document::new();
    if listed.rows.is_empty() {
        let text = match listed.left_out {
            0 => format!("no record in {}", listed.dir),
            _ => "no record is shown".to_owned(),
        };
        doc.line(&[(Tone::Plain, &text)], 2);
        return doc;
    }
    let widths = listed.rows.iter().map(|row| width_of(&row.name));
    let column = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
    for row in &listed.rows {
        let body = body(row);
        let body: Vec<_> = body.iter().map(|(tone, text)| (*tone, &**text)).collect();
        let kind = row.start.as_ref().map_or("-", |start| start.kind().name());
        let head = [(row.name.as_str(), column.into()), (kind, 6.into())];
        doc.item(Item::new(&body).head(Tone::Strong, &head).indent(0, 4));
    }
    doc.gap();
    foot(&mut doc, listed);
    doc
}

/// The text of a record's line after its name and kind.
fn body(row: &Row) -> Vec<(Tone, String)> {
    let start = match &row.start {
        Ok(start) => start,
        Err(why) => return vec![(Tone::Warning, why.clone())],
    };
    let answer = row.answer.as_ref().map(answer);
    let open = if row.problem.is_empty() { "not judged" } else { "" };
    let answer = answer.unwrap_or_else(|| open.to_owned());
    let about = [unnamed(row, start), answer];
    let about: Vec<String> = about.into_iter().filter(|part| !part.is_empty()).collect();
    let cut = row.answer.as_ref().is_some_and(|head| !head.complete);
    let cut = if cut { "cut short" } else { "" };
    let note: String = start.note.chars().take(NOTE).collect();
    let parts = [
        (Tone::Plain, about.join(", ")),
        (Tone::Warning, cut.to_owned()),
        (Tone::Warning, row.problem.clone()),
        (Tone::Strong, note),
    ];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
    let mut body: Vec<(Tone, String)> = Vec::new();
    for part in parts {
        if !body.is_empty() {
            body.push((Tone::Dim, " | ".to_owned()));
        }
        body.push(part);
    }
    body
}

/// The date and the far end, if the name of the record does not contain them already.
fn unnamed(row: &Row, start: &Start) -> String {
    let name = &row.name;
    let has_files = row.answer.as_ref().is_some_and(|h| !h.files.is_empty());
    let date = stamp(start.wall_secs);
    let dated = name.starts_with(&date);
    let date = if dated { String::new() } else { date };
    let peer = match &start.plan.peer {
        Some(peer) if !has_files && !name.contains(peer.as_str()) => format!("to {peer}"),
        _ => String::new(),
    };
    let parts = [date, peer].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

fn answer(answer: &Answer) -> String {
    let mut parts: Vec<String> = answer.rates.iter().map(goodput).collect();
    if let Some(nanos) = answer.round_trip.filter(|_| parts.is_empty()) {
        let size = answer.size.map(|size| format!(" of {size}"));
        let size = size.unwrap_or_default();
        parts.push(format!("round trip {}{size}", LATENCY.unit.words(nanos)));
    }
    if !answer.files.is_empty() {
        let mut names: Vec<&str> = answer.files.iter().map(String::as_str).collect();
        let more = names.len().saturating_sub(FILES);
        names.truncate(FILES);
        let more = match more {
            0 => String::new(),
            more => format!(" and {}", words::count(more as u64, "more file")),
        };
        parts.push(format!("of {}{more}", names.join(", ")));
    }
    parts.join(", ")
}

fn goodput(one: &Goodput) -> String {
    let way = match one.direction.sender() {
        Side::Near => "out",
        Side::Far => "in",
    };
    let rate = GOODPUT.unit.words(one.rate);
    let limit = one
        .limit
        .map_or(String::new(), |(cause, certainty)| format!(" {cause} [{}]", certainty.name()));
    format!("{way} {rate}{limit}")
}

fn foot(doc: &mut Document, listed: &Listed) {
    let mut lines = Vec::new();
    if listed.left_out > 0 {
        let older = words::count(listed.left_out as u64, "older record");
        lines.push(format!("{older} not shown"));
    }
    let judged = |row: &&Row| row.start.is_ok() && row.answer.is_none() && row.problem.is_empty();
    let open = listed.rows.iter().filter(judged).count();
    if open > 0 {
        let n = words::count(open as u64, "record");
        lines.push(format!("{n} not judged: --judge {}", listed.rows.len()));
    }
    let mut rates = listed.rows.iter().filter_map(|row| row.answer.as_ref());
    if rates.any(|answer| !answer.rates.is_empty()) {
        lines.push(
            "out: goodput to the far end; in: from it; behind each what limits it".to_owned(),
        );
    }
    for line in lines {
        doc.line(&[(Tone::Dim, &line)], 2);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Style;
    use super::super::sample;
    use super::*;

    fn view(listed: &Listed, width: usize) -> String {
        let color = false;
        page(listed).text(Style { width, color })
    }

    #[test]
    fn goldens_of_a_list() {
        let listed = sample::several();
        insta::assert_snapshot!("list", view(&listed, 80));
        insta::assert_snapshot!("list_60", view(&listed, 60));
        insta::assert_snapshot!("list_markdown", page(&listed).markdown());
    }

    #[test]
    fn no_line_is_longer_than_the_page() {
        for width in [60, 80, 100] {
            for line in view(&sample::several(), width).lines() {
                assert!(width_of(line) <= width, "{width}: {line}");
            }
        }
        view(&sample::several(), 0);
    }

    #[test]
    fn an_empty_list_says_where_records_would_be() {
        let listed = Listed { dir: "/srv/r".to_owned(), ..Listed::default() };
        assert_eq!(view(&listed, 80), "no record in /srv/r\n");
    }
}
