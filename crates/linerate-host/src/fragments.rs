//! Source `fragments`: packets that this network namespace fragmented, and fragments that it received.

use std::io;

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::nic::Fragments as Counts;
use linerate_facts::parse::{Malformed, snmp};

use super::source::{Row, Source};
use super::{Machine, invalid, unreadable};

pub(super) const SNMP: &str = "/proc/net/snmp";
pub(super) const SNMP6: &str = "/proc/net/snmp6";
const METRICS: &[Metric] = &[metric::FRAGMENTS_CREATED, metric::FRAGMENTS_RECEIVED];
/// Subject of the table's rows.
const SUBJECT: &str = "ip";

/// Reads the kernel's counters of fragments.
pub(super) struct Fragments;

/// Reads the numbers of fragments since boot, of IPv4 and IPv6 added up. A kernel without IPv6 has no IPv6 counters.
pub(super) fn read_all(machine: &dyn Machine) -> io::Result<Counts> {
    let four = machine.file(SNMP)?;
    let six = machine.file(SNMP6).unwrap_or_default();
    let of = |name: &'static str| {
        let counted = snmp::count(&four, "Ip", name).ok_or(invalid(Malformed::Missing(name)))?;
        let counted_six = snmp::count6(&six, &format!("Ip6{name}")).unwrap_or(0);
        io::Result::Ok(counted.saturating_add(counted_six))
    };
    Ok(Counts {
        created: of("FragCreates")?,
        received: of("ReasmReqds")?,
        refused: of("FragFails")?,
    })
}

impl Source for Fragments {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        let hint = "mount -t proc proc /proc";
        let counts =
            read_all(row.machine).map_err(|error| unreadable("fragments", SNMP, &error, hint))?;
        let values = [counts.created, counts.received].map(Some);
        row.push(METRICS, (), || SUBJECT.to_owned(), &values);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, of};

    fn snmp(received: u64, created: u64) -> String {
        format!("Ip: ReasmReqds FragFails FragCreates\nIp: {received} 0 {created}\n")
    }

    #[test]
    fn fragments_of_both_versions_are_one() {
        // The first text is read for the counters of all sockets.
        let texts = [snmp(1, 10), snmp(1, 10), snmp(2, 30)];
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let six = "Ip6ReasmReqds 5\nIp6FragFails 0\nIp6FragCreates 7\n";
        let fake =
            Fake::default().file("/proc/net/snmp", &texts).file("/proc/net/snmp6", &[six, six]);
        let mut sources = fake.sources();
        sources.watch_fragments();
        (0..2).for_each(|at| sources.observe(at));
        let (tables, gaps) = of("fragments", sources.take());
        assert_eq!(gaps, []);
        let values: Vec<_> = tables[0].columns.iter().map(|c| c.values.clone()).collect();
        assert_eq!(values, [[17, 37], [6, 7]]);
    }

    #[test]
    fn without_ipv6_those_of_ipv4_are_all() {
        let text = snmp(1, 10);
        let mut sources = Fake::default().file("/proc/net/snmp", &[text.as_str(); 2]).sources();
        sources.watch_fragments();
        sources.observe(0);
        let (tables, gaps) = of("fragments", sources.take());
        assert_eq!((tables[0].columns[0].values.as_slice(), gaps), (&[10][..], vec![]));
    }
}
