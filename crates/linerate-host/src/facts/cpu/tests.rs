use linerate_facts::cpu::Processors;
use linerate_units::Hertz;
use rustix::io::Errno;

use super::CPUS;
use crate::testing::{Fake, LOOPBACK, tree};
use crate::{Live, Replay, facts, inventory};

fn read(fake: Fake) -> Processors {
    inventory(&Replay::new(fake.0), &|_| {}).processors
}

#[test]
fn kernels_of_old_have_masks_in_place_of_lists_and_no_list_of_who_is_on() {
    const NODE: &str = "/sys/devices/system/node/node";
    let root = tree(&[
        (&format!("{NODE}0/cpumap"), "00000000,00000007\n"),
        (&format!("{NODE}1/cpumap"), "0\n"),
        (&format!("{NODE}2/distance"), "20 20 10\n"),
        (&format!("{CPUS}/cpu0/topology/thread_siblings"), "5\n"),
        (&format!("{CPUS}/cpu0/cache/index0/shared_cpu_map"), "05\n"),
        (&format!("{CPUS}/cpu0/cache/index0/level"), "1\n"),
        (&format!("{CPUS}/cpu0/cache/index0/type"), "Data\n"),
        (&format!("{CPUS}/cpu0/cache/index0/size"), "32K\n"),
        (&format!("{CPUS}/cpu1/online"), "1\n"),
        (&format!("{CPUS}/cpu2/topology/core_id"), "0\n"),
        (&format!("{CPUS}/cpu3/online"), "0\n"),
        (&format!("{CPUS}/cpufreq/boost"), "1\n"),
    ]);
    let got = inventory(&Live::under(root.path()).unwrap(), &|_| {});
    let processors = &got.processors;
    let ids: Vec<u32> = processors.cpus.iter().map(|c| c.id).collect();
    assert_eq!(ids, [0, 1, 2], "cpu3 is off");
    assert_eq!(processors.cpus[0].siblings, [0, 2]);
    assert_eq!(processors.caches[0].shared_by, 2);
    let nodes: Vec<_> = processors.nodes.iter().map(|n| n.cpus.clone()).collect();
    assert_eq!(nodes, [Some(vec![0, 1, 2]), Some(vec![]), None]);
    let lacks: Vec<_> = got.gaps.iter().filter(|g| g.what == "facts.node.cpus").collect();
    assert!(lacks.len() == 1 && lacks[0].why.contains("node2"), "{lacks:?}");
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
fn cpus_without_a_tick_are_read_and_null_is_none() {
    let read = |text: &str| {
        let fake = Fake::default()
            .file(&format!("{CPUS}/online"), &["0-7\n"])
            .file(&format!("{CPUS}/nohz_full"), &[text]);
        let got = inventory(&Replay::new(fake.0), &|_| {});
        let lacks = got.gaps.iter().any(|gap| gap.what == "facts.cpu.nohz_full");
        (got.processors.tickless, lacks)
    };
    assert_eq!(read("4-7\n"), (vec![4, 5, 6, 7], false));
    for none in ["\n", "(null)\n", "  (null)\n"] {
        assert_eq!(read(none), (vec![], false), "{none:?}");
    }
    assert_eq!(read("some\n"), (vec![], true));
}

#[test]
fn units_of_measurement_name_the_kinds_of_cores() {
    let kinds = |names: &[&str]| {
        let fake = names.iter().fold(Fake::default(), |fake, name| {
            fake.file(&format!("/sys/devices/{name}/cpus"), &["0-3\n"])
        });
        read(fake).kinds.into_iter().map(|k| k.name).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&["cpu_core", "cpu_atom"]), ["performance", "efficiency"]);
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
    let got: Vec<_> = caches.iter().map(|c| (c.level, c.shared_by, c.count)).collect();
    assert_eq!(got, [(2, 1, 1), (2, 2, 1)]);
}

#[test]
fn clocks_come_from_the_driver_and_the_clock_of_now_from_cpuinfo() {
    let folder = format!("{CPUS}/cpu0");
    let fake = Fake::default()
        .file("/proc/cpuinfo", &["processor : 0\nmodel name : A @ 2.00GHz\ncpu MHz : 1500.000\n"])
        .file(&format!("{CPUS}/online"), &["0\n"])
        .file(&format!("{folder}/cpufreq/scaling_driver"), &["acpi-cpufreq\n"])
        .file(&format!("{folder}/cpufreq/scaling_governor"), &["powersave\n"])
        .file(&format!("{folder}/cpufreq/scaling_cur_freq"), &["1000000\n"])
        .file(&format!("{folder}/cpufreq/cpuinfo_max_freq"), &["3000000\n"])
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
    let guest = Fake::default().file("/proc/self/status", &["Cpus_allowed_list:\t0\n"]).failing(
        &format!("{CPUS}/cpu0/cpufreq/scaling_driver"),
        &[],
        Errno::NOENT,
    );
    assert_eq!(with(guest), Some(vec![]));
    assert_eq!(facts(&Replay::new(Fake::default().0), LOOPBACK).clocks, None);
}
