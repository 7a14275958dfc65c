//! Rules about network ports that carry less than they could.

use super::{Finding, affinity, count, cpus, numbered, ranges};
use crate::Inventory;
use crate::advice::{Advice, Step};
use crate::irq::{Irq, remote};
use crate::nic::counted::{self, Meaning};
use crate::nic::{Counter, Nic};
use linerate_units::shell::word;

/// Ports whose driver reports why they have no link.
pub(super) fn no_link(_: &Inventory, nic: &Nic) -> Option<Finding> {
    (!nic.down.is_empty()).then(|| {
        Finding::new("port-no-link", &nic.name, format!("no link: {}", nic.down))
            .why("the driver says so; nothing can leave by this port")
            .fix(
                Advice::new("see what the port and its transceiver report")
                    .on(None, format!("ethtool {}", word(&nic.name)))
                    .step(transceiver(nic)),
            )
    })
}

/// Ports with a half-duplex link, on which only one end sends at a time.
pub(super) fn half_duplex(_: &Inventory, nic: &Nic) -> Option<Finding> {
    (nic.up && nic.is_half()).then(|| {
        Finding::new("duplex", &nic.name, "half duplex: the two ends never talk at once")
            .why("one end negotiates and the other does not, or a hub is between")
            .limiting_itself()
            .fix(match nic.link.autoneg {
                Some(true) => {
                    Advice::new("let the other end negotiate, too: this one does already")
                }
                _ => nic.negotiate(None, "let both ends negotiate; here"),
            })
    })
}

/// Ports whose link is slower than the fastest mode that both ends offer, or fell back from a faster one.
pub(super) fn below_common(_: &Inventory, nic: &Nic) -> Option<Finding> {
    let speed = nic.link.speed?;
    let fell = nic.link.downshifted;
    let common = nic.link.fastest_common().filter(|common| speed < *common);
    let what = match common {
        Some(common) => format!("runs at {speed}, both ends offer {common}"),
        None => format!("fell back to {speed} from a faster speed that was negotiated"),
    };
    (nic.up && (fell || common.is_some())).then(|| {
        Finding::new("port-speed", &nic.name, what)
            .why("a cable with a bad pair or lane, or a speed that was set by hand")
            .limiting_itself()
            .fix(match nic.link.autoneg {
                on if fell || on == Some(true) => {
                    Advice::new("try another cable: both ends negotiate already")
                }
                _ => nic.negotiate(
                    None,
                    "let the two ends negotiate; try another cable if that does not help",
                ),
            })
    })
}

/// Ports whose link is slow because the port offers less than it supports, while the other end offers more.
pub(super) fn offers_less(_: &Inventory, nic: &Nic) -> Option<Finding> {
    let (speed, possible) = (nic.link.speed?, nic.link.fastest_possible()?);
    let offered = nic.link.fastest_offered()?;
    let negotiates = nic.link.autoneg != Some(false);
    (nic.up && negotiates && speed < possible && offered < possible).then(|| {
        Finding::new(
            "port-offer",
            &nic.name,
            format!(
                "runs at {speed}: it offers {offered} at most, though it supports \
                 {possible}, which the other end offers"
            ),
        )
        .why(
            "a setting of this machine, or what its driver left after a sleep, keeps \
             the port from offering more; the cable is not to blame",
        )
        .limiting_itself()
        .fix(nic.offer_all("offer all modes; the link goes down for some seconds"))
    })
}

/// Twisted-pair ports whose speed was fixed by hand below what the port supports.
pub(super) fn fixed(_: &Inventory, nic: &Nic) -> Option<Finding> {
    let (speed, supported) = (nic.link.speed?, nic.link.fastest_of_pairs()?);
    let is_fixed = nic.link.autoneg == Some(false) && nic.link.peer.is_empty();
    (nic.up && is_fixed && !nic.is_half() && speed < supported).then(|| {
        Finding::new(
            "port-fixed",
            &nic.name,
            format!("runs at {speed} without negotiation, though it supports {supported}"),
        )
        .why(
            "its speed was set by hand; an other end that negotiates gets no answer, \
             and then talks half duplex, where packets collide",
        )
        .limiting_itself()
        .fix(nic.negotiate(
            None,
            "negotiate, and let the other end do so; the link goes down for some seconds",
        ))
    })
}

