//! RDMA devices in the JSON document of a machine.

use std::collections::BTreeMap;

use linerate_facts::board;
use linerate_facts::infiniband::{
    Gid, Guid, IbDevice, IbPort, Layer, LinkState, PhysicalState, VirtualOf,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{exact, known};

/// An RDMA device.
#[derive(Serialize, JsonSchema)]
pub(super) struct RdmaOut<'a> {
    /// Name of the device: `mlx5_0`.
    name: &'a str,
    /// Model of the device. Null if unknown.
    model: Option<&'a str>,
    /// Version of the firmware. Null if unknown.
    firmware: Option<&'a str>,
    /// PCI address of the device, or of the device that it is attached to. Null if there is none.
    pci: Option<&'a str>,
    /// NUMA node. Null if unknown or meaningless.
    node: Option<u32>,
    /// Name of the board, as its manufacturer writes it (PSID). Null if unknown.
    board: Option<&'a str>,
    /// Facts about the board with this id. Null if linerate does not know it.
    board_meaning: Option<BoardOut>,
    /// GUID of the device, 0x and 16 digits; zeros if none was assigned. Null if unknown.
    node_guid: Option<String>,
    /// The card, if this device is a virtual function of one. Null for a card, and in a guest.
    virtual_of: Option<&'a VirtualOf>,
    /// Whether the device is software on a network port (rxe, siw).
    software: bool,
    /// Ports of the device.
    ports: Vec<RdmaPortOut<'a>>,
}

/// Facts about a board, from a table in linerate.
#[derive(Serialize, JsonSchema)]
struct BoardOut {
    /// Part number that the maker of the chip gives the board.
    part: &'static str,
    /// Family of chips: ConnectX-3.
    family: &'static str,
    /// Company that sold the board under its own name. Null if the maker of the chip did.
    sold_by: Option<&'static str>,
    /// Number of ports on the board.
    ports: u32,
    /// InfiniBand speeds of the ports, in words.
    infiniband: &'static str,
    /// Ethernet speeds of the ports, in words.
    ethernet: &'static str,
    /// Version of a firmware that is newer than that of the card. Null if none is known.
    newer_firmware: Option<&'static str>,
}

/// A port of an RDMA device.
#[derive(Serialize, JsonSchema)]
struct RdmaPortOut<'a> {
    /// Number of the port, from 1.
    port: u32,
    /// Link layer of the port: InfiniBand or Ethernet. Null if unknown.
    layer: Option<Layer>,
    /// State of the link. Null if unknown.
    state: Option<LinkState>,
    /// Physical state of the port. Null if unknown.
    physical: Option<PhysicalState>,
    /// Rate that both ends negotiated, as the kernel prints it: up to QDR a fifth of the bits carry no data. Null
    /// without a link, and for software devices.
    rate_bps: Option<u64>,
    /// Number of lanes. Null if there is no rate.
    lanes: Option<u32>,
    /// Speed of a lane: SDR, QDR, FDR. Null if unknown.
    lane_speed: Option<&'a str>,
    /// Nominal rate of a software device: it limits nothing. Null for other devices.
    nominal_bps: Option<u64>,
    /// GUID of an InfiniBand port, in the format of `opensm -g`; zeros if none was assigned. Null if unknown.
    guid: Option<String>,
    /// Local identifier (LID). 0 until a subnet manager assigns one. Null if unknown.
    lid: Option<u64>,
    /// LID of the subnet manager. 0 or 65535 if there is none. Null if unknown.
    sm_lid: Option<u64>,
    /// Addresses (GIDs) of the port that are in use.
    gids: Vec<GidOut<'a>>,
    /// Counters of the port and, with the prefix `hw.`, of the device.
    live_counters: BTreeMap<&'a str, u64>,
}

/// An address (GID) of a port.
#[derive(Serialize, JsonSchema)]
struct GidOut<'a> {
    /// Index of the address in the port's table.
    index: u32,
    /// The address in hexadecimal.
    gid: &'a str,
    /// What the address is used with: IB/RoCE v1 or RoCE v2. Null if unknown.
    kind: Option<&'a str>,
    /// Network port that the address belongs to. Null if there is none.
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
        board_meaning: board::of(&device.board).map(|board| BoardOut {
            part: board.part,
            family: board.family().name,
            sold_by: known(board.sold_by),
            ports: board.ports,
            infiniband: board.infiniband,
            ethernet: board.ethernet,
            newer_firmware: board.newer_firmware(&device.firmware),
        }),
        node_guid: device.node_guid.as_ref().map(Guid::to_string),
        virtual_of: device.virtual_of.as_ref(),
        software: device.software,
        ports: device.ports.iter().map(|p| rdma_port(device, p)).collect(),
    }
}

fn rdma_port<'a>(device: &IbDevice, port: &'a IbPort) -> RdmaPortOut<'a> {
    let rate = port.agreed().filter(|_| !device.software);
    let nominal = port.agreed().filter(|_| device.software);
    let counters = port.counters.iter();
    RdmaPortOut {
        port: port.number,
        layer: port.layer,
        state: port.state,
        physical: port.physical,
        rate_bps: rate.map(|r| exact(r.rate.0)),
        lanes: rate.map(|r| r.width).filter(|width| *width > 0),
        lane_speed: rate.and_then(|r| known(&r.speed)),
        nominal_bps: nominal.map(|r| exact(r.rate.0)),
        guid: port.guid().map(|guid| guid.to_string()),
        lid: port.lid.map(exact),
        sm_lid: port.sm_lid.map(exact),
        gids: port.gids.iter().map(gid).collect(),
        live_counters: counters.map(|c| (c.name.as_str(), exact(c.value))).collect(),
    }
}

fn gid(gid: &Gid) -> GidOut<'_> {
    GidOut { index: gid.index, gid: &gid.gid, kind: known(&gid.kind), port: known(&gid.netdev) }
}
