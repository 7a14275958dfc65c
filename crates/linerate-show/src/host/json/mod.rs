//! The facts of one machine as JSON.
//!
//! The schema is made from `Output`. Keys contain the units; integers stay below 2^53; unknown values are `null`,
//! and `unknown` says why. Keys that begin with `live` change from one moment to the next.
//!
//! Types of facts whose fields are published unchanged derive their schema themselves. The types here are for facts
//! that records store under other names, that are published without some fields, or that are joined from several
//! facts.

use std::collections::BTreeMap;

use linerate_explain::{Answered, Headline};
use linerate_facts::cpu::{Busy, Cache, Cpu, IdleState, Node, Processors};
use linerate_facts::finding::Finding;
use linerate_facts::machine::Machine;
use linerate_facts::memory::{Memory, Module};
use linerate_facts::nic::Fragments;
use linerate_facts::odd;
use linerate_facts::topology::Kind;
use linerate_facts::{Conntrack, Gap, Inventory};
use schemars::JsonSchema;
use serde::Serialize;

use self::pci::DeviceOut;
use self::port::PortOut;
use self::rdma::RdmaOut;
use self::storage::{DiskOut, FileSystemOut, VolumeOut};
use super::super::json::{exact, text};
use crate::head::Head;

mod pci;
mod port;
mod rdma;
mod storage;

/// One JSON document. Keys contain the units. Unknown values are null. Keys that begin with `live` change from one
/// moment to the next.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate host")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// Facts of this machine that make a path across it slower than its parts allow, the worst first.
    findings: Vec<Finding>,
    machine: MachineOut<'a>,
    cpus: CpusOut<'a>,
    /// NUMA nodes of the machine. Empty on a kernel without them.
    nodes: &'a [Node],
    memory: MemoryOut<'a>,
    /// PCI devices in the order of their addresses. Each names the bridge above it as its `parent`.
    pci: Vec<DeviceOut<'a>>,
    /// Ports of this network namespace, in the order of the kernel.
    ports: Vec<PortOut<'a>>,
    /// IP fragments since boot. Null if there is no tunnel, or if they were not read.
    live_fragments: Option<Fragments>,
    /// RDMA devices (InfiniBand, RoCE), in the order of their names.
    rdma: Vec<RdmaOut<'a>>,
    /// Disks. Other block devices are built on them.
    disks: Vec<DiskOut<'a>>,
    /// Block devices that are built on disks, files or memory.
    volumes: Vec<VolumeOut<'a>>,
    /// File systems on block devices or other hosts, in the order in which they were mounted.
    filesystems: Vec<FileSystemOut<'a>>,
    /// Kernel settings by name, with the values as they were read.
    settings: BTreeMap<&'a str, &'a str>,
    /// The table of connections that the kernel tracks (conntrack). Null if it tracks none, or if unknown.
    conntrack: Option<Conntrack>,
    /// What ran on the CPUs in a tenth of a second, or in less if all CPUs were idle. Null if unknown.
    live_busy: Option<&'a Busy>,
    /// Facts that could not be read.
    unknown: &'a [Gap],
}

/// The machine as a whole.
#[derive(Serialize, JsonSchema)]
struct MachineOut<'a> {
    /// Host name. Null if unknown.
    name: Option<&'a str>,
    /// Kernel release. Null if unknown.
    kernel: Option<&'a str>,
    /// Manufacturer of the machine, as the firmware reports it. Null if unknown.
    vendor: Option<&'a str>,
    /// Product name of the machine, as the firmware reports it. Null if unknown.
    product: Option<&'a str>,
    /// Whether this machine is a virtual machine. Null if unknown.
    guest: Option<bool>,
    /// Name of the hypervisor. Null if there is none, or if unknown.
    hypervisor: Option<&'a str>,
    /// Name of the cloud that the machine runs in. Null if there is none, or if unknown.
    cloud: Option<&'a str>,
    /// Kind of container that linerate runs in. Null if there is no sign of one.
    container: Option<&'a str>,
    /// CPU quota of the cgroup, in CPUs. Null if there is no quota, or if unknown.
    #[schemars(range(min = 0))]
    cpu_quota: Option<f64>,
    /// Numbers of the CPUs that linerate may run on. Empty if unknown.
    cpus_allowed: &'a [u32],
    /// Memory limit of the cgroup. Null if there is no limit, or if unknown.
    memory_limit_bytes: Option<u64>,
    /// Clock source that the kernel uses, such as tsc. Null if unknown.
    clock_source: Option<&'a str>,
}

