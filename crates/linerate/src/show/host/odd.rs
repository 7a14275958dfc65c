//! What is odd about a machine: how much of it, each in a line, then what to do about what costs most.

use std::collections::BTreeMap;

use linerate_core::facts::Inventory;
use linerate_core::facts::odd::{self, Oddity, few};

use super::super::advice::do_step;
use super::super::document::Item;
use super::super::{Document, Style, Tone};

/// Lines of a screen.
const SCREEN: usize = 24;
/// Lines of the list that a screen has room for, with the details of the first.
const LISTED: usize = 9;
/// Oddities of one sort that have lines of their own, and of one line that have details of their own.
const ALIKE: usize = 4;

/// The answer, the list, and details: all of them, or as many as the first screen has room for.
pub(super) fn oddities(doc: &mut Document, inventory: &Inventory, explain: bool) {
    let found = odd::find(inventory);
    let name = &inventory.machine.name;
    let host = if name.is_empty() {
        String::new()
    } else {
        format!("{name}: ")
    };
    if found.is_empty() {
        let text = format!("{host}nothing odd, as far as it could be read");
        return doc.line(&[(Tone::Good, &text)], 2);
    }
    let text = format!("{host}{}", headline(&found));
    doc.line(&[(Tone::Strong, &text)], 2);
    doc.gap();
    let lines = Line::all(&found);
    let listed = if explain { lines.len() } else { LISTED };
    list(doc, &lines, listed);
    if explain {
        for line in &lines {
            doc.gap();
            doc.append(details(line, name, ALIKE));
            left(doc, line);
        }
    } else {
        first_screen(doc, &lines, name);
    }
}

/// `9 oddities; 2 of them limit eth2`.
fn headline(found: &[Oddity]) -> String {
    let what = match found.len() {
        1 => "1 oddity".to_owned(),
        n => format!("{n} oddities"),
    };
    let mut ports: Vec<&str> = Vec::new();
    for port in found.iter().flat_map(|odd| &odd.limits) {
        if !ports.contains(&port.as_str()) {
            ports.push(port);
        }
    }
    let ports = few(&ports);
    let limiting = found.iter().filter(|odd| !odd.limits.is_empty()).count();
    match (limiting, found.len()) {
        (0, _) => what,
        (1, 1) => format!("{what}; it limits {ports}"),
        (1, _) => format!("{what}; 1 of them limits {ports}"),
        (n, _) => format!("{what}; {n} of them limit {ports}"),
    }
}

/// Oddities that are alike, in one line.
struct Line<'a> {
    all: Vec<&'a Oddity>,
    /// What they have in common.
    what: &'a str,
    /// Whether no more is said of them than that there are such.
    is_rest: bool,
}

impl<'a> Line<'a> {
    fn all(found: &'a [Oddity]) -> Vec<Self> {
        let sorts = found.chunk_by(|a, b| a.id == b.id);
        sorts.flat_map(Self::of_sort).collect()
    }

    /// The lines of oddities of one sort: of many that differ, the rest share one.
    fn of_sort(sort: &'a [Oddity]) -> Vec<Self> {
        let mut lines: Vec<Self> = Vec::new();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for odd in sort {
            let what = odd.in_brief();
            let at = *known.entry(what).or_insert(lines.len().min(ALIKE));
            if at == lines.len() {
                let is_rest = at == ALIKE;
                let what = if is_rest {
                    "the same sort of thing"
                } else {
                    what
                };
                let all = Vec::new();
                lines.push(Self { all, what, is_rest });
            }
            lines[at].all.push(odd);
        }
        lines
    }

    fn subjects(&self) -> String {
        let names: Vec<&str> = self.all.iter().map(|odd| odd.subject.as_str()).collect();
        few(&names)
    }
}

fn list(doc: &mut Document, lines: &[Line<'_>], most: usize) {
    for line in lines.iter().take(most) {
        let body = [
            (Tone::Warning, line.subjects()),
            (Tone::Plain, ": ".to_owned()),
            (Tone::Plain, line.what.to_owned()),
        ];
        let body = body.each_ref().map(|(tone, text)| (*tone, text.as_str()));
        doc.item(Item::new(&body).indent(0, 2));
    }
    let more: usize = lines.iter().skip(most).map(|line| line.all.len()).sum();
    if more > 0 {
        let text = format!("and {more} more");
        doc.item(Item::new(&[(Tone::Dim, &text)]).indent(0, 2));
    }
}

/// The details that a screen has room for below the list, and those of the first in any case.
fn first_screen(doc: &mut Document, lines: &[Line<'_>], name: &str) {
    /// An empty line, and what stands below the details.
    const END: usize = 3;
    let height = |doc: &Document| doc.text(Style::PLAIN).lines().count();
    let mut at = height(doc);
    let mut shown: Vec<&Oddity> = Vec::new();
    for line in lines {
        let details = details(line, name, 1);
        at += height(&details) + 1;
        if !shown.is_empty() && at + END > SCREEN {
            break;
        }
        doc.gap();
        doc.append(details);
        shown.extend(line.all.iter().take(1));
    }
    doc.gap();
    if shown.iter().any(|odd| odd.fix.is_lost_at_boot()) {
        let text = "What these commands set lasts until the next boot.";
        doc.line(&[(Tone::Dim, text)], 0);
    }
    let all: usize = lines.iter().map(|line| line.all.len()).sum();
    if shown.len() < all {
        let text = "For the others: ";
        let command = "linerate host --explain";
        doc.line(&[(Tone::Dim, text), (Tone::Plain, command)], 2);
    }
}

/// How many of these oddities have no details.
fn left(doc: &mut Document, line: &Line<'_>) {
    let shown = if line.is_rest { 0 } else { ALIKE };
    let more = line.all.len().saturating_sub(shown);
    if more > 0 {
        let text = format!("{more} more like {}: see --json", line.all[0].subject);
        doc.line(&[(Tone::Dim, &text)], 2);
    }
}

/// Why the first of these oddities matter, and what to do about them.
fn details(line: &Line<'_>, name: &str, most: usize) -> Document {
    let mut doc = Document::new();
    let most = if line.is_rest { 0 } else { most };
    for odd in line.all.iter().take(most) {
        doc.gap();
        let body = [(Tone::Strong, odd.subject.as_str()), (Tone::Plain, ": ")];
        doc.line(&[&body[..], &[(Tone::Plain, &odd.what)]].concat(), 2);
        doc.entry("Why", &[(Tone::Plain, odd.why)], 0);
        mend(&mut doc, odd, name);
    }
    doc
}

fn mend(doc: &mut Document, odd: &Oddity, name: &str) {
    doc.entry("Mend", &[(Tone::Plain, &odd.fix.what)], 2);
    for step in &odd.fix.steps {
        do_step(doc, "", None, step);
    }
    let host = Some(name).filter(|name| !name.is_empty());
    for step in &odd.fix.undo {
        do_step(doc, "undo", host, step);
    }
}
