//! Processors, their nodes, caches and clocks.

use std::collections::{BTreeMap, BTreeSet};

use linerate_core::facts::cpu::{
    self, Cache, Clock, Clocked, Cpu, IdleState, Kind, Node, Processors,
};
use linerate_core::facts::{HostFacts, topology};
use linerate_core::parse::{cpuinfo, meminfo, sysctl};
use linerate_core::placement;
use linerate_core::units::{Bytes, Hertz, Nanos};

use super::{NODES, Reader, SYS, numbered};
use crate::host::gap;

pub(super) const CPUS: &str = "/sys/devices/system/cpu";
/// Most CPUs whose clock settings are read for a run: twice the streams of a sweep.
const CLOCKS: usize = 32;
/// Units of measurement that hybrid processors have one of for each kind of core.
const KINDS: [(&str, &str); 3] = [
    ("cpu_core", "performance"),
    ("cpu_atom", "efficiency"),
    ("cpu_lowpower", "low power"),
];

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
        let online = online.unwrap_or_else(|| clocks.iter().map(|(id, _)| *id).collect());
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
            nodes: self
                .node_ids()
                .into_iter()
                .map(|id| self.numa_node(id))
                .collect(),
            caches: self.caches(&online),
            kinds: self.kinds(&cpus),
            idle: online.first().map_or(Vec::new(), |&cpu| self.idle(cpu)),
            turbo: self.turbo(),
            cpus,
        }
    }

    /// What no CPU tells.
    fn lacks_of(&mut self, cpus: &[Cpu]) {
        let is_seen = cpus.iter().any(|c| !c.siblings.is_empty());
        if !is_seen {
            let why = format!("{CPUS} does not say which CPUs make up a core");
            self.lack(gap("facts.cpu.cores", &why, SYS));
        }
        if cpus.iter().all(|c| c.clock.driver.is_empty()) {
            let (why, hint) = if is_seen {
                (
                    "shows no clock control: a virtual machine, or no driver for it",
                    "",
                )
            } else {
                ("shows no CPUs", SYS)
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

    /// CPUs of the same core, itself among them.
    pub(super) fn siblings(&mut self, id: u32) -> Vec<u32> {
        let path = format!("{CPUS}/cpu{id}/topology/thread_siblings_list");
        let siblings = self.look("cpu.cores", &path, sysctl::list);
        siblings.unwrap_or_default()
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
        let (governor, preference) = (
            word("scaling_governor"),
            word("energy_performance_preference"),
        );
        let mut kilohertz = |path: &str, scale: u64| {
            let value = self.look("cpu.clock", &format!("{folder}/{path}"), sysctl::number);
            value
                .and_then(|v| v.checked_mul(scale))
                .filter(|&v| v > 0)
                .map(Hertz)
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

    /// How the clocks are set of the CPUs that streams take first.
    pub(super) fn clocks(&mut self, facts: &HostFacts) -> Option<Vec<Clocked>> {
        let seats = placement::seats(facts, &facts.cpus);
        self.machine
            .list(&format!("{CPUS}/cpu{}", seats.first()?.cpu))
            .ok()?;
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
                None => found.push(Clocked {
                    cpus: vec![seat.cpu],
                    clock,
                }),
            }
        }
        Some(found)
    }

    /// A set of CPUs that older kernels do not list.
    fn cpu_set(&mut self, name: &str) -> Vec<u32> {
        let set = self.look(
            &format!("cpu.{name}"),
            &format!("{CPUS}/{name}"),
            sysctl::list,
        );
        set.unwrap_or_default()
    }

    /// CPUs that are there and off: `offline` also lists those that could be added.
    fn offline(&mut self) -> Vec<u32> {
        let present: BTreeSet<u32> = self.cpu_set("present").into_iter().collect();
        let mut offline = self.cpu_set("offline");
        offline.retain(|id| present.contains(id));
        offline
    }

    fn numa_node(&mut self, id: u32) -> Node {
        let topology::Node {
            cpus, distances, ..
        } = self.node_place(id);
        let path = format!("{NODES}/node{id}/meminfo");
        let memory = self.look("node.memory", &path, |text| Ok(text.to_vec()));
        let amount = |key| meminfo::bytes(memory.as_deref()?, key);
        let (total, free) = (amount("MemTotal"), amount("MemFree"));
        if total.is_none() {
            self.lack(gap(
                "facts.node.memory",
                &format!("{path} does not tell"),
                SYS,
            ));
        }
        Node {
            id,
            cpus,
            total,
            free,
            distances,
        }
    }

    /// The CPUs of a node and how far it is from others.
    pub(super) fn node_place(&mut self, id: u32) -> topology::Node {
        let folder = format!("{NODES}/node{id}");
        let words = |text: &[u8]| Ok(sysctl::words(text));
        let cpus = self.get("node.cpus", &format!("{folder}/cpulist"), SYS, sysctl::list);
        let distances = self.look("node.distances", &format!("{folder}/distance"), words);
        topology::Node {
            id,
            cpus: cpus.unwrap_or_default(),
            distances: distances
                .iter()
                .flatten()
                .filter_map(|d| d.parse().ok())
                .collect(),
        }
    }

    /// Each cache once, though it is listed for every CPU that shares it.
    fn caches(&mut self, online: &[u32]) -> Vec<Cache> {
        let mut seen = BTreeSet::new();
        let mut found: BTreeMap<(u32, String, Bytes, usize), usize> = BTreeMap::new();
        for cpu in online {
            let folder = format!("{CPUS}/cpu{cpu}/cache");
            for name in self.look_in("cpu.caches", &folder) {
                let folder = format!("{folder}/{name}");
                let path = format!("{folder}/shared_cpu_list");
                let Some(shared) = self.look("cpu.caches", &path, sysctl::list) else {
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
        let cache = |((level, kind, size, shared_by), count)| Cache {
            level,
            kind,
            size,
            shared_by,
            count,
        };
        found.into_iter().map(cache).collect()
    }

    fn cache(&mut self, folder: &str) -> Option<(u32, String, Bytes)> {
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
        self.look("cpu.turbo", &on, sysctl::number)
            .map(|on| on != 0)
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::facts::cpu::Processors;
    use linerate_core::units::Hertz;
    use rustix::io::Errno;

    use super::CPUS;
    use crate::host::testing::{Fake, LOOPBACK};
    use crate::host::{Replay, facts, inventory};

    fn read(fake: Fake) -> Processors {
        inventory(&Replay::new(fake.0), &|| {}).processors
    }

    #[test]
    fn off_is_what_is_there_and_not_what_could_be_added() {
        let fake = Fake::default()
            .file(&format!("{CPUS}/online"), &["0-1\n"])
            .file(&format!("{CPUS}/present"), &["0-3\n"])
            .file(&format!("{CPUS}/offline"), &["2-63\n"]);
        assert_eq!(read(fake).offline, [2, 3]);
    }

    #[test]
    fn units_of_measurement_name_the_kinds_of_cores() {
        let kinds = |names: &[&str]| {
            let fake = names.iter().fold(Fake::default(), |fake, name| {
                fake.file(&format!("/sys/devices/{name}/cpus"), &["0-3\n"])
            });
            read(fake)
                .kinds
                .into_iter()
                .map(|k| k.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            kinds(&["cpu_core", "cpu_atom"]),
            ["performance", "efficiency"]
        );
        assert_eq!(kinds(&["cpu_core"]), [""; 0]);
    }

    #[test]
    fn a_cache_is_counted_once_for_all_who_share_it() {
        let mut fake = Fake::default().file(&format!("{CPUS}/online"), &["0-2\n"]);
        for (cpu, shared) in [(0, "0-1\n"), (1, "0-1\n"), (2, "2\n")] {
            let folder = format!("{CPUS}/cpu{cpu}/cache");
            fake = fake
                .list(&folder, &["index2", "uevent"])
                .file(&format!("{folder}/index2/shared_cpu_list"), &[shared])
                .file(&format!("{folder}/index2/level"), &["2\n"])
                .file(&format!("{folder}/index2/type"), &["Unified\n"])
                .file(&format!("{folder}/index2/size"), &["256K\n"]);
        }
        let caches = read(fake).caches;
        let got: Vec<_> = caches
            .iter()
            .map(|c| (c.level, c.shared_by, c.count))
            .collect();
        assert_eq!(got, [(2, 1, 1), (2, 2, 1)]);
    }

    #[test]
    fn clocks_come_from_the_driver_and_the_clock_of_now_from_cpuinfo() {
        let folder = format!("{CPUS}/cpu0");
        let fake = Fake::default()
            .file(
                "/proc/cpuinfo",
                &["processor : 0\nmodel name : A @ 2.00GHz\ncpu MHz : 1500.000\n"],
            )
            .file(&format!("{CPUS}/online"), &["0\n"])
            .file(
                &format!("{folder}/cpufreq/scaling_driver"),
                &["acpi-cpufreq\n"],
            )
            .file(
                &format!("{folder}/cpufreq/scaling_governor"),
                &["powersave\n"],
            )
            .file(
                &format!("{folder}/cpufreq/scaling_cur_freq"),
                &["1000000\n"],
            )
            .file(
                &format!("{folder}/cpufreq/cpuinfo_max_freq"),
                &["3000000\n"],
            )
            .file(&format!("{folder}/cpufreq/scaling_max_freq"), &["0\n"]);
        let clock = read(fake).cpus.remove(0).clock;
        let hertz = |mega: u64| Some(Hertz(mega * 1_000_000));
        assert_eq!((clock.now, clock.nominal), (hertz(1500), hertz(2000)));
        assert_eq!((clock.max, clock.limit), (hertz(3000), None));
        assert_eq!(clock.governor, "powersave");
    }

    #[test]
    fn a_run_reads_how_clocks_are_set_where_something_sets_them() {
        let status = Fake::default().file("/proc/self/status", &["Cpus_allowed_list:\t0-2\n"]);
        let with = |fake: Fake| {
            let fake = fake.list(&format!("{CPUS}/cpu0"), &["topology"]);
            facts(&Replay::new(fake.0), LOOPBACK).clocks
        };
        let mut fake = status;
        for (cpu, max) in [(0, "3000000\n"), (1, "3000000\n"), (2, "2000000\n")] {
            let folder = format!("{CPUS}/cpu{cpu}/cpufreq");
            fake = fake
                .file(&format!("{folder}/scaling_driver"), &["intel_pstate\n"])
                .file(&format!("{folder}/scaling_governor"), &["powersave\n"])
                .file(&format!("{folder}/cpuinfo_max_freq"), &[max]);
        }
        let got: Vec<_> = with(fake).unwrap().into_iter().map(|c| c.cpus).collect();
        assert_eq!(got, [vec![0, 1], vec![2]]);
        let guest = Fake::default()
            .file("/proc/self/status", &["Cpus_allowed_list:\t0\n"])
            .failing(
                &format!("{CPUS}/cpu0/cpufreq/scaling_driver"),
                &[],
                Errno::NOENT,
            );
        assert_eq!(with(guest), Some(vec![]));
        assert_eq!(
            facts(&Replay::new(Fake::default().0), LOOPBACK).clocks,
            None
        );
    }
}
