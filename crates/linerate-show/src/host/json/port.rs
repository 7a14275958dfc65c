//! Network ports in the JSON document of a machine.

use std::borrow::Cow;
use std::collections::BTreeMap;

use linerate_facts::Inventory;
use linerate_facts::irq::Irq;
use linerate_facts::nic::{
    Bond, Channels, Coalesce, Counter, Duplex, Fec, LinkModes, Nic, Offloads, Pause, PortErrors,
    Queue, QueueDirection, Rings, Rss, Tunnel, counted,
};
use linerate_facts::shaping::Shaper;
use linerate_facts::usb::Hub;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::super::super::json::one_of;
use super::{exact, known};

/// A network port.
#[derive(Serialize, JsonSchema)]
pub(super) struct PortOut<'a> {
    /// Interface name.
    name: &'a str,
    /// Index of the interface in its network namespace.
    index: u32,
    /// Hardware (MAC) address. Null if the port has none, or if unknown.
    hardware_address: Option<&'a str>,
    /// IP addresses that are valid beyond the link, with prefix length: 192.0.2.7/24. Empty if unknown.
    addresses: &'a [String],
    /// Kind of a port made by software: veth, bond, vlan. Null for other ports.
    kind: Option<&'a str>,
    /// Name of the driver. Null if unknown.
    driver: Option<&'a str>,
    /// Version of the firmware. Null if unknown.
    firmware: Option<&'a str>,
    /// Whether the port has no wire of its own; its speed is then nominal.
    #[serde(rename = "virtual")]
    is_virtual: bool,
    /// Whether the port is up and the layer below it has a carrier.
    up: bool,
    /// Why there is no link. Null if the driver does not report it.
    down_reason: Option<&'a str>,
    /// MTU that is set. Null if unknown.
    mtu_bytes: Option<u32>,
    /// Largest MTU that the driver accepts. Null if unknown.
    mtu_max_bytes: Option<u32>,
    /// Link speed. Null if unknown.
    speed_bps: Option<u64>,
    /// Whether the link is full or half duplex. Null if unknown.
    duplex: Option<Duplex>,
    /// Number of lanes that the link uses. Null if unknown.
    lanes: Option<u32>,
    /// Whether the speed is negotiated with the other end of the link. Null if unknown.
    autonegotiation: Option<bool>,
    modes: ModesOut<'a>,
    /// Forward error correction of the link. Null if the port has none.
    fec: Option<FecOut<'a>>,
    /// Which offloads are on. Null if unknown.
    offloads: Option<&'a Offloads>,
    /// Channels: groups of queues with one interrupt each. Null if unknown.
    channels: Option<Channels>,
    /// Numbers of descriptors in each receive and send ring. Null if unknown.
    rings: Option<Rings>,
    /// Interrupt coalescing. Null if unknown.
    coalescing: Option<Coalesce>,
    /// Flow control (pause frames) of the link. Null if unknown.
    pause: Option<PauseOut>,
    /// How received packets are distributed over receive queues (RSS). Null if unknown.
    rss: Option<RssOut<'a>>,
    /// Number of receive queues. Null if they cannot be seen.
    rx_queues: Option<usize>,
    /// Number of send queues. Null if they cannot be seen.
    tx_queues: Option<usize>,
    /// Whether kernel threads, which may run on any CPU, poll the port's queues. Null if unknown.
    threaded: Option<bool>,
    /// Queues of the port, receive queues first.
    queues: Vec<QueueOut<'a>>,
    /// Interrupts of the port's device.
    interrupts: Vec<IrqOut<'a>>,
    /// Tag of a VLAN port. Null for other ports.
    vlan: Option<u16>,
    /// How a bond distributes traffic over its members. Null for other ports.
    bond: Option<BondOut<'a>>,
    /// LACP aggregator that a member of a bond belongs to. Null for other ports, and if unknown.
    aggregator: Option<u16>,
    /// Names of the ports that this port is built on.
    below: Vec<&'a str>,
    /// Whether the port below this one is in another network namespace.
    below_hidden: bool,
    /// Port that this port is a member of, such as a bond or bridge. Null if there is none.
    above: Option<&'a str>,
    /// Root queueing discipline of the port. Null if unknown.
    qdisc: Option<&'a str>,
    /// Queueing disciplines and classes that hold back, delay or drop packets on purpose.
    shapers: Vec<ShaperOut<'a>>,
    /// Name of the device on its bus. Null if there is none.
    device: Option<&'a str>,
    /// PCI address of the port's device, or of the device that it is attached to. Null if there is none.
    pci: Option<&'a str>,
    /// Signalling rate of the USB link that the port is attached to. Null if it is not on USB.
    usb_bps: Option<u64>,
    /// USB hubs between the port and its USB controller, the nearest first.
    usb_hubs: Vec<HubOut<'a>>,
    /// NUMA node. Null if unknown or meaningless.
    node: Option<u32>,
    live_errors: ErrorsOut,
    /// Counters of the driver. Counters of queues are added up under one name, with `*` for the number of the
    /// queue. Only some are listed: nonzero counters of losses, delays and discards, cloud allowances and levels,
    /// and nonzero counters whose names suggest trouble.
    live_counters: BTreeMap<&'a str, u64>,
    /// What each of `live_counters` counts. Null if unknown.
    counter_meanings: BTreeMap<&'a str, Option<MeaningOut>>,
    /// Headers that a tunnel adds to each packet. Null for other ports.
    tunnel: Option<TunnelOut>,
}

