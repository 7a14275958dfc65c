//! Counters of a port. A counter of up to 32 bits stops at its largest value and does not wrap.

use super::Data;
use super::fields::Fields;

/// Which counters a node has, and with how many bits.
//= InfiniBand Architecture Specification 1.4, volume 1, section 16.1.3.1
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Support {
    /// Whether payload and packets have counters of 64 bits.
    pub wide: bool,
    /// Whether errors and waits have counters of 64 bits, too.
    pub wide_errors: bool,
    /// Whether waits for credits are counted.
    pub wait: bool,
}

/// Bits of the capability mask in ClassPortInfo.
const WIDE: u16 = 1 << 9;
const WIDE_WITHOUT_KINDS: u16 = 1 << 10;
const WAIT: u16 = 1 << 12;
/// Bit of the second capability mask, which has 27 bits.
//= libibmad, iba_types.h: IB_PM_IS_ADDL_PORT_CTRS_EXT_SUP
const WIDE_ERRORS: u32 = 1 << 1;

impl Support {
    /// Decodes the capability masks in the attribute ClassPortInfo.
    pub fn decode(Data(of): Data<'_>) -> Self {
        let mask = of.u16(2);
        let wide = mask & (WIDE | WIDE_WITHOUT_KINDS) != 0;
        Self {
            wide,
            wide_errors: wide && of.u32(4) >> 5 & WIDE_ERRORS != 0,
            wait: mask & WAIT != 0,
        }
    }
}

/// The event that a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Symbols that arrived damaged.
    Symbols,
    /// Other damage on the link into this port, and its effects on the link.
    Damage,
    /// Times that the link went down or was trained again. The reboot of a neighbour counts as well.
    Breaks,
    /// Packets that were damaged before they reached the link into this port.
    Remote,
    /// Packets that a switch could not forward. Multicast in a loop counts as well.
    Relay,
    /// Packets that the port dropped because it could not send them in time, or at all.
    Discards,
    /// Packets that the port refused, mostly because of their partition.
    Refused,
    /// Management packets that were dropped because there was no room.
    Management,
    /// Payload in units of four bytes, sent or received.
    Words,
    /// Number of packets, sent or received.
    Packets,
    /// Time in which the port had data to send and no credits, in units that depend on the device.
    Waits,
}

/// A counter: its name in the kernel (`/sys/class/infiniband/*/ports/*/counters`), its place in PortCounters in bits,
/// and its place in PortCountersExtended in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// The name of the counter in the kernel.
    pub name: &'static str,
    /// The event that it counts.
    pub counted: Counted,
    bit: usize,
    bits: u32,
    wide: usize,
}

const fn row(name: &'static str, counted: Counted, bit: usize, bits: u32, wide: usize) -> Counter {
    Counter { name, counted, bit, bits, wide }
}

/// Number of counters of a port.
pub const COUNT: usize = 17;

/// All counters of a port.
//= InfiniBand Architecture Specification 1.4, volume 1, sections 16.1.3.5 and 16.1.4.11; libibmad, fields.c
pub const COUNTERS: [Counter; COUNT] = [
    row("symbol_error", Counted::Symbols, 32, 16, 72),
    row("link_error_recovery", Counted::Breaks, 48, 8, 80),
    row("link_downed", Counted::Breaks, 56, 8, 88),
    row("port_rcv_errors", Counted::Damage, 64, 16, 96),
    row("port_rcv_remote_physical_errors", Counted::Remote, 80, 16, 104),
    row("port_rcv_switch_relay_errors", Counted::Relay, 96, 16, 112),
    row("port_xmit_discards", Counted::Discards, 112, 16, 120),
    row("port_xmit_constraint_errors", Counted::Refused, 128, 8, 128),
    row("port_rcv_constraint_errors", Counted::Refused, 136, 8, 136),
    row("local_link_integrity_errors", Counted::Damage, 152, 4, 144),
    row("excessive_buffer_overrun_errors", Counted::Damage, 156, 4, 152),
    row("VL15_dropped", Counted::Management, 176, 16, 160),
    row("port_xmit_data", Counted::Words, 192, 32, 8),
    row("port_rcv_data", Counted::Words, 224, 32, 16),
    row("port_xmit_packets", Counted::Packets, 256, 32, 24),
    row("port_rcv_packets", Counted::Packets, 288, 32, 32),
    row("port_xmit_wait", Counted::Waits, 320, 32, 168),
];

impl Counter {
    fn read(&self, of: Fields<'_>) -> u64 {
        let whole = of.u64(self.bit / 8);
        whole << (self.bit % 8) >> (64 - self.bits)
    }

    /// Whether the counter counts payload or packets.
    fn is_traffic(&self) -> bool {
        matches!(self.counted, Counted::Words | Counted::Packets)
    }

    /// Whether a node with this `support` has 64 bits for the counter.
    fn is_wide(&self, support: Support) -> bool {
        support.wide_errors || support.wide && self.is_traffic()
    }
}

/// Values of all counters of a port, in the order of [`COUNTERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// The values, each at the index of its counter in [`COUNTERS`].
    pub values: [u64; COUNT],
    /// Which of the values have 64 bits.
    wide: Support,
}

impl Counters {
    /// Decodes the attribute PortCounters.
    pub fn decode(Data(of): Data<'_>) -> Self {
        Self { values: COUNTERS.map(|counter| counter.read(of)), wide: Support::default() }
    }

    /// Replaces the values that the attribute PortCountersExtended has with 64 bits.
    #[must_use]
    pub fn with_wide(mut self, support: Support, Data(of): Data<'_>) -> Self {
        for (value, counter) in self.values.iter_mut().zip(COUNTERS) {
            if counter.is_wide(support) {
                *value = of.u64(counter.wide);
            }
        }
        self.wide = support;
        self
    }

    /// Returns whether the counter with this index is at its largest value, at which it stops.
    pub fn is_full(&self, index: usize) -> bool {
        let counter = &COUNTERS[index];
        let bits = if counter.is_wide(self.wide) { 64 } else { counter.bits };
        self.values[index] == u64::MAX >> (64 - bits)
    }
}
