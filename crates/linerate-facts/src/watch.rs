//! What changes on a machine: the differences between two readings of its counters.

use std::collections::BTreeMap;

use super::Gap;
use super::cpu::Busy;
use super::nic::Counter;
use super::nic::counted::{Meaning, is_of_kernel, meaning, sounds_bad};
use linerate_units::{Nanos, Rate};

/// The activity of a machine between two readings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// Time from the first reading to the second.
    pub time: Nanos,
    /// Activity of the CPUs; `None` if unknown.
    pub busy: Option<Busy>,
    /// Activity of the ports that are in both readings, in the order of their indices.
    pub ports: Vec<PortChange>,
    /// Readings that failed since the previous one.
    pub gaps: Vec<Gap>,
}

/// Counters of a port: the used part of `struct rtnl_link_stats64`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets that the port received.
    pub rx_packets: u64,
    /// Packets that the port sent.
    pub tx_packets: u64,
    /// Bytes that the port received.
    pub rx_bytes: u64,
    /// Bytes that the port sent.
    pub tx_bytes: u64,
    /// Damaged packets received.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Packets received but dropped by the host.
    pub rx_dropped: u64,
    /// Packets dropped while sending.
    pub tx_dropped: u64,
    /// Number of collisions on the wire.
    pub collisions: u64,
    /// Packets received with a wrong checksum.
    pub rx_crc_errors: u64,
    /// Packets lost because the receive queue overran.
    pub rx_fifo_errors: u64,
    /// Packets lost because the host had no buffer for them.
    pub rx_missed: u64,
}

/// A port's counters at the time of a reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortCount {
    /// Name of the port.
    pub name: String,
    /// Whether the port is up, with carrier.
    pub up: bool,
    /// The kernel's counters of the port.
    pub stats: LinkStats,
    /// Number of interrupts of the port's device, by the CPU that served them.
    pub interrupts: BTreeMap<u32, u64>,
    /// Driver of the port; empty if it has none.
    pub driver: String,
    /// The driver's counters, added up over all queues.
    pub counters: Vec<Counter>,
}

/// A counter of a driver that grew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grown {
    /// Name of the counter.
    pub name: String,
    /// How much the counter grew between two readings.
    pub by: u64,
    /// What the counter counts; `None` if it is unknown.
    pub meaning: Option<Meaning>,
}

/// The activity of a port between two readings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PortChange {
    /// Name of the port.
    pub name: String,
    /// Whether the port was up, with carrier, at the second reading.
    pub up: bool,
    /// Whether the port was up, with carrier, at the first reading.
    pub was_up: bool,
    /// Received bits per second, by the port's counters.
    pub rx: Rate,
    /// Sent bits per second, by the port's counters.
    pub tx: Rate,
    /// Packets received per second.
    pub rx_packets: f64,
    /// Packets sent per second.
    pub tx_packets: f64,
    /// Interrupts per second, by the CPU that served them. CPUs that served none are left out.
    pub interrupts: Vec<(u32, f64)>,
    /// Errors and drops between the readings, each with its place, without zeros. Not all of them are losses: see
    /// [`PortErrors::counted`](super::nic::PortErrors::counted).
    pub counted: Vec<(&'static str, u64)>,
    /// Counters of the driver that grew, and that mean trouble or have an unknown meaning.
    pub grown: Vec<Grown>,
}

impl PortChange {
    /// Whether the port neither received nor sent a packet.
    pub fn is_quiet(&self) -> bool {
        self.rx_packets + self.tx_packets == 0.0
            && self.counted.is_empty()
            && self.grown.is_empty()
            && self.up == self.was_up
    }
}

/// The activity of a port in the time `time`. `None` if no time passed, or if a counter fell: it was cleared, or
/// another port now has the name.
pub fn port_change(before: &PortCount, after: &PortCount, time: Nanos) -> Option<PortChange> {
    let seconds = (time.0 > 0).then_some(time.0 as f64 / 1e9)?;
    let (old, new) = (&before.stats, &after.stats);
    let rate = |new: u64, old: u64| Some(new.checked_sub(old)? as f64 / seconds);
    let bits = |new, old| Some(Rate((rate(new, old)? * 8.0) as u64));
    let counters = [
        ("rx errors", new.rx_errors, old.rx_errors),
        ("rx dropped or unhandled", new.rx_dropped, old.rx_dropped),
        ("rx missed", new.rx_missed, old.rx_missed),
        ("rx fifo", new.rx_fifo_errors, old.rx_fifo_errors),
        ("rx crc", new.rx_crc_errors, old.rx_crc_errors),
        ("tx errors", new.tx_errors, old.tx_errors),
        ("tx dropped", new.tx_dropped, old.tx_dropped),
        ("collisions", new.collisions, old.collisions),
    ];
    let grown = counters.iter().map(|(name, new, old)| Some((*name, new.checked_sub(*old)?)));
    let counted = grown.collect::<Option<Vec<_>>>()?;
    let served = after.interrupts.iter().map(|(&cpu, &new)| {
        let old = before.interrupts.get(&cpu).copied().unwrap_or(0);
        Some((cpu, rate(new, old)?))
    });
    let interrupts = served.collect::<Option<Vec<_>>>()?;
    Some(PortChange {
        name: after.name.clone(),
        up: after.up,
        was_up: before.up,
        rx: bits(new.rx_bytes, old.rx_bytes)?,
        tx: bits(new.tx_bytes, old.tx_bytes)?,
        rx_packets: rate(new.rx_packets, old.rx_packets)?,
        tx_packets: rate(new.tx_packets, old.tx_packets)?,
        interrupts: interrupts.into_iter().filter(|(_, n)| *n > 0.0).collect(),
        counted: counted.into_iter().filter(|(_, n)| *n > 0).collect(),
        grown: grown_of(before, after),
    })
}

