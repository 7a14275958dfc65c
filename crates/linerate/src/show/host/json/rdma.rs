//! RDMA devices.

use std::collections::BTreeMap;

use linerate_core::facts::infiniband::{
    Gid, Guid, IbDevice, IbPort, Layer, LinkState, PhysicalState, VirtualOf,
};
use serde::Serialize;

use super::{exact, known};

#[derive(Serialize)]
pub(super) struct RdmaOut<'a> {
    name: &'a str,
    model: Option<&'a str>,
    firmware: Option<&'a str>,
    pci: Option<&'a str>,
    node: Option<u32>,
    board: Option<&'a str>,
    node_guid: Option<String>,
    virtual_of: Option<VirtualOut<'a>>,
    software: bool,
    ports: Vec<RdmaPortOut<'a>>,
}

#[derive(Serialize)]
struct VirtualOut<'a> {
    pci: &'a str,
    number: Option<u32>,
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
    nominal_bps: Option<u64>,
    guid: Option<String>,
    lid: Option<u64>,
    sm_lid: Option<u64>,
    gids: Vec<GidOut<'a>>,
    live_counters: BTreeMap<&'a str, u64>,
}

#[derive(Serialize)]
struct GidOut<'a> {
    index: u32,
    gid: &'a str,
    kind: Option<&'a str>,
    port: Option<&'a str>,
}

pub(super) fn rdma(device: &IbDevice) -> RdmaOut<'_> {
    RdmaOut {
        name: &device.name,
        model: known(&device.model),
        firmware: known(&device.firmware),
        pci: known(&device.pci),
        node: device.node,
        board: known(&device.board),
        node_guid: device.node_guid.as_ref().map(Guid::to_string),
        virtual_of: device.virtual_of.as_ref().map(virtual_of),
        software: device.software,
        ports: device.ports.iter().map(|p| rdma_port(device, p)).collect(),
    }
}

fn virtual_of(card: &VirtualOf) -> VirtualOut<'_> {
    VirtualOut {
        pci: &card.pci,
        number: card.number,
    }
}

fn rdma_port<'a>(device: &IbDevice, port: &'a IbPort) -> RdmaPortOut<'a> {
    let rate = port.agreed().filter(|_| !device.software);
    let nominal = port.agreed().filter(|_| device.software);
    let counters = port.counters.iter();
    RdmaPortOut {
        port: port.number,
        layer: port.layer.map(Layer::name),
        state: port.state.map(LinkState::name),
        physical: port.physical.map(PhysicalState::name),
        rate_bps: rate.map(|r| exact(r.rate.0)),
        lanes: rate.map(|r| r.width),
        lane_speed: rate.and_then(|r| known(&r.speed)),
        nominal_bps: nominal.map(|r| exact(r.rate.0)),
        guid: port.guid().map(|guid| guid.to_string()),
        lid: port.lid.map(exact),
        sm_lid: port.sm_lid.map(exact),
        gids: port.gids.iter().map(gid).collect(),
        live_counters: counters
            .map(|c| (c.name.as_str(), exact(c.value)))
            .collect(),
    }
}

fn gid(gid: &Gid) -> GidOut<'_> {
    GidOut {
        index: gid.index,
        gid: &gid.gid,
        kind: known(&gid.kind),
        port: known(&gid.netdev),
    }
}
