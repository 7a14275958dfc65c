//! Counters of a port. A counter of up to 32 bits stops at its largest value.

use super::Data;
use super::fields::Fields;

/// What the counters of a node can do.
//= InfiniBand Architecture Specification 1.4, volume 1, section 16.1.3.1
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Support {
    /// Whether payload and packets have counters of 64 bits.
    pub wide: bool,
    /// Whether waits for credits are counted.
    pub wait: bool,
}

/// Bits of the capability mask.
const WIDE: u16 = 1 << 9;
const WIDE_WITHOUT_KINDS: u16 = 1 << 10;
const WAIT: u16 = 1 << 12;

impl Support {
    /// Decodes the attribute ClassPortInfo.
    pub fn decode(Data(of): Data<'_>) -> Self {
        let mask = of.u16(2);
        Self {
            wide: mask & (WIDE | WIDE_WITHOUT_KINDS) != 0,
            wait: mask & WAIT != 0,
        }
    }
}

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Errors or drops.
    Errors,
    /// Payload in units of four bytes, sent or received.
    Words,
    /// Packets.
    Packets,
    /// Times in which the port had data to send and no credits, in units that depend on the device.
    Waits,
}

/// A counter: its name in the kernel (`/sys/class/infiniband/*/ports/*/counters`), and its place in PortCounters in
/// bits.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// The name.
    pub name: &'static str,
    /// What it counts.
    pub counted: Counted,
    bit: usize,
    bits: u32,
}

const fn row(name: &'static str, counted: Counted, bit: usize, bits: u32) -> Counter {
    Counter {
        name,
        counted,
        bit,
        bits,
    }
}

/// Number of counters.
pub const COUNT: usize = 17;

/// All counters.
//= InfiniBand Architecture Specification 1.4, volume 1, section 16.1.3.5
pub const COUNTERS: [Counter; COUNT] = [
    row("symbol_error", Counted::Errors, 32, 16),
    row("link_error_recovery", Counted::Errors, 48, 8),
    row("link_downed", Counted::Errors, 56, 8),
    row("port_rcv_errors", Counted::Errors, 64, 16),
    row("port_rcv_remote_physical_errors", Counted::Errors, 80, 16),
    row("port_rcv_switch_relay_errors", Counted::Errors, 96, 16),
    row("port_xmit_discards", Counted::Errors, 112, 16),
    row("port_xmit_constraint_errors", Counted::Errors, 128, 8),
    row("port_rcv_constraint_errors", Counted::Errors, 136, 8),
    row("local_link_integrity_errors", Counted::Errors, 152, 4),
    row("excessive_buffer_overrun_errors", Counted::Errors, 156, 4),
    row("VL15_dropped", Counted::Errors, 176, 16),
    row("port_xmit_data", Counted::Words, 192, 32),
    row("port_rcv_data", Counted::Words, 224, 32),
    row("port_xmit_packets", Counted::Packets, 256, 32),
    row("port_rcv_packets", Counted::Packets, 288, 32),
    row("port_xmit_wait", Counted::Waits, 320, 32),
];

/// Index in [`COUNTERS`] of the first counter that PortCountersExtended has, and the number of these.
const WIDE_FIRST: usize = 12;
const WIDE_COUNT: usize = 4;

impl Counter {
    /// Returns the largest value, at which the counter stops.
    pub const fn most(&self) -> u64 {
        (1 << self.bits) - 1
    }

    fn read(&self, of: Fields<'_>) -> u64 {
        let whole = of.u64(self.bit / 8);
        whole << (self.bit % 8) >> (64 - self.bits)
    }
}

/// Values of all counters of a port, in the order of [`COUNTERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// The values.
    pub values: [u64; COUNT],
    /// Whether payload and packets are counted with 64 bits.
    pub wide: bool,
}

impl Counters {
    /// Decodes the attribute PortCounters.
    pub fn decode(Data(of): Data<'_>) -> Self {
        Self {
            values: COUNTERS.map(|counter| counter.read(of)),
            wide: false,
        }
    }

    /// Replaces the counters of payload and packets by those of 64 bits, which the attribute PortCountersExtended has.
    //= InfiniBand Architecture Specification 1.4, volume 1, section 16.1.4.11
    #[must_use]
    pub fn with_wide(mut self, Data(of): Data<'_>) -> Self {
        let wide = &mut self.values[WIDE_FIRST..WIDE_FIRST + WIDE_COUNT];
        for (n, value) in wide.iter_mut().enumerate() {
            *value = of.u64(8 + 8 * n);
        }
        self.wide = true;
        self
    }

    /// Returns whether the counter with this index is at its largest value.
    pub fn is_full(&self, index: usize) -> bool {
        let is_wide = self.wide && (WIDE_FIRST..WIDE_FIRST + WIDE_COUNT).contains(&index);
        !is_wide && self.values[index] == COUNTERS[index].most()
    }
}
