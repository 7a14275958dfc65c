//! Shows results: turns a record with its model and verdict, an inventory or a described path into text and JSON.
//!
//! Each result is shown as a document for people and as JSON for programs. It has a folder here, and the schema of
//! its JSON is in `schema/`. These modules do not read the machine, and know nothing of page width, colour or
//! markup: [`Document`] does.
#![forbid(unsafe_code)]

// Test files that other crates include use the name `linerate_show` for this crate.
#[cfg(test)]
extern crate self as linerate_show;

mod advice;
pub mod bw;
pub mod diff;
pub mod document;
pub mod fabric;
mod finding;
mod fitted;
pub mod flows;
pub mod guide;
mod head;
pub mod host;
pub mod import;
pub mod json;
pub mod lat;
pub mod like;
pub mod list;
mod names;
mod overtime;
pub mod progress;
mod refused;
#[cfg(test)]
#[path = "tests/schema/mod.rs"]
pub mod schema;
pub mod schemas;
pub mod stream;
pub mod study;
pub mod text;
mod verbs;
pub mod whatif;
mod words;

/// Adds notes about a record below its page: why the run took longer than requested, and the user's note.
pub fn noted(mut page: Document, record: &linerate_record::Record) -> Document {
    if let Some(why) = overtime::overtime(record) {
        page.gap();
        page.line(&[(Tone::Plain, &why)], 0);
    }
    let note = &record.start.note;
    if !note.is_empty() {
        page.entry("Note", &[(Tone::Plain, note)], 0);
    }
    page
}

#[cfg(test)]
use linerate_sim::sample;

pub use document::{Document, Style, Tone, cleaned, one_line, shortened};
pub use words::summary;
