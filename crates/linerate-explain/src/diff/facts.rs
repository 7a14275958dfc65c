//! Finds the known facts of each host and its end of the path that differ between two records.

use super::{Change, Judged};
use linerate_facts::cpu::Clocked;
use linerate_facts::nic::{Duplex, Nic, Offloads, Pause, Setting};
use linerate_facts::odd::ranges;
use linerate_facts::route::Route;
use linerate_facts::{HostFacts, Port};
use linerate_plan::path::{Direction, Side};
use linerate_record::SetEnd;
use linerate_units::{Bytes, Rate};

/// The known facts of an end, by name. Facts that were not read are missing.
#[derive(Default)]
struct Known(Vec<(String, String)>);

impl Known {
    fn tell(&mut self, what: impl Into<String>, value: Option<impl ToString>) {
        let text = value.map(|v| v.to_string()).filter(|t| !t.is_empty());
        self.0.extend(text.map(|text| (what.into(), text)));
    }
}

/// The facts that both records know and that differ, near host first.
pub(super) fn changes(before: &Judged<'_>, after: &Judged<'_>) -> Vec<(Side, Change)> {
    let of = |side| {
        let [a, b] = [before, after].map(|judged| known(judged, side).0);
        let changed = a.into_iter().filter_map(move |(what, old)| {
            let (_, new) = b.iter().find(|(other, _)| *other == what)?;
            Some((side, Change::of(what, old, new.clone())?))
        });
        changed.collect::<Vec<_>>()
    };
    [Side::Near, Side::Far].into_iter().flat_map(of).collect()
}

fn known(judged: &Judged<'_>, side: Side) -> Known {
    let mut known = Known::default();
    if let Some(host) = judged.model.host(side) {
        machine(&mut known, &host.facts);
        limits(&mut known, &host.facts);
        port(&mut known, &host.facts);
        if let Some(route) = &host.facts.route {
            way(&mut known, route, host.facts.port.as_ref());
        }
    }
    for direction in Direction::ALL {
        if let Some(load) = judged.model.direction(direction) {
            connections(&mut known, direction, load.base.made.at(direction, side));
        }
    }
    known
}

fn machine(known: &mut Known, facts: &HostFacts) {
    known.tell("kernel", Some(&facts.kernel));
    known.tell("linerate", Some(&facts.linerate));
    known.tell("CPU model", Some(&facts.cpu_model));
    known.tell("CPUs allowed", Some(ranges(&facts.cpus)));
    known.tell("NUMA nodes", Some(facts.nodes).filter(|n| *n > 0));
    for Clocked { cpus, clock } in facts.clocks.iter().flatten() {
        let cpus = ranges(cpus);
        known.tell(format!("governor of CPU {cpus}"), Some(&clock.governor));
        known.tell(format!("highest clock of CPU {cpus}"), clock.limit);
    }
    let channels = facts.channels.as_ref();
    known.tell(
        "memory",
        channels.map(|c| format!("{} to {} channels of {}", c.least, c.most, c.speed)),
    );
}

/// Adds the settings of the kernel that limit connections.
fn limits(known: &mut Known, facts: &HostFacts) {
    let three = |values: [u64; 3]| values.map(|v| v.to_string()).join(" ");
    let buffers = &facts.buffers;
    known.tell("net.ipv4.tcp_rmem", buffers.tcp_rmem.map(three));
    known.tell("net.ipv4.tcp_wmem", buffers.tcp_wmem.map(three));
    known.tell("net.ipv4.tcp_dsack", facts.tells_duplicates.map(u8::from));
    let probes = facts.probes_mtu.map(|probes| if probes { "on" } else { "off" });
    known.tell("net.ipv4.tcp_mtu_probing", probes);
    known.tell("net.core.rmem_max", buffers.rmem_max);
    known.tell("net.core.wmem_max", buffers.wmem_max);
    let default = "net.ipv4.tcp_congestion_control";
    known.tell(default, Some(&facts.congestion_default));
    let available = facts.congestion_available.join(" ");
    known.tell("congestion controls available", Some(available));
}

