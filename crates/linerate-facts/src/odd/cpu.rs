//! Rules about CPUs that give less than they could, or are busy before a measurement.

use std::collections::BTreeMap;

use super::{Finding, cpus, for_each, ranges};
use crate::Inventory;
use crate::advice::{Advice, Kept, Step};
use crate::cpu::{Clock, CpuLoad, Process};
use linerate_units::Hertz;
use linerate_units::shell::word;

/// Busy share of a CPU from which it has no room for a stream, before anything is measured.
const BUSY_SHARE: f64 = 0.9;
/// Share of CPU time from which the time taken by a hypervisor is a finding: the measured rate is then not the
/// machine's.
const STOLEN_SHARE: f64 = 0.05;
/// A setting of at least this share of the hardware's best is lower only because of rounding.
const CAPPED_SHARE: f64 = 0.99;

/// Whether the hardware picks the clock by itself, so that the governor `powersave` does not mean the lowest clock.
fn picks_clock(clock: &Clock) -> bool {
    ["intel_pstate", "amd-pstate-epp"].contains(&clock.driver.as_str())
}

/// A clock setting as options of `cpupower frequency-set`, with its recommended and its present value.
struct Set {
    what: &'static str,
    better: String,
    now: String,
}

impl Set {
    /// The setting of the governor, where the recommended value keeps the highest clock.
    fn governor(clock: &Clock) -> Self {
        Self {
            what: "keep the highest clock",
            better: "-g performance".to_owned(),
            now: format!("-g {}", word(&clock.governor)),
        }
    }

    fn advice(&self, ids: &[u32]) -> Advice {
        let on = ranges(ids);
        let set = |to: &str| format!("sudo cpupower -c {on} frequency-set {to}");
        Advice::new(self.what).set(None, set(&self.better)).undo_on(None, set(&self.now))
    }
}

/// One finding for all CPUs for which `odd` gives the same text.
fn clocks(
    inventory: &Inventory,
    id: &'static str,
    why: &'static str,
    odd: impl Fn(&Clock) -> Option<(String, Set)>,
) -> Vec<Finding> {
    let mut found: BTreeMap<String, (Set, Vec<u32>)> = BTreeMap::new();
    for cpu in &inventory.processors.cpus {
        if let Some((what, set)) = odd(&cpu.clock) {
            let (_, ids) = found.entry(what).or_insert_with(|| (set, Vec::new()));
            ids.push(cpu.id);
        }
    }
    let oddity = |(what, (set, ids)): (String, (Set, Vec<u32>))| {
        Finding::new(id, cpus(&ids), what).why(why).fix(set.advice(&ids))
    };
    found.into_iter().map(oddity).collect()
}

/// CPUs whose governor keeps the lowest clock.
pub(super) fn lowest_clock(inventory: &Inventory) -> Vec<Finding> {
    clocks(
        inventory,
        "clock-lowest",
        "the lower the clock, the longer the work for each packet",
        |clock| {
            let what = format!("governor powersave ({}) keeps the lowest clock", clock.driver);
            let holds = clock.governor == "powersave" && !picks_clock(clock);
            holds.then(|| (what, Set::governor(clock)))
        },
    )
}

/// CPUs whose governor raises the clock only after load has lasted for some time.
pub(super) fn clock_follows_load(inventory: &Inventory) -> Vec<Finding> {
    let follows = |clock: &Clock| {
        let by_hardware = clock.governor == "powersave"
            && picks_clock(clock)
            && clock.preference != "performance";
        by_hardware || ["ondemand", "conservative", "schedutil"].contains(&clock.governor.as_str())
    };
    clocks(
        inventory,
        "clock-follows-load",
        "short bursts and pauses between packets run at low clocks: latency rises and figures vary",
        |clock| {
            let requested = match clock.preference.as_str() {
                "" => String::new(),
                preference => format!(", preference {preference}"),
            };
            follows(clock).then(|| {
                let Clock { governor, driver, .. } = clock;
                let what = format!(
                    "governor {governor} ({driver}{requested}) lets the clock follow the load"
                );
                (what, Set::governor(clock))
            })
        },
    )
}

