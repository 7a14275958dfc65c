//! Views: functions of a record, its model and its verdict, of an inventory, or of a described path. A view is
//! a document for people and JSON for programs. None of them reads the machine.

mod advice;
pub mod bw;
pub mod diff;
pub(crate) mod document;
pub mod each;
pub mod fabric;
mod fitted;
pub mod flows;
pub(crate) mod guide;
pub mod host;
pub mod import;
pub mod json;
pub mod lat;
pub mod layers;
pub mod like;
pub mod list;
mod names;
mod overtime;
pub mod progress;
pub mod repeat;
#[cfg(test)]
#[path = "tests/sample.rs"]
pub(crate) mod sample;
#[cfg(test)]
pub(crate) mod schema;
pub mod schemas;
pub mod stream;
pub mod sweep;
pub mod text;
pub mod trips;
mod verbs;
pub(crate) mod whatif;
mod words;

/// A page with what is said of its record itself below it: why it took longer than was asked for, and its note.
pub(crate) fn noted(mut page: Document, record: &linerate_record::Record) -> Document {
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

pub(crate) use document::{Document, Style, Tone, cleaned, one_line, shortened};
#[cfg(test)]
pub(crate) use words::summary;
