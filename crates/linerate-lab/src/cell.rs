//! Cells: a planted fault (or none) with the one cause that should be named, stated beforehand.

use linerate_core::plan::{Direction, Side};
use linerate_core::units::{Bytes, Nanos, Rate};

use crate::fault::{Burden, Depth, Fault, Role, Way};
use crate::spec::Host;

/// A kind of cell. Its severity, side and direction are drawn from a seed.
#[derive(Debug, Clone, Copy)]
pub struct CellKind {
    /// Its name on the command line.
    pub id: &'static str,
    /// What is planted, for people.
    pub words: &'static str,
    draw: fn(&mut Draw) -> Cell,
}

/// A cell as drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// What is planted, in order. The delay that some faults need to bite is no fault by itself.
    pub faults: Vec<Fault>,
    /// Another client that measures meanwhile.
    pub company: Option<Company>,
    /// The direction that is slow; `None` for a healthy path, and for an event that is named
    /// whichever direction it hits.
    pub direction: Option<Direction>,
    /// The cause that should be named there; empty for a healthy path, where the CPU binds.
    pub expected: &'static str,
}

/// Another client of the program, which loads one direction all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Company {
    /// The host that it runs in.
    pub host: Host,
    /// The direction that it loads.
    pub direction: Direction,
    /// Whether far runs another server for it, so that ours cannot know: then it is any traffic.
    pub apart: bool,
}

/// What a path in namespaces without a fault is limited by: its CPUs, or a congestion control that
/// paces by too coarse a model of so short a path.
pub const HEALTHY: &[&str] = &["sender-core", "receiver-core", "congestion-control"];

/// Every kind of cell.
pub const CELLS: &[CellKind] = &[
    CellKind {
        id: "healthy",
        words: "nothing at all",
        draw: healthy,
    },
    CellKind {
        id: "path-rate",
        words: "a slower link between the hosts",
        draw: path_rate,
    },
    CellKind {
        id: "receive-window",
        words: "a small receive window on a path with delay",
        draw: receive_window,
    },
    CellKind {
        id: "send-buffer",
        words: "a small send buffer on a path with delay",
        draw: send_buffer,
    },
    CellKind {
        id: "receiver-core",
        words: "a program that works hard on each byte it receives",
        draw: receiver_core,
    },
    CellKind {
        id: "sender-core",
        words: "a program that works hard on each byte it sends",
        draw: sender_core,
    },
    CellKind {
        id: "receiver-app",
        words: "a program that pauses between its reads",
        draw: receiver_app,
    },
    CellKind {
        id: "sender-app",
        words: "a program that pauses between its writes",
        draw: sender_app,
    },
    CellKind {
        id: "pacing",
        words: "a pace that was left in the environment",
        draw: pacing,
    },
    CellKind {
        id: "contended",
        words: "another client that measures at the same time",
        draw: contended,
    },
    CellKind {
        id: "interrupted",
        words: "a link that goes down for a moment",
        draw: interrupted,
    },
];

impl Cell {
    /// Whether something is planted that is true without being measured: it surely happens, and
    /// what it does to goodput is not the point.
    pub const fn is_event(&self) -> bool {
        self.direction.is_none() && !self.expected.is_empty()
    }
}

impl CellKind {
    /// The kind of this name.
    pub fn named(id: &str) -> Option<&'static Self> {
        CELLS.iter().find(|c| c.id == id)
    }

    /// The kind that a seed draws.
    pub fn drawn(seed: u64) -> &'static Self {
        &CELLS[Draw::of(seed, seed).below(CELLS.len() as u64) as usize]
    }

    /// The cell that a seed draws of this kind: the same seed, the same cell.
    pub fn cell(&self, seed: u64) -> Cell {
        // Apart from the draw of the kind, so that a named kind varies as much.
        (self.draw)(&mut Draw::of(seed, seed ^ 0x9e37_79b9_7f4a_7c15))
    }
}

/// A sequence of draws: splitmix64 (Steele, Lea, Flood 2014), whose quality is ample for this.
struct Draw {
    seed: u64,
    state: u64,
}