/// CPUs whose settings keep the clock below what the hardware supports.
pub(super) fn capped_clock(inventory: &Inventory) -> Vec<Finding> {
    clocks(
        inventory,
        "clock-capped",
        "the lower the clock, the longer the work for each packet",
        |clock| {
            let (limit, max) = clock.limit.zip(clock.max)?;
            let set = |to: Hertz| format!("-u {}kHz", to.0 / 1000);
            ((limit.0 as f64) < max.0 as f64 * CAPPED_SHARE).then(|| {
                let what = format!("settings allow {limit}, the hardware could do {max}");
                let set = Set {
                    what: "allow the highest clock of the hardware",
                    better: set(max),
                    now: set(limit),
                };
                (what, set)
            })
        },
    )
}

/// CPUs that may not exceed their nominal clock, since turbo is switched off.
pub(super) fn turbo_off(inventory: &Inventory) -> Vec<Finding> {
    if inventory.processors.turbo != Some(false) {
        return Vec::new();
    }
    // The switch of intel_pstate is `no_turbo`: 1 is off. The other drivers' switch is `boost`: 1 is on.
    let clocks = inventory.processors.cpus.iter().map(|cpu| &cpu.clock);
    let is_intel = |clock: &Clock| clock.driver.starts_with("intel_");
    let (file, on, off) = if clocks.clone().any(is_intel) {
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", 0, 1)
    } else {
        ("/sys/devices/system/cpu/cpufreq/boost", 1, 0)
    };
    let set = |to: u32| format!("echo {to} | sudo tee {file}");
    vec![
        Finding::new("turbo-off", "CPUs", "clocks above the nominal one are switched off")
            .why(
                "a single stream runs on one core, which could be clocked higher while others rest",
            )
            .fix(Advice::new("allow them").set(None, set(on)).undo_on(None, set(off))),
    ]
}

/// A kernel clock source that is slow to read.
pub(super) fn clock_source(inventory: &Inventory) -> Vec<Finding> {
    const SLOW: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];
    let source = &inventory.machine.clock_source;
    if !SLOW.contains(&source.as_str()) {
        return Vec::new();
    }
    let what = format!("the kernel takes the time from {source}");
    let why = "packets, timers and every measurement read the time; this source is slow or coarse";
    let fix = Advice::new(
        "see why in the kernel's log; boot with tsc=reliable only if the hardware is known to be \
         sound",
    );
    let fix = fix.on(None, "sudo dmesg | grep -i -e tsc -e clocksource");
    vec![Finding::new("clock-source", "kernel", what).why(why).fix(fix)]
}

/// CPUs that are too busy for a stream.
pub(super) fn busy(inventory: &Inventory) -> Vec<Finding> {
    let all = inventory.busy.iter().flat_map(|b| &b.cpus);
    let full: Vec<&CpuLoad> = all.filter(|l| l.busy >= BUSY_SHARE).collect();
    if full.is_empty() {
        return Vec::new();
    }
    let ids: Vec<u32> = full.iter().map(|l| l.cpu).collect();
    let least = full.iter().map(|l| l.busy).fold(1.0, f64::min);
    let top = inventory.busy.iter().flat_map(|b| &b.processes).take(3);
    let names: Vec<String> = top.map(|p| format!("{} ({})", p.name, p.pid)).collect();
    let who = match names.as_slice() {
        [] => String::new(),
        names => format!("; busiest: {}", names.join(", ")),
    };
    vec![
        Finding::new(
            "cpu-busy",
            cpus(&ids),
            format!("at least {:.0} % busy before anything is measured{who}", least * 100.0),
        )
        .brief(format!("at least {:.0} % busy before anything is measured", least * 100.0))
        .why("work of the path must share these CPUs: rates fall and vary")
        .fix(elsewhere(inventory, &ids)),
    ]
}