/// The step that shows what a port's transceiver reports.
fn transceiver(nic: &Nic) -> Step {
    Step::on(None, format!("sudo ethtool -m {}", word(&nic.name))).about("if it has a transceiver")
}

/// Whether a counter of a port's driver has the meaning `wanted`.
fn means(nic: &Nic, counter: &Counter, wanted: Meaning) -> bool {
    counted::meaning(&nic.driver, &counter.name) == Some(wanted)
}

/// Ports that received packets damaged on the wire.
pub(super) fn damaged(_: &Inventory, nic: &Nic) -> Option<Finding> {
    let some = |n: Option<u64>| n.filter(|&n| n > 0);
    let blocks = some(nic.fec.as_ref().and_then(|fec| fec.uncorrectable));
    let damaged = |c: &&Counter| {
        counted::likely(&nic.driver, &c.name) == Some(Meaning::Damaged) && c.value > 0
    };
    let own = nic.counters.iter().find(damaged);
    let what = match (some(nic.errors.rx_crc), blocks, own) {
        (_, Some(blocks), _) => format!("{blocks} blocks could not be corrected"),
        (Some(crc), None, _) => format!("{crc} packets arrived with a bad checksum"),
        (None, None, Some(own)) => format!("{} packets were damaged ({})", own.value, own.name),
        (None, None, None) => return None,
    };
    Some(
        Finding::new("port-damaged", &nic.name, format!("{what} since boot"))
            .why("if they still grow, the cable or a transceiver is bad")
            .fix(
                Advice::new(
                    "see whether they still grow; if so, change the cable or the transceiver",
                )
                .on(None, format!("ethtool -S {}", word(&nic.name)))
                .step(transceiver(nic)),
            ),
    )
}

/// Ports with packets beyond what a cloud allows.
pub(super) fn refused(_: &Inventory, nic: &Nic) -> Option<Finding> {
    let refused = nic.counters.iter();
    let refused = refused.filter(|c| c.value > 0 && means(nic, c, Meaning::Allowance));
    let refused: Vec<_> = refused.map(|c| format!("{} {}", c.name, c.value)).collect();
    (!refused.is_empty()).then(|| {
        Finding::new(
            "cloud-allowance",
            &nic.name,
            format!("over the allowance since boot: {}", refused.join(", ")),
        )
        .brief("traffic exceeded the allowance of the cloud since boot")
        .why("the cloud queues or drops traffic above the allowance of this type of machine")
        .fix(Advice::new("use a larger type of machine, or send fewer bursts"))
    })
}

/// A port with a larger MTU than one of the ports below it. Tunnels with known headers have their own rule.
pub(super) fn mtu_above(inventory: &Inventory, nic: &Nic) -> Option<Finding> {
    let network = &inventory.network;
    let tunnel = nic.tunnel();
    if tunnel.is_some_and(|tunnel| tunnel.least.is_some() || tunnel.external) {
        return None;
    }
    let below = nic.stack.below.iter();
    let below = below.filter_map(|&index| network.nic(index));
    let (least, mtu) = below.filter_map(|n| Some((n, n.mtu?))).min_by_key(|(_, mtu)| *mtu)?;
    let own = nic.mtu?;
    (own > mtu).then(|| {
        Finding::new("port-mtu", &nic.name, format!("MTU {own} on {} with {mtu}", least.name))
            .why("packets that fit this port do not fit the one below it: they are lost")
            .fix(set_mtu(nic, own, mtu))
    })
}

/// Advice to give a port the smaller MTU `fits`.
pub(super) fn set_mtu(nic: &Nic, own: u32, fits: u32) -> Advice {
    let set = |mtu: u32| format!("sudo ip link set {} mtu {mtu}", word(&nic.name));
    Advice::new("give it an MTU that fits").set(None, set(fits)).undo_on(None, set(own))
}

