//! A path described by hand: its ceilings, and what a change would bring, for people and for programs.

pub(crate) mod compare;
pub(super) mod json;
mod price;
mod text;

use linerate_explain::Explained;
use linerate_explain::case::{Answer, Case, FigureCheck};

pub(crate) use json::{SCHEMA, document};
pub(crate) use text::page;

/// A case, and the same after what was set.
#[derive(Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) before: (&'a Case, &'a Answer),
    pub(crate) after: Option<(&'a Case, &'a Answer)>,
    /// The values that were set, as typed.
    pub(crate) sets: &'a [String],
    /// Published figures, beside the case as it stands in its file.
    pub(crate) checks: &'a [FigureCheck],
    /// What the published results say, of each path that was measured.
    pub(crate) told: &'a [Told<'a>],
}

/// Published results of one path, and what they say.
pub(crate) struct Told<'a> {
    /// Differences of the path from the case; none for the path of the case itself.
    pub(crate) set: &'a [String],
    pub(crate) explained: Explained<'a>,
}