/// The processors.
#[derive(Serialize, JsonSchema)]
struct CpusOut<'a> {
    /// Model of the processors. Null if unknown.
    model: Option<&'a str>,
    /// Number of processor packages with a CPU that is online. Null if unknown.
    packages: Option<usize>,
    /// Number of cores with a CPU that is online. Null if unknown.
    cores: Option<usize>,
    /// CPUs that are online.
    online: Vec<CpuOut<'a>>,
    /// Numbers of the CPUs that are present and offline.
    offline: &'a [u32],
    /// Numbers of the CPUs that the scheduler uses only for threads pinned to them (`isolcpus`).
    isolated: &'a [u32],
    /// Groups of CPUs of different kinds, such as fast and efficient cores. Empty if all are alike.
    kinds: &'a [Kind],
    /// Caches; caches with equal properties are one entry.
    caches: &'a [Cache],
    /// Idle states of the first CPU.
    idle_states: Vec<IdleOut<'a>>,
    /// Whether clock rates above the nominal one (turbo) are allowed. Null if unknown.
    turbo: Option<bool>,
}

/// A CPU as the scheduler counts them: one thread of a core.
#[derive(Serialize, JsonSchema)]
struct CpuOut<'a> {
    /// Number of the CPU.
    cpu: u32,
    /// Number of the processor package that the CPU is in. Null if unknown.
    package: Option<u32>,
    /// Numbers of the CPUs of the same core, including this one. Empty if unknown.
    siblings: &'a [u32],
    /// Computing power relative to the fastest CPU of the machine, which has 1024. Null if unknown.
    capacity: Option<u32>,
    /// Clock rate at the time of the reading. Null if unknown.
    live_clock_hz: Option<u64>,
    /// Nominal clock rate. Null if unknown.
    nominal_hz: Option<u64>,
    /// Highest clock rate of the hardware. Null if unknown.
    max_hz: Option<u64>,
    /// Highest clock rate that settings allow. Null if unknown.
    allowed_hz: Option<u64>,
    /// Driver that sets the clock rate. Null if unknown.
    driver: Option<&'a str>,
    /// Governor of the clock rate, such as performance or powersave. Null if unknown.
    governor: Option<&'a str>,
    /// Energy preference that is set for hardware that chooses its clock rate itself. Null if unknown.
    preference: Option<&'a str>,
}

/// An idle state of a CPU.
#[derive(Serialize, JsonSchema)]
struct IdleOut<'a> {
    /// Name of the idle state: `C6`.
    name: &'a str,
    /// Time that the CPU needs to wake from the idle state.
    latency_ns: u64,
    /// Whether the idle state is disabled.
    disabled: bool,
}

/// Memory of the machine.
#[derive(Serialize, JsonSchema)]
struct MemoryOut<'a> {
    /// Memory that the kernel manages. Null if unknown.
    total_bytes: Option<u64>,
    /// Memory that programs could still get without swapping. Null if unknown.
    live_available_bytes: Option<u64>,
    /// Size of a huge page. Null if unknown.
    huge_page_bytes: Option<u64>,
    /// Number of huge pages that are reserved. Null if unknown.
    huge_pages: Option<u64>,
    /// Slots for memory modules, as the firmware lists them. Null if the list cannot be read.
    slots: Option<Vec<SlotOut<'a>>>,
}

/// A slot for a memory module.
#[derive(Serialize, JsonSchema)]
struct SlotOut<'a> {
    /// Place of the slot: `DIMM_A1`. Null if unknown.
    locator: Option<&'a str>,
    /// Memory bank of the slot, in the words of the firmware. Null if unknown.
    bank: Option<&'a str>,
    /// Memory channel of the slot. Null if the firmware names none.
    channel: Option<&'a str>,
    /// Size of the module. Null if the slot is empty.
    size_bytes: Option<u64>,
    /// Kind of the module: `DDR4`. Null if unknown.
    kind: Option<&'a str>,
    /// Highest speed of the module. Null if unknown.
    rated_transfers_per_sec: Option<u64>,
    /// Speed at which the module runs. Null if unknown.
    transfers_per_sec: Option<u64>,
    /// Data bits of each transfer. Null if unknown.
    width_bits: Option<u16>,
    /// Whether the module has further bits to correct errors. Null if unknown.
    ecc: Option<bool>,
    /// Number of ranks of the module. Null if unknown.
    ranks: Option<u8>,
}

