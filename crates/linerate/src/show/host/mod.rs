//! The facts of one machine, for people and for programs.

mod disks;
mod foot;
pub(super) mod json;
mod pci;
mod ports;
#[cfg(test)]
mod sample;
mod text;
mod watch;

pub use json::{FORMAT, SCHEMA, json};
pub use text::text;
pub use watch::watch;

use super::{Ink, Page};

/// One line under a label, or beside none.
fn put(page: &mut Page, label: &str, text: &str) {
    page.entry(label, &[(Ink::Plain, text)], 2);
}

/// A line for each sort: the names of all of it, then what they are.
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
