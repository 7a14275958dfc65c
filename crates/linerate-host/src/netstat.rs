//! Source `netstat`: packets that the kernel discarded in this network namespace, for all sockets together.

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::snmp;

use super::fragments::{SNMP, SNMP6};
use super::source::{Row, Source};
use super::unreadable;

pub(super) const NETSTAT: &str = "/proc/net/netstat";
const METRICS: &[Metric] = &[
    metric::NETSTAT_UDP_DAMAGED,
    metric::NETSTAT_TCP_DAMAGED,
    metric::NETSTAT_SACKS_DISCARDED,
    metric::NETSTAT_PRUNED,
    metric::NETSTAT_QUEUE_DROPS,
];
/// Number of rows of the sampler per reading: for each reading, the kernel adds up hundreds of counters over all CPUs.
/// The idle step has at least three rows, so it has two readings, which show what other programs cause.
const EVERY: usize = 2;

/// Reads those counters of `nstat` that causes need.
pub(super) struct Netstat;

impl Source for Netstat {
    fn every(&self) -> usize {
        EVERY
    }

    fn hint(&self) -> &'static str {
        "nstat -az"
    }

    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        let file = |path| {
            let read = row.machine.file(path);
            read.map_err(|error| unreadable("netstat", path, &error, "mount -t proc proc /proc"))
        };
        let (snmp, netstat) = (file(SNMP)?, file(NETSTAT)?);
        // On a kernel without IPv6 this file does not exist.
        let six = row.machine.file(SNMP6).unwrap_or_default();
        let damaged = |group| snmp::count(&snmp, group, "InCsumErrors");
        let six = snmp::count6(&six, "Udp6InCsumErrors").unwrap_or(0);
        let extended = |name| snmp::count(&netstat, "TcpExt", name);
        let values = [
            damaged("Udp").map(|four| four.saturating_add(six)),
            damaged("Tcp"),
            extended("TCPSACKDiscard"),
            extended("PruneCalled"),
            extended("TCPRcvQDrop"),
        ];
        row.push(METRICS, (), || "all".to_owned(), &values);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::EVERY;
    use crate::testing::{Fake, of};

    #[test]
    fn every_second_row_reads_both_versions_and_what_is_not_counted_is_a_gap() {
        let snmp = |tcp, udp| {
            format!("Tcp: InErrs InCsumErrors\nTcp: 9 {tcp}\nUdp: InCsumErrors\nUdp: {udp}\n")
        };
        let snmp = [snmp(3, 10), snmp(4, 30)];
        let snmp: Vec<&str> = snmp.iter().map(String::as_str).collect();
        let netstat = "TcpExt: PruneCalled TCPSACKDiscard\nTcpExt: 5 6\n";
        let six = "Udp6InCsumErrors 7\n";
        let fake = Fake::default()
            .file("/proc/net/snmp", &snmp)
            .file("/proc/net/netstat", &[netstat, netstat])
            .file("/proc/net/snmp6", &[six, six]);
        let mut sources = fake.sources();
        (0..=EVERY as u64).for_each(|at| sources.observe(at));
        let (tables, gaps) = of("netstat", sources.take());
        let column = |c: &linerate_record::Column| (c.name.to_string(), c.values.clone());
        let reported: Vec<_> = tables[0].columns.iter().map(column).collect();
        let want = [
            ("udp_in_csum_errors", [17, 37]),
            ("tcp_in_csum_errors", [3, 4]),
            ("sack_discard", [6, 6]),
            ("prune_called", [5, 5]),
        ];
        let want = want.map(|(name, values)| (name.to_owned(), values.to_vec()));
        assert_eq!((reported, &tables[0].at), (want.to_vec(), &vec![0, EVERY as u64]));
        let lacking = gaps.iter().map(|gap| (gap.what.as_str(), gap.hint.as_str()));
        assert_eq!(lacking.collect::<Vec<_>>(), [("netstat.rcvq_drop", "nstat -az")]);
    }
}
