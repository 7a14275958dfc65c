//! What kind of machine this is, and the limits that its cgroup sets for this process.

use std::io;

use linerate_facts::machine::{Firmware, Machine, Platform};
use linerate_facts::parse::cgroup::{self, Place, Version};
use linerate_facts::parse::{cpuinfo, sysctl};
use linerate_units::Bytes;

use super::{MOUNTS, PROC, Reader, STATUS, SYS};
use crate::cgroup::place_of;
use crate::{gap, invalid, read};

const DMI: &str = "/sys/class/dmi/id";
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
const MEMBERSHIP: &str = "/proc/self/cgroup";

/// Files that container engines create, and the name of the engine.
const SIGNS: [(&str, &str); 2] = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];

impl Reader<'_> {
    pub(super) fn platform(&mut self, cpuinfo: &[u8], groups: &Groups) -> Machine {
        let firmware = Firmware {
            vendor: self.dmi("sys_vendor"),
            product: self.dmi("product_name"),
            tag: self.dmi("chassis_asset_tag"),
        };
        let product = match firmware.product.as_str() {
            "" => self.board(),
            product => product.to_owned(),
        };
        let clocks = self.look("clock_sources", CLOCKS, |text| Ok(sysctl::words(text)));
        let clocks = clocks.unwrap_or_default();
        let (cpu_quota, memory_limit) = (self.cpu_quota(groups), self.memory_limit(groups));
        Machine {
            name: self.line("name", "/proc/sys/kernel/hostname"),
            kernel: self.kernel(),
            platform: Platform::of(&firmware, cpuinfo::is_guest(cpuinfo), &clocks),
            vendor: firmware.vendor,
            product,
            container: self.container(),
            cpu_quota,
            cpus_allowed: self
                .get("cpus_allowed", STATUS, PROC, |text| {
                    sysctl::value_list(text, "Cpus_allowed_list")
                })
                .unwrap_or_default(),
            memory_limit,
            clock_source: self
                .get("clock_source", CLOCK, SYS, |text| Ok(sysctl::line(text)))
                .unwrap_or_default(),
        }
    }

    /// Returns the kernel release. If a directory tree has only `/proc/version`, its third word is used.
    fn kernel(&mut self) -> String {
        const PATH: &str = "/proc/sys/kernel/osrelease";
        let error = match read(self.machine, PATH, |text| Ok(sysctl::line(text))) {
            Ok(release) => return release,
            Err(error) => error,
        };
        let version = self.optional_line("/proc/version");
        let release = version.strip_prefix("Linux version ");
        let release = release.and_then(|rest| rest.split(' ').next());
        if release.is_none() {
            self.miss("kernel", PATH, &error, PROC);
        }
        release.unwrap_or_default().to_owned()
    }

    fn dmi(&mut self, name: &str) -> String {
        let line = self.look(name, &format!("{DMI}/{name}"), |text| Ok(sysctl::line(text)));
        line.unwrap_or_default()
    }

    /// Returns the board's name from the device tree, which exists on machines without DMI.
    fn board(&mut self) -> String {
        let path = "/sys/firmware/devicetree/base/model";
        let model = self.look("product", path, |text| Ok(sysctl::line(text)));
        let model = model.unwrap_or_default().trim_end_matches('\0').to_owned();
        if model.is_empty() {
            let why = format!("neither {DMI} nor a device tree names the machine");
            self.lack(gap("facts.product", &why, ""));
        }
        model
    }

    fn container(&mut self) -> Option<String> {
        let path = "/run/systemd/container";
        let named = self.look("container", path, |text| Ok(sysctl::line(text)));
        if let Some(name) = named.filter(|name| !name.is_empty()) {
            return Some(name);
        }
        let found = SIGNS.iter().find(|(path, _)| self.machine.file(path).is_ok());
        found.map(|(_, name)| (*name).to_owned())
    }

    fn cpu_quota(&mut self, groups: &Groups) -> Option<f64> {
        let place = self.place(groups, "cpu", "cpu_quota")?;
        let all = folders(&place).into_iter().filter_map(|folder| match place.version {
            Version::V1 => {
                let part = |this: &mut Self, name| {
                    let path = format!("{folder}/cpu.cfs_{name}_us");
                    this.look("cpu_quota", &path, |text| Ok(sysctl::line(text)))
                };
                let line = format!("{} {}\n", part(self, "quota")?, part(self, "period")?);
                let quota = cgroup::quota(line.as_bytes()).map_err(invalid);
                quota.map_err(|error| self.miss("cpu_quota", &folder, &error, "")).ok()?
            }
            Version::V2 => self.look("cpu_quota", &format!("{folder}/cpu.max"), cgroup::quota)?,
        });
        all.reduce(f64::min)
    }

    fn memory_limit(&mut self, groups: &Groups) -> Option<Bytes> {
        let place = self.place(groups, "memory", "memory_limit")?;
        let name = match place.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };
        let all = folders(&place).into_iter().filter_map(|folder| {
            self.look("memory_limit", &format!("{folder}/{name}"), cgroup::limit)?
        });
        all.min()
    }

    pub(super) fn groups(&self) -> Groups {
        Groups { membership: self.machine.file(MEMBERSHIP), mounts: self.machine.file(MOUNTS) }
    }

    /// Returns this process's cgroup in the mounted hierarchy; `None` if the controller does not exist or cannot be
    /// found.
    pub(super) fn place(&mut self, groups: &Groups, controller: &str, fact: &str) -> Option<Place> {
        let membership = self.known(fact, MEMBERSHIP, &groups.membership)?;
        let mounts = self.known(fact, MOUNTS, &groups.mounts)?;
        let place = place_of(self.machine, controller, membership, mounts);
        place.map_err(invalid).unwrap_or_else(|error| {
            self.miss(fact, MOUNTS, &error, "");
            None
        })
    }
}

