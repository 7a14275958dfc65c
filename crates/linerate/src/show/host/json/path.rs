//! What data leaves by: ports, RDMA devices and disks.

use linerate_core::facts::Inventory;
use linerate_core::facts::block::BlockDevice;
use linerate_core::facts::infiniband::{IbDevice, IbPort, Layer, LinkState, PhysicalState};
use linerate_core::facts::nic::{Bond, Direction, Duplex, Nic};
use serde::Serialize;

use super::{exact, known};

#[derive(Serialize)]
pub(super) struct PortOut<'a> {
    name: &'a str,
    index: u32,
    kind: Option<&'a str>,
    driver: Option<&'a str>,
    firmware: Option<&'a str>,
    #[serde(rename = "virtual")]
    is_virtual: bool,
    up: bool,
    down_reason: Option<&'a str>,
    mtu_bytes: Option<u32>,
    speed_bps: Option<u64>,
    duplex: Option<&'static str>,
    rx_queues: Option<usize>,
    tx_queues: Option<usize>,
    interrupts: Vec<IrqOut<'a>>,
    vlan: Option<u16>,
    bond: Option<BondOut<'a>>,
    below: Vec<&'a str>,
    above: Option<&'a str>,
    qdisc: Option<&'a str>,
    pci: Option<&'a str>,
    node: Option<u32>,
}

#[derive(Serialize)]
struct IrqOut<'a> {
    irq: u32,
    cpus: &'a [u32],
}

#[derive(Serialize)]
struct BondOut<'a> {
    mode: Option<&'a str>,
    hash: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct RdmaOut<'a> {
    name: &'a str,
    model: Option<&'a str>,
    firmware: Option<&'a str>,
    pci: Option<&'a str>,
    node: Option<u32>,
    ports: Vec<RdmaPortOut<'a>>,
}

#[derive(Serialize)]
struct RdmaPortOut<'a> {
    port: u32,
    layer: Option<&'static str>,
    state: Option<&'static str>,
    physical: Option<&'static str>,
    rate_bps: Option<u64>,
    lanes: Option<u32>,
    lane_speed: Option<&'a str>,
    lid: Option<u64>,
    sm_lid: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct DiskOut<'a> {
    name: &'a str,
    size_bytes: Option<u64>,
    transport: Option<&'a str>,
    scheduler: Option<&'a str>,
    requests: Option<u64>,
    depth: Option<u64>,
    largest_request_bytes: Option<u64>,
    rotational: Option<bool>,
    ways: usize,
    policy: Option<&'a str>,
    pci: Option<&'a str>,
    node: Option<u32>,
}

pub(super) fn ports(inventory: &Inventory) -> Vec<PortOut<'_>> {
    let nics = inventory.network.nics.iter();
    nics.map(|nic| port(inventory, nic)).collect()
}

fn port<'a>(inventory: &'a Inventory, nic: &'a Nic) -> PortOut<'a> {
    let name = |index: u32| Some(inventory.network.nic(index)?.name.as_str());
    let queues = |way| Some(nic.queues_of(way)).filter(|&n| n > 0);
    let interrupts = inventory.interrupts.of(nic).into_iter();
    PortOut {
        name: &nic.name,
        index: nic.index,
        kind: known(&nic.kind),
        driver: known(&nic.driver),
        firmware: known(&nic.firmware),
        is_virtual: nic.is_virtual,
        up: nic.up,
        down_reason: known(&nic.down),
        mtu_bytes: nic.mtu,
        speed_bps: nic.link.speed.map(|s| exact(s.0)),
        duplex: nic.link.duplex.map(|duplex| match duplex {
            Duplex::Half => "half",
            Duplex::Full => "full",
        }),
        rx_queues: queues(Direction::Rx),
        tx_queues: queues(Direction::Tx),
        interrupts: interrupts
            .map(|irq| IrqOut {
                irq: irq.number,
                cpus: &irq.effective,
            })
            .collect(),
        vlan: nic.stack.vlan,
        bond: nic.stack.bond.as_ref().map(bond),
        below: nic.stack.below.iter().copied().filter_map(name).collect(),
        above: nic.stack.above.and_then(name),
        qdisc: known(&nic.qdisc),
        pci: known(&nic.pci),
        node: nic.node,
    }
}

fn bond(bond: &Bond) -> BondOut<'_> {
    BondOut {
        mode: known(&bond.mode),
        hash: known(&bond.hash),
    }
}

pub(super) fn rdma(device: &IbDevice) -> RdmaOut<'_> {
    RdmaOut {
        name: &device.name,
        model: known(&device.model),
        firmware: known(&device.firmware),
        pci: known(&device.pci),
        node: device.node,
        ports: device.ports.iter().map(rdma_port).collect(),
    }
}

fn rdma_port(port: &IbPort) -> RdmaPortOut<'_> {
    let rate = port.rate.as_ref();
    RdmaPortOut {
        port: port.number,
        layer: port.layer.map(Layer::name),
        state: port.state.map(LinkState::name),
        physical: port.physical.map(PhysicalState::name),
        rate_bps: rate.map(|r| exact(r.rate.0)),
        lanes: rate.map(|r| r.width),
        lane_speed: rate.and_then(|r| known(&r.speed)),
        lid: port.lid.map(exact),
        sm_lid: port.sm_lid.map(exact),
    }
}

pub(super) fn disk(disk: &BlockDevice) -> DiskOut<'_> {
    let queue = &disk.queue;
    DiskOut {
        name: &disk.name,
        size_bytes: disk.size.map(|s| exact(s.0)),
        transport: known(&disk.transport),
        scheduler: known(&queue.scheduler),
        requests: queue.requests.map(exact),
        depth: queue.depth.map(exact),
        largest_request_bytes: queue.largest.map(|l| exact(l.0)),
        rotational: queue.rotational,
        ways: disk.paths.len(),
        policy: known(&disk.policy),
        pci: known(&disk.pci),
        node: disk.node,
    }
}
