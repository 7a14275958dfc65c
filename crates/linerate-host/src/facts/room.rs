//! The memory of this machine that a program may use, and the last-level cache.

use linerate_facts::parse::cgroup::Version;
use linerate_facts::parse::{cgroup, meminfo, sysctl};
use linerate_units::Bytes;

use super::machine::folders;
use super::{NODES, PROC, Reader, numbered};
use crate::Machine;

/// Memory of this machine that a program may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Room {
    /// Size of the last-level cache of the given CPU.
    pub last_cache: Option<Bytes>,
    /// Memory that can be allocated, and the name of the limit that determines it.
    pub free: Option<(Bytes, String)>,
    /// Number of CPUs on which the program's threads may run; 0 if unknown.
    pub cpus: u32,
    /// NUMA nodes that have memory, with the free memory of each; empty if the kernel knows no nodes.
    pub nodes: Vec<(u32, Option<Bytes>)>,
}

/// Reads how much memory a program may use, and the last-level cache of `cpu`.
pub fn room(machine: &dyn Machine, cpu: u32) -> Room {
    let mut reader = Reader { machine, gaps: Vec::new() };
    let available = reader.available().into_iter();
    let bounds = available.chain(reader.left_of_groups());
    Room {
        free: bounds.min_by_key(|(bytes, _)| *bytes),
        last_cache: reader.last_cache(cpu),
        cpus: 0,
        nodes: reader.nodes_with_memory(),
    }
}

