//! Rule about RoCE ports that lose packets while neither pauses nor congestion marks prevent losses.

use super::super::Finding;
use super::{Odd, netdev, ports};
use crate::Inventory;
use crate::advice::{Advice, Step};
use crate::infiniband::counted::Meaning;
use crate::infiniband::{IbDevice, IbPort, Layer};
use crate::nic::counted;
use linerate_units::shell::word;

/// Fewest lost packets for a finding. Fewer may be lost when a link goes down.
const LOST_LEAST: u64 = 100;

/// RoCE ports that count lost packets, while neither an ECN mark nor a pause of a priority was ever counted.
pub(in super::super) fn lossy(inventory: &Inventory) -> Vec<Finding> {
    ports(inventory, "rdma-loss", |device, port| {
        let is_roce = port.layer == Some(Layer::Ethernet) && !device.software;
        let lost =
            of(port, &[Meaning::MissingReported, Meaning::ResponseMissing, Meaning::OutOfOrder])?;
        let marked = of(
            port,
            &[Meaning::CongestionMarked, Meaning::CongestionSent, Meaning::CongestionReceived],
        )?;
        let unguarded = marked == 0 && paused(inventory, device, port) != Some(true);
        (is_roce && lost >= LOST_LEAST && unguarded).then(|| odd(inventory, device, port, lost))
    })
}

/// The sum of a port's counters with these meanings; `None` if the port has no such counter.
fn of(port: &IbPort, meanings: &[Meaning]) -> Option<u64> {
    let name = |name: &str| Meaning::of(name.strip_prefix("hw.").unwrap_or(name));
    let counters = port.counters.iter();
    let found = counters.filter(|c| name(&c.name).is_some_and(|m| meanings.contains(&m)));
    found.map(|counter| counter.value).reduce(u64::saturating_add)
}

/// Whether the network port of an RDMA port counted a pause; `None` if that port or its counters are unknown, as in a
/// tree of files.
fn paused(inventory: &Inventory, device: &IbDevice, port: &IbPort) -> Option<bool> {
    if inventory.lacks("facts.network") {
        return None;
    }
    let name = netdev(inventory, device, port)?;
    let nic = inventory.network.nics.iter().find(|nic| nic.name == name)?;
    let is_pause = |name: &str| {
        use counted::Meaning::{PauseReceived, PauseSent, PriorityPause};
        let meaning = counted::meaning(&nic.driver, name);
        matches!(meaning, Some(PriorityPause | PauseReceived | PauseSent))
    };
    Some(nic.counters.iter().any(|counter| counter.value > 0 && is_pause(&counter.name)))
}

fn odd(inventory: &Inventory, device: &IbDevice, port: &IbPort, lost: u64) -> Odd {
    let show = match netdev(inventory, device, port) {
        Some(name) => Step::on(None, format!("dcb pfc show dev {}", word(name))),
        None => Step::on(
            None,
            format!("rdma statistic show link {}/{}", word(&device.name), port.number),
        ),
    };
    let pauses = match paused(inventory, device, port) {
        Some(_) => "No ECN mark and no pause was counted",
        None => "No ECN mark was counted; whether there were pauses is unknown",
    };
    (
        format!("{lost} packets of RoCE were lost or late since the counters were cleared. {pauses}"),
        "RoCE sends again from the first lost packet on: a small loss costs most of the rate",
        Advice::new(
            "let the network mark packets (ECN) or pause the priority of RoCE (PFC), on the hosts and on each switch between",
        )
        .step(show.about("whether this port pauses a priority")),
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::ids;
    use super::*;
    use crate::nic::{Counter, Nic};

    fn machine(layer: Layer, counters: &[(&str, u64)], pauses: u64) -> Inventory {
        let counter =
            |(name, value): &(&str, u64)| Counter { name: (*name).to_owned(), value: *value };
        let mut machine = Inventory::default();
        machine.infiniband.devices = vec![IbDevice {
            name: "mlx5_0".to_owned(),
            pci: "0000:01:00.0".to_owned(),
            ports: vec![IbPort {
                number: 1,
                layer: Some(layer),
                counters: counters.iter().map(counter).collect(),
                ..IbPort::default()
            }],
            ..IbDevice::default()
        }];
        machine.network.nics = vec![Nic {
            name: "eth2".to_owned(),
            driver: "mlx5_core".to_owned(),
            pci: "0000:01:00.0".to_owned(),
            counters: vec![counter(&("rx_prio3_pause", pauses))],
            ..Nic::default()
        }];
        machine
    }

    #[test]
    fn loss_without_ecn_and_pauses_is_odd() {
        let result_of = |lost, marked, pauses| {
            let counters =
                [("hw.out_of_sequence", lost), ("hw.np_ecn_marked_roce_packets", marked)];
            ids(&machine(Layer::Ethernet, &counters, pauses))
        };
        assert_eq!(result_of(100, 0, 0), ["rdma-loss"]);
        assert_eq!(result_of(99, 0, 0), [""; 0]);
        assert_eq!(result_of(100, 1, 0), [""; 0], "ECN acts");
        assert_eq!(result_of(100, 0, 1), [""; 0], "PFC acts");
    }

    #[test]
    fn what_is_not_counted_and_what_is_no_roce_is_not_odd() {
        let lost = ("hw.out_of_sequence", 5_000);
        assert_eq!(ids(&machine(Layer::Ethernet, &[lost], 0)), [""; 0], "no counter of marks");
        let counters = [lost, ("hw.np_cnp_sent", 0)];
        assert_eq!(ids(&machine(Layer::InfiniBand, &counters, 0)), [""; 0]);
        let mut software = machine(Layer::Ethernet, &counters, 0);
        software.infiniband.devices[0].software = true;
        assert_eq!(ids(&software), [""; 0]);
    }
}