/// The driver's counters that grew, and that mean trouble or have an unknown meaning. A counter that fell was cleared,
/// or is no counter. Counters that the kernel has for every port are skipped.
fn grown_of(before: &PortCount, after: &PortCount) -> Vec<Grown> {
    let grown = |new: &Counter| {
        let old = before.counters.iter().find(|old| old.name == new.name)?;
        let by = new.value.checked_sub(old.value).filter(|by| *by > 0)?;
        let meaning = meaning(&after.driver, &new.name);
        let tells = match meaning {
            Some(meaning) => meaning.is_trouble() && !is_of_kernel(&new.name),
            None => sounds_bad(&new.name),
        };
        tells.then(|| Grown { name: new.name.clone(), by, meaning })
    };
    after.counters.iter().filter_map(grown).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(bytes: u64, packets: u64, missed: u64, served: &[(u32, u64)]) -> PortCount {
        PortCount {
            name: "eth0".to_owned(),
            up: true,
            stats: LinkStats {
                rx_bytes: bytes,
                rx_packets: packets,
                rx_missed: missed,
                ..LinkStats::default()
            },
            interrupts: served.iter().copied().collect(),
            ..PortCount::default()
        }
    }

    #[test]
    fn rates_are_differences_over_time() {
        let before = count(1000, 10, 5, &[(0, 100), (1, 7)]);
        let after = count(251_000, 210, 6, &[(0, 300), (1, 7), (2, 4)]);
        let got = port_change(&before, &after, Nanos(2_000_000_000)).unwrap();
        assert_eq!((got.rx, got.tx), (Rate(1_000_000), Rate(0)));
        assert!((got.rx_packets - 100.0).abs() < 1e-9);
        assert_eq!(got.counted, [("rx missed", 1)]);
        assert_eq!(got.interrupts, [(0, 100.0), (2, 2.0)]);
        assert!(!got.is_quiet());
    }

    #[test]
    fn what_the_driver_counts_is_told_where_it_is_trouble_or_unknown() {
        let at = |driver: &str, values: [(&str, u64); 4]| PortCount {
            driver: driver.to_owned(),
            counters: values.map(|(name, value)| Counter { name: name.to_owned(), value }).to_vec(),
            ..count(1, 1, 0, &[])
        };
        let result_of = |driver: &str, names: [&str; 4], old: u64, new: u64| {
            let [before, after] = [old, new].map(|n| at(driver, names.map(|name| (name, n))));
            let change = port_change(&before, &after, Nanos(1)).unwrap();
            let grown = change.grown.iter();
            grown.map(|g| (g.name.clone(), g.by, g.meaning.map(Meaning::id))).collect::<Vec<_>>()
        };
        let ixgbe = ["rx_no_dma_resources", "tx_busy", "rx_missed_errors", "new_drops"];
        let want = [
            ("rx_no_dma_resources".to_owned(), 3, Some("ring-full")),
            ("new_drops".to_owned(), 3, None),
        ];
        assert_eq!(result_of("ixgbe", ixgbe, 5, 8), want);
        assert_eq!(result_of("ixgbe", ixgbe, 5, 5), []);
        assert_eq!(result_of("ixgbe", ixgbe, 5, 4), [], "cleared");
        let ena = [
            "conntrack_allowance_available",
            "queue_*_tx_queue_stop",
            "pps_allowance_exceeded",
            "rx_packets",
        ];
        let want = [("pps_allowance_exceeded".to_owned(), 1, Some("allowance"))];
        assert_eq!(result_of("ena", ena, 7, 8), want);
    }

    #[test]
    fn without_time_or_with_counters_that_fell_nothing_is_told() {
        let (low, high) = (count(1, 1, 0, &[(0, 1)]), count(2, 2, 0, &[(0, 2)]));
        assert_eq!(port_change(&low, &high, Nanos(0)), None);
        assert_eq!(port_change(&high, &low, Nanos(1)), None);
        let cleared = count(3, 3, 0, &[(0, 1)]);
        assert_eq!(port_change(&high, &cleared, Nanos(1)), None);
        assert!(port_change(&low, &low, Nanos(1)).unwrap().is_quiet());
    }

    proptest! {
        #[test]
        fn whatever_the_counters_say_rates_are_numbers(
            old: [u64; 3],
            new: [u64; 3],
            time in prop_oneof![Just(0), Just(1), any::<u64>()],
        ) {
            let count = |[a, b, c]: [u64; 3]| count(a, b, c, &[(0, a), (1, b)]);
            let change = port_change(&count(old), &count(new), Nanos(time));
            let fell = old.iter().zip(&new).any(|(old, new)| new < old);
            prop_assert_eq!(change.is_none(), fell || time == 0);
            if let Some(change) = change {
                prop_assert!(change.rx_packets.is_finite() && change.rx_packets >= 0.0);
                prop_assert!(change.interrupts.iter().all(|(_, n)| n.is_finite() && *n > 0.0));
            }
        }
    }

    #[test]
    fn a_link_that_went_down_is_not_quiet() {
        let before = count(1, 1, 0, &[]);
        let after = PortCount { up: false, ..before.clone() };
        assert!(!port_change(&before, &after, Nanos(1)).unwrap().is_quiet());
    }
}
