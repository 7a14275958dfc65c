//! The facts of one machine, as text and as JSON.

mod disks;
mod foot;
pub mod json;
mod looked;
mod odd;
mod pci;
mod ports;
#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
mod text;
mod watch;

pub use json::json;
pub use text::page;
pub use watch::watch;

use super::{Document, Tone};

/// Writes a value under a label; without a label, one more value of the label above.
fn put(doc: &mut Document, label: &str, text: &str) {
    doc.entry(label, &[(Tone::Plain, text)], 2);
}

/// Writes a detail of the value above.
fn more(doc: &mut Document, text: &str) {
    doc.detail(&[(Tone::Plain, text)], 2);
}

/// A line for each distinct text in `all`: the names that share the text, then the text.
fn alike<'a>(all: impl IntoIterator<Item = (&'a str, String)>) -> Vec<String> {
    let mut sorts: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, words) in all {
        match sorts.iter_mut().find(|(w, _)| *w == words) {
            Some((_, names)) => names.push(name),
            None => sorts.push((words, vec![name])),
        }
    }
    let line = |(words, names): (String, Vec<&str>)| format!("{}: {words}", ports::few(&names));
    sorts.into_iter().map(line).collect()
}