/// The contents of the files that show this process's cgroups and the mounted hierarchies.
pub(super) struct Groups {
    /// Contents of [`MEMBERSHIP`].
    membership: io::Result<Vec<u8>>,
    /// Contents of [`MOUNTS`].
    pub(super) mounts: io::Result<Vec<u8>>,
}

/// Returns the folders of a cgroup and of its parents: the lowest limit among them applies.
pub(in super::super) fn folders(place: &Place) -> Vec<String> {
    let mut all = Vec::new();
    let mut group = place.group.as_str();
    loop {
        all.push(format!("{}{group}", place.mount));
        match group.rfind('/') {
            Some(cut) => group = &group[..cut],
            None => return all,
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::machine::Machine;
    use linerate_units::Bytes;

    use crate::testing::Fake;
    use crate::{Replay, inventory};

    fn machine(fake: Fake) -> Machine {
        inventory(&Replay::new(fake.0), &|_| {}).machine
    }

    #[test]
    fn the_least_of_all_groups_above_counts() {
        let mounts = "1 1 0:1 / /cg rw - cgroup2 cgroup2 rw\n";
        let fake = Fake::default()
            .file("/proc/self/cgroup", &["0::/a/b\n"; 2])
            .file("/proc/self/mountinfo", &[mounts; 2])
            .file("/cg/a/b/cpu.max", &["300000 100000\n"])
            .file("/cg/a/cpu.max", &["150000 100000\n"])
            .file("/cg/cpu.max", &["max 100000\n"])
            .file("/cg/a/b/memory.max", &["max\n"])
            .file("/cg/a/memory.max", &["1048576\n"])
            .file("/cg/memory.max", &["2097152\n"]);
        let got = machine(fake);
        assert_eq!(got.cpu_quota, Some(1.5));
        assert_eq!(got.memory_limit, Some(Bytes(1 << 20)));
    }

    #[test]
    fn v1_has_two_files_for_a_quota() {
        let quota = |quota| {
            let mounts = "1 1 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu\n";
            let fake = Fake::default()
                .file("/proc/self/cgroup", &["1:cpu:/\n"; 2])
                .file("/proc/self/mountinfo", &[mounts; 2])
                .file("/cg/cpu/cpu.cfs_quota_us", &[quota])
                .file("/cg/cpu/cpu.cfs_period_us", &["100000\n"]);
            machine(fake).cpu_quota
        };
        assert_eq!((quota("50000\n"), quota("-1\n")), (Some(0.5), None));
    }

    #[test]
    fn the_kernel_is_named_by_either_file() {
        const VERSION: &str = "/proc/version";
        const RELEASE: &str = "/proc/sys/kernel/osrelease";
        let long = Fake::default().file(VERSION, &["Linux version 6.1.0-13 (a@b) #1\n"]);
        assert_eq!(machine(long).kernel, "6.1.0-13");
        let both = Fake::default().file(VERSION, &["Linux version 1 x\n"]);
        assert_eq!(machine(both.file(RELEASE, &["2\n"])).kernel, "2");
        let other = Fake::default().file(VERSION, &["Minix 3\n"]);
        assert_eq!(machine(other).kernel, "");
    }

    #[test]
    fn the_cpus_that_we_may_run_on_are_those_of_our_cpuset() {
        let status = "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-1,64\n";
        let fake = Fake::default().file("/proc/self/status", &[status]);
        assert_eq!(machine(fake).cpus_allowed, [0, 1, 64]);
        let without = Fake::default().file("/proc/self/status", &["Name:\tx\n"]);
        let inventory = inventory(&Replay::new(without.0), &|_| {});
        assert!(inventory.machine.cpus_allowed.is_empty());
        let mut gaps = inventory.gaps.iter();
        assert!(gaps.any(|gap| gap.what == "facts.cpus_allowed"));
    }

    #[test]
    fn signs_of_a_container() {
        assert_eq!(machine(Fake::default()).container, None);
        let docker = Fake::default().file("/.dockerenv", &[""]);
        assert_eq!(machine(docker).container.unwrap(), "docker");
        let named = Fake::default().file("/run/systemd/container", &["lxc\n"]);
        assert_eq!(machine(named).container.unwrap(), "lxc");
    }
}
