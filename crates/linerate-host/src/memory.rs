//! Source `memory`: bytes moved between CPUs and memory, according to the CPUs' monitoring counters.

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};

use super::number;
use super::source::{Row, Source};

/// Usual mount point of resctrl's monitoring data, which has one folder for each third-level cache.
//= Linux Documentation/filesystems/resctrl.rst
const FOLDER: &str = "/sys/fs/resctrl/mon_data";
const CACHE: &str = "mon_L3_";
const METRICS: &[Metric] = &[metric::MEMORY_BYTES];
/// Number of rows of the sampler per reading: each reading interrupts a CPU of every third-level cache.
const EVERY: usize = 5;

/// Reads `mbm_total_bytes` of each third-level cache, if resctrl is mounted.
pub(super) struct Memory;

impl Source for Memory {
    fn every(&self) -> usize {
        EVERY
    }

    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        // If resctrl is not mounted, the run has no gap; a cause that needs these counters reports it.
        let names = row.machine.list(FOLDER).unwrap_or_default();
        for name in names.iter().filter(|name| name.starts_with(CACHE)) {
            let path = format!("{FOLDER}/{name}/mbm_total_bytes");
            // Some processors count only the occupancy of the cache, and have no such file. If there is no value, the
            // file contains `Unavailable`.
            let Some(bytes) = number(row.machine, "memory", &path)? else {
                continue;
            };
            row.push(METRICS, name.clone(), || name.clone(), &[Some(bytes)]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::{EVERY, FOLDER};

    fn path(cache: &str) -> String {
        format!("{FOLDER}/{cache}/mbm_total_bytes")
    }

    #[test]
    fn every_fifth_row_reads_every_cache() {
        let caches = ["mon_L3_00", "mon_L3_01"];
        let fake = caches
            .iter()
            .fold(Fake::default(), |fake, cache| fake.file(&path(cache), &["1000\n", "5000\n"]));
        let mut fake = fake.list(FOLDER, &["mon_L3_00", "mon_L3_01", "other"]);
        let lists = fake.0.lists.get_mut(FOLDER).expect("the folder");
        lists.push(lists[0].clone());
        let (tables, gaps) = fake.watch("memory", EVERY as u64 + 1);
        assert_eq!(gaps, []);
        let subjects: Vec<_> = tables.iter().map(|t| t.subject.as_str()).collect();
        assert_eq!(subjects, caches);
        assert_eq!(tables[1].at, [0, EVERY as u64]);
        assert_eq!(tables[1].columns[0].values, [1000, 5000]);
    }

    #[test]
    fn what_is_not_mounted_is_no_gap_and_what_says_unavailable_is() {
        assert!(Fake::default().watch("memory", 6).1.is_empty());
        let fake = Fake::default()
            .list(FOLDER, &["mon_L3_00"])
            .file(&path("mon_L3_00"), &["Unavailable\n"]);
        let (tables, gaps) = fake.watch("memory", 1);
        assert_eq!((tables.len(), gaps.len()), (0, 1));
    }
}
