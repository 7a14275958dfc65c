//! Tests of all sources together, on invented machines and on this one.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::sync::{Arc, mpsc};

use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::{ethtool, link, pci_config, qdisc, route};
use linerate_record::Table;
use proptest::prelude::*;
use rustix::io::Errno;

use super::testing::{Fake, LOOPBACK, of};
use super::{
    Capture, Captured, Ethtool, Kept, LIMIT, Live, Machine, Query, Replay, Sources, facts,
};

/// Returns the loopback addresses of this machine: some kernels are built without IPv6.
fn loopbacks() -> Vec<IpAddr> {
    let six = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let has_six = UdpSocket::bind((six, 0)).is_ok();
    std::iter::once(LOOPBACK).chain(has_six.then_some(six)).collect()
}

fn values(table: &Table, metric: Metric) -> &[i64] {
    table.column(metric).unwrap()
}

#[test]
fn a_replay_of_a_capture_gives_the_same_facts_and_readings() {
    for toward in loopbacks() {
        let machine = Arc::new(Capture::new(Live::new()));
        let own = i32::try_from(std::process::id()).unwrap();
        let watch = |machine: Arc<dyn Machine>| {
            let facts = facts(&*machine, toward);
            let mut sources = Sources::new(machine, toward);
            sources.watch_thread("s0/tx0", own);
            (0..3).for_each(|at| sources.observe(at));
            (facts, sources.take())
        };
        let live = watch(machine.clone());
        let mut stored = Vec::new();
        ciborium::into_writer(&machine.captured(), &mut stored).unwrap();
        let captured: Captured = ciborium::from_reader(&stored[..]).unwrap();
        assert_eq!(captured, machine.captured());
        let replayed = watch(Arc::new(Replay::new(captured)));
        assert_eq!(replayed, live);
    }
}

