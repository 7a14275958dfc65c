//! Packets of an RDMA load are smaller than both ports could carry.

use crate::causes::predict::one_rate;
use crate::causes::prelude::*;
use crate::causes::rdma::port::{ends, is_software};
use crate::causes::rdma::verbs::stack;
use crate::causes::{FULL, wire};
use crate::model::rdma_packet;
use linerate_facts::infiniband::Layer;
use linerate_facts::rdma::RdmaEnd;
use linerate_plan::transport::rdma::MTU;
use linerate_units::shell::word;

/// Share of a CPU's time in softirq, at which the work of a software device for each packet matters.
const PER_PACKET: f64 = 0.8;

pub(crate) static CAUSE: Cause = Cause {
    id: "rdma-mtu",
    name: "RDMA packets are smaller than the ports allow",
    needs: &[Feature::Verbs],
    stage: Stage::Port,
    explains: &["wire-full", "softirq-core"],
    decided_by: &[],
    page: include_str!("../pages/rdma-mtu.md"),
    check,
    predict: |model, trial| one_rate(model, trial),
    advice,
    ..Cause::BASE
};

/// A load whose packets are smaller than both ports support.
struct Small<'a> {
    ends: [(Side, &'a RdmaEnd); 2],
    now: u32,
    possible: u32,
    /// Largest share by which the wire carries more in larger packets; 0.05 is 5 % more.
    gain: f64,
}

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let small = small(model, load, direction).map_err(NoFinding::Clear)?;
    let reached = wire(model, direction).map(|wire| wire.reached(load));
    let is_full = reached.is_some_and(|share| share >= FULL);
    let per_packet = per_packet(load, direction);
    let matters = is_full && small.gain >= GAIN - 1.0;
    if !matters && per_packet.is_none() {
        let full = if is_full { "" } else { "is not full, and " };
        return Err(clear(format!(
            "{}; the wire {full}would carry {} more at the most",
            small.words(),
            percent(small.gain)
        )));
    }
    let more = match &per_packet {
        Some(words) => words.clone(),
        None => format!("the full wire would carry {} more", percent(small.gain)),
    };
    Ok(Finding::at(Place::Path, small.gain.min(1.0), vec![small.words(), more]).enough(true))
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|dir| &dir.base);
    let small = load.and_then(|load| Some((load, small(model, load, direction).ok()?)));
    small.map_or_else(Vec::new, |(load, small)| small.advice(model, load))
}

impl Small<'_> {
    fn words(&self) -> String {
        let [near, far] = self.ends.map(|(_, end)| &end.device);
        format!(
            "packets carry {} B, and both {near} and {far} support {} B",
            self.now, self.possible
        )
    }

    /// How to make packets as large as possible: by options, by network ports, or by the subnet.
    fn advice(&self, model: &Model, load: &Load) -> Vec<Advice> {
        let least = self.ends.iter().map(|(_, end)| end.mtu_own).min();
        if load.knobs.options.number(MTU.key).is_some() && least.is_some_and(|own| own > self.now) {
            return vec![Advice::new("leave out --mtu: both ports are set to larger packets")];
        }
        if self.ends.iter().all(|(_, end)| end.layer == Some(Layer::InfiniBand)) {
            return vec![Advice::new(format!(
                "find the port on the path, of a switch or an adapter, that supports less than {} B, and raise it there: the \
                 subnet manager sets each link to what both of its ports support (`sudo smpquery portinfo LID PORT`: MtuCap, \
                 NeighborMTU)",
                self.possible
            ))];
        }
        let mtu = RdmaEnd::netdev_mtu_for(self.possible);
        let all = Advice::new(format!(
            "use an MTU of {mtu} or more, at both ends, on every switch in between, and at the other hosts of that network"
        ));
        let ends = self.ends.iter();
        vec![ends.fold(all, |advice, (side, end)| raise(advice, model, (*side, end), mtu))]
    }
}

/// Adds the commands that raise the MTU of an end's network port, if it is too small. The MTU of a VLAN is limited by
/// the port below it, which has to be raised first.
//= torvalds/linux, net/8021q/vlan_dev.c: vlan_dev_change_mtu
fn raise(advice: Advice, model: &Model, (side, end): (Side, &RdmaEnd), mtu: u32) -> Advice {
    let netdev = end.netdev.iter();
    let own = netdev.filter_map(|netdev| Some((netdev.name.as_str(), netdev.mtu?)));
    let stack = stack(model, side, end);
    let vlans = stack.iter().take_while(|nic| nic.kind == "vlan").count();
    let below = stack.iter().skip(1).take(vlans);
    let below = below.filter_map(|nic| Some((nic.name.as_str(), nic.mtu?)));
    let small: Vec<(&str, u32)> = own.chain(below).filter(|(_, now)| *now < mtu).collect();
    let set = |name: &str, to: u32| format!("sudo ip link set dev {} mtu {to}", word(name));
    let advice =
        small.iter().rev().fold(advice, |advice, (name, _)| advice.set(side, set(name, mtu)));
    small.iter().fold(advice, |advice, (name, now)| advice.undo_on(side, set(name, *now)))
}

/// The packets of a load, if both ports could carry larger ones; else the reason why not.
fn small<'a>(model: &Model, load: &'a Load, direction: Direction) -> Result<Small<'a>, String> {
    let [(near, Some(at_near)), (far, Some(at_far))] = ends(load, direction) else {
        return Err("the ports were not reported".to_owned());
    };
    let ends = [(near, at_near), (far, at_far)];
    let now = at_near.mtu.min(at_far.mtu);
    let possible = at_near.mtu_possible().min(at_far.mtu_possible());
    if now >= possible {
        return Err(format!("packets carry {now} B, as many as the ports support"));
    }
    let size = u32::try_from(load.made.sender.write_size).unwrap_or(u32::MAX);
    if size <= now {
        return Err(format!("each request of {size} B fits into one packet of {now} B"));
    }
    let host = model.host(near);
    let wire = |mtu| rdma_packet(at_near, host, load, mtu).map(|packet| packet.wire_per_byte.low());
    let gain = wire(now).zip(wire(possible)).map(|(now, then)| now / then - 1.0);
    let gain = gain.ok_or("the headers of its packets are unknown")?;
    Ok(Small { ends, now, possible, gain })
}

/// The CPU that has no time for more packets of a software device, in words; `None` if there is none.
fn per_packet(load: &Load, direction: Direction) -> Option<String> {
    if !is_software(load, direction) {
        return None;
    }
    let sides = [direction.sender(), direction.receiver()].into_iter();
    let cpus =
        sides.flat_map(|side| load.cpus.at(direction, side).iter().map(move |cpu| (side, cpu)));
    let fullest = cpus.max_by(|a, b| a.1.softirq.total_cmp(&b.1.softirq));
    fullest.filter(|(_, cpu)| cpu.softirq >= PER_PACKET).map(|(side, cpu)| {
        format!(
            "{} CPU {} handled packets {} of the time, for a device that software makes",
            side.name(),
            cpu.number,
            percent(cpu.softirq)
        )
    })
}
