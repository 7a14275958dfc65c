//! Cells with a fault inside a host.

use linerate_plan::path::{Direction, Side};
use linerate_units::{Bytes, Nanos, Rate};

use super::Planting;
use super::draw::Draw;
use super::network::delay;
use crate::fault::{Burden, Fault, Role, Share};

/// Adds a delay of 20 ms, with which a small window or buffer is the limit.
fn far_away(planting: Planting) -> Planting {
    Planting { scenery: vec![delay(20)], ..planting }
}

pub(super) fn receive_window(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let bytes = Bytes(draw.one(&[128 << 10, 256 << 10, 512 << 10]));
    let side = direction.receiver();
    far_away(Planting::slow(direction, side, Fault::ReceiveWindow { side, bytes }))
}

/// Packets that wait for a tick make most round trips as long as on a long path, but not the kernel's shortest one.
pub(super) fn held_window(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let bytes = Bytes(draw.one(&[128 << 10, 256 << 10]));
    let period = Nanos::from_millis(draw.one(&[1, 2]));
    let side = direction.receiver();
    let hold = Fault::Hold { side: draw.side(), period };
    Planting {
        scenery: vec![hold],
        ..Planting::slow(direction, side, Fault::ReceiveWindow { side, bytes })
    }
}

pub(super) fn send_buffer(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let bytes = Bytes(draw.one(&[128 << 10, 256 << 10, 512 << 10]));
    let side = direction.sender();
    far_away(Planting::slow(direction, side, Fault::SendBuffer { side, bytes }))
}

pub(super) fn shaping(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let rate = Rate(draw.turn(&[100_000_000, 1_000_000_000, 3_000_000_000]));
    let side = direction.sender();
    Planting::slow(direction, side, Fault::Shape { side, rate })
}

pub(super) fn local_drops(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let rate = Rate(draw.turn(&[500_000_000, 1_000_000_000, 2_000_000_000]));
    let bytes = Bytes(draw.one(&[15 << 10, 30 << 10]));
    let side = direction.sender();
    Planting::slow(direction, side, Fault::Queue { side, rate, bytes })
}

pub(super) fn small_packets(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let side = direction.sender();
    Planting::slow(direction, side, Fault::Offloads { side })
}

/// Both ends share one CPU, and either of them may be the one that waits for it.
pub(super) fn shared_core(draw: &mut Draw) -> Planting {
    let cpu = draw.one(&[0, 1]);
    Planting {
        faults: [Side::Near, Side::Far].map(|side| Fault::Cpus { side, cpu }).to_vec(),
        direction: Some(draw.direction()),
        ..Planting::default()
    }
}

/// The end on the other side has another CPU to itself.
pub(super) fn contention(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let side = draw.side();
    let threads = draw.turn(&[2, 3, 4]);
    let cpu = |end: Side| u32::from(end != side);
    Planting {
        scenery: [Side::Near, Side::Far].map(|side| Fault::Cpus { side, cpu: cpu(side) }).to_vec(),
        ..Planting::slow(direction, side, Fault::Hog { cpu: 0, threads })
    }
}

pub(super) fn quota(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let side = draw.side();
    let millionths = draw.turn(&[100_000, 200_000, 300_000]);
    let share = Share::millionths(millionths).unwrap_or(Share::LEAST);
    Planting::slow(direction, side, Fault::Quota { side, share })
}

fn application(direction: Direction, role: Role, burden: Burden) -> Planting {
    let side = match role {
        Role::Sender => direction.sender(),
        Role::Receiver => direction.receiver(),
    };
    let role = Some(role);
    Planting::slow(direction, side, Fault::Application { side, role, burden })
}

/// Draws work per byte with which one core can move 1 to 4 Gb/s.
fn work(draw: &mut Draw) -> Burden {
    Burden::Work { ps_per_byte: draw.one(&[2_000, 4_000, 8_000]) }
}

/// Draws a pause per operation with which one thread moves at most some Gb/s, even with the largest operations.
fn pause(draw: &mut Draw) -> Burden {
    Burden::Pause { per_operation: Nanos::from_millis(draw.one(&[2, 5])) }
}

pub(super) fn receiver_core(draw: &mut Draw) -> Planting {
    application(draw.direction(), Role::Receiver, work(draw))
}

pub(super) fn sender_core(draw: &mut Draw) -> Planting {
    application(draw.direction(), Role::Sender, work(draw))
}

pub(super) fn receiver_app(draw: &mut Draw) -> Planting {
    application(draw.direction(), Role::Receiver, pause(draw))
}

pub(super) fn sender_app(draw: &mut Draw) -> Planting {
    application(draw.direction(), Role::Sender, pause(draw))
}

/// A pace limits both directions: the client requests it, and both ends of a stream apply it.
pub(super) fn pacing(draw: &mut Draw) -> Planting {
    let direction = draw.direction();
    let rate = Rate(draw.one(&[100_000_000, 500_000_000, 1_000_000_000]));
    let pace = Fault::Environment {
        side: Side::Near,
        name: "LINERATE_PACING".to_owned(),
        value: rate.exact(),
    };
    Planting::slow(direction, direction.sender(), pace)
}
