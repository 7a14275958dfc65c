//! The readings of the two simulated hosts: facts, sets, counters and totals.

use linerate_facts::nic::{Duplex, LinkModes, Nic};
use linerate_facts::route::Route;
use linerate_facts::{BufferLimits, Gap, HostFacts, Port};
use linerate_plan::SetPlan;
use linerate_plan::path::Side;
use linerate_record::{EndReadings, SetEnd, Total};
use linerate_units::{Bytes, Nanos, Rate};

use super::flow::SimStream;
use super::read::{self, Tables, USER_HZ};
use super::solve::index;
use super::{Congestion, Cost, Sim, SimDirection, SimSet, thread_numbers};

impl Sim {
    /// Returns the options of a set that are in force at one end.
    pub(super) fn set_end(&self, plan: &SetPlan, side: Side) -> SetEnd {
        let knobs = &plan.knobs;
        let host = self.path.host(side);
        let named = knobs.congestion.as_deref().map(Congestion::named);
        let requested = |knob: Option<Bytes>, otherwise| {
            Some(knob.map_or(otherwise, |b| 2 * b.0.min(host.buffer_max.0)))
        };
        let or = |size: Bytes, cost: &Cost| if size.0 == 0 { cost.op.0 } else { size.0 };
        let refused = knobs.congestion.iter().filter(|_| named == Some(None));
        let threads = thread_numbers(plan);
        SetEnd {
            send_buffer: requested(knobs.send_buffer, 16_384),
            recv_buffer: requested(knobs.recv_buffer, 131_072),
            way: String::new(),
            congestion: named.flatten().unwrap_or(self.path.congestion).name().into(),
            mss: Some(knobs.mss.map_or(self.path.mss(), |m| m.min(self.path.mss()))),
            cpus: threads.map(|n| (self.place(side, n) - self.cpus(side).start) as u32).collect(),
            write_size: or(knobs.write_size, &host.send),
            read_size: or(knobs.read_size, &host.receive),
            burst: 0,
            rdma: None,
            gaps: refused
                .map(|name| Gap {
                    what: "set.congestion".into(),
                    why: format!("the simulation has no congestion control `{name}`"),
                    hint: String::new(),
                })
                .collect(),
        }
    }

    /// Ends the step, and returns the readings of both ends. `before` are the totals at its start, `began` is its
    /// start.
    pub(super) fn ends(
        &mut self,
        active: &mut [(u32, SimSet)],
        tables: [Tables; 2],
        before: &[Total],
        began: Nanos,
    ) -> Vec<EndReadings> {
        for flow in active.iter_mut().flat_map(|(_, set)| &mut set.flows) {
            let noise = self.factor[index(flow.direction)];
            flow.drain(noise);
        }
        let other = self.path.other_session;
        let contended = other.is_some_and(|(span, _)| span.from < self.now && began < span.to);
        let mut sides = [Side::Near, Side::Far].into_iter();
        tables
            .map(|tables| {
                let side = sides.next().unwrap_or(Side::Far);
                let pings =
                    active.iter_mut().filter_map(|(id, set)| Some((*id, set.ping.as_mut()?)));
                EndReadings {
                    tables: tables.list,
                    latencies: if side == Side::Near {
                        pings.map(|(id, ping)| ping.take(id)).collect()
                    } else {
                        Vec::new()
                    },
                    send_gaps: Vec::new(),
                    totals: totals(active, side, before),
                    other_sessions: u32::from(contended),
                    congestion: None,
                    gaps: Vec::new(),
                }
            })
            .into()
    }

