//! Cells whose load is UDP.

use linerate_plan::path::{Place, Side};
use linerate_units::{Bytes, Rate};

use super::draw::Draw;
use super::{Planting, host, network};
use crate::fault::{Depth, Fault, Manner, Share};

fn near(name: &str, value: &str) -> Fault {
    Fault::Environment { side: Side::Near, name: name.to_owned(), value: value.to_owned() }
}

/// Makes the run of this planting use UDP.
fn sent(planting: Planting) -> Planting {
    let mut scenery = planting.scenery;
    scenery.push(near("LINERATE_ENGINE", "udp"));
    Planting { scenery, ..planting }
}

/// Makes the run of this planting use UDP at a pace: a sender without a pace would exceed the capacity of the process
/// on the wire.
fn paced(planting: Planting, rate: u64) -> Planting {
    let mut planting = sent(planting);
    let pace = near("LINERATE_PACING", &Rate(rate).exact());
    planting.scenery.push(pace);
    planting
}

pub(super) fn healthy(_: &mut Draw) -> Planting {
    sent(Planting::default())
}

pub(super) fn path_rate(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let rate = Rate(draw.turn(&[100_000_000, 300_000_000, 1_000_000_000]));
    let depth = draw.one(&[Depth::Shallow, Depth::Deep]);
    let directions = direction.into();
    let fault = Fault::PathRate { rate, depth, directions };
    sent(Planting::slow(direction, Place::Path, fault))
}

pub(super) fn police(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let rate = Rate(draw.turn(&[50_000_000, 100_000_000, 200_000_000]));
    let directions = direction.into();
    let fault = Fault::Police { rate, directions };
    paced(Planting::slow(direction, Place::Path, fault), rate.0 * 2)
}

pub(super) fn flow_rate(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let rate = Rate(draw.turn(&[20_000_000, 40_000_000, 60_000_000]));
    let (manner, directions) = (Manner::Policed, direction.into());
    let fault = Fault::FlowRate { rate, manner, directions };
    paced(Planting::slow(direction, Place::Path, fault), rate.0 * 2)
}

/// Draws a share of loss so large that without it at least a tenth more arrives, as for every fault that limits.
pub(super) fn loss(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let millionths = draw.turn(&[150_000, 200_000, 300_000]);
    let share = Share::millionths(millionths).unwrap_or(Share::LEAST);
    let burst = draw.one(&[1, 1, 20]);
    let directions = direction.into();
    let fault = Fault::Loss { share, burst, directions };
    paced(Planting::slow(direction, Place::Path, fault), 100_000_000)
}

/// Draws a size of the receive buffer, set in the environment, that is smaller than one burst.
pub(super) fn socket_drops(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let bytes = Bytes(draw.turn(&[8 << 10, 16 << 10, 32 << 10]));
    let fault = near("LINERATE_RECV_BUFFER", &format!("{}B", bytes.0));
    paced(Planting::slow(direction, direction.receiver(), fault), 3_000_000_000)
}

pub(super) fn receiver_core(draw: &mut Draw) -> Planting {
    sent(host::receiver_core(draw))
}

pub(super) fn sender_core(draw: &mut Draw) -> Planting {
    sent(host::sender_core(draw))
}

pub(super) fn pacing(draw: &mut Draw) -> Planting {
    sent(host::pacing(draw))
}

pub(super) fn local_drops(draw: &mut Draw) -> Planting {
    sent(host::local_drops(draw))
}

pub(super) fn black_hole(draw: &mut Draw) -> Planting {
    let planting = network::black_hole(draw);
    paced(planting, 100_000_000)
}
