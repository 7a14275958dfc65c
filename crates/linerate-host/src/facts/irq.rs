//! Facts of interrupts. A host may have thousands of them, and several files are read for each.

use std::io;

use linerate_facts::irq::{Interrupts, Irq};
use linerate_facts::nic::Nic;
use linerate_facts::parse::{Malformed, interrupts, sysctl, sysfs};

use super::{PROC, Reader};
use crate::{Machine, gap, read};

const FOLDER: &str = "/proc/irq";

/// Reads all numbered interrupts. For a fact that cannot be read there is a gap such as `facts.irq.counts`.
pub fn interrupts(machine: &dyn Machine) -> Interrupts {
    let mut reader = Reader { machine, gaps: Vec::new() };
    let mut irqs = reader.counted().unwrap_or_else(|| reader.named());
    reader.affinities(&mut irqs);
    Interrupts { irqs, gaps: reader.gaps }
}

impl Reader<'_> {
    /// Reads the interrupts of one port, without counts. A PCI function has a folder that lists its interrupts, so the
    /// other interrupts of the host, perhaps thousands, are not read.
    pub(super) fn interrupts_of(&mut self, nic: &Nic) -> Vec<Irq> {
        let folder = format!("/sys/bus/pci/devices/{}/msi_irqs", nic.pci);
        let listed = self.machine.list(&folder).ok().filter(|_| !nic.pci.is_empty());
        let mut irqs = if let Some(names) = listed {
            self.of_drivers(&names)
        } else {
            let irqs = self.counted().unwrap_or_default();
            let all = Interrupts { irqs, gaps: Vec::new() };
            all.of(nic).into_iter().cloned().collect()
        };
        self.affinities(&mut irqs);
        irqs
    }

    fn counted(&mut self) -> Option<Vec<Irq>> {
        let all = self.get("irq.counts", "/proc/interrupts", PROC, interrupts::parse)?;
        let irqs = all.into_iter().map(|irq| Irq {
            number: irq.number,
            name: irq.name,
            chip: irq.chip,
            total: Some(irq.total),
            busiest: irq.busiest,
            ..Irq::default()
        });
        Some(irqs.collect())
    }

    /// Returns only the numbers and names of interrupts: each driver that requested one has a folder in the interrupt's
    /// folder.
    fn named(&self) -> Vec<Irq> {
        let names = self.machine.list(FOLDER);
        self.of_drivers(&names.unwrap_or_default())
    }

    fn of_drivers(&self, names: &[String]) -> Vec<Irq> {
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        let irqs = numbers.into_iter().map(|number| Irq {
            number,
            name: self.drivers(number),
            ..Irq::default()
        });
        irqs.collect()
    }

    fn drivers(&self, number: u32) -> String {
        const FILES: [&str; 7] = [
            "affinity_hint",
            "effective_affinity",
            "effective_affinity_list",
            "node",
            "smp_affinity",
            "smp_affinity_list",
            "spurious",
        ];
        let names = self.machine.list(&format!("{FOLDER}/{number}"));
        let names = names.unwrap_or_default().into_iter();
        let drivers: Vec<String> = names.filter(|n| !FILES.contains(&n.as_str())).collect();
        drivers.join(", ")
    }

    /// Reads where interrupts are handled. All interrupts share one gap for each fact, because on some machines none
    /// can be read.
    fn affinities(&mut self, irqs: &mut [Irq]) {
        let mut missed = [Missed::new("effective"), Missed::new("allowed"), Missed::new("node")];
        let [effective, allowed, node] = &mut missed;
        for irq in &mut *irqs {
            let at = irq.number;
            let machine = self.machine;
            irq.effective = effective
                .note(at, file(machine, at, "effective_affinity_list", sysctl::list))
                .unwrap_or_default();
            irq.allowed = allowed
                .note(at, file(machine, at, "smp_affinity_list", sysctl::list))
                .unwrap_or_default();
            let number = node.note(at, file(machine, at, "node", sysfs::number_or_none));
            irq.node = number.flatten().and_then(|node| u32::try_from(node).ok());
        }
        self.gaps.extend(missed.into_iter().filter_map(|m| m.gap(irqs.len())));
    }
}

fn file<T>(
    machine: &dyn Machine,
    number: u32,
    name: &str,
    decode: fn(&[u8]) -> Result<T, Malformed>,
) -> io::Result<T> {
    read(machine, &format!("{FOLDER}/{number}/{name}"), decode)
}

/// Number of interrupts for which a fact could not be read, with the first interrupt and its error.
struct Missed {
    fact: &'static str,
    count: usize,
    first: Option<(u32, io::Error)>,
}

impl Missed {
    fn new(fact: &'static str) -> Self {
        Self { fact, count: 0, first: None }
    }

