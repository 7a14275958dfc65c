//! A CPU handles packets one by one, where a card or the network stack could handle many at once.

use crate::causes::host::softirq_core::FULL as FULL_SOFTIRQ;
use crate::causes::prelude::*;
use crate::causes::{BUSY, port_of};
use crate::signs::threads::wanted_at;
use linerate_facts::advice::Step;
use linerate_facts::nic::{Nic, Offloads};
use linerate_record::Host;
use linerate_units::shell::word;

/// Minimum size of a packet, in multiples of the MTU, at which it is a group of segments that is handled as one.
const GROUPED: f64 = 2.0;

/// MTU from which a port is configured for jumbo frames.
const JUMBO: u32 = 9000;

/// How the CPUs of an end handle packets.
enum Handled {
    /// CPUs handle many packets at once, or no offload that would group packets is switched off.
    Grouped,
    /// CPUs handle packets one by one because offloads are off: the end, and the usual names of these offloads.
    Single(Side, Vec<&'static str>),
    /// CPUs handle packets one by one although the card splits and coalesces them: frames could be larger. The text is
    /// the evidence.
    Frames(String),
    /// The offloads of the port at this end were not read.
    Unread(Side),
}

pub(crate) static CAUSE: Cause = Cause {
    id: "small-packets",
    name: "packets are handled one by one",
    needs: &[Feature::Stack],
    stage: Stage::Cpu,
    explains: &["sender-core", "receiver-core", "softirq-core"],
    decided_by: &[Factor::HostOffloads],
    page: include_str!("../pages/small-packets.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let mut unread = None;
    for side in [direction.sender(), direction.receiver()] {
        let Some(busy) = busy(load, direction, side) else {
            continue;
        };
        match handled(model, load, direction, side) {
            Handled::Grouped => {}
            Handled::Single(at, off) => {
                let off = format!("{} is off at the {} port", off.join(", "), at.name());
                return Ok(finding(load, side, busy, off, true));
            }
            Handled::Frames(why) => return Ok(finding(load, side, busy, why, false)),
            Handled::Unread(at) => unread = Some(at),
        }
    }
    match unread {
        Some(side) => Err(NoFinding::Unknown(vec![Gap {
            what: format!("the offloads of {} {}", side.name(), port_of(model, side)),
            why: "they were not read, and a CPU of its host was full".to_owned(),
            hint: format!("ethtool -k {}", port_of(model, side)),
        }])),
        None => Err(clear("no CPU was full of packets that it handled one by one")),
    }
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    if trial.factor() == Some(Factor::HostOffloads) {
        return switched_on(model, trial);
    }
    // Small packets predict what the full core predicts, which they explain.
    let receiver = Place::from(trial.direction.receiver());
    let id = match check(model, trial.direction) {
        Ok(found) if found.side == receiver => "receiver-core",
        _ => "sender-core",
    };
    crate::causes::cause(id)?.predict(model, trial)
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Some(load) = model.direction(direction).map(|d| &d.base) else {
        return Vec::new();
    };
    let sides = [direction.sender(), direction.receiver()].into_iter();
    let full = sides.filter(|side| busy(load, direction, *side).is_some());
    let found = full.map(|side| handled(model, load, direction, side));
    let mut found = found.filter_map(|handled| remedy(model, handled));
    let tried = model.tried(direction, Factor::HostOffloads);
    let gain = tried.and_then(|trial| Some(trial.effect?.mid));
    let advice = found.next();
    let advice = advice.map(|advice| advice.gain(gain.filter(|gain| *gain >= GAIN)));
    advice.into_iter().collect()
}

/// The predicted ratio of goodput if offloads are switched on at the full end that lacks them.
fn switched_on(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let direction = trial.direction;
    let load = &model.direction(direction)?.base;
    let sides = [direction.sender(), direction.receiver()].into_iter();
    let mut full = sides.filter(|side| busy(load, direction, *side).is_some());
    let missed = |side| match handled(model, load, direction, side) {
        Handled::Single(at, _) => Some(at),
        _ => None,
    };
    let at = full.find_map(missed)?;
    (trial.after.host?.side == at).then_some(Range { low: GAIN, high: f64::MAX })
}

/// The thread or CPU of an end that has no spare time, in words; `None` if there is none.
fn busy(load: &Load, direction: Direction, side: Side) -> Option<String> {
    let share = wanted_at(load, direction, side).filter(|w| *w > BUSY);
    let thread = share.map(|w| format!("a {} thread needed its CPU {}", side.name(), percent(w)));
    let cpus = load.cpus.at(direction, side);
    let mut full = cpus.iter().filter(|cpu| cpu.softirq >= FULL_SOFTIRQ);
    let softirq = full.next().map(|cpu| {
        format!("{} CPU {} handled packets {}", side.name(), cpu.number, percent(cpu.softirq))
    });
    thread.or(softirq)
}

fn host(model: &Model, side: Side) -> Option<&Host> {
    model.hosts.iter().find(|h| h.side == side)
}

/// The port that represents an end: its wire if it has one, else the port that its route uses.
fn port(model: &Model, side: Side) -> Option<&Nic> {
    let route = host(model, side)?.facts.route.as_ref()?;
    let wires = route.wires().unwrap_or_default();
    wires.first().copied().or_else(|| route.ports.first())
}

/// The wanted offloads of an end's port that are off and could be turned on.
fn lacking(model: &Model, side: Side, wanted: &[&'static str]) -> Vec<&'static str> {
    let offloads = port(model, side).and_then(|port| port.offloads.as_ref());
    let lacking = offloads.map_or(Vec::new(), Offloads::lacking);
    lacking.into_iter().filter(|l| wanted.contains(l)).collect()
}

fn handled(model: &Model, load: &Load, direction: Direction, side: Side) -> Handled {
    const SENDING: &[&str] = &["TSO", "GSO"];
    const RECEIVING: &[&str] = &["GRO"];
    let Some(nic) = port(model, side) else {
        return Handled::Grouped;
    };
    let sender = direction.sender();
    if nic.is_virtual {
        let mtu = f64::from(nic.mtu.unwrap_or(u32::MAX));
        let packet = load.packet_bytes.at(direction, side);
        if packet.is_none_or(|bytes| bytes >= mtu * GROUPED) {
            return Handled::Grouped;
        }
        // The sender makes groups of segments; a virtual port that passes them on splits none.
        let off = lacking(model, sender, SENDING);
        if !off.is_empty() {
            return Handled::Single(sender, off);
        }
        return Handled::Grouped;
    }
    if nic.offloads.is_none() {
        return Handled::Unread(side);
    }
    let off = lacking(model, side, if side == sender { SENDING } else { RECEIVING });
    if !off.is_empty() {
        return Handled::Single(side, off);
    }
    frames(model).map_or(Handled::Grouped, Handled::Frames)
}

/// The larger frames that the ports of both ends support, in words; `None` if a port supports none.
fn frames(model: &Model) -> Option<String> {
    let mut reported = Vec::new();
    for side in [Side::Near, Side::Far] {
        let nic = port(model, side).filter(|nic| !nic.is_virtual)?;
        let (now, most) = (nic.mtu?, nic.mtu_max?);
        if now >= JUMBO || most < JUMBO {
            return None;
        }
        reported.push(format!("{} {} has MTU {now} of {most}", side.name(), nic.name));
    }
    Some(reported.join(", "))
}

fn finding(load: &Load, side: Side, busy: String, why: String, enough: bool) -> Finding {
    let rate = load.tcp.segments.map(|n| format!("{n:.0} segments were sent in a second"));
    Finding::at(side, 0.5, [why, busy].into_iter().chain(rate).collect()).enough(enough)
}

fn remedy(model: &Model, handled: Handled) -> Option<Advice> {
    match handled {
        Handled::Single(side, off) => {
            let name = word(&port(model, side)?.name);
            let set = |to: &str| {
                let each: Vec<String> =
                    off.iter().map(|offload| format!("{} {to}", offload.to_lowercase())).collect();
                format!("sudo ethtool -K {name} {}", each.join(" "))
            };
            let advice = Advice::new(format!(
                "let the port do the work: {} on, unless something needs it off (a tunnel, or a driver that fails with it)",
                off.join(", ")
            ));
            Some(advice.set(side, set("on")).undo_on(side, set("off")))
        }
        Handled::Frames(_) => {
            let mut advice = Advice::new(format!(
                "use an MTU of {JUMBO}, at both ends and on every switch in between"
            ));
            advice.steps = frames_of(model, true, |nic| nic.mtu.map(|_| JUMBO));
            advice.undo = frames_of(model, false, |nic| nic.mtu);
            Some(advice)
        }
        Handled::Grouped | Handled::Unread(_) => None,
    }
}

/// The commands that set the ports of both ends to an MTU. A port below must accept larger packets before the port on
/// top of it, and smaller ones after it. A tunnel keeps its own MTU: it must fit into the port below.
fn frames_of(model: &Model, raise: bool, mtu: impl Fn(&Nic) -> Option<u32>) -> Vec<Step> {
    let mut all = Vec::new();
    for side in [Side::Near, Side::Far] {
        let route = host(model, side).and_then(|host| host.facts.route.as_ref());
        let ports = route.map_or(&[][..], |route| &route.ports);
        let mut ports: Vec<&Nic> = ports.iter().filter(|nic| !nic.is_tunnel()).collect();
        if raise {
            ports.reverse();
        }
        for nic in ports {
            let name = word(&nic.name);
            let set = |mtu: u32| Step::set(side, format!("sudo ip link set dev {name} mtu {mtu}"));
            all.extend(mtu(nic).map(set));
        }
    }
    all
}
