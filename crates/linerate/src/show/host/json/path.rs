//! What data leaves by beside network ports: RDMA devices and disks.

use linerate_core::facts::block::BlockDevice;
use linerate_core::facts::infiniband::{IbDevice, IbPort, Layer, LinkState, PhysicalState};
use serde::Serialize;

use super::{exact, known};

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
