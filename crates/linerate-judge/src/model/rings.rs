//! Packets that cards and their drivers dropped, and that the kernel does not count itself: `rx_no_dma_resources` of
//! ixgbe and `pkts rx OOB` of vmxnet3 are in no statistics of the port.

use super::driver::{Counted, counters};
use super::readings::{Window, per_second};
use super::{Local, LocalEvent};
use linerate_facts::metric as m;
use linerate_facts::nic::counted::Meaning;
use linerate_plan::path::Side;
use linerate_record::{Host, Step};
use linerate_units::Nanos;

/// Events under which the kernel may count packets that the driver counts as well: they must not be counted twice.
const RECEIVED: [LocalEvent; 2] = [LocalEvent::Ring, LocalEvent::Arrival];
const SENT: [LocalEvent; 1] = [LocalEvent::Departure];

/// Adds the drops that drivers of both ends counted and that the kernel did not count.
pub(super) fn add(all: &mut Vec<Local>, hosts: &[Host], step: &Step, window: Window) {
    for side in [Side::Near, Side::Far] {
        let counted: Vec<Counted<'_>> = counters(hosts, step, side).collect();
        let mut ports: Vec<&str> = counted.iter().map(|one| one.port).collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            let own = || counted.iter().filter(|one| one.port == port);
            let most = |meaning| largest(own().filter(|one| one.meaning == meaning), window);
            let received = [most(Meaning::RingFull), most(Meaning::BufferFull)];
            beyond(all, (side, port), received, (LocalEvent::Ring, &RECEIVED), window);
            let sent = [most(Meaning::SendDropped), None];
            beyond(all, (side, port), sent, (LocalEvent::Departure, &SENT), window);
        }
    }
}

/// The counter that grew most, and its growth per second. Some drivers count one packet under several names.
fn largest<'a>(
    counted: impl Iterator<Item = &'a Counted<'a>>,
    window: Window,
) -> Option<(&'a str, f64)> {
    let rates = counted.filter_map(|one| {
        let rate = per_second(one.table, m::DRIVER_COUNT, window)?;
        Some((one.name, rate))
    });
    rates.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Reports the drops that a driver counted as `what`, less the number that the kernel counted under `known`: these may
/// be the same packets. Drops that the kernel only counts as dropped on arrival are reported under the driver's
/// counter.
fn beyond(
    all: &mut Vec<Local>,
    (side, port): (Side, &str),
    found: [Option<(&str, f64)>; 2],
    (what, known): (LocalEvent, &[LocalEvent]),
    window: Window,
) {
    let found: Vec<(&str, f64)> = found.into_iter().flatten().collect();
    let Some((name, _)) = found.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return;
    };
    let same =
        |local: &Local, event| local.side == side && local.what == event && local.subject == port;
    let of = |all: &[Local], event| -> f64 {
        let same = all.iter().filter(|local| same(local, event));
        same.map(|local| local.per_sec).sum()
    };
    let total: f64 = found.iter().map(|(_, rate)| rate).sum();
    let named = known.iter().filter(|event| **event == what);
    let rest = total - named.map(|event| of(all, *event)).sum::<f64>();
    if rest <= 0.0 {
        return;
    }
    for event in known.iter().filter(|event| **event != what) {
        let counted = of(all, *event);
        let left = (counted - rest).max(0.0);
        for local in all.iter_mut().filter(|local| same(local, *event)) {
            local.count *= left / counted.max(f64::MIN_POSITIVE);
            local.per_sec = left;
        }
    }
    all.retain(|local| local.per_sec > 0.0);
    let secs = Nanos(window.to.saturating_sub(window.from)).secs();
    all.push(Local {
        side,
        what,
        subject: format!("{port} {name}"),
        count: rest * secs,
        per_sec: rest,
        bytes: None,
        meant: None,
    });
}

#[cfg(test)]
mod tests {
    use super::super::local::tests::{host, loaded};
    use super::super::testing::{WHOLE, table};
    use super::*;

    /// The reported drops of the ring, and other drops on arrival, for a second in which the kernel counted `missed`
    /// and `dropped` packets for a port of this driver, and the driver counted `own`.
    fn result_of(driver: &str, missed: i64, dropped: i64, own: &[(&str, i64)]) -> [u64; 2] {
        let kernel = [(m::PORT_RX_MISSED, [7, 7 + missed]), (m::PORT_RX_DROPPED, [7, 7 + dropped])];
        let own = own.iter().map(|(name, grown)| {
            let subject = format!("eth0 {name}");
            table(&subject, &[(m::DRIVER_COUNT, [5, 5 + grown])])
        });
        let tables = std::iter::once(table("eth0", &kernel)).chain(own);
        let step = loaded(tables.collect());
        let all = super::super::local::local(&[host(driver)], None, &step, WHOLE);
        [LocalEvent::Ring, LocalEvent::Arrival].map(|what| {
            let of = all.iter().filter(|local| local.what == what);
            of.map(|local| local.per_sec.round() as u64).sum()
        })
    }

    #[test]
    fn what_only_the_driver_counts_is_told() {
        assert_eq!(result_of("ixgbe", 0, 0, &[("rx_no_dma_resources", 90)]), [90, 0]);
        assert_eq!(result_of("vmxnet3", 0, 0, &[("pkts rx OOB", 90)]), [90, 0]);
        assert_eq!(result_of("vmxnet3", 0, 0, &[("ring full", 90)]), [0, 0], "it waits");
        assert_eq!(result_of("unheard", 0, 0, &[("pkts rx OOB", 90)]), [0, 0], "unknown driver");
    }

    #[test]
    fn what_the_kernel_counts_as_well_is_told_once() {
        let out_of_buffer =
            |missed, dropped| result_of("mlx5_core", missed, dropped, &[("rx_out_of_buffer", 90)]);
        assert_eq!(out_of_buffer(90, 0), [90, 0]);
        assert_eq!(out_of_buffer(100, 0), [100, 0]);
        assert_eq!(out_of_buffer(0, 90), [90, 0], "it is the ring");
        assert_eq!(out_of_buffer(0, 100), [90, 10]);
        assert_eq!(out_of_buffer(50, 10), [90, 0]);
        let both = [("rx_missed_errors", 30), ("rx_no_dma_resources", 60)];
        assert_eq!(result_of("ixgbe", 30, 0, &both), [90, 0]);
        let twice = [("[0]: rx_discards", 60), ("rx_total_ring_discards", 60)];
        assert_eq!(result_of("bnxt_en", 0, 0, &twice), [60, 0]);
    }
}
