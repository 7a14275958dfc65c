//! Merges the facts of several outputs about one host.

mod join;
mod port;
mod rdma;
mod settle;
mod storage;
#[cfg(test)]
mod tests;

use linerate_facts::cpu::{Cpu, Node, Processors};
use linerate_facts::irq::Irq;
use linerate_facts::machine::Machine;
use linerate_facts::memory::Memory;
use linerate_facts::pci::Device;
use linerate_facts::{Gap, Inventory};
use linerate_record::reported::Note;

use self::join::{Joiner, keyed, later};
use crate::reading::MOST;

/// Adds the facts of another output about the same host. Ports and RDMA devices are matched by name, PCI devices by
/// address, CPUs, nodes and interrupts by number. A known value replaces an unknown one. Of two different known
/// values the later one is kept, and a note is returned; counters and free memory change without a note.
///
/// Ports for which no output has an index get one that no kernel uses. Merge even a single output into an empty
/// inventory: this also finds the bridges above each device, and the device of each port.
pub fn merge(into: &mut Inventory, from: Inventory) -> Vec<Note> {
    let mut joiner = Joiner::default();
    machine(&mut joiner, &mut into.machine, from.machine);
    processors(&mut joiner, &mut into.processors, from.processors);
    memory(&mut joiner, &mut into.memory, from.memory);
    keyed(
        &mut into.pci,
        from.pci,
        |device| device.address,
        |into, from| pci(&mut joiner, into, from),
    );
    port::network(&mut joiner, &mut into.network, from.network);
    let irqs = &mut into.interrupts.irqs;
    keyed(irqs, from.interrupts.irqs, |irq| irq.number, |into, from| irq(&mut joiner, into, from));
    irqs.sort_by_key(|irq| irq.number);
    gaps(&mut into.interrupts.gaps, from.interrupts.gaps);
    rdma::infiniband(&mut joiner, &mut into.infiniband, from.infiniband);
    later(&mut into.usb, from.usb);
    storage::storage(&mut joiner, &mut into.storage, from.storage);
    keyed(
        &mut into.tunables,
        from.tunables,
        |tunable| tunable.name.clone(),
        |into, from| {
            joiner.text(&into.name, &mut into.value, from.value);
        },
    );
    into.busy = from.busy.or(into.busy.take());
    gaps(&mut into.gaps, from.gaps);
    settle::settle(into);
    joiner.notes.0
}

/// Adds the gaps that are not in the list yet.
fn gaps(into: &mut Vec<Gap>, from: Vec<Gap>) {
    for gap in from {
        if into.len() < MOST && !into.contains(&gap) {
            into.push(gap);
        }
    }
}

fn machine(joiner: &mut Joiner, into: &mut Machine, from: Machine) {
    joiner.about("the machine");
    joiner.text("name", &mut into.name, from.name);
    joiner.text("kernel", &mut into.kernel, from.kernel);
    joiner.text("maker", &mut into.vendor, from.vendor);
    joiner.text("product", &mut into.product, from.product);
    joiner.text("clock source", &mut into.clock_source, from.clock_source);
    joiner.option("guest", &mut into.platform.guest, from.platform.guest);
    later(&mut into.platform.hypervisor, from.platform.hypervisor);
    later(&mut into.platform.cloud, from.platform.cloud);
    joiner.option("container", &mut into.container, from.container);
    joiner.option("quota of CPUs", &mut into.cpu_quota, from.cpu_quota);
    joiner.option("limit of memory", &mut into.memory_limit, from.memory_limit);
    joiner.list("CPUs allowed", &mut into.cpus_allowed, from.cpus_allowed);
}