/// Id of what a driver's counter counts.
#[derive(Serialize)]
struct MeaningOut(&'static str);

impl JsonSchema for MeaningOut {
    fn schema_name() -> Cow<'static, str> {
        "Meaning".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        one_of(counted::Meaning::ids())
    }
}

/// Headers that a tunnel adds to each packet.
#[derive(Serialize, JsonSchema)]
struct TunnelOut {
    /// Least number of bytes that the tunnel adds to a packet. Null if unknown.
    header_bytes: Option<u32>,
    /// Largest number of bytes that the tunnel adds to a packet. Null if no bound is known.
    header_most_bytes: Option<u32>,
    /// IP version of the outer packets. Null if there are no outer IP packets, or if unknown.
    #[schemars(extend("enum" = [4, 6, null]))]
    ip_version: Option<u8>,
    /// MTU of the route to the tunnel's other end, if it is known and differs from that of the port. Null otherwise.
    route_mtu_bytes: Option<u32>,
}

/// A USB hub.
#[derive(Serialize, JsonSchema)]
struct HubOut<'a> {
    /// Name of the hub on the USB bus.
    name: &'a str,
    /// Signalling rate of the hub's own link, which everything attached to the hub shares. Null if unknown.
    usb_bps: Option<u64>,
}

/// Link modes, by the names of the kernel: 100000baseCR4/Full.
#[derive(Serialize, JsonSchema)]
struct ModesOut<'a> {
    /// Modes that the port and its module or cable support.
    supported: &'a [String],
    /// Modes that the port advertises to the other end.
    advertised: &'a [String],
    /// Modes that the other end of the link advertises. Empty if unknown.
    peer: &'a [String],
}

/// Forward error correction of a link.
#[derive(Serialize, JsonSchema)]
struct FecOut<'a> {
    /// The code in use. Null if unknown.
    active: Option<&'a str>,
    /// The codes that are configured.
    configured: &'a [String],
    /// Whether the driver chooses the code. Null if unknown.
    auto: Option<bool>,
    /// Number of corrected blocks. Null if unknown.
    live_corrected_blocks: Option<u64>,
    /// Number of blocks that could not be corrected; their packets are lost. Null if unknown.
    live_uncorrectable_blocks: Option<u64>,
}