impl Draw {
    const fn of(seed: u64, state: u64) -> Self {
        Self { seed, state }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// One by turns of the seed, so that seeds in a row hold each as often.
    fn turn<T: Copy>(&self, of: &[T]) -> T {
        of[(self.seed % of.len() as u64) as usize]
    }

    fn direction(&mut self) -> Direction {
        self.one(&Direction::ALL)
    }
}

/// The delay on which a window or a buffer bites.
fn delay() -> Fault {
    Fault::Delay {
        forward: Nanos::from_millis(10),
        reverse: Nanos::from_millis(10),
    }
}

fn slow(direction: Direction, expected: &'static str, faults: Vec<Fault>) -> Cell {
    Cell {
        faults,
        company: None,
        direction: Some(direction),
        expected,
    }
}

/// An event that makes the measurement invalid, whichever direction it hits.
fn event(expected: &'static str, faults: Vec<Fault>, company: Option<Company>) -> Cell {
    Cell {
        faults,
        company,
        direction: None,
        expected,
    }
}

fn healthy(_: &mut Draw) -> Cell {
    event("", Vec::new(), None)
}

fn path_rate(draw: &mut Draw) -> Cell {
    let direction = draw.direction();
    let way = match direction {
        Direction::Forward => Way::Forward,
        Direction::Reverse => Way::Reverse,
    };
    let rate = draw.turn(&[100_000_000, 1_000_000_000, 5_000_000_000]);
    let depth = draw.one(&[Depth::Shallow, Depth::Deep]);
    slow(
        direction,
        "path-rate",
        vec![Fault::PathRate {
            rate: Rate(rate),
            depth,
            way,
        }],
    )
}

fn receive_window(draw: &mut Draw) -> Cell {
    let direction = draw.direction();
    let bytes = Bytes(draw.one(&[128 << 10, 256 << 10, 512 << 10]));
    let fault = Fault::ReceiveWindow {
        side: direction.receiver(),
        bytes,
    };
    slow(direction, "receive-window", vec![delay(), fault])
}

fn send_buffer(draw: &mut Draw) -> Cell {
    let direction = draw.direction();
    let bytes = Bytes(draw.one(&[128 << 10, 256 << 10, 512 << 10]));
    let fault = Fault::SendBuffer {
        side: direction.sender(),
        bytes,
    };
    slow(direction, "send-buffer", vec![delay(), fault])
}

fn application(side: Side, role: Role, burden: Burden) -> Vec<Fault> {
    vec![Fault::Application {
        side,
        role: Some(role),
        burden,
    }]
}

/// CPU time for each byte: as much as lets one core move 1 to 4 Gb/s.
fn work(draw: &mut Draw) -> Burden {
    Burden::Work {
        ps_per_byte: draw.one(&[2_000, 4_000, 8_000]),
    }
}

/// A pause that lets one thread move at most some Gb/s with the largest operations.
fn pause(draw: &mut Draw) -> Burden {
    Burden::Pause {
        per_operation: Nanos::from_millis(draw.one(&[2, 5])),
    }
}

fn receiver_core(draw: &mut Draw) -> Cell {
    let direction = draw.direction();
    let faults = application(direction.receiver(), Role::Receiver, work(draw));
    slow(direction, "receiver-core", faults)
}

fn sender_core(draw: &mut Draw) -> Cell {
    let direction = draw.direction();
    let faults = application(direction.sender(), Role::Sender, work(draw));
    slow(direction, "sender-core", faults)
}

fn receiver_app(draw: &mut Draw) -> Cell {
    let direction = draw.direction();
    let faults = application(direction.receiver(), Role::Receiver, pause(draw));
    slow(direction, "receiver-app", faults)
}

fn sender_app(draw: &mut Draw) -> Cell {
    let direction = draw.direction();
    let faults = application(direction.sender(), Role::Sender, pause(draw));
    slow(direction, "sender-app", faults)
}

/// A pace binds both directions: the client asks for it, and both ends of a stream are told.
fn pacing(draw: &mut Draw) -> Cell {
    let direction = draw.direction();
    let rate = Rate(draw.one(&[100_000_000, 500_000_000, 1_000_000_000]));
    let pace = Fault::Environment {
        side: Side::Near,
        name: "LINERATE_PACING".to_owned(),
        value: rate.exact(),
    };
    slow(direction, "pacing", vec![pace])
}

fn contended(draw: &mut Draw) -> Cell {
    let company = Company {
        host: draw.one(&[Host::Near, Host::Router]),
        direction: draw.direction(),
        apart: draw.turn(&[false, true]),
    };
    event("contended", Vec::new(), Some(company))
}

/// The first base step of a run of 33 s takes 2 s, and begins within a second of the planting.
fn interrupted(draw: &mut Draw) -> Cell {
    let down = Fault::LinkDown {
        side: draw.one(&[Side::Near, Side::Far]),
        after: Nanos::from_millis(draw.one(&[1_500, 1_700, 1_900])),
        lasting: Nanos::from_millis(draw.one(&[300, 400, 500])),
    };
    event("interrupted", vec![down], None)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_seed_draws_the_same_cell_and_seeds_draw_all_kinds() {
        let kinds: HashSet<_> = (0..200).map(|s| CellKind::drawn(s).id).collect();
        assert_eq!(kinds.len(), CELLS.len());
        for kind in CELLS {
            assert_eq!(kind.cell(7), kind.cell(7));
            let cell = kind.cell(7);
            let planted = !cell.faults.is_empty() || cell.company.is_some();
            assert_eq!(planted, kind.id != "healthy");
            assert_eq!(cell.expected, if planted { kind.id } else { "" });
        }
        let severities: HashSet<_> = (0..50)
            .map(|s| format!("{:?}", CellKind::named("path-rate").unwrap().cell(s)))
            .collect();
        assert_eq!(
            severities.len(),
            12,
            "rates, depths and directions all vary"
        );
    }

    #[test]
    fn every_second_time_no_server_knows_of_the_other_client() {
        let kind = CellKind::named("contended").unwrap();
        let apart = |seed| kind.cell(seed).company.unwrap().apart;
        assert!((0..20).all(|seed| apart(seed) != apart(seed + 1)));
    }

    #[test]
    fn any_seeds_in_a_row_hold_each_rate_of_a_path_as_often() {
        let kind = CellKind::named("path-rate").unwrap();
        let rate = |seed| match kind.cell(seed).faults[..] {
            [Fault::PathRate { rate, .. }] => rate.0 / 1_000_000,
            _ => panic!("a path rate alone"),
        };
        for first in 0..20 {
            let mut rates = [rate(first), rate(first + 1), rate(first + 2)];
            rates.sort_unstable();
            assert_eq!(rates, [100, 1_000, 5_000], "from seed {first}");
        }
    }
}
