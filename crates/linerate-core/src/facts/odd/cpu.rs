//! Processors that give less than they could, or are busy already.

use std::collections::BTreeMap;

use super::{Oddity, cpus};
use crate::facts::Inventory;
use crate::facts::cpu::{Clock, Load};

/// A CPU that is busier than this before anything is measured has no room for a stream.
const BUSY: f64 = 0.9;
/// A hypervisor that takes more than this leaves a rate that is not the machine's.
const STOLEN: f64 = 0.05;
/// Settings this little below the hardware's best are rounding.
const CAPPED: f64 = 0.99;

/// Whether the hardware itself picks the clock, so that `powersave` does not mean the lowest one.
fn picks_clock(clock: &Clock) -> bool {
    ["intel_pstate", "amd-pstate-epp"].contains(&clock.driver.as_str())
}

/// One oddity for all CPUs of whose clocks `odd` says the same.
fn clocks(
    inventory: &Inventory,
    id: &'static str,
    why: &'static str,
    fix: &str,
    odd: impl Fn(&Clock) -> Option<String>,
) -> Vec<Oddity> {
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for cpu in &inventory.processors.cpus {
        if let Some(what) = odd(&cpu.clock) {
            found.entry(what).or_default().push(cpu.id);
        }
    }
    let oddity = |(what, ids): (String, Vec<u32>)| Oddity {
        id,
        subject: cpus(&ids),
        what,
        why,
        fix: fix.to_owned(),
    };
    found.into_iter().map(oddity).collect()
}

/// A governor that holds the lowest clock.
pub(super) fn lowest_clock(inventory: &Inventory) -> Vec<Oddity> {
    clocks(
        inventory,
        "clock-lowest",
        "per-packet work takes as much longer as the clock is lower",
        "sudo cpupower frequency-set -g performance (undo: -g powersave)",
        |clock| {
            (clock.governor == "powersave" && !picks_clock(clock)).then(|| {
                format!(
                    "governor powersave ({}) holds the lowest clock",
                    clock.driver
                )
            })
        },
    )
}

/// A governor that raises the clock only once load has lasted.
pub(super) fn clock_follows_load(inventory: &Inventory) -> Vec<Oddity> {
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
        "sudo cpupower frequency-set -g performance (undo: -g with the governor named here)",
        |clock| {
            let asked = match clock.preference.as_str() {
                "" => String::new(),
                preference => format!(", preference {preference}"),
            };
            follows(clock).then(|| {
                let Clock {
                    governor, driver, ..
                } = clock;
                format!("governor {governor} ({driver}{asked}) lets the clock follow the load")
            })
        },
    )
}

/// Settings that keep the clock below what the hardware can.
pub(super) fn capped_clock(inventory: &Inventory) -> Vec<Oddity> {
    clocks(
        inventory,
        "clock-capped",
        "per-packet work takes as much longer as the clock is lower",
        "sudo cpupower frequency-set -u with the higher of the two (undo: -u with the lower)",
        |clock| {
            let (limit, max) = clock.limit.zip(clock.max)?;
            ((limit.0 as f64) < max.0 as f64 * CAPPED)
                .then(|| format!("settings allow {limit}, the hardware could do {max}"))
        },
    )
}

/// Clocks above the nominal one are switched off.
pub(super) fn turbo_off(inventory: &Inventory) -> Vec<Oddity> {
    if inventory.processors.turbo != Some(false) {
        return Vec::new();
    }
    vec![Oddity {
        id: "turbo-off",
        subject: "CPUs".to_owned(),
        what: "clocks above the nominal one are switched off".to_owned(),
        why: "a single stream runs on one core, which could be clocked higher while others rest",
        fix: "echo 0 into /sys/devices/system/cpu/intel_pstate/no_turbo, or 1 into \
              /sys/devices/system/cpu/cpufreq/boost, whichever is there (undo: the other digit)"
            .to_owned(),
    }]
}

