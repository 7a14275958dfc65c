//! The CPUs that an end's threads could use instead of those that they share.

use std::collections::BTreeSet;

use super::{Cpu, Load, Model};
use linerate_plan::path::{Direction, Side};

/// Share of time in use below which a CPU is idle enough for another thread.
const IDLE: f64 = 0.2;

/// Minimum share of time that a thread must lose on its CPU, before a trial of another CPU is worthwhile.
const LOST: f64 = 0.1;

/// An end, and idle CPUs to which its threads could move, one for each stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// The end whose threads could move.
    pub(crate) side: Side,
    /// Numbers of the idle CPUs, ascending.
    pub(crate) cpus: Vec<u32>,
}

/// The end whose threads lose most of their CPU time to other programs, to each other or to the port's interrupts, if
/// it has enough idle CPUs.
pub(crate) fn elsewhere(model: &Model, direction: Direction) -> Option<Elsewhere> {
    let load = &model.direction(direction)?.base;
    let ends = [direction.receiver(), direction.sender()].into_iter();
    let worst = ends.map(|side| (side, lost(model, load, direction, side)));
    let (side, lost) = worst.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut cpus = idle(model, direction, side);
    cpus.truncate(load.streams as usize);
    let room = cpus.len() == load.streams as usize;
    (lost >= LOST && room).then_some(Elsewhere { side, cpus })
}

/// The largest share of its CPU's time that a thread of an end loses.
fn lost(model: &Model, load: &Load, direction: Direction, side: Side) -> f64 {
    let host = model.hosts.iter().find(|h| h.side == side);
    let port = host.and_then(|h| h.facts.port.as_ref());
    let serves = |cpu: &Cpu| port.is_some_and(|p| p.served_by.contains(&cpu.number));
    let threads = if side == direction.sender() { &load.senders } else { &load.receivers };
    let cpus = load.cpus.at(direction, side);
    let of = |thread: &super::Thread| {
        let cpu = cpus.iter().find(|c| Some(c.number) == thread.home);
        let interrupts = cpu.filter(|c| serves(c)).map_or(0.0, |c| c.softirq);
        thread.home.map(|_| thread.waiting.unwrap_or(0.0).max(interrupts))
    };
    threads.iter().filter_map(of).fold(0.0, f64::max)
}

/// CPUs that an end may use and that were mostly idle, without those that the load used.
pub(crate) fn idle(model: &Model, direction: Direction, side: Side) -> Vec<u32> {
    let Some(load) = model.direction(direction).map(|d| &d.base) else {
        return Vec::new();
    };
    let host = model.hosts.iter().find(|h| h.side == side);
    let allowed = host.map_or(&[][..], |h| h.facts.cpus.as_slice());
    let ends = [direction.sender(), direction.receiver()].into_iter();
    let made = ends
        .filter(|end| model.same_machine || *end == side)
        .flat_map(|end| &load.made.at(direction, end).cpus);
    let used: BTreeSet<&u32> = made.collect();
    let free = |cpu: &&Cpu| {
        cpu.busy <= IDLE && allowed.contains(&cpu.number) && !used.contains(&cpu.number)
    };
    let mut idle: Vec<u32> =
        load.cpus.at(direction, side).iter().filter(free).map(|c| c.number).collect();
    idle.sort_unstable();
    idle
}
