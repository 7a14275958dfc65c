//! The hypervisor gives a host's CPU to others.

use super::cpu_share::{cpus, home, worst};
use super::predict::threads;
use super::{Answer, Cause, Finding, base, lacks, percent};
use crate::model::{Cpu, Load, Model};
use crate::plan::{Direction, Side};
use crate::record::TrialPlan;
use crate::stats::Range;
use crate::trial::Factor;
use crate::verdict::{Advice, Place, Stage};

/// Cause `cpu-steal`.
pub(super) struct CpuSteal;

/// Share of a CPU's time that must be stolen: without it the CPU had a tenth more.
const STOLEN: f64 = 0.1;

/// Share of its time that the CPU must be in use, stolen time included: what is stolen of one with
/// time to spare is made up for.
const WANTED: f64 = 0.8;

/// The same of any CPU, be there time to spare or not: what waits for it waits as long, and so does the other end.
const HEAVY: f64 = 0.25;

/// A CPU in use that was stolen.
struct Stolen<'a> {
    side: Side,
    cpu: &'a Cpu,
}

impl Cause for CpuSteal {
    fn id(&self) -> &'static str {
        "cpu-steal"
    }
    fn stage(&self) -> Stage {
        Stage::Cpu
    }
    fn invalidates(&self) -> bool {
        true
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let most = worst(
            direction,
            |side| at(model, direction, side),
            |s| s.cpu.steal,
        );
        let Stolen { side, cpu } = match most {
            Ok(stolen) => stolen,
            Err(answer) => return answer,
        };
        Answer::Finding(Finding {
            side: Place::from(side),
            share: cpu.steal,
            enough: true,
            reached: false,
            evidence: vec![format!(
                "the hypervisor took CPU {} of {} away {} of the time, which was in use {} of the time",
                cpu.number,
                side.name(),
                percent(cpu.steal),
                percent(cpu.busy)
            )],
        })
    }
    fn predict(&self, _: &Model, _: &TrialPlan) -> Option<Range> {
        None
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[]
    }
    fn advice(&self, _: &Model, _: Direction) -> Vec<Advice> {
        vec![Advice {
            action: "run again while the host below has time to spare, or take a machine with CPUs of its own"
                .to_owned(),
            undo: String::new(),
            gain: None,
        }]
    }
    fn page(&self) -> &'static str {
        include_str!("pages/cpu-steal.md")
    }
}

/// The share of its CPU that the hypervisor may have kept from an end's program at most.
pub(super) fn most(load: &Load, same_machine: bool, direction: Direction, side: Side) -> f64 {
    let of_machine = |other: &Side| *other == side || same_machine;
    let sides = [Side::Near, Side::Far].into_iter().filter(of_machine);
    let stolen = sides.filter_map(|side| most_stolen(load, direction, side));
    stolen.map(|cpu| cpu.steal).fold(0.0, f64::max)
}

/// Of the CPUs that an end's threads are kept on, or of all where they move, the one that was stolen
/// most.
fn most_stolen(load: &Load, direction: Direction, side: Side) -> Option<&Cpu> {
    let cpus = cpus(load, direction, side);
    let workers = threads(load, direction, side);
    let homes: Option<Vec<&Cpu>> = workers.iter().map(|thread| home(thread, cpus)).collect();
    let used = homes.unwrap_or_else(|| cpus.iter().collect()).into_iter();
    used.max_by(|a, b| a.steal.total_cmp(&b.steal))
}

fn at(model: &Model, direction: Direction, side: Side) -> Result<Stolen<'_>, Answer> {
    let load = base(model, direction)?;
    let cpu = most_stolen(load, direction, side).ok_or_else(|| lacks(model, "cpu", side))?;
    let little = cpu.steal < STOLEN || cpu.busy < WANTED;
    if little && cpu.steal < HEAVY {
        return Err(Answer::Clear(format!(
            "CPU {} of {} was stolen {} of the time and in use {}",
            cpu.number,
            side.name(),
            percent(cpu.steal),
            percent(cpu.busy)
        )));
    }
    Ok(Stolen { side, cpu })
}
