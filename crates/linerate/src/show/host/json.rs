//! The facts of one machine for programs.
//!
//! The schema is `schema/host.schema.json`. Units stand in the keys; integers stay below 2^53; what
//! is unknown is `null`, and `unknown` says why. Keys that begin with `live` change from one moment
//! to the next.

use std::collections::BTreeMap;

use linerate_core::facts::cpu::{Busy, Cache, Cpu, IdleState, Load, Node, Process, Processors};
use linerate_core::facts::machine::Machine;
use linerate_core::facts::memory::{Memory, Module};
use linerate_core::facts::nic::Fragments;
use linerate_core::facts::odd::{self, Oddity};
use linerate_core::facts::{Gap, Inventory};
use serde::Serialize;

use self::pci::DeviceOut;
use self::port::PortOut;
use self::rdma::RdmaOut;
use self::storage::{DiskOut, FileSystemOut, VolumeOut};

mod pci;
mod port;
mod rdma;
mod storage;

/// Version of the document; raised when a key changes its meaning or goes away.
pub const FORMAT: u32 = 1;

/// The published schema of the document.
pub const SCHEMA: &str = include_str!("../../../schema/host.schema.json");

/// Integers in JSON are exact up to here.
const EXACT: u64 = (1 << 53) - 1;

#[derive(Serialize)]
struct Output<'a> {
    format: u32,
    linerate: &'static str,
    odd: Vec<OddOut>,
    machine: MachineOut<'a>,
    cpus: CpusOut<'a>,
    nodes: Vec<NodeOut<'a>>,
    memory: MemoryOut<'a>,
    pci: Vec<DeviceOut<'a>>,
    ports: Vec<PortOut<'a>>,
    live_fragments: Option<FragmentsOut>,
    rdma: Vec<RdmaOut<'a>>,
    disks: Vec<DiskOut<'a>>,
    volumes: Vec<VolumeOut<'a>>,
    filesystems: Vec<FileSystemOut<'a>>,
    settings: BTreeMap<&'a str, &'a str>,
    live_busy: Option<BusyOut<'a>>,
    unknown: &'a [Gap],
}

/// Packets since boot.
#[derive(Serialize)]
struct FragmentsOut {
    created: u64,
    received: u64,
    refused: u64,
}

#[derive(Serialize)]
struct OddOut {
    id: &'static str,
    subject: String,
    what: String,
    why: &'static str,
    #[serde(rename = "do")]
    fix: String,
}

#[derive(Serialize)]
struct MachineOut<'a> {
    name: Option<&'a str>,
    kernel: Option<&'a str>,
    vendor: Option<&'a str>,
    product: Option<&'a str>,
    guest: Option<bool>,
    hypervisor: Option<&'a str>,
    cloud: Option<&'a str>,
    container: Option<&'a str>,
    cpu_quota: Option<f64>,
    cpus_allowed: &'a [u32],
    memory_limit_bytes: Option<u64>,
    clock_source: Option<&'a str>,
}

#[derive(Serialize)]
struct CpusOut<'a> {
    model: Option<&'a str>,
    packages: Option<usize>,
    cores: Option<usize>,
    online: Vec<CpuOut<'a>>,
    offline: &'a [u32],
    isolated: &'a [u32],
    kinds: Vec<KindOut<'a>>,
    caches: Vec<CacheOut<'a>>,
    idle_states: Vec<IdleOut<'a>>,
    turbo: Option<bool>,
}

#[derive(Serialize)]
struct CpuOut<'a> {
    cpu: u32,
    package: Option<u32>,
    siblings: &'a [u32],
    capacity: Option<u32>,
    live_clock_hz: Option<u64>,
    nominal_hz: Option<u64>,
    max_hz: Option<u64>,
    allowed_hz: Option<u64>,
    driver: Option<&'a str>,
    governor: Option<&'a str>,
    preference: Option<&'a str>,
}

#[derive(Serialize)]
struct KindOut<'a> {
    name: &'a str,
    cpus: &'a [u32],
}

#[derive(Serialize)]
struct CacheOut<'a> {
    level: u32,
    kind: &'a str,
    size_bytes: u64,
    shared_by: usize,
    count: usize,
}

#[derive(Serialize)]
struct IdleOut<'a> {
    name: &'a str,
    latency_ns: u64,
    disabled: bool,
}

#[derive(Serialize)]
struct NodeOut<'a> {
    node: u32,
    cpus: Option<&'a [u32]>,
    memory_bytes: Option<u64>,
    live_free_bytes: Option<u64>,
    distances: &'a [u32],
}

#[derive(Serialize)]
struct MemoryOut<'a> {
    total_bytes: Option<u64>,
    live_available_bytes: Option<u64>,
    huge_page_bytes: Option<u64>,
    huge_pages: Option<u64>,
    slots: Option<Vec<SlotOut<'a>>>,
}

#[derive(Serialize)]
struct SlotOut<'a> {
    locator: Option<&'a str>,
    bank: Option<&'a str>,
    channel: Option<&'a str>,
    size_bytes: Option<u64>,
    kind: Option<&'a str>,
    rated_transfers_per_sec: Option<u64>,
    transfers_per_sec: Option<u64>,
    width_bits: Option<u16>,
    ecc: Option<bool>,
    ranks: Option<u8>,
}

#[derive(Serialize)]
struct BusyOut<'a> {
    cpus: Vec<LoadOut>,
    processes: Vec<ProcessOut<'a>>,
}

#[derive(Serialize)]
struct LoadOut {
    cpu: u32,
    busy: f64,
    interrupts: f64,
    stolen: f64,
}

#[derive(Serialize)]
struct ProcessOut<'a> {
    pid: u32,
    name: &'a str,
    cpus: f64,
    last_cpu: u32,
}