/// Queues whose interrupts go to CPUs on other NUMA nodes than the card's.
pub(super) fn remote_interrupts(inventory: &Inventory) -> Vec<Finding> {
    let nodes = &inventory.processors.nodes;
    let topology = inventory.processors.topology();
    let served = inventory.interrupts.by_port(&inventory.network.nics);
    let odd = |nic: &Nic| {
        let node = nodes.iter().find(|n| Some(n.id) == nic.node)?;
        if node.known_cpus().is_empty() {
            return None;
        }
        let remote: Vec<&Irq> = remote(served.get(&nic.index)?, &topology.close_to(node.id)?);
        let numbers: Vec<u32> = remote.iter().map(|irq| irq.number).collect();
        let mut by: Vec<u32> = remote.iter().flat_map(|irq| irq.effective.clone()).collect();
        by.sort_unstable();
        by.dedup();
        (!numbers.is_empty()).then(|| {
            Finding::new(
                "irq-remote",
                &nic.name,
                format!(
                    "{} of its queues ({}) {} to {}, outside node {}, where the card sits",
                    count(numbers.len(), "interrupt"),
                    numbered(&numbers),
                    if numbers.len() == 1 { "goes" } else { "go" },
                    cpus(&by),
                    node.id
                ),
            )
            .brief(format!(
                "{} of its queues {} to CPUs outside the card's node {}",
                count(numbers.len(), "interrupt"),
                if numbers.len() == 1 { "goes" } else { "go" },
                node.id
            ))
            .why("each packet crosses from node to node before it is looked at")
            .fix(to_node(&remote, &ranges(node.known_cpus())))
        })
    };
    inventory.network.nics.iter().filter_map(odd).collect()
}

/// Advice to send interrupts to `cpus`. irqbalance is stopped, since it would send them back.
fn to_node(irqs: &[&Irq], cpus: &str) -> Advice {
    let stop = "if systemctl is-active -q irqbalance; then sudo systemctl stop irqbalance; fi";
    let all = vec![cpus.to_owned(); irqs.len()];
    let advice = Advice::new("send them to the CPUs of that node")
        .step(Step::set(None, stop).about("stop irqbalance, which would send them back"));
    affinity::send(advice, irqs, &all, "then")
        .undo(Step::set(None, "sudo systemctl start irqbalance").about("if it ran"))
}

#[cfg(test)]
mod tests {
    use super::super::{find, ids};
    use crate::Inventory;
    use crate::cpu::Node;
    use crate::irq::Irq;
    use crate::nic::tests::nic;
    use crate::nic::{Counter, Duplex, Nic};
    use linerate_units::Rate;

    fn machine(nics: &[Nic]) -> Inventory {
        let mut machine = Inventory::default();
        machine.network.nics = nics.to_vec();
        machine
    }

    fn whats(nics: &[Nic]) -> Vec<String> {
        let found = find(&machine(nics)).into_iter();
        found.map(|o| format!("{}: {}", o.id, o.what)).collect()
    }

    #[test]
    fn half_duplex_and_a_speed_below_what_both_offer_are_odd() {
        let mut card = nic(2, &[]);
        card.up = true;
        card.link.duplex = Some(Duplex::Full);
        card.link.speed = Some(Rate(1_000_000_000));
        card.link.advertised = vec!["1000baseT/Full".to_owned(), "10000baseT/Full".to_owned()];
        card.link.peer = vec!["1000baseT/Full".to_owned()];
        assert_eq!(whats(&[card.clone()]), [""; 0]);
        card.link.duplex = Some(Duplex::Half);
        assert_eq!(ids(&machine(&[card.clone()])), ["duplex"]);
        card.link.duplex = None;
        card.link.peer.push("10000baseT/Full".to_owned());
        let got = whats(&[card.clone()]);
        assert_eq!(got, ["port-speed: runs at 1 Gb/s, both ends offer 10 Gb/s"]);
        card.link.peer.clear();
        assert_eq!(whats(&[card.clone()]), [""; 0]);
        card.link.downshifted = true;
        let got = whats(&[card.clone()]);
        let reported = "port-speed: fell back to 1 Gb/s from a faster speed that was negotiated";
        assert_eq!(got, [reported]);
        card.up = false;
        assert_eq!(whats(&[card.clone()]), [""; 0]);
        card.down = "no cable".to_owned();
        assert_eq!(whats(&[card]), ["port-no-link: no link: no cable"]);
    }

