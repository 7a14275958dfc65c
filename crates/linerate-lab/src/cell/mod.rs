//! Cells: a planted fault (or none) with the one cause that should be named, stated beforehand.

mod datagrams;
mod draw;
mod event;
mod healthy;
mod host;
mod kinds;
mod network;

use linerate_judge::causes;
use linerate_plan::path::{Direction, Place};

use crate::fault::Fault;
use crate::spec::{Host, Topology};
use draw::Draw;
pub use kinds::CELLS;

/// A kind of cell. Its severity, side and direction are drawn from a seed.
#[derive(Debug, Clone, Copy)]
pub struct CellKind {
    /// Name of the kind on the command line.
    pub id: &'static str,
    /// Description of the planted fault, for people.
    pub words: &'static str,
    /// Cause that should be named; empty for a healthy path, where the CPU is the limit.
    pub expected: &'static str,
    /// Causes that may be named instead, because they are true as well, though they were not planted.
    pub neighbours: &'static [&'static str],
    /// Whether a demonstration may choose this kind by itself: it needs neither root nor certain CPUs, and in several
    /// runs under each congestion control its cause was named each time (`benches/truth/`).
    pub shown: bool,
    draw: fn(&mut Draw) -> Planting,
}

/// The faults and other settings that are drawn for one cell.
#[derive(Debug, Default)]
struct Planting {
    path: Path,
    scenery: Vec<Fault>,
    faults: Vec<Fault>,
    company: Option<Company>,
    direction: Option<Direction>,
    place: Option<Place>,
}

impl Planting {
    /// A planting of one fault, at a place, that makes one direction slow.
    fn slow(direction: Direction, place: impl Into<Place>, fault: Fault) -> Self {
        Self {
            faults: vec![fault],
            direction: Some(direction),
            place: Some(place.into()),
            ..Self::default()
        }
    }
}

/// A cell, with the severity, side and direction that were drawn for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Path on which the fault is planted.
    pub path: Path,
    /// Faults that stay for the whole demonstration, in order, such as a delay that makes a small window the limit.
    pub scenery: Vec<Fault>,
    /// Planted faults, in order. They are removed to measure the path without them.
    pub faults: Vec<Fault>,
    /// Another client that measures at the same time.
    pub company: Option<Company>,
    /// Direction that is slow. `None` for a healthy path, and for an event, which counts in either direction.
    pub direction: Option<Direction>,
    /// Place that the verdict must name; `None` if any place is right.
    pub place: Option<Place>,
    /// Cause that should be named at `place`; empty for a healthy path, where the CPU is the limit.
    pub expected: &'static str,
    /// Causes that may be named instead.
    pub neighbours: &'static [&'static str],
}

/// Connection between the hosts of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Device between the hosts.
    pub topology: Topology,
    /// MTU of the path, in bytes of IP packet.
    pub mtu: u32,
    /// Whether near uses the IPv6 address of far.
    pub v6: bool,
}

impl Default for Path {
    fn default() -> Self {
        Self { topology: Topology::Routed, mtu: 1500, v6: false }
    }
}

/// Another linerate client, which loads one direction all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Company {
    /// Host on which the other client runs.
    pub host: Host,
    /// Direction that the other client loads.
    pub direction: Direction,
    /// Whether far runs a second server for the other client. The measured server then cannot know of its load, which
    /// is like that of any other program.
    pub apart: bool,
}

/// Causes that may limit a path of a lab without a fault: its CPUs, or a congestion control whose pacing model is too
/// coarse for such a short path.
pub const HEALTHY: &[&str] = &["sender-core", "receiver-core", "congestion-control"];

impl Cell {
    /// Returns whether the cell plants an event, whose truth needs no measurement: it certainly happens, and its effect
    /// on goodput does not matter.
    pub const fn is_event(&self) -> bool {
        self.direction.is_none() && !self.expected.is_empty()
    }

    /// Returns whether the load is UDP: the scenery then sets the program's engine.
    pub fn sends_datagrams(&self) -> bool {
        let engine = |f: &Fault| matches!(f, Fault::Environment { name, value, .. } if name == "LINERATE_ENGINE" && value == "udp");
        self.scenery.iter().any(engine)
    }

    /// Returns all faults that are planted, in order.
    pub fn planted(&self) -> impl Iterator<Item = &Fault> {
        self.scenery.iter().chain(&self.faults)
    }
}

impl CellKind {
    /// Returns the kind with this name.
    pub fn named(id: &str) -> Option<&'static Self> {
        CELLS.iter().find(|c| c.id == id)
    }

    /// Returns whether linerate knows the expected cause, so that a verdict can name it.
    pub fn is_answerable(&self) -> bool {
        self.expected.is_empty() || causes::cause(self.expected).is_some()
    }

    /// Returns the kinds whose expected cause linerate knows.
    pub fn answerable() -> impl Iterator<Item = &'static Self> {
        CELLS.iter().filter(|kind| kind.is_answerable())
    }

    /// Returns the kind that this seed chooses, among those that a demonstration may choose by itself.
    pub fn drawn(seed: u64) -> &'static Self {
        let all: Vec<&Self> = Self::answerable().filter(|kind| kind.shown).collect();
        all[Draw::of(seed, seed).below(all.len() as u64) as usize]
    }

    /// Returns the cell of this kind that a seed draws. Equal seeds give equal cells.
    pub fn cell(&self, seed: u64) -> Cell {
        // The cell's draw is independent of the draw of the kind, so that cells of a named kind vary as much.
        let planting = (self.draw)(&mut Draw::of(seed, seed ^ 0x9e37_79b9_7f4a_7c15));
        Cell {
            path: planting.path,
            scenery: planting.scenery,
            faults: planting.faults,
            company: planting.company,
            direction: planting.direction,
            place: planting.place,
            expected: self.expected,
            neighbours: self.neighbours,
        }
    }
}

#[cfg(test)]
mod tests;
