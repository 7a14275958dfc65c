//! Causes of slowness. One cause is one file here and one row in [`CAUSES`].

use crate::facts::Gap;
use crate::model::Model;
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::Range;
use crate::verdict::{Advice, Place, Stage};

/// Every cause, in the order of METHOD's table.
pub const CAUSES: &[&dyn Cause] = &[];

/// A reason for slowness that can be tested.
pub trait Cause: Sync {
    /// Stable id: `receive-window`.
    fn id(&self) -> &'static str;
    /// The stage that binds when this cause holds.
    fn stage(&self) -> Stage;
    /// What the counters say of it, for one direction.
    fn check(&self, model: &Model, direction: Direction) -> Answer;
    /// The goodput after the trial's change over the goodput before, if this cause holds; `None`
    /// when it cannot tell.
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range>;
    /// What to do when it holds.
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice>;
    /// Its page for people: what it means, how it is told from its look-alikes, how to confirm by
    /// hand, how to mend.
    fn page(&self) -> &'static str;
}

/// What a cause answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It may hold.
    Finding(Finding),
    /// It does not hold, and this is why.
    Clear(String),
    /// It cannot be told without these.
    Unknown(Vec<Gap>),
}

/// A cause that may hold, with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Where.
    pub side: Place,
    /// How much of the time, or of the slowness, it explains; 0 to 1.
    pub share: f64,
    /// Numbers, in sentences without a full stop.
    pub evidence: Vec<String>,
}
