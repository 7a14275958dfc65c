//! Kernel settings that affect a path.

use linerate_facts::Tunable;
use linerate_facts::parse::sysctl;

use super::Reader;
use crate::gap;

/// Names of kernel settings. The path below /proc/sys has slashes instead of dots.
const SYSCTLS: &[&str] = &[
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.optmem_max",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.dev_weight",
    "net.core.default_qdisc",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.rps_sock_flow_entries",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_limit_output_bytes",
    "kernel.numa_balancing",
    "kernel.nmi_watchdog",
    "kernel.perf_event_paranoid",
    "kernel.io_uring_disabled",
    "vm.zone_reclaim_mode",
    "vm.dirty_ratio",
    "vm.dirty_background_ratio",
];

/// Names and paths of kernel settings outside /proc/sys.
const OTHERS: &[(&str, &str)] =
    &[("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled")];

impl Reader<'_> {
    pub(super) fn tunables(&mut self) -> Vec<Tunable> {
        let below = |name: &&'static str| (*name, format!("/proc/sys/{}", name.replace('.', "/")));
        let others = OTHERS.iter().map(|(name, path)| (*name, (*path).to_owned()));
        let mut found = Vec::new();
        let mut lacking = Vec::new();
        for (name, path) in SYSCTLS.iter().map(below).chain(others) {
            let value = self.look(name, &path, |text| Ok(sysctl::words(text).join(" ")));
            match value.filter(|v| !v.is_empty()) {
                Some(value) => found.push(Tunable { name: name.to_owned(), value }),
                None => lacking.push(name),
            }
        }
        if !lacking.is_empty() {
            let what = match found.as_slice() {
                [] => "any".to_owned(),
                _ => lacking.join(", "),
            };
            let why = format!("this kernel, or this namespace, does not show {what}");
            // Many network settings exist only in the first network namespace.
            let of_network =
                !found.is_empty() && lacking.iter().any(|name| name.starts_with("net."));
            let hint = if of_network { "sudo nsenter -t 1 -n linerate host" } else { "" };
            self.lack(gap("facts.tunables", &why, hint));
        }
        found
    }
}