impl Reader<'_> {
    /// Returns the size of a CPU's last-level cache for data.
    pub(super) fn last_cache(&mut self, cpu: u32) -> Option<Bytes> {
        let folder = format!("{}/cpu{cpu}/cache", super::cpu::CPUS);
        let names = self.look_in("cpu.caches", &folder);
        let caches = names.iter().filter(|name| name.starts_with("index"));
        let caches = caches.filter_map(|name| self.cache(&format!("{folder}/{name}")));
        let data = caches.filter(|(_, kind, _)| kind != "Instruction");
        let last = data.max_by_key(|(level, ..)| *level)?;
        Some(last.2).filter(|size| size.0 > 0)
    }

    /// Returns the memory that the kernel can allocate without swapping, and the name of that figure.
    fn available(&mut self) -> Option<(Bytes, String)> {
        const PATH: &str = "/proc/meminfo";
        let text = self.get("memory.available", PATH, PROC, |text| Ok(text.to_vec()))?;
        let available = meminfo::bytes(&text, "MemAvailable")?;
        Some((available, format!("MemAvailable of {PATH}")))
    }

    /// Returns how much memory each limit of this process's cgroup and of its parents leaves. Cached files that can be
    /// evicted count as free.
    fn left_of_groups(&mut self) -> Vec<(Bytes, String)> {
        let groups = self.groups();
        let Some(place) = self.place(&groups, "memory", "memory_limit") else {
            return Vec::new();
        };
        let [limit, used, cached] = match place.version {
            Version::V1 => {
                ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"]
            }
            Version::V2 => ["memory.max", "memory.current", "inactive_file"],
        };
        let mut left = |folder: String| {
            let path = format!("{folder}/{limit}");
            let most = self.look("memory_limit", &path, cgroup::limit)??;
            let used = self.look("memory_limit", &format!("{folder}/{used}"), sysctl::number)?;
            let stat = format!("{folder}/memory.stat");
            let stat = self.look("memory_limit", &stat, |text| Ok(text.to_vec()));
            let cached = cgroup::count(&stat.unwrap_or_default(), cached).unwrap_or(0);
            let taken = used.saturating_sub(cached);
            Some((Bytes(most.0.saturating_sub(taken)), format!("{limit} of {folder}")))
        };
        folders(&place).into_iter().filter_map(&mut left).collect()
    }

    fn nodes_with_memory(&mut self) -> Vec<(u32, Option<Bytes>)> {
        let names = self.look_in("nodes", NODES);
        let nodes = numbered(&names, "node").into_iter();
        let nodes = nodes.filter_map(|id| {
            let path = format!("{NODES}/node{id}/meminfo");
            let text = self.look("node.memory", &path, |text| Ok(text.to_vec()))?;
            let amount = |key| meminfo::bytes(&text, key);
            // Inactive file pages in the page cache can be evicted.
            let free = amount("MemFree").map(|free| {
                let cached = amount("Inactive(file)").unwrap_or_default();
                Bytes(free.0.saturating_add(cached.0))
            });
            (amount("MemTotal")?.0 > 0).then_some((id, free))
        });
        nodes.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, LOOPBACK};
    use crate::{Replay, Subject, facts};

    const CACHES: &str = "/sys/devices/system/cpu/cpu3/cache";

    fn read(fake: Fake) -> Room {
        room(&Replay::new(fake.0), 3)
    }

    fn cache(fake: Fake, index: &str, level: &str, kind: &str, size: &str) -> Fake {
        fake.file(&format!("{CACHES}/{index}/level"), &[level])
            .file(&format!("{CACHES}/{index}/type"), &[kind])
            .file(&format!("{CACHES}/{index}/size"), &[size])
    }

    #[test]
    fn the_last_cache_is_that_of_the_highest_level_with_data() {
        let fake = Fake::default().list(CACHES, &["index0", "index1", "index2", "uevent"]);
        let fake = cache(fake, "index0", "1\n", "Data\n", "32K\n");
        let fake = cache(fake, "index1", "2\n", "Unified\n", "1024K\n");
        let fake = cache(fake, "index2", "3\n", "Instruction\n", "2048K\n");
        assert_eq!(read(fake).last_cache, Some(Bytes(1 << 20)));
        assert_eq!(read(Fake::default()).last_cache, None);
    }

    #[test]
    fn the_last_cache_is_a_fact_where_no_card_moves_payload() {
        let folder = "/sys/devices/system/cpu/cpu3/cache";
        let fake = || {
            let fake = Fake::default().list(folder, &["index0"]);
            let fake = fake.file("/proc/self/status", &["Cpus_allowed_list:\t3\n"]);
            let fake = cache(fake, "index0", "3\n", "Unified\n", "8192K\n");
            let level = format!("{folder}/index0/level");
            let mut captured = fake.file(&level, &["3\n", "3\n"]).0;
            // The directory is listed once more, for the second-level cache.
            let lists = captured.lists.get_mut(folder).unwrap();
            lists.push(lists[0].clone());
            Replay::new(captured)
        };
        let read = [facts(&fake(), Subject::Host), facts(&fake(), LOOPBACK)];
        assert_eq!(read.map(|facts| facts.last_cache), [Some(Bytes(8 << 20)); 2]);
    }

    #[test]
    fn the_least_of_what_kernel_and_groups_leave_is_free() {
        let mounts = "1 1 0:1 / /cg rw - cgroup2 cgroup2 rw\n";
        let grouped = |current: &'static str| {
            Fake::default()
                .file("/proc/meminfo", &["MemAvailable: 64 kB\n"])
                .file("/proc/self/cgroup", &["0::/a/b\n"])
                .file("/proc/self/mountinfo", &[mounts])
                .file("/cg/a/b/memory.max", &["max\n"])
                .file("/cg/a/memory.max", &["65536\n"])
                .file("/cg/a/memory.current", &[current])
                .file("/cg/a/memory.stat", &["anon 1\ninactive_file 4096\n"])
                .file("/cg/memory.max", &["max\n"])
        };
        let bound = "memory.max of /cg/a".to_owned();
        assert_eq!(read(grouped("8192\n")).free, Some((Bytes(61_440), bound.clone())));
        // The group uses more than its limit, and has no cached file that could be evicted.
        assert_eq!(read(grouped("90000\n")).free, Some((Bytes(0), bound)));
        // The kernel has less free memory than the group's limit leaves.
        let all = read(grouped("4096\n")).free.unwrap();
        assert_eq!(all.0, Bytes(65_536));
    }

    #[test]
    fn groups_of_version_1_have_other_files() {
        let mounts = "1 1 0:1 / /cg/memory rw - cgroup cgroup rw,memory\n";
        let fake = Fake::default()
            .file("/proc/self/cgroup", &["4:memory:/\n"])
            .file("/proc/self/mountinfo", &[mounts])
            .file("/cg/memory/memory.limit_in_bytes", &["10000\n"])
            .file("/cg/memory/memory.usage_in_bytes", &["6000\n"])
            .file("/cg/memory/memory.stat", &["inactive_file 9\ntotal_inactive_file 1000\n"]);
        assert_eq!(read(fake).free.unwrap().0, Bytes(5000));
    }

    #[test]
    fn nodes_are_those_with_memory() {
        let of = |id: u32, total: u64, free: u64| {
            format!(
                "Node {id} MemTotal: {total} kB\nNode {id} MemFree: {free} kB\nNode {id} Inactive(file): 2 kB\n"
            )
        };
        let fake = Fake::default()
            .list(NODES, &["node0", "node1", "online"])
            .file(&format!("{NODES}/node0/meminfo"), &[&of(0, 64, 8)])
            .file(&format!("{NODES}/node1/meminfo"), &[&of(1, 0, 0)]);
        assert_eq!(read(fake).nodes, [(0, Some(Bytes(10_240)))]);
    }
}