/// Flow control of the link by pause frames.
#[derive(Serialize, JsonSchema)]
struct PauseOut {
    /// Whether flow control is negotiated with the other end. Null if unknown.
    autonegotiation: Option<bool>,
    /// Whether the port obeys the other end's pause requests. Null if unknown.
    rx: Option<bool>,
    /// Whether the port sends pause requests to the other end. Null if unknown.
    tx: Option<bool>,
    /// Number of pause frames received. Null if unknown.
    live_rx_frames: Option<u64>,
    /// Number of pause frames sent. Null if unknown.
    live_tx_frames: Option<u64>,
}

/// How received packets are distributed over receive queues (RSS).
#[derive(Serialize, JsonSchema)]
struct RssOut<'a> {
    /// Name of the hash function. Null if unknown.
    function: Option<&'a str>,
    /// Number of entries of the table that maps hashes to queues.
    entries: usize,
    /// Numbers of the queues that the table maps packets to.
    queues: Vec<u32>,
}

/// A queue of a port.
#[derive(Serialize, JsonSchema)]
struct QueueOut<'a> {
    direction: QueueDirection,
    /// Number of the queue, counted from 0 in each direction.
    queue: u32,
    /// Id of the NAPI poller that serves the queue (Linux 6.8 and later). Null if unknown.
    napi: Option<u32>,
    /// Interrupt that wakes the poller (Linux 6.8 and later). Null if unknown.
    irq: Option<u32>,
    /// CPUs that received packets are handed to (RPS), or CPUs that send through this queue (XPS). Empty if that is
    /// off. Null if unknown.
    cpus: Option<&'a [u32]>,
    /// Number of flows whose packets are steered to the CPU of their program (RFS). Null if unknown.
    flows: Option<u64>,
}

/// An interrupt of a port.
#[derive(Serialize, JsonSchema)]
struct IrqOut<'a> {
    /// Number of the interrupt.
    irq: u32,
    /// Name that the driver gives the interrupt. Null if unknown.
    name: Option<&'a str>,
    /// CPUs that the interrupt is delivered to. Empty if unknown.
    cpus: &'a [u32],
    /// CPUs that the interrupt may be delivered to. Empty if unknown.
    allowed: &'a [u32],
    /// How often the interrupt occurred since boot. Null if unknown.
    live_total: Option<u64>,
}

/// A queueing discipline or class that holds back, delays or drops packets on purpose.
#[derive(Serialize, JsonSchema)]
struct ShaperOut<'a> {
    /// Kind of the discipline or class: tbf, htb, fq.
    kind: &'a str,
    /// Handle of the discipline or id of the class, as tc writes it.
    id: &'a str,
    /// Highest rate of all packets together, counted in frames. Null if there is none.
    rate_bps: Option<u64>,
    /// Guaranteed rate of a class. Null if there is none.
    assured_bps: Option<u64>,
    /// Highest rate of each flow. Null if there is none.
    flow_rate_bps: Option<u64>,
    /// Number of bytes that may pass at once. Null if there is no such limit.
    burst_bytes: Option<u64>,
    /// Delay that is added to packets on purpose. Null if there is none.
    delay_ns: Option<u64>,
    /// Share of packets that are dropped on purpose. Null if there are none.
    #[schemars(range(min = 0, max = 1))]
    loss_share: Option<f64>,
}

/// How a bond distributes traffic over its members.
#[derive(Serialize, JsonSchema)]
struct BondOut<'a> {
    /// Mode of the bond: 802.3ad, active-backup. Null if unknown.
    mode: Option<&'a str>,
    /// Headers that the hash covers: layer2, layer3+4. Null if unknown.
    hash: Option<&'a str>,
    /// Name of the one member in use. Null if not exactly one is in use.
    active: Option<&'a str>,
    /// LACP aggregator whose members carry the traffic. Null if unknown.
    aggregator: Option<u16>,
    /// Hardware address of the LACP partner; zeros if no system responds to LACP. Null if unknown.
    partner: Option<&'a str>,
}

