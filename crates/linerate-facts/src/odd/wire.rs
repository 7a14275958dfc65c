//! Rules about ports whose medium or card is the limit: Wi-Fi, links that go up and down, cards that drop received
//! packets.

use super::Finding;
use crate::Inventory;
use crate::advice::{Advice, Step};
use crate::nic::counted::{self, Meaning};
use crate::nic::{Network, Nic};
use linerate_units::shell::word;

/// A Wi-Fi port through which packets leave the machine.
pub(super) fn wifi(inventory: &Inventory, nic: &Nic) -> Option<Finding> {
    let network = &inventory.network;
    (nic.up && nic.is_wifi && is_path(network, nic)).then(|| {
        Finding::new(
            "port-wifi",
            &nic.name,
            "packets leave by Wi-Fi: both ways share the air with all stations near, \
             and the rate changes",
        )
        .why(
            "rates and delays vary from second to second, and the figures of wired \
             ports say nothing about this path",
        )
        .fix(
            Advice::new("measure by a cable, or with the station near its access point")
                .step(show(nic)),
        )
    })
}

fn show(nic: &Nic) -> Step {
    Step::on(None, format!("iw dev {} link", word(&nic.name))).about("its rate and signal now")
}

/// Whether the default route leaves through this port; if routes are unknown, whether no other card is up.
fn is_path(network: &Network, nic: &Nic) -> bool {
    let is_card = |other: &&Nic| other.up && !other.is_virtual && !other.is_wifi;
    match &network.default_ports {
        Some(names) if !names.is_empty() => {
            let tops = network.nics.iter().filter(|top| names.contains(&top.name));
            tops.flat_map(|top| network.leaves(top.index)).any(|leaf| leaf == nic.index)
        }
        _ => !network.nics.iter().any(|other| is_card(&other)),
    }
}

/// Ports whose link goes down again and again, because of a cable or a transceiver.
pub(super) fn flaps(_: &Inventory, nic: &Nic) -> Option<Finding> {
    /// Fewest changes of a link for a finding. A cable is not pulled out and put in so often.
    const CHANGES_LEAST: u32 = 1000;
    let changes = nic.errors.carrier_changes.filter(|n| *n >= CHANGES_LEAST)?;
    let has_wire = !nic.is_virtual && !nic.is_wifi && nic.kind.is_empty();
    has_wire.then(|| {
        Finding::new(
            "port-flaps",
            &nic.name,
            format!("its link went up or down {changes} times since boot"),
        )
        .why("each time all packets are lost for seconds, and connections start slowly again")
        .fix(
            Advice::new(
                "see whether it goes on; if so, change the cable or the transceiver, then \
                 the port at the other end",
            )
            .on(None, format!("sudo dmesg -T | grep -F {}", word(&format!("{}: ", nic.name)))),
        )
    })
}

/// Cards that had no room for so many received packets that senders notice.
pub(super) fn drops(_: &Inventory, nic: &Nic) -> Option<Finding> {
    /// Smallest share of dropped packets for a finding. With this share lost, a connection with loss-based congestion
    /// control carries 38 Mb/s at a round trip of 12 ms.
    //= Mathis et al. 1997: 1.22 x 1460 bytes / (12 ms x sqrt(0.001))
    const LOST_SHARE: f64 = 0.001;
    /// Fewest dropped packets for a finding. A single burst may drop fewer.
    const LOST_LEAST: u64 = 1_000;
    let (name, lost) = lost(nic)?;
    let share = lost as f64 / (lost as f64 + nic.errors.rx_packets? as f64).max(1.0);
    (nic.up && lost >= LOST_LEAST && share >= LOST_SHARE).then(|| {
        let what = format!(
            "{lost} packets that arrived since boot found no room and were dropped ({name}): \
             {:.1} % of all",
            share * 100.0
        );
        let why = "the machine takes packets from the card too slowly: senders slow down at \
                   each loss";
        let fix = Advice::new(
            "see whether they grow under load; if so, give the port a larger ring, more queues \
             or CPUs, or let the other end wait (flow control)",
        );
        let fix = fix
            .on(None, "linerate host --watch")
            .on(None, format!("ethtool -g {}", word(&nic.name)))
            .on(None, format!("ethtool -a {}", word(&nic.name)));
        Finding::new("local-drops", &nic.name, what).why(why).fix(fix)
    })
}