#[test]
fn a_replay_gives_answers_in_turn_and_makes_none_up() {
    let fake = Fake::default().failing("/a", &["1", "2"], Errno::ACCESS);
    let replay = Replay::new(fake.0);
    assert_eq!(replay.file("/a").unwrap(), b"1");
    assert_eq!(replay.file("/a").unwrap(), b"2");
    assert_eq!(replay.file("/a").unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(replay.file("/a").unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(replay.file("/b").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(replay.list("/a").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(replay.query(&Query::Qdiscs).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn errors_keep_their_kind_in_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Capture::new(Live::under(folder.path()).unwrap());
    let missing = machine.file("/none").unwrap_err();
    let refused = machine.query(&Query::Qdiscs).unwrap_err();
    let replay = Replay::new(machine.captured());
    assert_eq!(replay.file("/none").unwrap_err().kind(), missing.kind());
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert_eq!(replay.query(&Query::Qdiscs).unwrap_err().kind(), refused.kind());
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

#[test]
fn a_machine_with_nothing_has_gaps_for_everything() {
    let nothing = Replay::new(Captured::default());
    let facts = facts(&nothing, LOOPBACK);
    assert_eq!((facts.nodes, facts.port, facts.ticks_per_sec), (1, None, 0));
    assert_eq!(facts.gaps.len(), 18, "{:#?}", facts.gaps);

    let mut sources = Fake::default().sources();
    sources.watch_thread("s0/tx0", 1);
    // Each source that cannot be read has one gap per step, however many rows the step has.
    for _step in 0..2 {
        (0..3).for_each(|at| sources.observe(at));
        let (tables, gaps) = sources.take();
        assert_eq!(tables, []);
        let whats: Vec<_> = gaps.iter().map(|g| g.what.as_str()).collect();
        let of_kernel = ["netstat", "socket_memory", "conntrack"];
        let want = [&["thread", "cpu", "softnet", "port", "qdisc"][..], &of_kernel];
        assert_eq!(whats, [&want.concat()[..], &["cgroup", "psi"]].concat());
    }
}

#[test]
fn what_cannot_be_read_for_lack_of_permission_says_how() {
    let (_, gaps) = Fake::default().failing("/proc/stat", &[], Errno::ACCESS).watch("cpu", 1);
    assert_eq!(gaps[0].hint, "sudo linerate ...");
    let (_, gaps) =
        Fake::default().failing("/proc/pressure/cpu", &[], Errno::OPNOTSUPP).watch("psi", 1);
    assert_eq!(gaps[0].hint, "psi=1");
    let (_, gaps) = Fake::default().failing("/proc/pressure/cpu", &[], Errno::IO).watch("psi", 1);
    assert_eq!(gaps[0].hint, "");
}

#[test]
fn every_live_source_reads_and_its_columns_are_equally_long() {
    let mut sources = Sources::new(Arc::new(Live::new()), LOOPBACK);
    sources.watch_thread("s0/rx0", i32::try_from(std::process::id()).unwrap());
    for at in [5, 105, 207] {
        sources.observe(at);
    }
    let (tables, gaps) = sources.take();
    // These sources are read in some rows only.
    let seldom = ["netstat", "socket_memory", "conntrack"];
    for table in &tables {
        if !seldom.contains(&&*table.source) {
            assert_eq!(table.at, [5, 105, 207], "{}", table.source);
        }
        let rows = table.at.len();
        assert!(table.columns.iter().all(|c| c.values.len() == rows), "{}", table.source);
    }
    for source in ["thread", "cpu", "softnet", "port", "qdisc", "cgroup", "psi"] {
        let read = tables.iter().any(|t| t.source == source);
        let missed = gaps.iter().any(|g| g.what == source);
        // A cgroup without any quota has neither a table nor a gap.
        assert!(read != missed || source == "cgroup", "{source}: {gaps:#?}");
    }
    let port = tables.iter().find(|t| t.source == "port").unwrap();
    assert_eq!((port.subject.as_str(), values(port, metric::PORT_UP)), ("lo", &[1, 1, 1][..]));
    let (tables, _) = sources.take();
    assert_eq!(tables, [], "taken once");
}

#[test]
fn bytes_through_the_port_are_counted() {
    const PAYLOAD: usize = 10_000;
    let mut sources = Sources::new(Arc::new(Live::new()), LOOPBACK);
    sources.observe(0);
    let socket = UdpSocket::bind((LOOPBACK, 0)).unwrap();
    socket.send_to(&[7; PAYLOAD], socket.local_addr().unwrap()).unwrap();
    sources.observe(1);
    let (tables, _) = of("port", sources.take());
    let bytes = values(&tables[0], metric::PORT_TX_BYTES);
    assert!(bytes[1] - bytes[0] >= PAYLOAD as i64, "{bytes:?}");
}

#[test]
fn a_file_that_is_kept_open_tells_all_that_is_in_it_now() {
    let root = tempfile::tempdir().unwrap();
    let machine = Live::under(root.path()).unwrap();
    let mut kept = Kept::default();
    let missing = machine.reread("/now", &mut kept).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    for length in [3, 1, 0, 1023, 1024, 5000, 2] {
        let text = vec![b'7'; length];
        std::fs::write(root.path().join("now"), &text).unwrap();
        assert_eq!(machine.reread("/now", &mut kept).unwrap(), text);
    }
}

#[test]
fn a_thread_that_ends_ends_its_table_without_a_gap() {
    let (send_tid, tid) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        send_tid.send(rustix::thread::gettid().as_raw_pid()).unwrap();
        let _ = ended.recv();
    });
    let mut sources = Sources::new(Arc::new(Live::new()), LOOPBACK);
    let tid = tid.recv().unwrap();
    sources.watch_thread("s0/tx0", tid);
    sources.observe(0);
    sources.observe(1);
    drop(end);
    thread.join().unwrap();
    // After a thread is joined, it exists until the kernel has released it.
    let there = || std::path::Path::new(&format!("/proc/self/task/{tid}")).exists();
    while there() {
        std::thread::yield_now();
    }
    sources.observe(2);
    sources.forget_threads();
    sources.observe(3);
    let (tables, gaps) = of("thread", sources.take());
    assert_eq!((tables.len(), &tables[0].at[..]), (1, &[0, 1][..]));
    assert_eq!(tables[0].columns.len(), 5);
    assert!(values(&tables[0], metric::THREAD_RUN)[0] > 0);
    assert_eq!(gaps, []);
}

#[test]
fn a_thread_that_was_never_there_is_a_gap() {
    let mut sources = Sources::new(Arc::new(Live::new()), LOOPBACK);
    sources.watch_thread("s0/tx0", i32::MAX);
    sources.observe(0);
    let (tables, gaps) = of("thread", sources.take());
    assert_eq!((tables.len(), gaps.len()), (0, 1));
    assert!(gaps[0].why.contains("s0/tx0"), "{}", gaps[0].why);
}

const STAT: &str = "9 (tx) R 1 9 9 0 -1 64 0 0 0 0 11 22 0 0 20 0 9 0 8651 1091 1221 0 1 1 0 0 0 \
    0 0 4096 17642 0 0 0 17 5 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

#[test]
fn a_kernel_without_scheduler_statistics_still_tells_the_ticks() {
    let blank = "0 0 0\n";
    let task = |name: &str| format!("/proc/self/task/9/{name}");
    let zero =
        Fake::default().file(&task("stat"), &[STAT, STAT]).file(&task("schedstat"), &[blank]);
    let missing = Fake::default().file(&task("stat"), &[STAT, STAT, STAT]).failing(
        &task("schedstat"),
        &[],
        Errno::NOENT,
    );
    for fake in [zero, missing] {
        let mut sources = fake.sources();
        sources.watch_thread("s0/tx0", 9);
        sources.observe(0);
        sources.observe(1);
        let (tables, gaps) = of("thread", sources.take());
        assert_eq!(values(&tables[0], metric::THREAD_SYSTEM), [22, 22]);
        assert_eq!(tables[0].column(metric::THREAD_RUN), None);
        let whats: Vec<_> = gaps.iter().map(|g| g.what.as_str()).collect();
        assert_eq!(whats, ["thread.run_ns", "thread.wait_ns"]);
        assert!(gaps.iter().all(|g| !g.hint.is_empty()));
    }
}

#[test]
fn a_read_that_fails_in_mid_step_ends_the_table_with_a_gap() {
    let row = "cpu0 1 2 3 4 5 6 7 8\n";
    let fake = Fake::default().failing("/proc/stat", &[row, row], Errno::IO);
    let (tables, gaps) = fake.watch("cpu", 5);
    assert_eq!((&tables[0].at[..], gaps.len()), (&[0, 1][..], 1));

    let cut = Fake::default().file("/proc/stat", &[row, "cpu0 1 2 3 4 5 6 7"]);
    let (tables, gaps) = cut.watch("cpu", 2);
    assert_eq!((&tables[0].at[..], gaps.len()), (&[0][..], 1));
}

#[test]
fn a_cpu_that_goes_ends_its_own_table_only() {
    let both = "cpu0 1 2 3 4 5 6 7 8\ncpu1 1 2 3 4 5 6 7 8\n";
    let first = "cpu0 9 2 3 4 5 6 7 8\n";
    let fake = Fake::default().file("/proc/stat", &[both, first, both]);
    let (tables, gaps) = fake.watch("cpu", 3);
    assert_eq!(values(&tables[0], metric::CPU_USER), [1, 9, 1]);
    assert_eq!((tables[1].subject.as_str(), &tables[1].at[..]), ("1", &[0][..]));
    assert_eq!(gaps.len(), 1);
    assert!(gaps[0].why.starts_with("1 is gone"), "{}", gaps[0].why);
}

#[test]
fn softnet_rows_without_a_number_are_the_cpus_that_are_online() {
    let rows = "0a 0 0 0 0 0 0 0 0 0\n0b 1 2 0 0 0 0 0 0 0\n";
    let online = "/sys/devices/system/cpu/online";
    let fake =
        |list: &str| Fake::default().file("/proc/net/softnet_stat", &[rows]).file(online, &[list]);
    let (tables, _) = fake("0,3\n").watch("softnet", 1);
    assert_eq!(
        (tables[1].subject.as_str(), values(&tables[1], metric::SOFTNET_PROCESSED)),
        ("3", &[11][..])
    );
    let (tables, gaps) = fake("0-3\n").watch("softnet", 1);
    assert_eq!((tables.len(), gaps.len()), (0, 1));
}

const V2_MOUNT: &str = "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n";
const V2_STAT: &str = "usage_usec 9\nnr_periods 5\nnr_throttled 2\nthrottled_usec 30\n";

fn v2(group: &str) -> Fake {
    Fake::default()
        .file("/proc/self/cgroup", &[&format!("0::{group}\n")])
        .file("/proc/self/mountinfo", &[V2_MOUNT])
}

#[test]
fn a_quota_above_our_own_cgroup_is_watched_too() {
    let fake = v2("/a/b/c")
        .file("/cg/a/b/c/cpu.stat", &[V2_STAT, V2_STAT])
        .file("/cg/a/b/cpu.stat", &[V2_STAT])
        .file("/cg/a/b/cpu.max", &["max 100000\n"])
        .file("/cg/a/cpu.stat", &[V2_STAT, V2_STAT])
        .file("/cg/a/cpu.max", &["50000 100000\n"])
        .failing("/cg/cpu.stat", &[], Errno::NOENT);
    let (tables, gaps) = fake.watch("cgroup", 1);
    let subjects: Vec<_> = tables.iter().map(|t| t.subject.as_str()).collect();
    assert_eq!(subjects, ["/a/b/c", "/a"]);
    assert_eq!(values(&tables[0], metric::CGROUP_THROTTLED_TIME), [30_000]);
    assert_eq!(gaps, []);
}

#[test]
fn a_cgroup_that_is_hidden_is_seen_by_an_ancestor_that_looks_at_the_same_hierarchy() {
    let without = "30 23 0:26 / /sys rw - sysfs sysfs rw\n";
    let hidden = |above: &str| {
        Fake::default()
            .file("/proc/self/cgroup", &["0::/a\n"])
            .file("/proc/self/mountinfo", &[without])
            .file("/proc/self/status", &["Name:\tlinerate\nPPid:\t20\n"])
            .file("/proc/20/mountinfo", &[without])
            .file("/proc/20/status", &["Name:\tip\nPPid:\t3\n"])
            .file("/proc/3/mountinfo", &[V2_MOUNT])
            .leads("/proc/self/ns/cgroup", "cgroup:[1]")
            .leads("/proc/20/ns/cgroup", "cgroup:[1]")
            .leads("/proc/3/ns/cgroup", above)
            .file("/proc/3/root/cg/a/cpu.stat", &[V2_STAT, V2_STAT])
            .failing("/proc/3/root/cg/cpu.stat", &[], Errno::NOENT)
    };
    let (tables, gaps) = hidden("cgroup:[1]").watch("cgroup", 1);
    assert_eq!((tables[0].subject.as_str(), gaps), ("/a", vec![]));
    let (tables, gaps) = hidden("cgroup:[2]").watch("cgroup", 1);
    assert_eq!((tables.len(), gaps.len()), (0, 1));
    assert!(gaps[0].hint.contains("ip netns exec"), "{gaps:?}");
}

#[test]
fn a_cgroup_without_counters_is_a_gap_unless_nothing_can_stop_it() {
    let usage = "usage_usec 9\n";
    let group = |fake: Fake| {
        fake.file("/cg/a/cpu.stat", &[usage])
            .file("/cg/cpu.stat", &[usage])
            .file("/cg/cgroup.controllers", &["cpu\n"])
    };
    let root = group(v2("/a")).failing("/cg/cgroup.type", &[], Errno::NOENT);
    assert_eq!(root.watch("cgroup", 2), (vec![], vec![]));

    let hidden = group(v2("/a")).file("/cg/cgroup.type", &["domain\n"]);
    let (tables, gaps) = hidden.watch("cgroup", 2);
    assert_eq!((tables.len(), gaps.len()), (0, 1));
}

#[test]
fn version_1_counts_nanoseconds() {
    let stat = "nr_periods 5\nnr_throttled 2\nthrottled_time 31\n";
    let fake = Fake::default()
        .file("/proc/self/cgroup", &["1:cpu,cpuacct:/x\n0::/y\n"])
        .file("/proc/self/mountinfo", &["9 8 0:30 /x /cg rw - cgroup cgroup rw,cpu,cpuacct\n"])
        .file("/cg/cpu.stat", &[stat, stat]);
    let (tables, gaps) = fake.watch("cgroup", 1);
    assert_eq!(values(&tables[0], metric::CGROUP_THROTTLED_TIME), [31]);
    assert_eq!(gaps, []);
}

#[test]
fn a_file_is_read_up_to_the_limit_and_no_further() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("most"), vec![b'x'; LIMIT]).unwrap();
    std::fs::write(folder.path().join("more"), vec![b'x'; LIMIT + 1]).unwrap();
    let machine = Live::under(folder.path()).unwrap();
    assert_eq!(machine.file("/most").unwrap().len(), LIMIT);
    assert_eq!(machine.file("/more").unwrap_err().kind(), ErrorKind::FileTooLarge);
}

#[test]
fn a_tree_neither_blocks_nor_leads_out_of_itself() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join(name);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        inside("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    std::fs::write(inside("own"), "own").unwrap();
    std::os::unix::fs::symlink("/own", inside("absolute")).unwrap();
    std::os::unix::fs::symlink("../../../../proc/self/stat", inside("out")).unwrap();
    let machine = Live::under(folder.path()).unwrap();
    assert_eq!(machine.file("/pipe").unwrap(), b"");
    assert_eq!(machine.file("/absolute").unwrap(), b"own");
    assert_eq!(machine.file("/out").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(machine.list("/").unwrap(), ["absolute", "out", "own", "pipe"]);
}

#[test]
fn the_facts_of_the_port_toward_loopback_are_its_own() {
    for toward in loopbacks() {
        let facts = facts(&Live::new(), toward);
        let port = facts.port.unwrap();
        assert_eq!((port.name.as_str(), port.driver.as_str()), ("lo", "loopback"));
        assert!(port.is_virtual && port.speed_mbps.is_none() && port.mtu.is_some());
        assert!(facts.ticks_per_sec > 0 && !facts.cpus.is_empty());
    }
}

proptest! {
    #[test]
    fn mutated_replies_of_this_kernel_never_panic(
        changes: Vec<(prop::sample::Index, u8)>,
        cut: prop::sample::Index,
    ) {
        let machine = Live::new();
        let features = Query::Ethtool(Ethtool::Features, 1);
        let queries = [Query::Route(LOOPBACK.into()), Query::Link(1), Query::Qdiscs, features];
        for query in queries {
            let mut reply = machine.query(&query).unwrap();
            for (at, byte) in &changes {
                let at = at.index(reply.len());
                reply[at] = *byte;
            }
            let end = cut.index(reply.len() + 1);
            for part in [&reply[..], &reply[..end]] {
                let _ = (link::parse(part).count(), qdisc::parse(part).count(), route::parse(part));
                let _ = (ethtool::features(part), ethtool::link_modes(part));
            }
        }
    }
}

#[test]
fn the_head_of_a_file_is_no_more_than_was_asked_for_and_replays() {
    let root = tempfile::TempDir::new().unwrap();
    std::fs::write(root.path().join("config"), b"0123456789").unwrap();
    let capture = Capture::new(Live::under(root.path()).unwrap());
    let heads = |machine: &dyn Machine| [4, 99].map(|most| machine.head("/config", most).unwrap());
    let want = [b"0123".to_vec(), b"0123456789".to_vec()];
    assert_eq!(heads(&capture), want);
    assert_eq!(heads(&Replay::new(capture.captured())), want);
}

#[test]
fn the_registers_of_each_pci_function_here_say_the_same_as_its_whole_space() {
    const DEVICES: &str = "/sys/bus/pci/devices";
    let live = Live::new();
    for name in live.list(DEVICES).unwrap_or_default() {
        let path = format!("{DEVICES}/{name}/config");
        let whole = live.head(&path, pci_config::LENGTH).unwrap();
        let registers = live.config(&path).unwrap();
        assert_eq!(pci_config::parse(&registers), pci_config::parse(&whole), "{name}");
        let capture = Capture::new(Live::new());
        assert_eq!(capture.config(&path).unwrap(), whole, "a capture has all of {name}");
    }
}

#[test]
fn a_tree_of_files_may_have_a_configuration_space_that_is_cut() {
    let root = tempfile::TempDir::new().unwrap();
    std::fs::write(root.path().join("config"), [0x86; 63]).unwrap();
    let tree = Live::under(root.path()).unwrap();
    assert_eq!(tree.config("/config").unwrap(), [0x86; 63]);
}