/// Counts of packets, errors and link changes since boot.
#[derive(Serialize, JsonSchema)]
struct ErrorsOut {
    /// Number of packets received. Null if unknown.
    rx_packets: Option<u64>,
    /// Number of bad packets received. Null if unknown.
    rx_errors: Option<u64>,
    /// Number of packets that could not be sent. Null if unknown.
    tx_errors: Option<u64>,
    /// Number of packets received and dropped by the host, or of a protocol that it does not handle. Null if unknown.
    rx_dropped: Option<u64>,
    /// Number of packets dropped by this host before they were sent. Null if unknown.
    tx_dropped: Option<u64>,
    /// Number of packets dropped because the host had no buffer for them. Null if unknown.
    rx_missed: Option<u64>,
    /// Number of packets dropped because the receive queue overran. Null if unknown.
    rx_fifo: Option<u64>,
    /// Number of packets received with a bad checksum. Null if unknown.
    rx_crc: Option<u64>,
    /// Number of collisions. Null if unknown.
    collisions: Option<u64>,
    /// How often the link went up or down. Null if unknown.
    carrier_changes: Option<u32>,
}

pub(super) fn ports(inventory: &Inventory) -> Vec<PortOut<'_>> {
    let nics = inventory.network.nics.iter();
    let mut irqs = inventory.interrupts.by_port(&inventory.network.nics);
    nics.map(|nic| port(inventory, nic, irqs.remove(&nic.index).unwrap_or_default())).collect()
}

fn port<'a>(inventory: &'a Inventory, nic: &'a Nic, irqs: Vec<&'a Irq>) -> PortOut<'a> {
    let name = |index: u32| Some(inventory.network.nic(index)?.name.as_str());
    let queues = |way| Some(nic.queues_of(way)).filter(|&n| n > 0);
    let counters = nic.counters.iter();
    let addresses = inventory.network.addresses_of(nic.index);
    PortOut {
        name: &nic.name,
        index: nic.index,
        hardware_address: addresses.and_then(|own| known(&own.hardware)),
        addresses: addresses.map_or(&[], |own| &own.ip),
        kind: known(&nic.kind),
        driver: known(&nic.driver),
        firmware: known(&nic.firmware),
        is_virtual: nic.is_virtual,
        up: nic.up,
        down_reason: known(&nic.down),
        mtu_bytes: nic.mtu,
        mtu_max_bytes: nic.mtu_max,
        speed_bps: nic.link.speed.map(|s| exact(s.0)),
        duplex: nic.duplex(),
        lanes: nic.link.lanes,
        autonegotiation: nic.link.autoneg,
        modes: modes(&nic.link),
        fec: nic.fec.as_ref().map(fec),
        offloads: nic.offloads.as_ref(),
        channels: nic.channels,
        rings: nic.rings,
        coalescing: nic.coalesce,
        pause: nic.pause.as_ref().map(pause),
        rss: nic.rss.as_ref().map(rss),
        rx_queues: queues(QueueDirection::Rx),
        tx_queues: queues(QueueDirection::Tx),
        threaded: nic.threaded,
        queues: nic.queues.iter().map(queue).collect(),
        interrupts: irqs.into_iter().map(irq).collect(),
        vlan: nic.stack.vlan,
        bond: nic.stack.bond.as_ref().map(|own| bond(own, name)),
        aggregator: nic.stack.aggregator,
        below: nic.stack.below.iter().copied().filter_map(name).collect(),
        below_hidden: nic.stack.below_hidden,
        above: nic.stack.above.and_then(name),
        qdisc: known(&nic.qdisc),
        shapers: nic.shapers.iter().map(shaper).collect(),
        device: known(&nic.device),
        pci: known(&nic.pci),
        usb_bps: nic.usb.map(|s| exact(s.0)),
        usb_hubs: nic.usb_hubs.iter().map(hub).collect(),
        node: nic.node,
        live_errors: errors(&nic.errors),
        live_counters: counters.map(|c| (c.name.as_str(), exact(c.value))).collect(),
        counter_meanings: nic.counters.iter().map(|c| meaning(nic, c)).collect(),
        tunnel: nic.stack.tunnel.as_ref().map(tunnel),
    }
}

