//! The hardware of a path, as a case file describes it.

use linerate_ceiling::pcie::Slot;
use linerate_ceiling::{Bounds, Solution};

/// The hardware that results are compared with. Empty if no hardware is described.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hardware {
    /// The ceiling of goodput in each direction, without traffic in the other one.
    pub ways: Vec<Solution>,
    /// The parts of the path, each with its ceiling.
    pub parts: Vec<Part>,
    /// The PCI Express slots, each with its name.
    pub slots: Vec<(String, Slot)>,
}

/// A part of the path, with its ceiling.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Name of the part: `link`, `near slot`.
    pub name: String,
    /// Goodput that the part allows, in bits per second: lowest and highest of both directions.
    pub goodput: Bounds,
}

impl Hardware {
    /// Goodput that the hardware allows: lowest and highest of both directions; `None` if no part has a ceiling.
    pub fn goodput(&self) -> Option<Bounds> {
        let ends = self.ways.iter().flat_map(|way| [way.goodput.low(), way.goodput.high()]);
        (!self.ways.is_empty()).then(|| Bounds::of(ends))
    }

    /// Names of the parts that set the ceiling of goodput.
    pub fn binding(&self) -> Vec<&str> {
        let all = self.ways.iter().flat_map(|way| &way.binding);
        let mut names: Vec<&str> = all.map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
