//! A path described by hand: its ceilings, and what a change would bring, for people and for programs.

pub mod compare;
pub mod json;
mod price;
mod text;

use linerate_explain::Explained;
use linerate_explain::case::{Answer, Case, FigureCheck};

pub use json::{SCHEMA, document};
pub use text::page;

/// A case, and the same after what was set.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    pub before: (&'a Case, &'a Answer),
    pub after: Option<(&'a Case, &'a Answer)>,
    /// The values that were set, as typed.
    pub sets: &'a [String],
    /// Published figures, beside the case as it stands in its file.
    pub checks: &'a [FigureCheck],
    /// What the published results say, of each path that was measured.
    pub told: &'a [Told<'a>],
}

/// Published results of one path, and what they say.
pub struct Told<'a> {
    /// Differences of the path from the case; none for the path of the case itself.
    pub set: &'a [String],
    pub explained: Explained<'a>,
}