fn bond<'a>(bond: &'a Bond, name: impl Fn(u32) -> Option<&'a str>) -> BondOut<'a> {
    BondOut {
        mode: known(&bond.mode),
        hash: known(&bond.hash),
        active: bond.active.and_then(name),
        aggregator: bond.aggregator,
        partner: known(&bond.partner),
    }
}

fn tunnel(tunnel: &Tunnel) -> TunnelOut {
    TunnelOut {
        header_bytes: tunnel.least,
        header_most_bytes: tunnel.most,
        ip_version: tunnel.version,
        route_mtu_bytes: tunnel.route_mtu,
    }
}

fn hub(hub: &Hub) -> HubOut<'_> {
    HubOut { name: &hub.name, usb_bps: hub.speed.map(|speed| exact(speed.0)) }
}

fn meaning<'a>(nic: &Nic, counter: &'a Counter) -> (&'a str, Option<MeaningOut>) {
    let meaning = counted::meaning(&nic.driver, &counter.name);
    (&counter.name, meaning.map(|meaning| MeaningOut(meaning.id())))
}

fn shaper(shaper: &Shaper) -> ShaperOut<'_> {
    let set = &shaper.set;
    ShaperOut {
        kind: &shaper.kind,
        id: &shaper.id,
        rate_bps: set.rate.map(|rate| exact(rate.0)),
        assured_bps: set.assured.map(|rate| exact(rate.0)),
        flow_rate_bps: set.flow_rate.map(|rate| exact(rate.0)),
        burst_bytes: set.burst.map(|burst| exact(burst.0)),
        delay_ns: set.delay.map(|delay| exact(delay.0)),
        loss_share: set.loss_ppm.map(|ppm| f64::from(ppm) / 1e6),
    }
}

fn modes(link: &LinkModes) -> ModesOut<'_> {
    ModesOut { supported: &link.supported, advertised: &link.advertised, peer: &link.peer }
}

fn fec(fec: &Fec) -> FecOut<'_> {
    FecOut {
        active: known(&fec.active),
        configured: &fec.configured,
        auto: fec.auto,
        live_corrected_blocks: fec.corrected.map(exact),
        live_uncorrectable_blocks: fec.uncorrectable.map(exact),
    }
}

fn pause(pause: &Pause) -> PauseOut {
    PauseOut {
        autonegotiation: pause.autoneg,
        rx: pause.rx,
        tx: pause.tx,
        live_rx_frames: pause.rx_frames.map(exact),
        live_tx_frames: pause.tx_frames.map(exact),
    }
}

fn rss(rss: &Rss) -> RssOut<'_> {
    RssOut { function: known(&rss.function), entries: rss.table.len(), queues: rss.queues() }
}

fn queue(queue: &Queue) -> QueueOut<'_> {
    QueueOut {
        direction: queue.direction,
        queue: queue.number,
        napi: queue.napi,
        irq: queue.irq,
        cpus: queue.cpus.as_deref(),
        flows: queue.flows.map(exact),
    }
}

fn irq(irq: &Irq) -> IrqOut<'_> {
    IrqOut {
        irq: irq.number,
        name: known(&irq.name),
        cpus: &irq.effective,
        allowed: &irq.allowed,
        live_total: irq.total.map(exact),
    }
}

fn errors(errors: &PortErrors) -> ErrorsOut {
    ErrorsOut {
        rx_packets: errors.rx_packets.map(exact),
        rx_errors: errors.rx_errors.map(exact),
        tx_errors: errors.tx_errors.map(exact),
        rx_dropped: errors.rx_dropped.map(exact),
        tx_dropped: errors.tx_dropped.map(exact),
        rx_missed: errors.rx_missed.map(exact),
        rx_fifo: errors.rx_fifo.map(exact),
        rx_crc: errors.rx_crc.map(exact),
        collisions: errors.collisions.map(exact),
        carrier_changes: errors.carrier_changes,
    }
}
