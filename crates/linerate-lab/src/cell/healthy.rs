//! Cells whose path has no fault.

use linerate_plan::path::Side;
use linerate_units::{Bytes, Nanos};

use super::draw::Draw;
use super::{Path, Planting};
use crate::fault::{Fault, FaultDirection};
use crate::spec::Topology;

pub(super) fn plain(_: &mut Draw) -> Planting {
    Planting::default()
}

fn on(path: Path) -> Planting {
    Planting { path, ..Planting::default() }
}

fn with(scenery: Vec<Fault>) -> Planting {
    Planting { scenery, ..Planting::default() }
}

pub(super) fn jumbo(_: &mut Draw) -> Planting {
    on(Path { mtu: 9000, ..Path::default() })
}

pub(super) fn direct(_: &mut Draw) -> Planting {
    on(Path { topology: Topology::Direct, ..Path::default() })
}

pub(super) fn bridge(_: &mut Draw) -> Planting {
    on(Path { topology: Topology::Bridged, ..Path::default() })
}

pub(super) fn ipv6(_: &mut Draw) -> Planting {
    on(Path { v6: true, ..Path::default() })
}

/// Each end is bound to one CPU, and the two ends do not share it.
pub(super) fn one_cpu(_: &mut Draw) -> Planting {
    with(vec![Fault::Cpus { side: Side::Near, cpu: 0 }, Fault::Cpus { side: Side::Far, cpu: 1 }])
}

/// Both ends run on CPU 0, while a busy program uses CPU 1.
pub(super) fn busy(draw: &mut Draw) -> Planting {
    let ends = [Side::Near, Side::Far].map(|side| Fault::Cpus { side, cpu: 0 });
    let threads = draw.one(&[1, 2]);
    let hog = Fault::Hog { cpu: 1, threads };
    with(ends.into_iter().chain([hog]).collect())
}

pub(super) fn jitter(draw: &mut Draw) -> Planting {
    let most = Nanos::from_millis(draw.one(&[1, 2]));
    let directions =
        draw.one(&[FaultDirection::Forward, FaultDirection::Reverse, FaultDirection::Both]);
    with(vec![super::network::delay(2), Fault::Jitter { most, directions }])
}

/// Draws a receive window that suffices for 100 Gb/s, because a round trip in a lab takes about 0.1 ms.
pub(super) fn window(draw: &mut Draw) -> Planting {
    with(vec![Fault::ReceiveWindow {
        side: draw.side(),
        bytes: Bytes(draw.one(&[3 << 20, 4 << 20])),
    }])
}