    #[test]
    fn a_port_that_offers_less_than_both_ends_could_is_odd() {
        let modes = |names: &[&str]| names.iter().map(|n| format!("{n}/Full")).collect();
        let mut card = nic(2, &[]);
        card.up = true;
        card.link.autoneg = Some(true);
        card.link.speed = Some(Rate(100_000_000));
        card.link.supported = modes(&["100baseT", "1000baseT", "2500baseT"]);
        card.link.advertised = modes(&["100baseT"]);
        card.link.peer = modes(&["100baseT", "1000baseT"]);
        let found = find(&machine(&[card.clone()]));
        let reported = "runs at 100 Mb/s: it offers 100 Mb/s at most, though it supports 1 Gb/s, which the other end offers";
        assert_eq!((found.len(), found[0].what.as_str()), (1, reported));
        assert_eq!(
            found[0].to_do(),
            "offer all modes; the link goes down for some seconds: sudo ethtool -s eth2 autoneg on \
             (undo: sudo ethtool -s eth2 advertise 1000baseT/Full off 2500baseT/Full off)"
        );
        let result_of = |change: fn(&mut Nic)| {
            let mut other = card.clone();
            change(&mut other);
            ids(&machine(&[other]))
        };
        assert_eq!(result_of(|n| n.link.peer.truncate(1)), [""; 0], "the partner");
        assert_eq!(result_of(|n| n.link.peer.clear()), [""; 0], "unknown");
        assert_eq!(result_of(|n| n.link.autoneg = Some(false)), [""; 0], "forced");
        assert_eq!(result_of(|n| n.link.advertised.clear()), [""; 0], "unknown");
        assert_eq!(result_of(|n| n.up = false), [""; 0]);
        let offers_it = result_of(|n| n.link.advertised.push("1000baseT/Full".to_owned()));
        assert_eq!(offers_it, ["port-speed"], "the cable");
    }

    #[test]
    fn a_port_that_was_set_to_less_than_it_supports_is_odd() {
        let modes = |names: &[&str]| names.iter().map(|n| format!("{n}/Full")).collect();
        let mut card = nic(2, &[]);
        (card.up, card.link.autoneg) = (true, Some(false));
        card.link.speed = Some(Rate(100_000_000));
        card.link.duplex = Some(Duplex::Full);
        card.link.supported = modes(&["10baseT", "100baseT", "1000baseT"]);
        card.link.advertised = modes(&["100baseT"]);
        let found = find(&machine(&[card.clone()]));
        assert_eq!(
            found[0].what,
            "runs at 100 Mb/s without negotiation, though it supports 1 Gb/s"
        );
        assert_eq!(
            found[0].to_do(),
            "negotiate, and let the other end do so; the link goes down for some seconds: sudo ethtool -s eth2 autoneg on \
             (undo: sudo ethtool -s eth2 autoneg off speed 100 duplex full)"
        );
        let result_of = |change: fn(&mut Nic)| {
            let mut other = card.clone();
            change(&mut other);
            ids(&machine(&[other]))
        };
        assert_eq!(result_of(|_| ()), ["port-fixed"]);
        let half = result_of(|n| n.link.duplex = Some(Duplex::Half));
        assert_eq!(half, ["duplex"]);
        let nothing = [
            result_of(|n| n.link.speed = Some(Rate(1_000_000_000))),
            result_of(|n| n.link.autoneg = Some(true)),
            result_of(|n| n.link.autoneg = None),
            result_of(|n| n.link.supported.push("10000baseSR/Full".to_owned())),
            // Negotiation is required only from 1000BASE-T on, not for slower modes.
            result_of(|n| n.link.supported.truncate(2)),
            result_of(|n| n.up = false),
        ];
        assert!(nothing.iter().all(Vec::is_empty), "{nothing:?}");
    }

