//! The hardware of a path, as a case file describes it.

use linerate_ceiling::pcie::Slot;
use linerate_ceiling::{Bounds, Solution};

/// What results are held against. Empty if no hardware is described.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hardware {
    /// Goodput that it allows in each direction alone.
    pub ways: Vec<Solution>,
    /// The ceiling of each part.
    pub parts: Vec<Part>,
    /// Names of PCI Express slots, and the slots.
    pub slots: Vec<(String, Slot)>,
}

/// A part with a ceiling.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its name: `link`, `near slot`.
    pub name: String,
    /// Goodput that it allows, over both directions, in bits per second.
    pub goodput: Bounds,
}

impl Hardware {
    /// Goodput that it allows, over both directions; `None` if no part has a ceiling.
    pub fn goodput(&self) -> Option<Bounds> {
        let ends = self.ways.iter().flat_map(|way| [way.goodput.low(), way.goodput.high()]);
        (!self.ways.is_empty()).then(|| Bounds::of(ends))
    }

    /// Names of the parts that set it.
    pub fn binding(&self) -> Vec<&str> {
        let all = self.ways.iter().flat_map(|way| &way.binding);
        let mut names: Vec<&str> = all.map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
