//! Rule about ports with only one receive queue.

use super::interrupts::usable;
use super::{Finding, count};
use crate::Inventory;
use crate::advice::{Advice, Step};
use crate::irq::{Irq, Served};
use crate::nic::{Nic, QueueDirection, Setting, VIRTUAL_DRIVERS};
use linerate_units::shell::word;

/// Fewest CPUs of a machine for which one queue is too few. Clouds give small machines one or two queues.
const CPUS_LEAST: usize = 4;

/// A fast or emulated port with one receive queue, so that one CPU receives all packets.
pub(super) fn one(inventory: &Inventory) -> Vec<Finding> {
    let cpus: Vec<u32> = usable(&inventory.processors).iter().map(|cpu| cpu.id).collect();
    if cpus.len() < CPUS_LEAST {
        return Vec::new();
    }
    let served = inventory.interrupts.by_port(&inventory.network.nics);
    // The kernel may list fewer queues than there are with interrupts.
    let receives = |irq: &&&Irq| irq.queue().is_some_and(Served::receives);
    let is_one = |nic: &&Nic| {
        let irqs = served.get(&nic.index);
        irqs.is_none_or(|irqs| irqs.iter().filter(receives).count() < 2)
    };
    let nics = inventory.network.nics.iter().filter(|nic| is_odd(nic));
    nics.filter(is_one).map(|nic| oddity(nic, &cpus)).collect()
}

fn is_odd(nic: &Nic) -> bool {
    let is_emulated = VIRTUAL_DRIVERS.contains(&nic.driver.as_str());
    // The nominal speed of an emulated port is often unknown. A port on top of others, such as netvsc over its virtual
    // function, is left out: the ports below receive the packets.
    let is_fast =
        nic.is_fast() || is_emulated && (nic.link.speed.is_none() || nic.has_fast_speed());
    let is_own = nic.kind.is_empty() && nic.stack.below.is_empty() && !nic.is_wifi;
    nic.up && is_own && is_fast && receive_queues(nic) == Some(1) && nic.rps_cpus().len() < 2
}

/// The number of receive queues; `None` if it is unknown.
fn receive_queues(nic: &Nic) -> Option<u32> {
    let listed = nic.queues_of(QueueDirection::Rx);
    if listed > 0 {
        return u32::try_from(listed).ok();
    }
    let channels = nic.channels?;
    let now = |setting: Setting| setting.now.unwrap_or(0);
    Some(now(channels.rx) + now(channels.combined)).filter(|all| *all > 0)
}

fn oddity(nic: &Nic, cpus: &[u32]) -> Finding {
    Finding::new(
        "port-one-queue",
        &nic.name,
        format!(
            "one receive queue on a machine of {}: one CPU receives all packets",
            count(cpus.len(), "CPU")
        ),
    )
    .why("that CPU is full before the link is, while other CPUs are idle")
    .limits(nic.is_fast().then(|| nic.name.clone()).into_iter().collect())
    .fix(fix(nic, cpus))
}

