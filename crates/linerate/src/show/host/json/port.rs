//! Network ports.

use std::collections::BTreeMap;

use linerate_core::facts::Inventory;
use linerate_core::facts::irq::Irq;
use linerate_core::facts::nic::{
    Channels, Coalesce, Counter, Direction, Duplex, Fec, LinkModes, Nic, Offloads, Pause,
    PortErrors, Queue, Rings, Rss, counted,
};
use linerate_core::facts::shaping::Shaper;
use linerate_core::facts::usb::Hub;
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
    mtu_max_bytes: Option<u32>,
    speed_bps: Option<u64>,
    duplex: Option<&'static str>,
    lanes: Option<u32>,
    autonegotiation: Option<bool>,
    modes: ModesOut<'a>,
    fec: Option<FecOut<'a>>,
    offloads: Option<&'a Offloads>,
    channels: Option<Channels>,
    rings: Option<Rings>,
    coalescing: Option<Coalesce>,
    pause: Option<PauseOut>,
    rss: Option<RssOut<'a>>,
    rx_queues: Option<usize>,
    tx_queues: Option<usize>,
    threaded: Option<bool>,
    queues: Vec<QueueOut<'a>>,
    interrupts: Vec<IrqOut<'a>>,
    vlan: Option<u16>,
    bond: Option<BondOut<'a>>,
    below: Vec<&'a str>,
    below_hidden: bool,
    above: Option<&'a str>,
    qdisc: Option<&'a str>,
    shapers: Vec<ShaperOut<'a>>,
    device: Option<&'a str>,
    pci: Option<&'a str>,
    usb_bps: Option<u64>,
    usb_hubs: Vec<HubOut<'a>>,
    node: Option<u32>,
    live_errors: ErrorsOut,
    live_counters: BTreeMap<&'a str, u64>,
    counter_meanings: BTreeMap<&'a str, Option<&'static str>>,
    tunnel: Option<TunnelOut>,
}

/// What a tunnel adds to each packet.
#[derive(Serialize)]
struct TunnelOut {
    header_bytes: Option<u32>,
    header_most_bytes: Option<u32>,
    ip_version: Option<u8>,
    route_mtu_bytes: Option<u32>,
}

#[derive(Serialize)]
struct HubOut<'a> {
    name: &'a str,
    usb_bps: Option<u64>,
}

#[derive(Serialize)]
struct ModesOut<'a> {
    supported: &'a [String],
    advertised: &'a [String],
    peer: &'a [String],
}

#[derive(Serialize)]
struct FecOut<'a> {
    active: Option<&'a str>,
    configured: &'a [String],
    auto: Option<bool>,
    live_corrected_blocks: Option<u64>,
    live_uncorrectable_blocks: Option<u64>,
}

#[derive(Serialize)]
struct PauseOut {
    autonegotiation: Option<bool>,
    rx: Option<bool>,
    tx: Option<bool>,
    live_rx_frames: Option<u64>,
    live_tx_frames: Option<u64>,
}

#[derive(Serialize)]
struct RssOut<'a> {
    function: Option<&'a str>,
    entries: usize,
    queues: Vec<u32>,
}

#[derive(Serialize)]
struct QueueOut<'a> {
    direction: Direction,
    queue: u32,
    napi: Option<u32>,
    irq: Option<u32>,
    cpus: Option<&'a [u32]>,
    flows: Option<u64>,
}

#[derive(Serialize)]
struct IrqOut<'a> {
    irq: u32,
    name: Option<&'a str>,
    cpus: &'a [u32],
    allowed: &'a [u32],
    live_total: Option<u64>,
}

#[derive(Serialize)]
struct ShaperOut<'a> {
    kind: &'a str,
    id: &'a str,
    rate_bps: Option<u64>,
    assured_bps: Option<u64>,
    flow_rate_bps: Option<u64>,
    burst_bytes: Option<u64>,
    delay_ns: Option<u64>,
    loss_share: Option<f64>,
}

#[derive(Serialize)]
struct BondOut<'a> {
    mode: Option<&'a str>,
    hash: Option<&'a str>,
    active: Option<&'a str>,
}

/// Packets and changes since boot.
#[derive(Serialize)]
struct ErrorsOut {
    rx_errors: Option<u64>,
    tx_errors: Option<u64>,
    rx_dropped: Option<u64>,
    tx_dropped: Option<u64>,
    rx_missed: Option<u64>,
    rx_fifo: Option<u64>,
    rx_crc: Option<u64>,
    collisions: Option<u64>,
    carrier_changes: Option<u32>,
}

pub(super) fn ports(inventory: &Inventory) -> Vec<PortOut<'_>> {
    let nics = inventory.network.nics.iter();
    let mut irqs = inventory.interrupts.by_port(&inventory.network.nics);
    nics.map(|nic| port(inventory, nic, irqs.remove(&nic.index).unwrap_or_default()))
        .collect()
}

fn port<'a>(inventory: &'a Inventory, nic: &'a Nic, irqs: Vec<&'a Irq>) -> PortOut<'a> {
    let name = |index: u32| Some(inventory.network.nic(index)?.name.as_str());
    let queues = |way| Some(nic.queues_of(way)).filter(|&n| n > 0);
    let counters = nic.counters.iter();
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
        mtu_max_bytes: nic.mtu_max,
        speed_bps: nic.link.speed.map(|s| exact(s.0)),
        duplex: nic.link.duplex.map(duplex),
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
        rx_queues: queues(Direction::Rx),
        tx_queues: queues(Direction::Tx),
        threaded: nic.threaded,
        queues: nic.queues.iter().map(queue).collect(),
        interrupts: irqs.into_iter().map(irq).collect(),
        vlan: nic.stack.vlan,
        bond: nic.stack.bond.as_ref().map(|bond| BondOut {
            mode: known(&bond.mode),
            hash: known(&bond.hash),
            active: bond.active.and_then(name),
        }),
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
        live_counters: counters
            .map(|c| (c.name.as_str(), exact(c.value)))
            .collect(),
        counter_meanings: nic.counters.iter().map(|c| meaning(nic, c)).collect(),
        tunnel: nic.stack.tunnel.as_ref().map(|tunnel| TunnelOut {
            header_bytes: tunnel.least,
            header_most_bytes: tunnel.most,
            ip_version: tunnel.version,
            route_mtu_bytes: tunnel.route_mtu,
        }),
    }
}

fn hub(hub: &Hub) -> HubOut<'_> {
    HubOut {
        name: &hub.name,
        usb_bps: hub.speed.map(|speed| exact(speed.0)),
    }
}

fn meaning<'a>(nic: &Nic, counter: &'a Counter) -> (&'a str, Option<&'static str>) {
    let meaning = counted::meaning(&nic.driver, &counter.name);
    (&counter.name, meaning.map(counted::Meaning::id))
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

fn duplex(duplex: Duplex) -> &'static str {
    match duplex {
        Duplex::Half => "half",
        Duplex::Full => "full",
    }
}

fn modes(link: &LinkModes) -> ModesOut<'_> {
    ModesOut {
        supported: &link.supported,
        advertised: &link.advertised,
        peer: &link.peer,
    }
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
    RssOut {
        function: known(&rss.function),
        entries: rss.table.len(),
        queues: rss.queues(),
    }
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
