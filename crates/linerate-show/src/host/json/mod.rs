//! The facts of one machine for programs.
//!
//! The schema is made from `Output`. Units stand in the keys; integers stay below 2^53; unknown values are `null`, and
//! `unknown` says why. Keys that begin with `live` change from one moment to the next.
//!
//! Facts whose fields are published as they are carry their own declaration. A type here copies facts that records also
//! hold under other names, that leave fields out, or that are joined from several facts.

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

/// One JSON document. Units stand in the keys. Unknown values are null. Keys that begin with live change from one moment
/// to the next.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate host")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// What makes a path across this machine slower than its parts could, the worst first.
    findings: Vec<Finding>,
    machine: MachineOut<'a>,
    cpus: CpusOut<'a>,
    /// NUMA nodes. Empty on a kernel without them.
    nodes: &'a [Node],
    memory: MemoryOut<'a>,
    /// PCI devices in the order of their addresses. `parent` makes the tree.
    pci: Vec<DeviceOut<'a>>,
    /// Ports of this network namespace, in the order of the kernel.
    ports: Vec<PortOut<'a>>,
    /// IP fragments since boot. Null if there is no tunnel, or if they were not read.
    live_fragments: Option<Fragments>,
    /// RDMA devices (InfiniBand, RoCE), in the order of their names.
    rdma: Vec<RdmaOut<'a>>,
    /// Disks, of which all other block devices are made.
    disks: Vec<DiskOut<'a>>,
    /// Block devices that are made of disks, files or memory.
    volumes: Vec<VolumeOut<'a>>,
    /// File systems on block devices or other hosts, in the order in which they were mounted.
    filesystems: Vec<FileSystemOut<'a>>,
    /// Settings of the kernel by name, as they read.
    settings: BTreeMap<&'a str, &'a str>,
    /// The table of connections that the kernel tracks. Null if it tracks none, or if unknown.
    conntrack: Option<Conntrack>,
    /// What the machine did for a tenth of a second, or less where all CPUs were idle. Null if unknown.
    live_busy: Option<&'a Busy>,
    /// What could not be read.
    unknown: &'a [Gap],
}

/// The machine as a whole.
#[derive(Serialize, JsonSchema)]
struct MachineOut<'a> {
    /// Host name. Null if unknown.
    name: Option<&'a str>,
    /// Kernel release. Null if unknown.
    kernel: Option<&'a str>,
    /// Manufacturer, as the firmware says. Null if unknown.
    vendor: Option<&'a str>,
    /// Product, as the firmware says. Null if unknown.
    product: Option<&'a str>,
    /// Whether it is a virtual machine. Null if unknown.
    guest: Option<bool>,
    /// Hypervisor. Null if there is none, or if unknown.
    hypervisor: Option<&'a str>,
    /// Cloud. Null if there is none, or if unknown.
    cloud: Option<&'a str>,
    /// Kind of container that linerate runs in. Null if there is no sign of one.
    container: Option<&'a str>,
    /// CPUs that the cgroup allows. Null if there is no quota, or if unknown.
    #[schemars(range(min = 0))]
    cpu_quota: Option<f64>,
    /// CPUs that linerate may run on. Empty if unknown.
    cpus_allowed: &'a [u32],
    /// Memory that the cgroup allows. Null if there is no limit, or if unknown.
    memory_limit_bytes: Option<u64>,
    /// Clock source of the kernel. Null if unknown.
    clock_source: Option<&'a str>,
}