    fn note<T>(&mut self, number: u32, got: io::Result<T>) -> Option<T> {
        got.map_err(|error| {
            self.count += 1;
            self.first.get_or_insert((number, error));
        })
        .ok()
    }

    fn gap(self, all: usize) -> Option<linerate_facts::Gap> {
        let (number, error) = self.first?;
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => "sudo linerate ...",
            _ => PROC,
        };
        let why =
            format!("cannot read it of {} of {all} interrupts; of {number}: {error}", self.count);
        Some(gap(&format!("facts.irq.{}", self.fact), &why, hint))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use linerate_facts::nic::QueueDirection;
    use rustix::io::Errno;

    use super::interrupts;
    use crate::testing::Fake;
    use crate::{Capture, Live, Replay};

    const TEXT: &str = "      CPU0 CPU1\n 38: 0 3455 PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0\n \
        39: 1 0 IO-APIC 5-edge ACPI:Ged\n";

    fn of(fake: Fake, number: u32, effective: &str) -> Fake {
        let file = |name: &str| format!("/proc/irq/{number}/{name}");
        fake.file(&file("effective_affinity_list"), &[effective])
            .file(&file("smp_affinity_list"), &["0-1\n"])
            .file(&file("node"), &["-1\n"])
    }

    #[test]
    fn an_interrupt_has_its_counts_and_its_cpus() {
        let fake = of(Fake::default().file("/proc/interrupts", &[TEXT]), 38, "1\n");
        let got = interrupts(&Replay::new(of(fake, 39, "0\n").0));
        assert_eq!(got.gaps, []);
        let [first, _] = &got.irqs[..] else { panic!("{:?}", got.irqs) };
        assert_eq!((first.total, first.busiest, first.node), (Some(3455), Some(1), None));
        assert_eq!((&first.effective[..], &first.allowed[..]), (&[1][..], &[0, 1][..]));
        assert_eq!(first.queue().unwrap().direction, Some(QueueDirection::Rx));
    }

    #[test]
    fn an_interrupt_that_goes_away_keeps_what_was_read_and_is_one_gap_of_each_kind() {
        let fake = of(Fake::default().file("/proc/interrupts", &[TEXT]), 38, "1\n");
        let fake = ["effective_affinity_list", "smp_affinity_list", "node"]
            .iter()
            .fold(fake, |fake, name| {
                fake.failing(&format!("/proc/irq/39/{name}"), &[], Errno::NOENT)
            });
        let got = interrupts(&Replay::new(fake.0));
        assert_eq!((got.irqs.len(), got.irqs[1].effective.len()), (2, 0));
        let whats: Vec<_> = got.gaps.iter().map(|g| g.what.as_str()).collect();
        assert_eq!(whats, ["facts.irq.effective", "facts.irq.allowed", "facts.irq.node"]);
        assert!(got.gaps[0].why.contains("1 of 2"), "{}", got.gaps[0].why);
    }

    #[test]
    fn where_the_counts_are_too_long_to_read_the_names_are_still_there() {
        let fake = Fake::default()
            .failing("/proc/interrupts", &[], Errno::FBIG)
            .list("/proc/irq", &["39", "4", "default_smp_affinity"])
            .list("/proc/irq/39", &["eth0-TxRx-1", "node", "smp_affinity"])
            .list("/proc/irq/4", &["node"]);
        let got = interrupts(&Replay::new(of(of(fake, 39, "1\n"), 4, "0\n").0));
        let names: Vec<_> = got.irqs.iter().map(|i| (i.number, i.name.as_str())).collect();
        assert_eq!(names, [(4, ""), (39, "eth0-TxRx-1")]);
        let whats: Vec<_> = got.gaps.iter().map(|g| g.what.as_str()).collect();
        assert_eq!(whats, ["facts.irq.counts"]);
    }

    #[test]
    fn each_of_4096_interrupts_is_asked_for_once() {
        let mut text = "CPU0\n".to_owned();
        for number in 0..4096 {
            writeln!(text, "{number}: 1 PCI-MSI {number}-edge eth0-TxRx-{number}").unwrap();
        }
        let fake = Fake::default().file("/proc/interrupts", &[&text]);
        let machine = Capture::new(Replay::new(fake.0));
        let got = interrupts(&machine);
        assert_eq!((got.irqs.len(), got.gaps.len()), (4096, 3));
        let requested: usize = machine.captured().files.values().map(Vec::len).sum();
        assert_eq!(requested, 1 + 3 * 4096);
    }

    #[test]
    fn a_replay_of_this_machine_gives_the_same() {
        let machine = Capture::new(Live::new());
        let live = interrupts(&machine);
        assert!(live.irqs.iter().all(|irq| irq.total.is_some()));
        assert_eq!(interrupts(&Replay::new(machine.captured())), live);
    }
}