/// The inventory as one JSON document, with a line feed at its end.
pub fn json(inventory: &Inventory) -> serde_json::Result<String> {
    let settings = inventory.tunables.iter();
    let output = Output {
        format: FORMAT,
        linerate: env!("CARGO_PKG_VERSION"),
        odd: odd::find(inventory).into_iter().map(oddity).collect(),
        machine: machine(&inventory.machine),
        cpus: cpus(&inventory.processors),
        nodes: inventory.processors.nodes.iter().map(node).collect(),
        memory: memory(&inventory.memory),
        pci: pci::devices(&inventory.pci),
        ports: port::ports(inventory),
        live_fragments: inventory.network.fragments.map(fragments),
        rdma: inventory
            .infiniband
            .devices
            .iter()
            .map(rdma::rdma)
            .collect(),
        disks: inventory.storage.disks().map(storage::disk).collect(),
        volumes: storage::volumes(&inventory.storage),
        filesystems: storage::filesystems(&inventory.storage),
        settings: settings
            .map(|t| (t.name.as_str(), t.value.as_str()))
            .collect(),
        live_busy: inventory.busy.as_ref().map(busy),
        unknown: &inventory.gaps,
    };
    let mut text = serde_json::to_string_pretty(&output)?;
    text.push('\n');
    Ok(text)
}

fn oddity(odd: Oddity) -> OddOut {
    let Oddity {
        id,
        subject,
        what,
        why,
        fix,
    } = odd;
    OddOut {
        id,
        subject,
        what,
        why,
        fix,
    }
}

/// What is empty is unknown.
fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// A whole number that every JSON reader keeps.
fn exact(value: u64) -> u64 {
    value.min(EXACT)
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
    let kinds = all.kinds.iter().map(|kind| KindOut {
        name: &kind.name,
        cpus: &kind.cpus,
    });
    CpusOut {
        model: known(&all.model),
        packages: all.packages(),
        cores: all.cores(),
        online: all.cpus.iter().map(cpu).collect(),
        offline: &all.offline,
        isolated: &all.isolated,
        kinds: kinds.collect(),
        caches: all.caches.iter().map(cache).collect(),
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

fn cache(cache: &Cache) -> CacheOut<'_> {
    CacheOut {
        level: cache.level,
        kind: &cache.kind,
        size_bytes: exact(cache.size.0),
        shared_by: cache.shared_by,
        count: cache.count,
    }
}

fn idle(state: &IdleState) -> IdleOut<'_> {
    IdleOut {
        name: &state.name,
        latency_ns: exact(state.latency.0),
        disabled: state.disabled,
    }
}

fn node(node: &Node) -> NodeOut<'_> {
    NodeOut {
        node: node.id,
        cpus: node.cpus.as_deref(),
        memory_bytes: node.total.map(|t| exact(t.0)),
        live_free_bytes: node.free.map(|f| exact(f.0)),
        distances: &node.distances,
    }
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

fn busy(busy: &Busy) -> BusyOut<'_> {
    let load = |load: &Load| LoadOut {
        cpu: load.cpu,
        busy: load.busy,
        interrupts: load.interrupts,
        stolen: load.stolen,
    };
    let processes = busy.processes.iter().map(|process: &Process| ProcessOut {
        pid: process.pid,
        name: &process.name,
        cpus: process.cpus,
        last_cpu: process.last_cpu,
    });
    BusyOut {
        cpus: busy.cpus.iter().map(load).collect(),
        processes: processes.collect(),
    }
}

fn fragments(counted: Fragments) -> FragmentsOut {
    FragmentsOut {
        created: exact(counted.created),
        received: exact(counted.received),
        refused: exact(counted.refused),
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::units::Bytes;
    use serde_json::Value;

    use super::super::sample;
    use super::*;
    use crate::show::schema::{fits, refuses};

    fn output(inventory: &Inventory) -> Value {
        serde_json::from_str(&json(inventory).unwrap()).unwrap()
    }

    #[test]
    fn full_and_empty_documents_fit_the_published_schema() {
        for inventory in [sample::inventory(), Inventory::default()] {
            fits(SCHEMA, &output(&inventory));
        }
    }

    #[test]
    fn a_tunnel_and_counters_of_every_sort_fit_the_schema() {
        use linerate_core::facts::nic::{Counter, TunnelKind};

        let mut inventory = sample::inventory();
        let nic = &mut inventory.network.nics[0];
        "ena".clone_into(&mut nic.driver);
        let counter = |name: &str| Counter {
            name: name.to_owned(),
            value: 7,
        };
        let names = [
            "pps_allowance_exceeded",
            "conntrack_allowance_available",
            "new_drops",
        ];
        nic.counters = names.map(counter).to_vec();
        nic.stack.tunnel = TunnelKind::named("vxlan").map(|kind| kind.tunnel(None, true, Some(0)));
        inventory.network.fragments = Some(Fragments::default());
        let output = output(&inventory);
        fits(SCHEMA, &output);
        let port = &output["ports"][0];
        assert_eq!(port["tunnel"]["header_most_bytes"], 70);
        assert_eq!(
            port["counter_meanings"]["pps_allowance_exceeded"],
            "allowance"
        );
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
            ("/odd/0/why", Value::Null),
            ("/live_busy/cpus/0/busy", Value::from("much")),
        ];
        refuses(SCHEMA, &good, wrong, "/cpus");
    }

    #[test]
    fn integers_stay_exact() {
        let mut inventory = Inventory::default();
        inventory.memory.total = Some(Bytes(u64::MAX));
        let total = &output(&inventory)["memory"]["total_bytes"];
        assert_eq!(total.as_u64(), Some(9_007_199_254_740_991));
    }
}