/// Advice to move the process that uses the full CPUs most to free CPUs, if there are any.
fn elsewhere(inventory: &Inventory, full: &[u32]) -> Advice {
    let busiest = "ps -eo pid,user,psr,pcpu,args --sort=-pcpu | head";
    let free: Vec<u32> = inventory.processors.cpus.iter().map(|cpu| cpu.id).collect();
    let free: Vec<u32> = free.into_iter().filter(|id| !full.contains(id)).collect();
    // Kernel threads with a slash in their names are bound to their CPUs.
    let is_there = |p: &&Process| full.contains(&p.last_cpu) && !p.name.contains('/');
    let mut processes = inventory.busy.iter().flat_map(|busy| &busy.processes);
    let Some(process) = processes.find(is_there).filter(|_| !free.is_empty()) else {
        let what = "see what runs there; end what is not needed, by its own command";
        return Advice::new(what).on(None, busiest);
    };
    let advice = Advice::new("see what runs there, and bind the busiest to other CPUs");
    let advice = advice.on(None, busiest);
    let pid = process.pid;
    let kept = Kept {
        save: format!("taskset -acp {pid} | tee taskset-before.txt"),
        restore: "sed -E 's/[^0-9]*([0-9]+).*: (.*)/\\2 \\1/' taskset-before.txt | while read -r cpus thread; do \
                  sudo taskset -cp $cpus $thread; done"
            .to_owned(),
    };
    advice.keeping(None, kept, format!("sudo taskset -acp {} {pid}", ranges(&free)))
}

/// CPUs from which the hypervisor takes time.
pub(super) fn stolen(inventory: &Inventory) -> Vec<Finding> {
    let loads = inventory.busy.iter().flat_map(|b| &b.cpus);
    let most = loads.map(|l| l.stolen).fold(0.0, f64::max);
    if most < STOLEN_SHARE {
        return Vec::new();
    }
    vec![
        Finding::new(
            "cpu-steal",
            "CPUs",
            format!("the hypervisor takes {:.0} % of a CPU's time", most * 100.0),
        )
        .why("other guests share this hardware; what is measured varies with them")
        .fix(Advice::new(
            "measure again at another time, or on a machine of a type with CPUs of its own",
        )),
    ]
}

/// A cgroup quota that allows fewer CPUs than the machine has.
pub(super) fn quota(inventory: &Inventory) -> Vec<Finding> {
    let all = inventory.processors.cpus.len();
    let quota = inventory.machine.cpu_quota.filter(|q| *q < all as f64);
    let odd = |quota: f64| {
        Finding::new(
            "cpu-quota",
            "cgroup",
            format!("a quota allows {quota:.2} of {all} CPUs to this process and its neighbours"),
        )
        .why(
            "whoever has used it up is stopped until the next period: rates fall and \
             latency jumps",
        )
        .fix(Advice::new(
            "raise it (docker: --cpus, systemd: CPUQuota=), or run outside this cgroup",
        ))
    };
    quota.map(odd).into_iter().collect()
}

/// CPUs that are switched off.
pub(super) fn offline(inventory: &Inventory) -> Vec<Finding> {
    let off = &inventory.processors.offline;
    if off.is_empty() {
        return Vec::new();
    }
    vec![
        Finding::new("cpu-offline", cpus(off), "switched off")
            .why("streams and interrupts have fewer places to go")
            .fix(switch_on(off)),
    ]
}