/// The inventory as one JSON document, with a line feed at its end.
pub fn json(inventory: &Inventory) -> serde_json::Result<String> {
    let settings = inventory.tunables.iter();
    let findings = odd::find(inventory);
    let output = Output {
        head: Head::new(Some(headline(&findings))),
        findings,
        machine: machine(&inventory.machine),
        cpus: cpus(&inventory.processors),
        nodes: &inventory.processors.nodes,
        memory: memory(&inventory.memory),
        pci: pci::devices(&inventory.pci),
        ports: port::ports(inventory),
        live_fragments: inventory.network.fragments,
        rdma: inventory.infiniband.devices.iter().map(rdma::rdma).collect(),
        disks: inventory.storage.disks().map(storage::disk).collect(),
        volumes: storage::volumes(&inventory.storage),
        filesystems: storage::filesystems(&inventory.storage),
        settings: settings.map(|t| (t.name.as_str(), t.value.as_str())).collect(),
        conntrack: inventory.conntrack,
        live_busy: inventory.busy.as_ref(),
        unknown: &inventory.gaps,
    };
    text(&output)
}

/// The headline of the document. Facts alone never prove that something limits a path, nor that nothing does.
fn headline(findings: &[Finding]) -> Headline {
    const NOTHING: &str = "nothing is odd in what was read; a measurement shows what limits a path";
    let nothing = || Headline::said(Answered::Unknown, NOTHING.to_owned());
    Headline::suspected(findings).unwrap_or_else(nothing)
}

/// The text, or `None` if it is empty and so unknown.
fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn machine(machine: &Machine) -> MachineOut<'_> {
    MachineOut {
        name: known(&machine.name),
        kernel: known(&machine.kernel),
        vendor: known(&machine.vendor),
        product: known(&machine.product),
        guest: machine.platform.guest,
        hypervisor: known(machine.platform.hypervisor),
        cloud: known(machine.platform.cloud),
        container: machine.container.as_deref(),
        cpu_quota: machine.cpu_quota,
        cpus_allowed: &machine.cpus_allowed,
        memory_limit_bytes: machine.memory_limit.map(|m| exact(m.0)),
        clock_source: known(&machine.clock_source),
    }
}

fn cpus(all: &Processors) -> CpusOut<'_> {
    CpusOut {
        model: known(&all.model),
        packages: all.packages(),
        cores: all.cores(),
        online: all.cpus.iter().map(cpu).collect(),
        offline: &all.offline,
        isolated: &all.isolated,
        kinds: &all.kinds,
        caches: &all.caches,
        idle_states: all.idle.iter().map(idle).collect(),
        turbo: all.turbo,
    }
}

fn cpu(cpu: &Cpu) -> CpuOut<'_> {
    let clock = &cpu.clock;
    CpuOut {
        cpu: cpu.id,
        package: cpu.package,
        siblings: &cpu.siblings,
        capacity: cpu.capacity,
        live_clock_hz: clock.now.map(|c| exact(c.0)),
        nominal_hz: clock.nominal.map(|c| exact(c.0)),
        max_hz: clock.max.map(|c| exact(c.0)),
        allowed_hz: clock.limit.map(|c| exact(c.0)),
        driver: known(&clock.driver),
        governor: known(&clock.governor),
        preference: known(&clock.preference),
    }
}

fn idle(state: &IdleState) -> IdleOut<'_> {
    IdleOut { name: &state.name, latency_ns: exact(state.latency.0), disabled: state.disabled }
}

fn memory(memory: &Memory) -> MemoryOut<'_> {
    let slots = memory.modules.as_ref();
    MemoryOut {
        total_bytes: memory.total.map(|t| exact(t.0)),
        live_available_bytes: memory.available.map(|a| exact(a.0)),
        huge_page_bytes: memory.huge_page.map(|h| exact(h.0)),
        huge_pages: memory.huge_pages.map(exact),
        slots: slots.map(|slots| slots.iter().map(slot).collect()),
    }
}

