//! The kernel's table of tracked connections.

use linerate_facts::Conntrack;
use linerate_facts::parse::{conntrack, sysctl};

use super::Reader;

const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
const MOST: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
const STAT: &str = "/proc/net/stat/nf_conntrack";

impl Reader<'_> {
    /// Reads how full the table is; `None` if the kernel tracks no connections and so has no such files.
    pub(super) fn conntrack(&mut self) -> Option<Conntrack> {
        let entries = self.look("conntrack", COUNT, sysctl::number)?;
        let most = self.look("conntrack", MOST, sysctl::number)?;
        // Newer kernels may show these counters only through netlink.
        let stat = self.look("conntrack.counters", STAT, |text| Ok(text.to_vec()));
        let sum = |name: &str| conntrack::sum(stat.as_deref()?, name);
        Some(Conntrack { entries, most, evicted: sum("early_drop"), dropped: sum("drop") })
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::Conntrack;

    use super::{COUNT, MOST, STAT};
    use crate::testing::Fake;
    use crate::{Replay, inventory};

    fn read(fake: Fake) -> Option<Conntrack> {
        inventory(&Replay::new(fake.0), &|_| {}).conntrack
    }

    #[test]
    fn a_table_is_known_by_its_files_with_or_without_counters() {
        let table = || Fake::default().file(COUNT, &["9\n"]).file(MOST, &["10\n"]);
        let counted = "entries drop early_drop\n9 00000001 0000000a\n9 00000000 00000001\n";
        let want = |evicted, dropped| Some(Conntrack { entries: 9, most: 10, evicted, dropped });
        assert_eq!(read(table().file(STAT, &[counted])), want(Some(11), Some(1)));
        assert_eq!(read(table()), want(None, None));
        assert_eq!(read(Fake::default()), None);
    }
}