/// Advice to switch CPUs on. The kernel refuses single CPUs while the second threads of all cores are switched off
/// together.
fn switch_on(off: &[u32]) -> Advice {
    let all = |to: u32| {
        let set = format!("echo {to} | sudo tee /sys/devices/system/cpu/cpu$cpu/online");
        for_each("cpu", off, &set)
    };
    let threads = |to: &str| {
        let set = format!("echo {to} | sudo tee /sys/devices/system/cpu/smt/control");
        Step::set(None, set).about("if second threads of cores were switched off together")
    };
    Advice::new("switch them on")
        .set(None, all(1))
        .step(threads("on"))
        .undo_on(None, all(0))
        .undo(threads("off"))
}

#[cfg(test)]
mod tests {
    use super::super::ids;
    use super::*;
    use crate::cpu::{Busy, Cpu};

    fn clocked(clock: Clock) -> Inventory {
        let mut machine = Inventory::default();
        machine.processors.cpus = vec![Cpu { clock, ..Cpu::default() }];
        machine
    }

    fn governed(governor: &str, driver: &str, preference: &str) -> Inventory {
        clocked(Clock {
            governor: governor.to_owned(),
            driver: driver.to_owned(),
            preference: preference.to_owned(),
            ..Clock::default()
        })
    }

    #[test]
    fn powersave_means_the_lowest_clock_only_where_the_hardware_does_not_pick_it() {
        for (governor, driver, preference, want) in [
            ("powersave", "acpi-cpufreq", "", vec!["clock-lowest"]),
            ("powersave", "intel_cpufreq", "", vec!["clock-lowest"]),
            ("powersave", "intel_pstate", "balance_performance", vec!["clock-follows-load"]),
            ("powersave", "intel_pstate", "performance", vec![]),
            ("powersave", "amd-pstate-epp", "power", vec!["clock-follows-load"]),
            ("schedutil", "acpi-cpufreq", "", vec!["clock-follows-load"]),
            ("performance", "intel_pstate", "performance", vec![]),
            ("", "", "", vec![]),
        ] {
            let machine = governed(governor, driver, preference);
            assert_eq!(ids(&machine), want, "{governor} {driver} {preference}");
        }
    }

    #[test]
    fn a_limit_below_the_hardware_is_odd_and_rounding_is_not() {
        let capped = |limit| {
            clocked(Clock {
                limit: Some(Hertz(limit)),
                max: Some(Hertz(1_000_000_000)),
                ..Clock::default()
            })
        };
        assert_eq!(ids(&capped(989_999_999)), ["clock-capped"]);
        assert_eq!(ids(&capped(990_000_000)), [""; 0]);
    }

    #[test]
    fn loads_are_odd_from_their_thresholds_on() {
        let load = |busy, stolen| {
            let mut machine = Inventory::default();
            let cpus = vec![CpuLoad { cpu: 3, busy, interrupts: 0.0, stolen }];
            machine.busy = Some(Busy { cpus, processes: Vec::new() });
            ids(&machine)
        };
        assert_eq!(load(0.9, 0.0), ["cpu-busy"]);
        assert_eq!(load(0.89, 0.0), [""; 0]);
        assert_eq!(load(0.1, 0.05), ["cpu-steal"]);
        assert_eq!(load(0.1, 0.049), [""; 0]);
    }

    #[test]
    fn a_quota_counts_below_the_number_of_cpus() {
        let mut machine = clocked(Clock::default());
        machine.machine.cpu_quota = Some(0.5);
        assert_eq!(ids(&machine), ["cpu-quota"]);
        machine.machine.cpu_quota = Some(1.0);
        assert_eq!(ids(&machine), [""; 0]);
    }

    #[test]
    fn settings_that_slow_every_cpu() {
        let mut machine = Inventory::default();
        machine.processors.turbo = Some(false);
        machine.machine.clock_source = "hpet".to_owned();
        machine.processors.offline = vec![2];
        assert_eq!(ids(&machine), ["turbo-off", "clock-source", "cpu-offline"]);
        machine.processors.turbo = Some(true);
        machine.machine.clock_source = "tsc".to_owned();
        machine.processors.offline = Vec::new();
        assert_eq!(ids(&machine), [""; 0]);
    }
}