fn fix(nic: &Nic, cpus: &[u32]) -> Advice {
    let name = word(&nic.name);
    let channels = nic.channels.unwrap_or_default();
    let kinds = [("combined", channels.combined), ("rx", channels.rx)];
    let raisable = |(kind, setting): (&'static str, Setting)| Some((kind, setting.below_most()?.1));
    if let Some((kind, most)) = kinds.into_iter().find_map(raisable) {
        let set = |n: u32| format!("sudo ethtool -L {name} {kind} {n}");
        let more = most.min(u32::try_from(cpus.len()).unwrap_or(most));
        return Advice::new("give it a queue for each CPU; its link goes down for a moment")
            .set(None, set(more))
            .undo_on(None, set(1));
    }
    let set =
        |mask: &str| format!("echo {mask} | sudo tee /sys/class/net/{name}/queues/rx-0/rps_cpus");
    let what = match (nic.is_virtual, nic.channels.is_some()) {
        (true, _) => {
            "give the guest more queues where its hypervisor or cloud sets them (QEMU: queues=N of the port, with vhost); \
             until then, let the kernel spread packets over the CPUs (RPS)"
        }
        (false, true) => {
            "this driver has one queue: let the kernel spread packets over the CPUs (RPS)"
        }
        (false, false) => {
            "see whether it can have more queues; else let the kernel spread packets over the CPUs (RPS)"
        }
    };
    let advice = Advice::new(what).on(None, format!("ethtool -l {name}"));
    let spread = Step::set(None, set(&mask(cpus))).about("spread packets by RPS");
    advice.step(spread).undo_on(None, set("0"))
}

/// A mask of CPUs as sysfs accepts it: `f`, `1,00000000`. CPU numbers that no machine has are left out.
fn mask(cpus: &[u32]) -> String {
    const MOST: u32 = 8192;
    let cpus: Vec<u32> = cpus.iter().copied().filter(|cpu| *cpu < MOST).collect();
    let words = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let word = |at: u32| {
        let own = cpus.iter().filter(|cpu| **cpu / 32 == at);
        own.fold(0u32, |bits, cpu| bits | 1 << (cpu % 32))
    };
    let first = format!("{:x}", word(words - 1));
    let rest = (0..words - 1).rev().map(|at| format!("{:08x}", word(at)));
    std::iter::once(first).chain(rest).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;
    use crate::cpu::Cpu;
    use crate::nic::tests::nic;
    use crate::nic::{Channels, Queue};
    use linerate_units::Rate;

    fn card(driver: &str, giga: Option<u64>, queues: u32) -> Nic {
        let mut card = nic(2, &[]);
        (card.up, card.driver) = (true, driver.to_owned());
        card.is_virtual = VIRTUAL_DRIVERS.contains(&driver);
        card.link.speed = giga.map(|giga| Rate(giga * 1_000_000_000));
        let queue = |number| Queue {
            direction: QueueDirection::Rx,
            number,
            napi: None,
            irq: None,
            cpus: Some(Vec::new()),
            flows: None,
        };
        card.queues = (0..queues).map(queue).collect();
        card
    }

    fn machine(cpus: u32, nics: &[Nic]) -> Inventory {
        let mut machine = Inventory::default();
        let cpu = |id| Cpu { id, ..Cpu::default() };
        machine.processors.cpus = (0..cpus).map(cpu).collect();
        machine.network.nics = nics.to_vec();
        machine
    }

    fn result_of(cpus: u32, nic: Nic) -> Vec<(&'static str, usize)> {
        let found = find(&machine(cpus, &[nic])).into_iter();
        found.map(|odd| (odd.id, odd.limits.len())).collect()
    }

    #[test]
    fn one_queue_is_odd_on_a_fast_port_and_on_an_emulated_one() {
        for (driver, giga, queues, cpus, want) in [
            ("ixgbe", Some(10), 1, 4, Some(1)),
            ("ixgbe", Some(10), 1, 3, None),
            ("ixgbe", Some(10), 2, 4, None),
            ("igb", Some(1), 1, 16, None),
            ("ixgbe", None, 1, 16, None),
            ("virtio_net", None, 1, 4, Some(0)),
            ("virtio_net", None, 1, 2, None),
            ("ena", None, 2, 8, None),
            ("hv_netvsc", Some(50), 1, 8, Some(0)),
            ("hv_netvsc", Some(1), 1, 8, None),
            ("e1000", Some(1), 1, 8, None),
        ] {
            let want: Vec<_> = want.map(|limits| ("port-one-queue", limits)).into_iter().collect();
            let got = result_of(cpus, card(driver, giga, queues));
            assert_eq!(got, want, "{driver} {giga:?} {queues} {cpus}");
        }
    }

    #[test]
    fn a_port_that_is_down_spread_or_covered_is_not_odd() {
        let result_of = |change: fn(&mut Nic)| {
            let mut card = card("virtio_net", None, 1);
            change(&mut card);
            result_of(4, card)
        };
        assert_eq!(result_of(|nic| nic.up = false), []);
        assert_eq!(result_of(|nic| nic.queues[0].cpus = Some(vec![0, 1])), [], "RPS");
        assert_eq!(result_of(|nic| nic.stack.below = vec![7]), [], "its function");
        assert_eq!(result_of(|nic| nic.queues.clear()), [], "unknown");
    }

    #[test]
    fn more_queues_are_set_where_the_driver_has_them() {
        let fix = |most: Option<u32>| {
            let mut card = card("virtio_net", None, 1);
            let setting = |most| Setting { now: Some(1), most: Some(most) };
            card.channels =
                most.map(|most| Channels { combined: setting(most), ..Channels::default() });
            find(&machine(6, &[card]))[0].to_do()
        };
        let more = fix(Some(16));
        assert!(
            more.contains("ethtool -L eth2 combined 6 (undo: sudo ethtool -L eth2 combined 1)"),
            "{more}"
        );
        let single = fix(Some(1));
        assert!(
            single.contains("echo 3f | sudo tee /sys/class/net/eth2/queues/rx-0/rps_cpus"),
            "{single}"
        );
        assert!(single.contains("hypervisor") && single.contains("undo: echo 0 |"), "{single}");
        assert!(fix(None).contains("ethtool -l eth2"));
    }

    #[test]
    fn masks_are_written_in_words_of_32() {
        assert_eq!(mask(&[0, 1, 2, 3]), "f");
        assert_eq!(mask(&[31, 32]), "1,80000000");
        assert_eq!(mask(&[64]), "1,00000000,00000000");
        assert_eq!(mask(&[0, u32::MAX]), "1");
    }
}
