//! The result of `linerate whatif` as text and as JSON: a path described by hand, its ceilings, and the effect of a
//! change.

pub mod compare;
pub mod json;
mod price;
mod text;

use linerate_explain::case::{Answer, Case, FigureCheck};
use linerate_explain::{Answered, Explained, Headline};
use linerate_plan::path::Direction;

pub use json::document;
pub use text::page;

/// A described case, before and after values were replaced.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    pub before: (&'a Case, &'a Answer),
    pub after: Option<(&'a Case, &'a Answer)>,
    /// Values that were replaced, as typed.
    pub sets: &'a [String],
    /// Published figures, compared with the case as its file describes it.
    pub checks: &'a [FigureCheck],
    /// What the published results show, for each path that was measured.
    pub results: &'a [PathResults<'a>],
}

impl Change<'_> {
    /// What limits the path: by the published results of the path itself, or else by the described ceilings.
    fn headline(&self) -> Option<Headline> {
        let own = self.results.iter().find(|path| path.set.is_empty() && self.after.is_none());
        own.and_then(|path| path.explained.headline.clone()).or_else(|| {
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

/// Published results of one path, and what they show.
pub struct PathResults<'a> {
    /// Differences of the path from the case; empty for the path of the case itself.
    pub set: &'a [String],
    pub explained: Explained<'a>,
}