fn processors(joiner: &mut Joiner, into: &mut Processors, from: Processors) {
    joiner.about("the CPUs");
    joiner.text("model", &mut into.model, from.model);
    keyed(&mut into.cpus, from.cpus, |cpu| cpu.id, |into, from| cpu(joiner, into, from));
    into.cpus.sort_by_key(|cpu| cpu.id);
    joiner.about("the CPUs");
    joiner.list("CPUs that are off", &mut into.offline, from.offline);
    joiner.list("isolated CPUs", &mut into.isolated, from.isolated);
    joiner.list("CPUs without ticks", &mut into.tickless, from.tickless);
    keyed(&mut into.nodes, from.nodes, |node| node.id, |into, from| node(joiner, into, from));
    into.nodes.sort_by_key(|node| node.id);
    joiner.about("the CPUs");
    joiner.option("turbo", &mut into.turbo, from.turbo);
    later(&mut into.caches, from.caches);
    later(&mut into.kinds, from.kinds);
    later(&mut into.idle, from.idle);
}

fn cpu(joiner: &mut Joiner, into: &mut Cpu, from: Cpu) {
    joiner.about(&format!("CPU {}", into.id));
    joiner.option("package", &mut into.package, from.package);
    joiner.option("capacity", &mut into.capacity, from.capacity);
    joiner.list("CPUs of its core", &mut into.siblings, from.siblings);
    later(&mut into.clock, from.clock);
}

fn node(joiner: &mut Joiner, into: &mut Node, from: Node) {
    joiner.about(&format!("node {}", into.id));
    joiner.shown("CPUs", &mut into.cpus, from.cpus, |cpus| linerate_facts::odd::ranges(cpus));
    joiner.option("memory", &mut into.total, from.total);
    into.free = from.free.or(into.free);
    joiner.list("distances", &mut into.distances, from.distances);
}

fn memory(joiner: &mut Joiner, into: &mut Memory, from: Memory) {
    joiner.about("memory");
    joiner.option("size", &mut into.total, from.total);
    joiner.option("huge page", &mut into.huge_page, from.huge_page);
    into.available = from.available.or(into.available);
    into.huge_pages = from.huge_pages.or(into.huge_pages);
    into.modules = from.modules.or(into.modules.take());
}

fn irq(joiner: &mut Joiner, into: &mut Irq, from: Irq) {
    joiner.about(&format!("interrupt {}", into.number));
    joiner.text("name", &mut into.name, from.name);
    joiner.text("chip", &mut into.chip, from.chip);
    joiner.option("node", &mut into.node, from.node);
    into.total = from.total.or(into.total);
    into.busiest = from.busiest.or(into.busiest);
    later(&mut into.effective, from.effective);
    later(&mut into.allowed, from.allowed);
}

fn pci(joiner: &mut Joiner, into: &mut Device, from: Device) {
    joiner.about(&into.address.to_string());
    joiner.number("vendor id", &mut into.vendor, from.vendor);
    joiner.number("device id", &mut into.device, from.device);
    // Without -v, lspci prints no programming interface, which is then 0.
    if from.class >> 8 != into.class >> 8 || from.class & 0xff != 0 {
        joiner.number("class", &mut into.class, from.class);
    }
    joiner.shown("buses", &mut into.buses, from.buses, |buses| {
        format!("{:02x}-{:02x}", buses.secondary, buses.subordinate)
    });
    joiner.text("driver", &mut into.driver, from.driver);
    joiner.shown("role", &mut into.kind, from.kind, |kind| kind.name().to_owned());
    joiner.option("link", &mut into.now, from.now);
    joiner.option("best link", &mut into.max, from.max);
    joiner.shown("slowest link", &mut into.limited, from.limited, |limit| limit.now.to_string());
    joiner.shown("packet sizes", &mut into.payload, from.payload, |payload| {
        format!("{} of {} B, reads of {} B", payload.now, payload.max, payload.read_request)
    });
    joiner.option("node", &mut into.node, from.node);
    joiner.option("IOMMU group", &mut into.iommu_group, from.iommu_group);
    into.is_virtual |= from.is_virtual;
    into.tunneled |= from.tunneled;
    for name in from.names {
        if !into.names.contains(&name) && into.names.len() < MOST {
            into.names.push(name);
        }
    }
}
