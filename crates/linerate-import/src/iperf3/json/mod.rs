//! Reads JSON of iperf3: one document (`-J`), or one line for each event (`--json-stream`).

mod document;
mod end;
mod fields;
mod row;
#[cfg(test)]
mod tests;
mod transfer;

use linerate_record::reported::{Measured, Tool};
use serde::de::{DeserializeSeed, IgnoredAny};

use crate::format::{Format, Found, Section};
use crate::reading::{Notes, floor, outcome};
use document::Document;
use fields::object;

/// The format of iperf3's JSON.
pub(crate) static FORMAT: Format = Format {
    id: "iperf3-json",
    label: "iperf3, JSON",
    versions: "3.1 to 3.21 and its development (July 2026), `-J` and `--json-stream`",
    evidence: "run here: 3.1.3, 3.7, 3.9, 3.12, 3.16, 3.18, 3.20 and the development after 3.21, client and \
        server, on loopback",
    unknown: "The sender's windows and round-trip times, where the receiver wrote the document; the far end's CPU \
              and count, where the server wrote it or the test was interrupted; single CPUs and threads.",
    starts: |at| starts(at.text),
    read: |section| Ok(found(section)),
    ..Format::RESULTS
};

/// Number of bytes of a text that are searched to recognise a document.
const LOOKED_AT: usize = 1024;

/// Keys with which a document can begin.
const FIRST: &[&str] = &["\"start\"", "\"intervals\"", "\"end\"", "\"error\"", "\"title\""];

/// Texts that, near the start of a document, only iperf3 has.
const MARKS: &[&str] = &[
    "\"connected\"",
    "\"iperf 3",
    "\"intervals\"",
    "\"connecting_to\"",
    "\"accepted_connection\"",
    "\"cpu_utilization_percent\"",
    "\"sum_sent\"",
];

fn starts(text: &str) -> bool {
    if is_event(text) {
        return true;
    }
    let Some(inside) = text.strip_prefix('{') else {
        return false;
    };
    let first = head(inside.trim_start());
    FIRST.iter().any(|key| first.starts_with(key)) && MARKS.iter().any(|mark| first.contains(mark))
}

/// The first bytes of a text, which are searched.
fn head(text: &str) -> &str {
    &text[..floor(text, LOOKED_AT)]
}

/// Whether a text begins with an event of iperf3.
fn is_event(text: &str) -> bool {
    event_name(text).is_some_and(|name| ["start", "interval", "end", "error"].contains(&name))
}

/// The name of the event with which a text begins.
fn event_name(text: &str) -> Option<&str> {
    let text = text.strip_prefix('{')?.trim_start_matches(' ');
    let text = text.strip_prefix("\"event\":")?.trim_start_matches(' ');
    Some(text.strip_prefix('"')?.split_once('"')?.0).filter(|name| name.len() <= 30)
}

fn found(section: &Section<'_>) -> Found {
    let mut document = Document::default();
    let mut notes = Notes::default();
    let used = if event_name(section.text).is_some() {
        events(section, &mut document, &mut notes)
    } else {
        whole(section, &mut document, &mut notes)
    };
    let transfers = transfer::all(&document, section.line, &mut notes);
    if transfers.is_empty() {
        let what = without_result(document.error.as_deref());
        notes.first(section.line, what);
    }
    let title = document.title.as_deref().unwrap_or_default();
    let result = |one| outcome(title, section.line, Measured::Transfer(Box::new(one)));
    Found {
        tool: tool(document.start.version.as_deref()),
        results: transfers.into_iter().map(result).collect(),
        ..Found::of("iperf3", used, notes)
    }
}

/// iperf3 with its version, from a text such as `iperf 3.12`.
fn tool(version: Option<&str>) -> Tool {
    let version = version.map(|text| text.strip_prefix("iperf ").unwrap_or(text));
    Tool { version: version.map(str::to_owned), ..Tool::named("iperf3") }
}

/// A hint for errors in which iperf3 hides the reason.
const HIDDEN: &str = "some versions, such as 3.18, say only that the socket has closed where the server refused the test or ended it";

fn hides_reason(error: &str) -> bool {
    error.contains("control socket has closed unexpectedly")
}

/// A sentence on why a document has no result.
fn without_result(error: Option<&str>) -> String {
    let Some(error) = error else {
        return "it has no interval and no sum".to_owned();
    };
    let hint = if hides_reason(error) { format!(" ({HIDDEN})") } else { String::new() };
    format!("iperf3 ended without a result: {error}{hint}")
}

/// Reads one JSON value at the start of a text into a document. Returns the number of its bytes, and the error if it
/// is damaged.
fn value(text: &str, document: &mut Document) -> (usize, Option<serde_json::Error>) {
    let mut json = serde_json::Deserializer::from_str(text);
    let error = object(document).deserialize(&mut json).err();
    let used = json.into_iter::<IgnoredAny>().byte_offset();
    (used.min(text.len()), error)
}

/// Reads a document. Returns the number of bytes that belong to it.
fn whole(section: &Section<'_>, document: &mut Document, notes: &mut Notes) -> usize {
    let text = section.text;
    let (used, error) = value(text, document);
    let Some(error) = error else {
        return used;
    };
    let what = if error.is_eof() {
        "the document ends early: what is complete of it was read".to_owned()
    } else {
        "the document is damaged in this line: what is complete before it was read".to_owned()
    };
    let line = section.line + (error.line() as u64).saturating_sub(1);
    notes.at(line, what);
    // If the end of this document is missing, the next one may begin in the middle of the text.
    let from = floor(text, used.saturating_sub(2));
    let next = text[from..].find("\n{").map(|at| from + at + 1);
    next.unwrap_or(text.len())
}

/// Reads the events of one test. Returns the number of bytes that belong to them.
fn events(section: &Section<'_>, document: &mut Document, notes: &mut Notes) -> usize {
    let text = section.text;
    let (mut at, mut used, mut line) = (0, 0, section.line);
    // Notes about lines that belong to this test only if another event follows.
    let mut open = Notes::default();
    while at < text.len() {
        let rest = &text[at..];
        let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
        match event_name(rest) {
            Some("start") if used > 0 => break,
            Some(_) => {
                let (_, error) = value(&rest[..end], document);
                if let Some(error) = error {
                    let what = format!("this event is damaged: {error}");
                    open.at(line, what);
                }
                notes.append(&mut open);
                used = at + end;
            }
            None if rest[..end].trim().is_empty() => {}
            None if open.0.len() < 20 => open.at(line, "this line is no event of iperf3"),
            None => {}
        }
        at += end;
        line += 1;
    }
    used + repeated(&text[used..], document)
}

/// Number of bytes of a document after the events that repeats them: `--json-stream-full-output` writes it.
fn repeated(text: &str, document: &Document) -> usize {
    if event_name(text).is_some() || !starts(text) {
        return 0;
    }
    let mut following = Document::default();
    let (used, _) = value(text, &mut following);
    let same = following.start.cookie.is_some() && following.start.cookie == document.start.cookie;
    if same { used } else { 0 }
}
