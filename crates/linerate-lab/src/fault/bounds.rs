//! Bounds of the numbers in faults.

use std::ops::RangeInclusive;

use linerate_units::{Bytes, Nanos, Rate};

/// Rates to which a planted fault may limit a link.
pub(super) const RATES: RangeInclusive<Rate> = Rate(100_000)..=Rate(300_000_000_000);
/// The error message for a rate outside [`RATES`].
pub(super) const RATE: &str = "the rate is outside 100 kb/s to 300 Gb/s";

/// Sizes that a limit of buffers may have. Below them, the kernel's own minimum for a socket applies.
pub(super) const BUFFERS: RangeInclusive<Bytes> = Bytes(4096)..=Bytes(1 << 30);
/// The error message for a size outside [`BUFFERS`].
pub(super) const BUFFER: &str = "the size is outside 4 KiB to 1 GiB";

/// Sizes of a short queue in a host, in bytes.
pub(super) const ROOMS: RangeInclusive<Bytes> = Bytes(2_000)..=Bytes(1 << 30);

/// Sizes of IP packets, in bytes.
pub(super) const PACKETS: RangeInclusive<u32> = 576..=65535;

/// Delays of packets.
pub(super) const DELAYS: RangeInclusive<Nanos> = Nanos(1)..=Nanos(10_000_000_000);

/// Periods of a tick that releases packets. Shorter ones are no longer than the time that the forwarding process needs
/// for a packet.
pub(super) const PERIODS: RangeInclusive<Nanos> = Nanos(20_000)..=Nanos(10_000_000);

/// Numbers of spinning threads: more would have no further effect.
pub(super) const THREADS: RangeInclusive<u32> = 1..=64;
