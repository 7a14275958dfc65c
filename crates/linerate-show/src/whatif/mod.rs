//! A path described by hand: its ceilings, and what a change would bring, for people and for programs.

pub mod compare;
pub mod json;
mod price;
mod text;

use linerate_explain::case::{Answer, Case, FigureCheck};
use linerate_explain::{Answered, Explained, Headline};
use linerate_plan::path::Direction;

pub use json::document;
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

impl Change<'_> {
    /// What limits the path: by the published results of the path itself, else by the described ceilings.
    fn headline(&self) -> Option<Headline> {
        let own = self.told.iter().find(|told| told.set.is_empty() && self.after.is_none());
        own.and_then(|told| told.explained.headline.clone()).or_else(|| {
            let (_, answer) = self.after.unwrap_or(self.before);
            let mut ways = Direction::ALL.into_iter();
            let bound = ways.find_map(|way| Some((way, answer.way(way)?)));
            let (stands, what) = match bound {
                Some((way, solved)) => (Answered::Limit, text::bound_way(way, solved)),
                None => (Answered::Unknown, text::NOT_DESCRIBED.to_owned()),
            };
            Some(Headline::said(stands, what))
        })
    }
}

/// Published results of one path, and what they say.
pub struct Told<'a> {
    /// Differences of the path from the case; none for the path of the case itself.
    pub set: &'a [String],
    pub explained: Explained<'a>,
}
