//! Source `socket_memory`: limits of the memory that TCP may use, how much is used, and how often a limit was exceeded.
//!
//! Version 1 of control groups has a separate limit for the memory of TCP, version 2 a limit for all memory of a group.
//! A limit of a parent group also applies to this process. Only the first network namespace shows the system's limit.

use std::io;

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::cgroup::{self, Version};
use linerate_facts::parse::{Malformed, snmp, sysctl};

use super::cgroup::{MEMBERSHIP, MOUNTS, UNSEEN, place_of};
use super::facts::folders;
use super::netstat::NETSTAT;
use super::source::{Row, Source};
use super::{Machine, invalid, read, unreadable};

const SOCKSTAT: &str = "/proc/net/sockstat";
const PROTOCOLS: &str = "/proc/net/protocols";
const SYSTEM: &str = "/proc/sys/net/ipv4/tcp_mem";
/// Subject of the table of the system's limit.
const SYSCTL: &str = "net.ipv4.tcp_mem";
const METRICS: &[Metric] = &[
    metric::SOCKET_MEMORY_USED,
    metric::SOCKET_MEMORY_REFUSED,
    metric::SOCKET_MEMORY_LIMIT,
    metric::SOCKET_MEMORY_EVER,
];
/// Metrics of the system's memory. The last one, its limit, may be missing.
const OF_SYSTEM: &[Metric] = &[
    metric::SOCKET_MEMORY_USED,
    metric::SOCKET_MEMORY_REFUSED,
    metric::SOCKET_MEMORY_PRESSED,
    metric::SOCKET_MEMORY_LIMIT,
];
/// Number of rows of the sampler per reading of the system's counters, which the kernel adds up over all CPUs. Counters
/// of control groups are read for each row, because the memory of a group changes fast.
const EVERY: usize = 5;

/// Names of a control group's files: its limit, its use, the count of how often the use exceeded the limit, the name of
/// that count within its file, and the highest use ever. Names are empty if there is none.
type Files = [&'static str; 5];
const V1: &[Files] = &[[
    "memory.kmem.tcp.limit_in_bytes",
    "memory.kmem.tcp.usage_in_bytes",
    "memory.kmem.tcp.failcnt",
    "",
    "memory.kmem.tcp.max_usage_in_bytes",
]];
const V2: &[Files] = &[
    ["memory.max", "memory.current", "memory.events", "max", ""],
    ["memory.high", "memory.current", "memory.events", "high", ""],
];

/// Reads the limits of the system, and those of this process's control group and its parents.
#[derive(Default)]
pub(super) struct SocketMemory {
    /// The limits of control groups to read; they are searched again after each `take`.
    limits: Option<Vec<Limit>>,
}

/// A limit of a control group: the group's folder, and the names of the limit's files.
struct Limit {
    folder: String,
    files: &'static Files,
}

impl Source for SocketMemory {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        if row.number.is_multiple_of(EVERY) {
            let values = system(row.machine)?;
            row.push(OF_SYSTEM, (), || SYSCTL.to_owned(), &values);
        }
        let limits = match &mut self.limits {
            Some(limits) => limits,
            none => none.insert(limits(row.machine)?),
        };
        for (key, limit) in (0..).zip(limits) {
            let values = limit.read(row.machine)?;
            row.push(METRICS, key, || limit.subject(), &values);
        }
        Ok(())
    }

    fn taken(&mut self) {
        self.limits = None;
    }
}

