#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_facts::parse::{
    cgroup, cpu_stat, cpuinfo, disk_stat, infiniband, interrupts, io_max, meminfo, modules, mounts, pci_config,
    pressure, proc_stat, schedstat, smbios, snmp, softnet, sysctl, sysfs, task_stat,
};

fuzz_target!(|text: &[u8]| {
    let _ = proc_stat::cpus(text).count();
    let _ = softnet::parse(text).count();
    let _ = (
        snmp::count(text, "Ip", "FragCreates"),
        snmp::count6(text, "Ip6FragCreates"),
        snmp::is_pressed(text, "TCP"),
    );
    let _ = (schedstat::parse(text), task_stat::parse(text), cpu_stat::parse(text));
    let _ = (pressure::some_us(text), cpuinfo::model(text));
    let _ = (sysctl::line(text), sysctl::words(text), sysctl::number(text));
    let _ = (sysctl::numbers::<3>(text), sysctl::list(text), sysctl::size(text));
    let _ = (sysctl::value_list(text, "a"), sysctl::value_hexadecimal(text, "a"));
    let _ = (cpuinfo::clocks(text), cpuinfo::is_guest(text));
    let _ = (cgroup::quota(text), cgroup::limit(text), sysctl::id(text));
    let _ = (meminfo::bytes(text, "a"), meminfo::count(text, "a"));
    let _ = (pci_config::parse(text), pci_config::speed(text), pci_config::width(text));
    let _ = (task_stat::identity(text), smbios::modules(text));
    smbios::mask(&mut text.to_vec());
    let _ = (
        sysfs::mask(text),
        sysfs::chosen(text),
        sysfs::number_or_none(text),
        sysfs::hexadecimal_or_decimal(text),
    );
    let _ = (interrupts::parse(text), mounts::parse(text));
    let _ = (io_max::parse(text), disk_stat::parse(text));
    let _ = interrupts::by_cpu(text, Some);
    let _ = (infiniband::state(text), infiniband::rate(text), infiniband::guid(text));
    let (first, second) = text.split_at(text.len() / 2);
    let _ = cgroup::place("cpu", first, second);
    let _ = modules::load_order(first, second, &["a", "9p"]);
    let _ = cgroup::place("cpu", b"0::/a\n", text);
});