/// The processors.
#[derive(Serialize, JsonSchema)]
struct CpusOut<'a> {
    /// Model. Null if unknown.
    model: Option<&'a str>,
    /// Packages with a CPU that is online. Null if unknown.
    packages: Option<usize>,
    /// Cores with a CPU that is online. Null if unknown.
    cores: Option<usize>,
    /// CPUs that are online.
    online: Vec<CpuOut<'a>>,
    /// CPUs that are present and offline.
    offline: &'a [u32],
    /// CPUs that the scheduler does not use by itself (`isolcpus`).
    isolated: &'a [u32],
    /// Groups of CPUs of different kinds. Empty if all are alike.
    kinds: &'a [Kind],
    /// Caches; those that are alike are one entry.
    caches: &'a [Cache],
    /// Idle states of the first CPU.
    idle_states: Vec<IdleOut<'a>>,
    /// Whether clocks above the nominal one are allowed. Null if unknown.
    turbo: Option<bool>,
}

/// A CPU of the scheduler: one thread of a core.
#[derive(Serialize, JsonSchema)]
struct CpuOut<'a> {
    /// Number of the CPU.
    cpu: u32,
    /// Its package. Null if unknown.
    package: Option<u32>,
    /// CPUs of the same core, including this one. Empty if unknown.
    siblings: &'a [u32],
    /// Computing power, of 1024. Null if unknown.
    capacity: Option<u32>,
    /// Clock as it was read. Null if unknown.
    live_clock_hz: Option<u64>,
    /// Nominal clock. Null if unknown.
    nominal_hz: Option<u64>,
    /// Highest clock of the hardware. Null if unknown.
    max_hz: Option<u64>,
    /// Highest clock that settings allow. Null if unknown.
    allowed_hz: Option<u64>,
    /// Driver that sets the clock. Null if unknown.
    driver: Option<&'a str>,
    /// Governor of the clock. Null if unknown.
    governor: Option<&'a str>,
    /// Preference that is set where the hardware decides. Null if unknown.
    preference: Option<&'a str>,
}

/// An idle state.
#[derive(Serialize, JsonSchema)]
struct IdleOut<'a> {
    /// Name: `C6`.
    name: &'a str,
    /// Time to wake from it.
    latency_ns: u64,
    /// Whether it is disabled.
    disabled: bool,
}

/// Memory.
#[derive(Serialize, JsonSchema)]
struct MemoryOut<'a> {
    /// Memory of the kernel. Null if unknown.
    total_bytes: Option<u64>,
    /// Memory that programs could get without swapping. Null if unknown.
    live_available_bytes: Option<u64>,
    /// Size of a huge page. Null if unknown.
    huge_page_bytes: Option<u64>,
    /// Huge pages that are set aside. Null if unknown.
    huge_pages: Option<u64>,
    /// Slots as the firmware lists them. Null if the list cannot be read.
    slots: Option<Vec<SlotOut<'a>>>,
}

/// A slot for a memory module.
#[derive(Serialize, JsonSchema)]
struct SlotOut<'a> {
    /// Where it is: `DIMM_A1`. Null if unknown.
    locator: Option<&'a str>,
    /// Bank, in the words of the firmware. Null if unknown.
    bank: Option<&'a str>,
    /// Channel. Null if the firmware names none.
    channel: Option<&'a str>,
    /// Size of the module. Null if the slot is empty.
    size_bytes: Option<u64>,
    /// Kind of the module: `DDR4`. Null if unknown.
    kind: Option<&'a str>,
    /// Speed that the module is made for. Null if unknown.
    rated_transfers_per_sec: Option<u64>,
    /// Speed that is set. Null if unknown.
    transfers_per_sec: Option<u64>,
    /// Data bits of each transfer. Null if unknown.
    width_bits: Option<u16>,
    /// Whether it has further bits to correct errors. Null if unknown.
    ecc: Option<bool>,
    /// Ranks. Null if unknown.
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

/// What may limit a path. Facts alone never show that something does, nor that all is well.
fn headline(findings: &[Finding]) -> Headline {
    const NOTHING: &str = "nothing is odd in what was read; a measurement shows what limits a path";
    let nothing = || Headline::said(Answered::Unknown, NOTHING.to_owned());
    Headline::suspected(findings).unwrap_or_else(nothing)
}

/// Empty values are unknown.
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
