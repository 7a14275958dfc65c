//! Bounds of the numbers in faults.

use std::ops::RangeInclusive;

use linerate_units::{Bytes, Nanos, Rate};

/// Rates of all faults.
pub(super) const RATES: RangeInclusive<Rate> = Rate(100_000)..=Rate(300_000_000_000);
/// What is said of a rate outside.
pub(super) const RATE: &str = "the rate is outside 100 kb/s to 300 Gb/s";

/// Sizes of a buffer. Below them, the kernel's own minimum of a socket applies.
pub(super) const BUFFERS: RangeInclusive<Bytes> = Bytes(4096)..=Bytes(1 << 30);
/// What is said of a size outside.
pub(super) const BUFFER: &str = "the size is outside 4 KiB to 1 GiB";

/// Sizes of a short queue in a host.
pub(super) const ROOMS: RangeInclusive<Bytes> = Bytes(2_000)..=Bytes(1 << 30);

/// Sizes of IP packets.
pub(super) const PACKETS: RangeInclusive<u32> = 576..=65535;

/// Delays of packets.
pub(super) const DELAYS: RangeInclusive<Nanos> = Nanos(1)..=Nanos(10_000_000_000);

/// Periods of a tick that releases packets. A shorter one is within the time that the forwarding process needs for a
/// packet.
pub(super) const PERIODS: RangeInclusive<Nanos> = Nanos(20_000)..=Nanos(10_000_000);

/// Numbers of spinning threads: more would have no further effect.
pub(super) const THREADS: RangeInclusive<u32> = 1..=64;
