//! Views: functions of a record, its model and its verdict, of an inventory, or of a described path.
//!
//! A view is a document for people and JSON for programs; each has a folder here, and its schema is in `schema/`. None of
//! them reads the machine, knows the width of a page, a colour or markup: [`Document`] does.
#![forbid(unsafe_code)]

// Tests that other crates include name this crate.
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

/// A page with what is said of its record itself below it: why it took longer than was asked for, and its note.
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