    #[test]
    fn damaged_packets_and_exceeded_allowances_are_odd() {
        let mut card = nic(2, &[]);
        card.errors.rx_crc = Some(0);
        card.counters = vec![Counter { name: "bw_in_allowance_exceeded".to_owned(), value: 0 }];
        assert_eq!(whats(&[card.clone()]), [""; 0]);
        card.errors.rx_crc = Some(1);
        card.counters[0].value = 3;
        let got = whats(&[card.clone()]).join("\n");
        assert!(got.contains("1 packets") && got.contains("bw_in_allowance_exceeded 3"), "{got}");
        let of = |driver: &str, name: &str| {
            let mut card = card.clone();
            card.errors.rx_crc = Some(0);
            driver.clone_into(&mut card.driver);
            card.counters = vec![Counter { name: name.to_owned(), value: 9 }];
            whats(&[card])
        };
        let got = of("mlx5_core", "rx_symbol_err_phy");
        assert_eq!(got, ["port-damaged: 9 packets were damaged (rx_symbol_err_phy) since boot"]);
        for (driver, name) in [
            ("mlx5_core", "rx_pcs_symbol_err_phy"),
            ("ena", "conntrack_allowance_available"),
            ("unheard", "rx_symbol_err_phy"),
        ] {
            assert_eq!(of(driver, name), [""; 0], "{name}");
        }
    }

    #[test]
    fn a_port_must_not_send_more_than_what_it_is_made_of() {
        let (mut bond, mut member) = (nic(5, &[2]), nic(2, &[]));
        bond.mtu = Some(9000);
        member.mtu = Some(9000);
        assert_eq!(whats(&[bond.clone(), member.clone()]), [""; 0]);
        member.mtu = Some(8999);
        assert!(whats(&[bond.clone(), member])[0].contains("MTU 9000"));
        assert_eq!(whats(&[bond]), [""; 0], "below lies elsewhere");
    }

    #[test]
    fn interrupts_off_the_node_of_their_card_are_odd() {
        let mut all = machine(&[nic(1, &[])]);
        all.processors.nodes = (0..2)
            .map(|id| Node { id, cpus: Some(vec![2 * id, 2 * id + 1]), ..Node::default() })
            .collect();
        let irq = |number, cpu| Irq {
            number,
            name: format!("eth1-TxRx-{number}"),
            effective: vec![cpu],
            ..Irq::default()
        };
        all.interrupts.irqs = vec![irq(7, 1), irq(8, 2), irq(9, 3)];
        assert_eq!(ids(&all), [""; 0], "the node of the card is not known");
        all.network.nics[0].node = Some(0);
        let found = find(&all);
        assert_eq!(ids(&all), ["irq-remote"]);
        assert!(
            found[0].what.contains(
                "2 interrupts of its queues (numbers 8-9) go to CPUs 2-3, outside node 0"
            ),
            "{}",
            found[0].what
        );
        assert!(
            found[0].to_do().contains("for irq in 8 9; do echo 0-1 | sudo tee /proc/irq/$irq/"),
            "{}",
            found[0].to_do()
        );
        assert!(found[0].to_do().contains("save the old values: "));
        for irq in &mut all.interrupts.irqs {
            irq.allowed = vec![2, 3];
        }
        let known = find(&all)[0].fix.clone();
        assert_eq!(
            known.undo[0].command,
            "for irq in 8 9; do echo 2-3 | sudo tee /proc/irq/$irq/smp_affinity_list; done"
        );
        assert_eq!(known.steps.len(), 2, "nothing is to be saved: {known:?}");
        all.interrupts.irqs.truncate(1);
        assert_eq!(ids(&all), [""; 0]);
        all.processors.nodes[0].cpus = Some(Vec::new());
        assert_eq!(ids(&all), [""; 0], "no CPU is near");
    }
}