fn slot(module: &Module) -> SlotOut<'_> {
    SlotOut {
        locator: known(&module.locator),
        bank: known(&module.bank),
        channel: module.channel(),
        size_bytes: module.size.map(|s| exact(s.0)),
        kind: known(module.kind),
        rated_transfers_per_sec: module.rated.map(|t| t.0),
        transfers_per_sec: module.now.map(|t| t.0),
        width_bits: module.width_bits,
        ecc: module.ecc,
        ranks: module.ranks,
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::Bytes;
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::schema::{fits, refuses};

    fn output(inventory: &Inventory) -> Value {
        serde_json::from_str(&json(inventory).unwrap()).unwrap()
    }

    #[test]
    fn full_and_empty_documents_fit_the_published_schema() {
        for inventory in [sample::inventory(), Inventory::default()] {
            fits("host", &output(&inventory));
        }
    }

    #[test]
    fn what_is_odd_may_limit_a_path_and_nothing_says_that_all_is_well() {
        let odd = output(&sample::inventory());
        let headline = &odd["headline"];
        assert_eq!((&headline["stands"], &headline["cause"]), (&"unknown".into(), &Value::Null));
        assert_eq!(
            headline["candidates"],
            serde_json::json!(["unserved-port", "pcie-slot", "port-offload"])
        );
        assert!(headline["next"]["what"].is_string(), "{headline}");
        let nothing = output(&Inventory::default());
        assert_eq!(nothing["findings"], Value::Array(Vec::new()));
        let headline = &nothing["headline"];
        assert_eq!((&headline["stands"], &headline["next"]), (&"unknown".into(), &Value::Null));
    }

    #[test]
    fn a_tunnel_and_counters_of_every_sort_fit_the_schema() {
        use linerate_facts::nic::{Counter, TunnelKind};

        let mut inventory = sample::inventory();
        let nic = &mut inventory.network.nics[0];
        "ena".clone_into(&mut nic.driver);
        let counter = |name: &str| Counter { name: name.to_owned(), value: 7 };
        let names = ["pps_allowance_exceeded", "conntrack_allowance_available", "new_drops"];
        nic.counters = names.map(counter).to_vec();
        nic.stack.tunnel = TunnelKind::named("vxlan").map(|kind| kind.tunnel(None, true, Some(0)));
        inventory.network.fragments = Some(Fragments::default());
        let output = output(&inventory);
        fits("host", &output);
        let port = &output["ports"][0];
        assert_eq!(port["tunnel"]["header_most_bytes"], 70);
        assert_eq!(port["counter_meanings"]["pps_allowance_exceeded"], "allowance");
        assert_eq!(port["counter_meanings"]["new_drops"], Value::Null);
        assert_eq!(output["live_fragments"]["created"], 0);
    }

    #[test]
    fn the_schema_refuses_what_the_document_does_not_promise() {
        let good = output(&sample::inventory());
        let wrong = [
            ("/format", Value::from(2)),
            ("/pci/0/class", Value::Null),
            ("/pci/1/link/lanes", Value::from(1.5)),
            ("/memory/total_bytes", Value::from(-1)),
            ("/ports/0/up", Value::Null),
            ("/ports/0/interrupts/0/cpus", Value::Null),
            ("/rdma/0/ports/0/port", Value::from("one")),
            ("/disks/0/ways", Value::from(-1)),
            ("/volumes/0/layer", Value::from("cake")),
            ("/filesystems/0/point", Value::Null),
            ("/ports/0/rings/rx/now", Value::from(0.5)),
            ("/findings/0/why", Value::Null),
            ("/live_busy/cpus/0/busy", Value::from("much")),
        ];
        refuses("host", &good, wrong, "/cpus");
    }

    #[test]
    fn integers_stay_exact() {
        let mut inventory = Inventory::default();
        inventory.memory.total = Some(Bytes(u64::MAX));
        let total = &output(&inventory)["memory"]["total_bytes"];
        assert_eq!(total.as_u64(), Some(9_007_199_254_740_991));
    }
}