/// Returns the memory of all TCP sockets of the machine; how often it exceeded the threshold of memory pressure;
/// whether the kernel is under memory pressure now; and that threshold, unless this network namespace does not show it.
fn system(machine: &dyn Machine) -> Result<Vec<Option<u64>>, Gap> {
    let file = |path| {
        let read = machine.file(path);
        read.map_err(|error| unreadable("socket_memory", path, &error, ""))
    };
    let pages = snmp::pair(&file(SOCKSTAT)?, "TCP", "mem");
    let exceeded = snmp::count(&file(NETSTAT)?, "TcpExt", "TCPMemoryPressures");
    let page = rustix::param::page_size() as u64;
    let bytes = |pages: u64| pages.saturating_mul(page);
    let protocols = machine.file(PROTOCOLS).ok();
    let pressed = protocols.and_then(|text| snmp::is_pressed(&text, "TCP"));
    let mut values = vec![pages.map(bytes), exceeded, pressed.map(u64::from)];
    match read(machine, SYSTEM, sysctl::numbers::<3>) {
        Ok([_, pressure, _]) => values.push(Some(bytes(pressure))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(unreadable("socket_memory", SYSTEM, &error, "")),
    }
    Ok(values)
}

/// Returns the memory limits of this process's control group and its parents.
fn limits(machine: &dyn Machine) -> Result<Vec<Limit>, Gap> {
    let file = |path| {
        let read = machine.file(path);
        read.map_err(|error| unreadable("socket_memory", path, &error, ""))
    };
    let (membership, mounts) = (file(MEMBERSHIP)?, file(MOUNTS)?);
    let place = place_of(machine, "memory", &membership, &mounts)
        .map_err(|error| unreadable("socket_memory", MEMBERSHIP, &invalid(error), UNSEEN))?;
    // A kernel without the memory controller limits no group.
    let Some(place) = place else {
        return Ok(Vec::new());
    };
    let kinds = match place.version {
        Version::V1 => V1,
        Version::V2 => V2,
    };
    let mut found = Vec::new();
    for folder in folders(&place) {
        for files in kinds {
            let path = format!("{folder}/{}", files[0]);
            match read(machine, &path, cgroup::limit) {
                Ok(None) => {}
                Ok(Some(_)) => found.push(Limit { folder: folder.clone(), files }),
                // The root group has no limit, and kernels may be built without the limit of TCP memory.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable("socket_memory", &path, &error, "")),
            }
        }
    }
    Ok(found)
}

impl Limit {
    /// Returns the path of the limit as users see it, even if it was read through the root of another process.
    fn subject(&self) -> String {
        let folder = self.folder.as_str();
        let below = folder.strip_prefix("/proc/");
        let below = below.and_then(|rest| Some(rest.split_once("/root/")?.1));
        match below {
            Some(below) => format!("/{below}/{}", self.files[0]),
            None => format!("{folder}/{}", self.files[0]),
        }
    }

    fn read(&self, machine: &dyn Machine) -> Result<Vec<Option<u64>>, Gap> {
        let [limit, used, counted, name, ever] = *self.files;
        let number = |file: &str, decode: &dyn Fn(&[u8]) -> Result<u64, Malformed>| {
            let path = format!("{}/{file}", self.folder);
            read(machine, &path, decode)
                .map_err(|error| unreadable("socket_memory", &path, &error, ""))
        };
        let event = |text: &[u8]| match name {
            "" => sysctl::number(text),
            name => cgroup::count(text, name).ok_or(Malformed::Missing("memory.events")),
        };
        let most = |text: &[u8]| Ok(cgroup::limit(text)?.map_or(u64::MAX, |bytes| bytes.0));
        let mut values = vec![
            Some(number(used, &sysctl::number)?),
            Some(number(counted, &event)?),
            Some(number(limit, &most)?),
        ];
        if !ever.is_empty() {
            values.push(Some(number(ever, &sysctl::number)?));
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use crate::testing::Fake;
    use linerate_record::Table;

    const MOUNTS: &str = "1 1 0:1 / /cg/memory rw - cgroup cgroup rw,memory\n\
        1 1 0:2 / /cg/two rw - cgroup2 cgroup2 rw\n";

    /// A machine whose network namespace does not show the system's limit.
    fn fake(membership: &str) -> Fake {
        Fake::default()
            .file("/proc/net/sockstat", &["sockets: used 9\nTCP: inuse 1 mem 19\nUDP: mem 7\n"])
            .file(super::PROTOCOLS, &["protocol size sockets memory press\nTCP 2304 1 19 yes\n"])
            .file("/proc/net/snmp", &["Tcp: InCsumErrors\nTcp: 0\n"])
            .file("/proc/net/netstat", &["TcpExt: TCPMemoryPressures\nTcpExt: 2\n"; 2])
            .file("/proc/self/cgroup", &[membership; 3])
            .file("/proc/self/mountinfo", &[MOUNTS; 3])
            .failing(super::SYSTEM, &[], Errno::NOENT)
            // The root group of version 2 has no limits.
            .failing("/cg/two/memory.max", &[], Errno::NOENT)
            .failing("/cg/two/memory.high", &[], Errno::NOENT)
    }

    fn result_of(tables: &[Table]) -> Vec<(&str, Vec<i64>)> {
        let first = |t: &Table| t.columns.iter().map(|c| c.values[0]).collect();
        tables.iter().map(|t| (t.subject.as_str(), first(t))).collect()
    }

    #[test]
    fn version_1_limits_the_memory_of_tcp_and_parents_count() {
        let tcp = |folder: &str, name: &str| format!("/cg/memory{folder}/memory.kmem.tcp.{name}");
        let unlimited = "9223372036854771712\n";
        let fake = fake("3:memory:/a/b\n")
            .file(&tcp("/a/b", "limit_in_bytes"), &["1048576\n"; 2])
            .file(&tcp("/a/b", "usage_in_bytes"), &["1000000\n"])
            .file(&tcp("/a/b", "failcnt"), &["7\n"])
            .file(&tcp("/a/b", "max_usage_in_bytes"), &["2000000\n"])
            .file(&tcp("/a", "limit_in_bytes"), &[unlimited])
            .file(&tcp("", "limit_in_bytes"), &[unlimited]);
        let (tables, gaps) = fake.watch("socket_memory", 1);
        let want = [(
            "/cg/memory/a/b/memory.kmem.tcp.limit_in_bytes",
            vec![1_000_000, 7, 1_048_576, 2_000_000],
        )];
        assert_eq!((result_of(&tables[1..]), gaps), (want.to_vec(), vec![]));
    }

    #[test]
    fn version_2_limits_all_memory_of_a_group_in_two_ways() {
        let file = |name: &str| format!("/cg/two/pod/{name}");
        let fake = fake("0::/pod\n")
            .file(&file("memory.max"), &["max\n"])
            .file(&file("memory.high"), &["4096\n"; 2])
            .file(&file("memory.current"), &["4000\n"])
            .file(&file("memory.events"), &["low 0\nhigh 12\nmax 3\n"]);
        let (tables, gaps) = fake.watch("socket_memory", 1);
        let want = [("/cg/two/pod/memory.high", vec![4_000, 12, 4_096])];
        assert_eq!((result_of(&tables[1..]), gaps), (want.to_vec(), vec![]));
    }

    #[test]
    fn the_pressure_is_seen_where_the_limit_is_not() {
        let (tables, gaps) = fake("0::/\n").watch("socket_memory", 1);
        let columns = tables[0].columns.iter();
        let reported: Vec<_> = columns.map(|c| (&*c.name, c.values[0])).collect();
        assert_eq!(reported[1..], [("refused", 2), ("pressed", 1)]);
        assert_eq!(gaps, []);
    }

    #[test]
    fn the_system_has_a_limit_in_the_first_network_namespace() {
        let fake = fake("0::/\n").file("/proc/sys/net/ipv4/tcp_mem", &["10\t20\t30\n"]);
        let (tables, gaps) = fake.watch("socket_memory", 1);
        let [(subject, values)] = &result_of(&tables)[..] else { panic!("one limit: {tables:?}") };
        assert_eq!(
            (*subject, &values[1..3], values[0] * 20),
            ("net.ipv4.tcp_mem", &[2, 1][..], values[3] * 19)
        );
        assert_eq!(gaps, []);
    }
}