    pub(super) fn facts(&self, side: Side) -> HostFacts {
        let host = self.path.host(side);
        let machine = if self.path.shared_host { Side::Near } else { side };
        let limits = |direction: &SimDirection| [4096, 131_072, 2 * direction.receive_window.0];
        let (out, into) = match side {
            Side::Near => (&self.path.forward, &self.path.reverse),
            Side::Far => (&self.path.reverse, &self.path.forward),
        };
        HostFacts {
            name: format!("sim-{}", side.name()),
            boot_id: format!("sim-{}", machine.name()),
            kernel: "6.12.0-sim".into(),
            linerate: env!("CARGO_PKG_VERSION").into(),
            cpu_model: "simulated".into(),
            cpus: (0..self.cpus(side).len() as u32).collect(),
            nodes: 1,
            clocks: Some(Vec::new()),
            idle_states: Some(Vec::new()),
            l2_cache: Some(Bytes(1 << 20)),
            port: Some(Port {
                name: "sim0".into(),
                driver: "sim".into(),
                speed_mbps: host.port_speed.map(|Rate(r)| r / 1_000_000),
                mtu: Some(self.path.mtu),
                is_ethernet: true,
                is_virtual: host.port_speed.is_none(),
                node: None,
                served_by: Vec::new(),
            }),
            route: Some(self.route(side)),
            congestion_available: [Congestion::Cubic, Congestion::Bbr]
                .map(|c| c.name().to_owned())
                .into(),
            congestion_default: self.path.congestion.name().into(),
            tells_duplicates: Some(true),
            probes_mtu: Some(false),
            buffers: BufferLimits {
                tcp_rmem: Some(limits(into)),
                tcp_wmem: Some([4096, 16_384, 2 * out.send_buffer.0]),
                rmem_max: Some(host.buffer_max.0),
                wmem_max: Some(host.buffer_max.0),
            },
            ticks_per_sec: USER_HZ as u32,
            ..HostFacts::default()
        }
    }

    /// Returns the route at one end: its port has no slot, and is full duplex.
    fn route(&self, side: Side) -> Route {
        let speed = self.path.host(side).port_speed;
        let link = LinkModes { speed, duplex: Some(Duplex::Full), ..LinkModes::default() };
        let nic = Nic {
            name: "sim0".into(),
            index: 1,
            is_virtual: speed.is_none(),
            up: true,
            link,
            ..Nic::default()
        };
        Route { ports: vec![nic], ..Route::default() }
    }

    pub(super) fn port(&self, side: Side, all: &[&SimSet]) -> read::PortTotals {
        let mut port = read::PortTotals { up: true, ..read::PortTotals::default() };
        if let Some(span) = self.path.down {
            port.up = !span.holds(self.now);
            let edges = [span.from, span.to];
            port.changes = edges.iter().filter(|e| **e <= self.now).count() as f64;
        }
        for flow in all.iter().flat_map(|set| &set.flows) {
            let (sent, arrived) = (flow.tcp.sent + flow.tcp.retrans * flow.mss, flow.tcp.acked);
            if flow.direction.sender() == side {
                port.sent_bytes += sent;
                port.sent_packets += sent / flow.mss;
            } else {
                port.received_bytes += arrived;
                port.received_packets += arrived / flow.mss;
            }
        }
        port
    }
}

/// Returns the payload that each stream moved at one end in this step. `before` are the totals at its start.
pub(super) fn totals(active: &[(u32, SimSet)], side: Side, before: &[Total]) -> Vec<Total> {
    let flows = active.iter().flat_map(|(id, set)| {
        let flows = set.flows.iter().enumerate();
        flows.map(move |(stream, flow)| (*id, stream as u32, flow))
    });
    let total = |(set, stream, flow): (u32, u32, &SimStream)| {
        let sends = flow.direction.sender() == side;
        let old = before.iter().find(|t| t.set == set && t.stream == stream);
        // Once a step has ended, both ends have counted the same bytes.
        let moved = flow.sent.bytes as u64 - old.map_or(0, |t| t.sent.max(t.received));
        Total {
            set,
            stream,
            sent: if sends { moved } else { 0 },
            received: if sends || flow.blocked { 0 } else { moved },
            complete: !flow.blocked,
        }
    };
    flows.map(total).collect()
}