fn port(known: &mut Known, facts: &HostFacts) {
    let Some(port) = &facts.port else {
        return;
    };
    known.tell("port", Some(&port.name));
    known.tell("driver of the port", Some(&port.driver));
    known.tell("MTU", port.mtu);
    let speed = port.speed_mbps.filter(|_| !port.is_virtual);
    let speed = speed.map(|mbps| Rate(mbps.saturating_mul(1_000_000)));
    known.tell("speed of the port", speed);
    let served = "interrupts of the port go to CPU";
    known.tell(served, Some(ranges(&port.served_by)));
}

/// Adds the facts of a route and of the ports that packets leave by. For `port`, facts that are already compared are
/// left out.
fn way(known: &mut Known, route: &Route, port: Option<&Port>) {
    known.tell("own address", route.own);
    known.tell("peer address", route.peer);
    known.tell("gateway", route.gateway);
    for nic in &route.ports {
        let name = &nic.name;
        known.tell(format!("{name}: firmware"), Some(&nic.firmware));
        if port.is_none_or(|port| port.name != *name) {
            known.tell(format!("{name}: MTU"), nic.mtu);
            known.tell(format!("{name}: link"), nic.link.speed);
        }
        let duplex = nic.duplex().map(|duplex| match duplex {
            Duplex::Half => "half",
            Duplex::Full => "full",
        });
        known.tell(format!("{name}: duplex"), duplex);
        let fec = nic.fec.as_ref().map(|fec| &fec.active);
        known.tell(format!("{name}: FEC"), fec);
        known.tell(format!("{name}: qdisc"), Some(&nic.qdisc));
        let shapers: Vec<String> = nic.shapers.iter().map(ToString::to_string).collect();
        let shapers = if shapers.is_empty() && !nic.qdisc.is_empty() {
            "none".to_owned()
        } else {
            shapers.join(", ")
        };
        known.tell(format!("{name}: shapers"), Some(shapers));
        let slot = route.crossings(nic).first().map(|crossing| crossing.now);
        known.tell(format!("{name}: PCIe link"), slot);
        queues(known, nic);
    }
}

fn queues(known: &mut Known, nic: &Nic) {
    let name = &nic.name;
    let mut set = |what: &str, setting: Option<Setting>| {
        known.tell(format!("{name}: {what}"), setting.and_then(|s| s.now));
    };
    set("channels", nic.channels.map(|c| c.combined));
    set("receive channels", nic.channels.map(|c| c.rx));
    set("send channels", nic.channels.map(|c| c.tx));
    set("receive ring", nic.rings.map(|r| r.rx));
    set("send ring", nic.rings.map(|r| r.tx));
    let on = |is: bool| if is { "on" } else { "off" };
    if let Some(held) = nic.coalesce {
        known.tell(format!("{name}: rx-usecs"), held.rx_usecs);
        known.tell(format!("{name}: tx-usecs"), held.tx_usecs);
        known.tell(format!("{name}: adaptive-rx"), held.adaptive_rx.map(on));
        known.tell(format!("{name}: adaptive-tx"), held.adaptive_tx.map(on));
    }
    if let Some(Pause { rx, tx, .. }) = nic.pause {
        known.tell(format!("{name}: pause, receiving"), rx.map(on));
        known.tell(format!("{name}: pause, sending"), tx.map(on));
    }
    if let Some(Offloads { on, off }) = &nic.offloads {
        for (offloads, state) in [(on, "on"), (off, "off")] {
            for offload in offloads {
                known.tell(format!("{name}: {offload}"), Some(state));
            }
        }
    }
}

/// Adds the settings in force for the connections at one end.
fn connections(known: &mut Known, direction: Direction, made: &SetEnd) {
    let way = direction.name();
    let size = |bytes: Option<u64>| bytes.map(Bytes);
    let chosen = |bytes: u64| (bytes > 0).then_some(Bytes(bytes));
    known.tell(format!("congestion control, {way}"), Some(&made.congestion));
    known.tell(format!("MSS, {way}"), made.mss);
    known.tell(format!("send buffer, {way}"), size(made.send_buffer));
    known.tell(format!("receive buffer, {way}"), size(made.recv_buffer));
    known.tell(format!("write size, {way}"), chosen(made.write_size));
    known.tell(format!("read size, {way}"), chosen(made.read_size));
    let mut cpus = made.cpus.clone();
    cpus.sort_unstable();
    known.tell(format!("threads on CPU, {way}"), Some(ranges(&cpus)));
}