/// A clock source that is slow to read.
pub(super) fn clock_source(inventory: &Inventory) -> Vec<Oddity> {
    const SLOW: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];
    let source = &inventory.machine.clock_source;
    if !SLOW.contains(&source.as_str()) {
        return Vec::new();
    }
    vec![Oddity {
        id: "clock-source",
        subject: "kernel".to_owned(),
        what: format!("the kernel takes the time from {source}"),
        why: "packets, timers and every measurement ask for the time; this source is slow or coarse",
        fix: "see why in the kernel's log (dmesg | grep -i -e tsc -e clocksource); boot with \
              tsc=reliable only if the hardware is known to be sound"
            .to_owned(),
    }]
}

/// CPUs with no room for a stream.
pub(super) fn busy(inventory: &Inventory) -> Vec<Oddity> {
    let all = inventory.busy.iter().flat_map(|b| &b.cpus);
    let full: Vec<&Load> = all.filter(|l| l.busy >= BUSY).collect();
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
    vec![Oddity {
        id: "cpu-busy",
        subject: cpus(&ids),
        what: format!(
            "at least {:.0} % busy before anything is measured{who}",
            least * 100.0
        ),
        why: "work of the path must share these CPUs: rates fall and vary",
        fix: "stop what is not needed, or bind it to other CPUs (taskset -cp)".to_owned(),
    }]
}

/// Time that the hypervisor takes away.
pub(super) fn stolen(inventory: &Inventory) -> Vec<Oddity> {
    let loads = inventory.busy.iter().flat_map(|b| &b.cpus);
    let most = loads.map(|l| l.stolen).fold(0.0, f64::max);
    if most < STOLEN {
        return Vec::new();
    }
    vec![Oddity {
        id: "cpu-stolen",
        subject: "CPUs".to_owned(),
        what: format!(
            "the hypervisor takes {:.0} % of a CPU's time away",
            most * 100.0
        ),
        why: "other guests share this hardware; what is measured varies with them",
        fix: "measure again at another time, or on a machine of a type with CPUs of its own"
            .to_owned(),
    }]
}

/// A quota below the CPUs of the machine.
pub(super) fn quota(inventory: &Inventory) -> Vec<Oddity> {
    let all = inventory.processors.cpus.len();
    let quota = inventory.machine.cpu_quota.filter(|q| *q < all as f64);
    let odd = |quota: f64| Oddity {
        id: "cpu-quota",
        subject: "cgroup".to_owned(),
        what: format!("a quota allows {quota:.2} of {all} CPUs to this process and its neighbours"),
        why: "whoever has used it up is stopped until the next period: rates fall and latency jumps",
        fix: "raise it (docker: --cpus, systemd: CPUQuota=), or run outside this cgroup".to_owned(),
    };
    quota.map(odd).into_iter().collect()
}

/// CPUs that are switched off.
pub(super) fn offline(inventory: &Inventory) -> Vec<Oddity> {
    let off = &inventory.processors.offline;
    if off.is_empty() {
        return Vec::new();
    }
    vec![Oddity {
        id: "cpu-offline",
        subject: cpus(off),
        what: "switched off".to_owned(),
        why: "streams and interrupts have fewer places to go",
        fix: "echo 1 into /sys/devices/system/cpu/cpuN/online, or on into \
              /sys/devices/system/cpu/smt/control (undo: 0, or off)"
            .to_owned(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::ids;
    use super::*;
    use crate::facts::cpu::{Busy, Cpu};
    use crate::units::Hertz;

    fn clocked(clock: Clock) -> Inventory {
        let mut machine = Inventory::default();
        machine.processors.cpus = vec![Cpu {
            clock,
            ..Cpu::default()
        }];
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
            (
                "powersave",
                "intel_pstate",
                "balance_performance",
                vec!["clock-follows-load"],
            ),
            ("powersave", "intel_pstate", "performance", vec![]),
            (
                "powersave",
                "amd-pstate-epp",
                "power",
                vec!["clock-follows-load"],
            ),
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
            let cpus = vec![Load {
                cpu: 3,
                busy,
                interrupts: 0.0,
                stolen,
            }];
            machine.busy = Some(Busy {
                cpus,
                processes: Vec::new(),
            });
            ids(&machine)
        };
        assert_eq!(load(0.9, 0.0), ["cpu-busy"]);
        assert_eq!(load(0.89, 0.0), [""; 0]);
        assert_eq!(load(0.1, 0.05), ["cpu-stolen"]);
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
