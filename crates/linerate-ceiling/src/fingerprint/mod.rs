//! Names the hardware that a sweep over message sizes points to. The times of messages rise with their size: the
//! slope is a rate, and few links have that rate.
//!
//! [`fit`] draws the line, [`candidates`] lists the standard ceilings that may explain a rate, [`timer`] finds
//! times that a timer sets, and [`setters`] lists what may set such a timer. A candidate agrees with the
//! measurement; it does not prove that the hardware is present.
//!
//! # How far the candidates can be trusted
//!
//! Simulated sweeps (`study.rs`): 23 sizes from 2 B to 8 MiB, a floor, a ceiling of the table of which 0.93 to 1.0
//! is reached, 3 % noise of each time, 5 % of the times 1.2 to 3 times too long. Each row is made of 5,000 sweeps;
//! equal ceilings count as one. Rare hardware (`Row::is_rare`) is drawn a fifth as often as common hardware; *even*
//! is the share when rare and common hardware are drawn equally often. The last two columns are about rates 10 %
//! away from every ceiling: how often they get no candidate, and how frequent they are.
//!
//! | known of the path | the true one is listed | it is first (even) | candidates, median and 90 % | none named far from all | rates far from all |
//! |---|---|---|---|---|---|
//! | nothing | 99 % | 59 % (56 %) | 3, 6 | 98 % | 32 % |
//! | Ethernet | 99 % | 84 % (73 %) | 2, 4 | 98 % | 35 % |
//! | InfiniBand | 99 % | 75 % (67 %) | 2, 5 | 99 % | 44 % |
//! | a disk | 99 % | 75 % (71 %) | 2, 4 | 99 % | 39 % |
//! | Ethernet, sockets, slots | 99 % | 85 % (78 %) | 1, 3 | 97 % | 41 % |
//! | InfiniBand, verbs, slots | 99 % | 82 % (74 %) | 2, 4 | 99 % | 53 % |
//!
//! So the list can be trusted, but its order cannot without facts. The table is dense: of the rates from 10 Mb/s to
//! 800 Gb/s only a third is 10 % away from every rate that some hardware allows, and at most other rates several
//! kinds of hardware are equal within the noise. In the column *first*, an unknown path, InfiniBand and disks are
//! below the desired 80 %; facts about slots and carriers raise them. Real hardware also reaches shares below 0.93:
//! then it is not listed, and other hardware may be.

mod candidates;
mod disks;
mod facts;
mod fit;
mod setters;
mod table;
mod tick;
mod timer;

#[cfg(test)]
#[path = "tests/draw.rs"]
mod draw;
#[cfg(test)]
#[path = "tests/published.rs"]
mod published;
#[cfg(test)]
#[path = "tests/study.rs"]
mod study;

pub use candidates::{
    At, Candidate, Candidates, Excluded, Named, Standing, Stated, at, candidates, filled, ways,
};
pub use facts::{Facts, Known, Medium};
pub use fit::{Fit, Knee, MOST_POINTS, Point, fit};
pub use setters::{Setter, setters};
pub use table::{Carrier, Kind, Variant};
pub use tick::{Spread, tick};
pub use timer::{Timer, timer};
