//! Processors, with their NUMA nodes, caches and clock settings.

use std::collections::{BTreeMap, BTreeSet};

use linerate_facts::cpu::{self, Cache, Clock, Clocked, Cpu, IdleState, Node, Processors};
use linerate_facts::parse::{cpuinfo, meminfo, sysctl, sysfs};
use linerate_facts::topology::Kind;
use linerate_facts::{HostFacts, placement, topology};
use linerate_units::{Bytes, Hertz, Nanos};

use super::{NODES, Reader, SYS, numbered};
use crate::gap;

pub(super) const CPUS: &str = "/sys/devices/system/cpu";
/// Most CPUs whose clock settings are read for a run: twice the most streams of a sweep.
const CLOCKS: usize = 32;
/// Names of the performance monitoring units of hybrid processors, which have one for each kind of core.
const KINDS: [(&str, &str); 3] =
    [("cpu_core", "performance"), ("cpu_atom", "efficiency"), ("cpu_lowpower", "low power")];

impl Reader<'_> {
    pub(super) fn processors(&mut self, cpuinfo: &[u8]) -> Processors {
        let model = cpuinfo::model(cpuinfo).unwrap_or_default();
        let is_read = self.gaps.iter().all(|gap| gap.what != "facts.cpu");
        if model.is_empty() && is_read {
            let why = "/proc/cpuinfo does not name it";
            self.lack(gap("facts.cpu.model", why, "lscpu"));
        }
        let clocks = cpuinfo::clocks(cpuinfo);
        let online = self.get("cpu.online", &format!("{CPUS}/online"), SYS, sysctl::list);
        let online = online.unwrap_or_else(|| self.cpus_on(&clocks));
        let clocks: BTreeMap<u32, Option<Hertz>> = clocks.into_iter().collect();
        let nominal = cpuinfo::nominal(&model);
        let mut cpus: Vec<Cpu> = online.iter().map(|&id| self.cpu(id)).collect();
        for cpu in &mut cpus {
            let now = clocks.get(&cpu.id).copied().flatten();
            cpu.clock.now = now.or(cpu.clock.now);
            cpu.clock.nominal = cpu.clock.nominal.or(nominal);
        }
        self.lacks_of(&cpus);
        Processors {
            model,
            offline: self.offline(),
            isolated: self.cpu_set("isolated"),
            tickless: self.tickless(),
            nodes: self.node_ids().into_iter().map(|id| self.numa_node(id)).collect(),
            caches: self.caches(&online),
            kinds: self.kinds(&cpus),
            idle: online.first().map_or(Vec::new(), |&cpu| self.idle(cpu)),
            turbo: self.turbo(),
            cpus,
        }
    }

    /// Returns the online CPUs if no file lists them: the CPUs in /proc/cpuinfo or, if there are none, the CPUs that
    /// have a folder. CPUs whose own file reports that they are off are left out.
    fn cpus_on(&mut self, reported: &[(u32, Option<Hertz>)]) -> Vec<u32> {
        let mut on: Vec<u32> = reported.iter().map(|(id, _)| *id).collect();
        if on.is_empty() {
            let folders = self.look_in("cpu.online", CPUS);
            on = numbered(&folders, "cpu");
        }
        on.retain(|id| {
            let path = format!("{CPUS}/cpu{id}/online");
            self.look("cpu.online", &path, sysctl::number) != Some(0)
        });
        on
    }

    /// Adds a gap for each fact that is unknown for all CPUs.
    fn lacks_of(&mut self, cpus: &[Cpu]) {
        let is_seen = cpus.iter().any(|c| !c.siblings.is_empty());
        if !is_seen {
            let why = format!("{CPUS} does not show which CPUs share a core");
            self.lack(gap("facts.cpu.cores", &why, SYS));
        }
        if cpus.iter().all(|c| c.clock.driver.is_empty()) {
            let (why, hint) = if is_seen {
                ("shows no clock control: a virtual machine, or no driver for it", "")
            } else {
                ("shows no clock control", SYS)
            };
            self.lack(gap("facts.cpu.governor", &format!("{CPUS} {why}"), hint));
        }
    }

    fn cpu(&mut self, id: u32) -> Cpu {
        let folder = format!("{CPUS}/cpu{id}");
        let topology = format!("{folder}/topology");
        let package = format!("{topology}/physical_package_id");
        Cpu {
            id,
            package: self.look("cpu.package", &package, sysctl::id).flatten(),
            siblings: self.siblings(id),
            capacity: self.capacity(id),
            clock: self.clock(&folder),
        }
    }

    /// Returns the CPUs that share a core with `id`, including `id`.
    pub(super) fn siblings(&mut self, id: u32) -> Vec<u32> {
        let folder = format!("{CPUS}/cpu{id}/topology");
        let files = ["thread_siblings_list", "thread_siblings"];
        self.cpu_set_of("cpu.cores", &folder, files).unwrap_or_default()
    }

    /// Reads a set of CPUs from a list or, since kernels before 2.6.26 have no list, from a mask.
    fn cpu_set_of(
        &mut self,
        fact: &str,
        folder: &str,
        [list, mask]: [&str; 2],
    ) -> Option<Vec<u32>> {
        self.look(fact, &format!("{folder}/{list}"), sysctl::list)
            .or_else(|| self.look(fact, &format!("{folder}/{mask}"), sysfs::mask))
    }

    pub(super) fn capacity(&mut self, id: u32) -> Option<u32> {
        let path = format!("{CPUS}/cpu{id}/cpu_capacity");
        let capacity = self.look("cpu.capacity", &path, sysctl::number);
        capacity.and_then(|c| u32::try_from(c).ok())
    }

    fn clock(&mut self, folder: &str) -> Clock {
        let mut word = |name: &str| {
            let path = format!("{folder}/cpufreq/{name}");
            let word = self.look("cpu.governor", &path, |text| Ok(sysctl::line(text)));
            word.unwrap_or_default()
        };
        let driver = word("scaling_driver");
        if driver.is_empty() {
            return Clock::default();
        }
        let (governor, preference) =
            (word("scaling_governor"), word("energy_performance_preference"));
        let mut kilohertz = |path: &str, scale: u64| {
            let value = self.look("cpu.clock", &format!("{folder}/{path}"), sysctl::number);
            value.and_then(|v| v.checked_mul(scale)).filter(|&v| v > 0).map(Hertz)
        };
        Clock {
            now: kilohertz("cpufreq/scaling_cur_freq", 1000),
            nominal: kilohertz("cpufreq/base_frequency", 1000)
                .or_else(|| kilohertz("acpi_cppc/nominal_freq", 1_000_000)),
            max: kilohertz("cpufreq/cpuinfo_max_freq", 1000),
            limit: kilohertz("cpufreq/scaling_max_freq", 1000),
            driver,
            governor,
            preference,
        }
    }

    /// Reads the clock settings of the CPUs on which streams are placed first.
    pub(super) fn clocks(&mut self, facts: &HostFacts) -> Option<Vec<Clocked>> {
        let seats = placement::seats(facts, &facts.cpus);
        self.machine.list(&format!("{CPUS}/cpu{}", seats.first()?.cpu)).ok()?;
        let nominal = cpuinfo::nominal(&facts.cpu_model);
        let mut found: Vec<Clocked> = Vec::new();
        for seat in seats.into_iter().take(CLOCKS) {
            let mut clock = self.clock(&format!("{CPUS}/cpu{}", seat.cpu));
            if clock == Clock::default() {
                break;
            }
            clock.now = None;
            clock.nominal = clock.nominal.or(nominal);
            match found.iter_mut().find(|known| known.clock == clock) {
                Some(known) => known.cpus.push(seat.cpu),
                None => found.push(Clocked { cpus: vec![seat.cpu], clock }),
            }
        }
        Some(found)
    }

    /// Reads a set of CPUs; empty on older kernels, which do not have its file.
    fn cpu_set(&mut self, name: &str) -> Vec<u32> {
        let set = self.look(&format!("cpu.{name}"), &format!("{CPUS}/{name}"), sysctl::list);
        set.unwrap_or_default()
    }

    /// Lists the CPUs without timer ticks (`nohz_full`). Kernels that support that but have no such CPU print `(null)`.
    fn tickless(&mut self) -> Vec<u32> {
        let path = format!("{CPUS}/nohz_full");
        let set = self.look("cpu.nohz_full", &path, |text| match text.trim_ascii() {
            b"(null)" => Ok(Vec::new()),
            _ => sysctl::list(text),
        });
        set.unwrap_or_default()
    }

    /// Returns the CPUs that are present and off. The file `offline` also lists CPUs that could be plugged in later.
    fn offline(&mut self) -> Vec<u32> {
        let present: BTreeSet<u32> = self.cpu_set("present").into_iter().collect();
        let mut offline = self.cpu_set("offline");
        offline.retain(|id| present.contains(id));
        offline
    }

    fn numa_node(&mut self, id: u32) -> Node {
        let (cpus, distances) = (self.node_cpus(id), self.node_distances(id));
        let path = format!("{NODES}/node{id}/meminfo");
        let memory = self.look("node.memory", &path, |text| Ok(text.to_vec()));
        let amount = |key| meminfo::bytes(memory.as_deref()?, key);
        let (total, free) = (amount("MemTotal"), amount("MemFree"));
        if total.is_none() {
            self.lack(gap("facts.node.memory", &format!("{path} does not contain it"), SYS));
        }
        Node { id, cpus, total, free, distances }
    }

    /// Returns the CPUs of a node and its distances to all nodes.
    pub(super) fn node_place(&mut self, id: u32) -> topology::Node {
        topology::Node {
            id,
            cpus: self.node_cpus(id).unwrap_or_default(),
            distances: self.node_distances(id),
        }
    }

    fn node_cpus(&mut self, id: u32) -> Option<Vec<u32>> {
        let folder = format!("{NODES}/node{id}");
        let cpus = self.cpu_set_of("node.cpus", &folder, ["cpulist", "cpumap"]);
        if cpus.is_none() {
            let why = format!("{folder} does not contain it");
            self.lack(gap("facts.node.cpus", &why, SYS));
        }
        cpus
    }

    fn node_distances(&mut self, id: u32) -> Vec<u32> {
        let path = format!("{NODES}/node{id}/distance");
        let words = self.look("node.distances", &path, |text| Ok(sysctl::words(text)));
        let words = words.unwrap_or_default();
        words.iter().filter_map(|d| d.parse().ok()).collect()
    }

    /// Returns each kind of cache with its number. A cache counts once, although sysfs lists it for every CPU that
    /// shares it.
    fn caches(&mut self, online: &[u32]) -> Vec<Cache> {
        let mut seen = BTreeSet::new();
        let mut found: BTreeMap<(u32, String, Bytes, usize), usize> = BTreeMap::new();
        for cpu in online {
            let folder = format!("{CPUS}/cpu{cpu}/cache");
            for name in self.look_in("cpu.caches", &folder) {
                let folder = format!("{folder}/{name}");
                let files = ["shared_cpu_list", "shared_cpu_map"];
                let Some(shared) = self.cpu_set_of("cpu.caches", &folder, files) else {
                    continue;
                };
                if !seen.insert((name, shared.first().copied())) {
                    continue;
                }
                if let Some((level, kind, size)) = self.cache(&folder) {
                    *found.entry((level, kind, size, shared.len())).or_default() += 1;
                }
            }
        }
        if found.is_empty() {
            let why = format!("{CPUS} shows no caches");
            self.lack(gap("facts.cpu.caches", &why, SYS));
        }
        let cache =
            |((level, kind, size, shared_by), count)| Cache { level, kind, size, shared_by, count };
        found.into_iter().map(cache).collect()
    }

    pub(super) fn cache(&mut self, folder: &str) -> Option<(u32, String, Bytes)> {
        let level = self.look("cpu.caches", &format!("{folder}/level"), sysctl::number)?;
        let word = |text: &[u8]| Ok(sysctl::line(text));
        let kind = self.look("cpu.caches", &format!("{folder}/type"), word)?;
        let size = self.look("cpu.caches", &format!("{folder}/size"), sysctl::size)?;
        Some((u32::try_from(level).ok()?, kind, Bytes(size)))
    }

    pub(super) fn kinds(&mut self, cpus: &[Cpu]) -> Vec<Kind> {
        let mut found = Vec::new();
        for (unit, name) in KINDS {
            let path = format!("/sys/devices/{unit}/cpus");
            if let Some(cpus) = self.look("cpu.kinds", &path, sysctl::list) {
                let name = name.to_owned();
                found.push(Kind { name, cpus });
            }
        }
        if found.len() < 2 {
            return cpu::kinds(cpus);
        }
        found
    }

    /// Reads the idle states of the CPU on which the first thread is placed.
    pub(super) fn idle_states(&mut self, facts: &HostFacts) -> Option<Vec<IdleState>> {
        let seats = placement::seats(facts, &facts.cpus);
        let cpu = seats.first()?.cpu;
        self.machine.list(&format!("{CPUS}/cpu{cpu}")).ok()?;
        Some(self.idle(cpu))
    }

    fn idle(&mut self, cpu: u32) -> Vec<IdleState> {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        let states = self.look_in("cpu.idle", &folder);
        let mut found = Vec::new();
        for state in numbered(&states, "state") {
            let folder = format!("{folder}/state{state}");
            let word = |text: &[u8]| Ok(sysctl::line(text));
            let name = self.look("cpu.idle", &format!("{folder}/name"), word);
            let latency = self.look("cpu.idle", &format!("{folder}/latency"), sysctl::number);
            let disabled = self.look("cpu.idle", &format!("{folder}/disable"), sysctl::number);
            if let (Some(name), Some(micros)) = (name, latency) {
                found.push(IdleState {
                    name,
                    latency: Nanos(micros.saturating_mul(1000)),
                    disabled: disabled.is_some_and(|d| d != 0),
                });
            }
        }
        found
    }

    fn turbo(&mut self) -> Option<bool> {
        let off = format!("{CPUS}/intel_pstate/no_turbo");
        if let Some(off) = self.look("cpu.turbo", &off, sysctl::number) {
            return Some(off == 0);
        }
        let on = format!("{CPUS}/cpufreq/boost");
        self.look("cpu.turbo", &on, sysctl::number).map(|on| on != 0)
    }
}

#[cfg(test)]
mod tests;