/// The largest counter of packets that found no room, with its name. Counters are not added, since one may contain
/// others.
fn lost(nic: &Nic) -> Option<(&str, u64)> {
    let kernel = [("rx missed", nic.errors.rx_missed), ("rx fifo", nic.errors.rx_fifo)];
    let kernel = kernel.into_iter().filter_map(|(name, n)| Some((name, n?)));
    let is_full = |name: &str| {
        let meaning = counted::meaning(&nic.driver, name);
        matches!(meaning, Some(Meaning::RingFull | Meaning::BufferFull))
    };
    let own = nic.counters.iter().filter(|counter| is_full(&counter.name));
    let own = own.map(|counter| (counter.name.as_str(), counter.value));
    kernel.chain(own).max_by_key(|(_, n)| *n)
}

#[cfg(test)]
mod tests {
    use super::super::ids;
    use super::*;
    use crate::nic::Counter;
    use crate::nic::tests::nic;

    fn machine(nics: Vec<Nic>, default_ports: Option<&[&str]>) -> Inventory {
        let mut machine = Inventory::default();
        machine.network.nics = nics;
        let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
        machine.network.default_ports = default_ports.map(names);
        machine
    }

    fn card(index: u32, is_wifi: bool) -> Nic {
        let mut card = nic(index, &[]);
        (card.up, card.is_wifi) = (true, is_wifi);
        card
    }

    #[test]
    fn wifi_is_told_where_the_path_leaves_by_it() {
        let result_of = |default: Option<&[&str]>, wired: bool| {
            let mut bridge = nic(9, &[2]);
            bridge.is_virtual = true;
            let mut nics = vec![card(2, true), bridge];
            nics.extend(wired.then(|| card(3, false)));
            ids(&machine(nics, default))
        };
        assert_eq!(result_of(Some(&["eth2"]), true), ["port-wifi"]);
        assert_eq!(result_of(Some(&["eth9"]), true), ["port-wifi"], "through a bridge");
        assert_eq!(result_of(Some(&["eth3"]), true), [""; 0], "by cable");
        assert_eq!(result_of(None, true), [""; 0], "unknown");
        assert_eq!(result_of(None, false), ["port-wifi"], "nothing else is up");
        assert_eq!(result_of(Some(&[]), false), ["port-wifi"]);
        let mut down = card(2, true);
        down.up = false;
        assert_eq!(ids(&machine(vec![down], Some(&["eth2"]))), [""; 0]);
    }

    #[test]
    fn a_link_that_changed_a_thousand_times_is_odd() {
        let result_of = |changes: u32, change: fn(&mut Nic)| {
            let mut card = card(2, false);
            card.errors.carrier_changes = Some(changes);
            change(&mut card);
            ids(&machine(vec![card], None))
        };
        assert_eq!(result_of(999, |_| {}), [""; 0]);
        assert_eq!(result_of(1000, |_| {}), ["port-flaps"]);
        assert_eq!(result_of(5000, |nic| nic.is_virtual = true), [""; 0], "containers come and go");
        assert_eq!(
            result_of(5000, |nic| (nic.is_wifi, nic.up) = (true, false)),
            [""; 0],
            "it roams"
        );
    }

    #[test]
    fn one_packet_of_a_thousand_that_found_no_room_is_odd() {
        let result_of = |driver: &str, counter: &str, lost: u64, packets: Option<u64>| {
            let mut card = card(2, false);
            driver.clone_into(&mut card.driver);
            card.errors.rx_packets = packets;
            card.counters = vec![Counter { name: counter.to_owned(), value: lost }];
            ids(&machine(vec![card], None))
        };
        let usb = |lost, packets| result_of("lan78xx", "RX Dropped Frames", lost, packets);
        // The share is that of dropped packets among all that arrived, dropped or not.
        assert_eq!(usb(1_000, Some(999_000)), ["local-drops"]);
        assert_eq!(usb(1_000, Some(999_001)), [""; 0]);
        assert_eq!(usb(1_000, Some(0)), ["local-drops"]);
        assert_eq!(usb(999, Some(1_000)), [""; 0]);
        assert_eq!(usb(5_000, None), [""; 0], "of how many?");
        assert_eq!(
            result_of("ixgbe", "rx_no_dma_resources", 5_000, Some(1_000_000)),
            ["local-drops"]
        );
        assert_eq!(result_of("unheard", "some_drops", 5_000, Some(1_000_000)), [""; 0]);
        let mut card = card(2, false);
        (card.errors.rx_packets, card.errors.rx_missed) = (Some(1_000_000), Some(2_000));
        assert_eq!(ids(&machine(vec![card], None)), ["local-drops"], "by the kernel's count");
    }
}
