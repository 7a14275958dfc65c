//! Threads or interrupts are not on the NUMA node of the port.

use crate::causes::host::busy_thread::{self, Role};
use crate::causes::prelude::*;
use crate::signs::threads::{threads, wanted};
use linerate_units::shell::word;
use std::collections::BTreeSet;

use crate::causes::host::core_bound;
use crate::causes::host::cpu_share;
use crate::model::{Nodes, OffNode, nodes};
use linerate_facts::advice::{Joined, Kept};
use linerate_facts::odd::ranges;
use linerate_facts::route::Route;

/// Share of its CPU that an end must need before the distance to memory can matter: an end with spare time waits for
/// something else.
const SUSPECT: f64 = 0.8;

/// Share of its CPU that an end with a thread on the wrong node must need to be named without a trial.
const ENOUGH: f64 = 0.95;

/// The largest ratio of goodput on the right node: firmware tables give the far node two to three times the distance.
//= ACPI 6.5, 5.2.17 (SLIT): distances are relative to 10 for local memory
const MOST: f64 = 3.0;

/// Threads and interrupts of one end that are on the wrong node, while the end has no spare time.
struct Remote {
    side: Side,
    share: f64,
    off: OffNode,
}

pub(crate) static CAUSE: Cause = Cause {
    id: "numa-remote",
    name: "work runs on the wrong NUMA node",
    needs: &[Feature::Port],
    stage: Stage::Cpu,
    explains: core_bound::IDS,
    decided_by: &[Factor::NearInterrupts],
    page: include_str!("../pages/numa-remote.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let remote = worst(model, direction)?;
    let load = base(model, direction)?;
    let at_work = wanted(threads(load, direction, remote.side)).unwrap_or(0.0);
    Ok(Finding {
        side: Place::from(remote.side),
        // A full core is the limit itself; remote memory is a reason for it. The share that remote memory explains is
        // unknown without a trial.
        share: remote.share / 2.0,
        // A polling thread uses its CPU however little it carries.
        enough: !load.knobs.busy_poll && !remote.off.threads.is_empty() && at_work >= ENOUGH,
        reached: false,
        evidence: evidence(port(model, load, direction, remote.side), &remote),
    })
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let remote = worst(model, trial.direction).ok()?;
    let (role, moved) = if remote.side == trial.direction.sender() {
        (Role::Sender, trial.after.sender_node)
    } else {
        (Role::Receiver, trial.after.receiver_node)
    };
    if trial.factor()? == Factor::NearInterrupts && moved.is_some() {
        return Some(Range { low: GAIN, high: MOST });
    }
    if trial.factor()? == Factor::OtherCpu {
        // The trial may move the thread to either node.
        return Some(Range { low: 0.5, high: MOST });
    }
    busy_thread::predict(model, trial, role)
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Ok(Remote { side, off, .. }) = worst(model, direction) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    if !off.threads.is_empty() {
        // The port's node may have no CPUs.
        all.push(cpu_share::taskset(model, side, &off.near));
    }
    if !off.interrupts.is_empty() {
        all.push(interrupts_back(model, side, &off));
    }
    all
}

/// The end with threads or interrupts on the wrong node that needs most of its CPU; else the reason why there is none.
fn worst(model: &Model, direction: Direction) -> Result<Remote, NoFinding> {
    let load = base(model, direction)?;
    let (mut found, mut unknown, mut clear) = (None::<Remote>, None, Vec::new());
    for host in &model.hosts {
        let side = host.side;
        let off = match nodes(&host.facts, load, direction, side) {
            Nodes::Apart(off) => off,
            Nodes::Alike(why) => {
                clear.push(why);
                continue;
            }
            Nodes::Unknown(gap) => {
                match wants(load, direction, side, &[]) {
                    Some(share) if share < SUSPECT => clear.push(spare(side, share)),
                    _ => unknown = Some(NoFinding::Unknown(vec![gap])),
                }
                continue;
            }
        };
        if off.threads.is_empty() && off.interrupts.is_empty() {
            clear.push(format!(
                "{} threads and interrupts are on its node, or on one that is hardly further",
                side.name()
            ));
            continue;
        }
        let Some(share) = wants(load, direction, side, &off.interrupts) else {
            unknown = Some(lacks(model, "thread", side));
            continue;
        };
        if share < SUSPECT {
            clear.push(spare(side, share));
        } else if found.as_ref().is_none_or(|f| f.share < share) {
            found = Some(Remote { side, share, off });
        }
    }
    let clear = || NoFinding::Clear(clear.join("; "));
    found.ok_or_else(|| unknown.unwrap_or_else(clear))
}

fn spare(side: Side, share: f64) -> String {
    format!("{} needed its CPUs only {} of the time", side.name(), percent(share))
}

/// Share of its CPU that the busiest thread needs, or that the busiest of the CPUs with interrupts is busy.
fn wants(load: &Load, direction: Direction, side: Side, interrupts: &[u32]) -> Option<f64> {
    let cpus = load.cpus.at(direction, side);
    let interrupts: BTreeSet<&u32> = interrupts.iter().collect();
    let served = cpus.iter().filter(|cpu| interrupts.contains(&cpu.number));
    let served = served.map(|cpu| cpu.busy).reduce(f64::max);
    let thread = wanted(threads(load, direction, side));
    [thread, served].into_iter().flatten().reduce(f64::max)
}

fn evidence(port: &str, remote: &Remote) -> Vec<String> {
    let Remote { share, off, .. } = remote;
    let mut all = Vec::new();
    let s = |cpus: &[u32]| if cpus.len() == 1 { "" } else { "s" };
    let home = format!("{port} is on node {} (CPUs {})", off.node, ranges(&off.near));
    if !off.threads.is_empty() {
        let cpus = format!("CPU{} {}", s(&off.threads), ranges(&off.threads));
        all.push(format!("threads ran on {cpus}; {home}"));
    }
    if !off.interrupts.is_empty() {
        let cpus = format!("CPU{} {}", s(&off.interrupts), ranges(&off.interrupts));
        all.push(format!("all interrupts of {port} are sent to {cpus}; {home}"));
    }
    all.push(format!("the busiest of these CPUs was wanted {} of the time", percent(*share)));
    all
}

/// Name of an end's port, or of its RDMA device.
fn port<'a>(model: &'a Model, load: &'a Load, direction: Direction, side: Side) -> &'a str {
    match load.rdma(direction, side) {
        Some(end) => &end.device,
        None => netdev(model, side),
    }
}

fn netdev(model: &Model, side: Side) -> &str {
    let host = model.host(side);
    let port = host.and_then(|h| h.facts.port.as_ref());
    port.map_or("the port", |p| p.name.as_str())
}

fn interrupts_back(model: &Model, side: Side, off: &OffNode) -> Advice {
    let host = model.host(side);
    let route = host.and_then(|host| host.facts.route.as_ref());
    // A bond itself has no interrupts, only its members have.
    let wires = route.and_then(Route::wires).unwrap_or_default();
    let mut ports: Vec<&str> = wires.iter().map(|nic| nic.name.as_str()).collect();
    if ports.is_empty() {
        ports.push(netdev(model, side));
    }
    let folders = ports.iter().map(|p| format!("/sys/class/net/{}/device/msi_irqs/*", word(p)));
    let folders = folders.collect::<Vec<_>>().join(" ");
    // Each interrupt has its own list of CPUs.
    let show =
        format!("for i in {folders}; do grep -H . /proc/irq/${{i##*/}}/smp_affinity_list; done");
    let kept = Kept::lines(&show, "affinity-before.txt");
    let cpus = ranges(&off.near);
    Advice::new(format!(
        "send the interrupts to CPUs {cpus}; stop irqbalance before, where it runs: it would move them"
    ))
    .keeping(
        side,
        kept,
        format!(
            "for i in {folders}; do echo {cpus} | sudo tee /proc/irq/${{i##*/}}/smp_affinity_list; done"
        ),
    )
    .joined(Joined::And)
}
