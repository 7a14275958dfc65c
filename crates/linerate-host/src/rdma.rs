//! Source `rdma`: the counters and the state of an RDMA port.

use std::io;

use linerate_facts::Gap;
use linerate_facts::infiniband::LinkState;
use linerate_facts::infiniband::counted::Meaning;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::{infiniband, sysctl};

use super::source::{Row, Source};
use super::{Kept, Machine, gap, invalid, unreadable};

const COUNT: &[Metric] = &[metric::RDMA_COUNT];
const ACTIVE: &[Metric] = &[metric::RDMA_ACTIVE];
/// Most counters of a port that are recorded. Every driver has fewer counters with a known meaning.
const COUNTERS_MAX: usize = 64;

/// Reads those counters of one port whose meaning is known. The sampler's rows are further apart than the 10 ms for
/// which the kernel caches a device's counters.
//= torvalds/linux, Documentation/ABI/stable/sysfs-class-infiniband: lifespan
pub(super) struct RdmaPort {
    /// Name of the port, such as `mlx5_0/1`.
    name: String,
    folder: String,
    /// Folder of the device, which has the counters if its ports have none.
    device: String,
    state: Kept,
    /// The counters to read; `None` until the first row.
    files: Option<Vec<File>>,
}

/// A file with one counter.
struct File {
    name: String,
    path: String,
    kept: Kept,
    /// Whether a reading has failed; then the gap was reported.
    failed: bool,
}

impl File {
    fn value(&mut self, machine: &dyn Machine) -> io::Result<u64> {
        let text = machine.reread(&self.path, &mut self.kept)?;
        sysctl::number(text).map_err(invalid)
    }
}

impl RdmaPort {
    /// Makes a reader of the port `port` of the device `device`.
    pub(crate) fn new(device: &str, port: u32) -> Self {
        let folder = format!("/sys/class/infiniband/{device}");
        Self {
            name: format!("{device}/{port}"),
            folder: format!("{folder}/ports/{port}"),
            device: folder,
            state: Kept::default(),
            files: None,
        }
    }

    /// Returns the counters that have a known meaning and a value. The InfiniBand counters are the same for all
    /// devices; the hardware counters differ, and a software device has only these. If a device lacks a counter, its
    /// file contains words instead of a number.
    fn files(&self, machine: &dyn Machine) -> Vec<File> {
        let list = |folder: &str| machine.list(folder).unwrap_or_default();
        let own = ["counters", "hw_counters"].map(|kind| format!("{}/{kind}", self.folder));
        let [common, hardware] = own.map(|folder| (list(&folder), folder));
        let hardware = match hardware {
            (names, _) if names.is_empty() => {
                let folder = format!("{}/hw_counters", self.device);
                (list(&folder), folder)
            }
            own => own,
        };
        let mut files: Vec<File> = Vec::new();
        for (names, folder) in [common, hardware] {
            for name in names {
                let mut file = File {
                    path: format!("{folder}/{name}"),
                    name,
                    kept: Kept::default(),
                    failed: false,
                };
                let is_new = files.iter().all(|known| known.name != file.name);
                if is_new && Meaning::of(&file.name).is_some() && file.value(machine).is_ok() {
                    files.push(file);
                }
            }
        }
        files.truncate(COUNTERS_MAX);
        files
    }

    /// Returns whether the state of the port is active.
    fn is_active(&mut self, machine: &dyn Machine) -> Result<bool, Gap> {
        let path = format!("{}/state", self.folder);
        let text = machine.reread(&path, &mut self.state);
        let state = text.and_then(|text| infiniband::state(text).map_err(invalid));
        let state = state.map_err(|error| unreadable("rdma", &path, &error, "ibstat"))?;
        Ok(LinkState::of(state).is_some_and(LinkState::is_active))
    }
}

impl Source for RdmaPort {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        let active = [Some(u64::from(self.is_active(row.machine)?))];
        row.push(ACTIVE, (), || self.name.clone(), &active);
        if self.files.is_none() {
            let files = self.files(row.machine);
            if files.is_empty() {
                let why = format!("the driver of {} counts nothing of use", self.name);
                let hint = format!("rdma statistic show link {}", self.name);
                row.gaps.push(gap("rdma.count", &why, &hint));
            }
            self.files = Some(files);
        }
        for (number, file) in (0..).zip(self.files.iter_mut().flatten()) {
            match file.value(row.machine) {
                Ok(value) => {
                    let subject = || format!("{} {}", self.name, file.name);
                    row.push(COUNT, number, subject, &[Some(value)]);
                }
                // The other counters are still read.
                Err(error) if !file.failed => {
                    file.failed = true;
                    row.gaps.push(unreadable("rdma", &file.path, &error, "rdma statistic"));
                }
                Err(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fake, of};

    const PORT: &str = "/sys/class/infiniband/rxe0/ports/1";

    /// Observes three rows; returns the values by subject, and the gaps.
    fn result_of(fake: Fake) -> (Vec<(String, Vec<i64>)>, Vec<String>) {
        let mut sources = fake.sources();
        sources.watch_rdma([("rxe0".to_owned(), 1)]);
        (0..3).for_each(|at| sources.observe(at));
        let (tables, gaps) = of("rdma", sources.take());
        let tables =
            tables.into_iter().map(|table| (table.subject, table.columns[0].values.clone()));
        (tables.collect(), gaps.into_iter().map(|g| g.why).collect())
    }

    fn active() -> Fake {
        Fake::default().file(&format!("{PORT}/state"), &["4: ACTIVE\n", "1: DOWN\n", "4: ACTIVE\n"])
    }

    fn rows(subject: &str, values: &[i64]) -> (String, Vec<i64>) {
        (subject.to_owned(), values.to_vec())
    }

    #[test]
    fn a_software_device_has_no_common_counters() {
        let fake = active()
            .list(&format!("{PORT}/hw_counters"), &["ack_deferred", "lifespan", "rcvd_seq_err"])
            .file(&format!("{PORT}/hw_counters/rcvd_seq_err"), &["5\n", "5\n", "6\n", "9\n"]);
        let (tables, gaps) = result_of(fake);
        let want = [rows("rxe0/1", &[1, 0, 1]), rows("rxe0/1 rcvd_seq_err", &[5, 6, 9])];
        assert_eq!((tables, gaps), (want.to_vec(), Vec::new()));
    }

    #[test]
    fn what_a_port_counts_is_not_read_of_its_device_and_nothing_is_counted_twice() {
        let count = |fake: Fake, path: &str| fake.file(path, &["3\n"; 4]);
        let device = "/sys/class/infiniband/rxe0/hw_counters";
        let names = ["link_downed", "out_of_sequence"];
        let both = active()
            .list(&format!("{PORT}/counters"), &["link_downed", "port_xmit_wait"])
            .file(&format!("{PORT}/counters/port_xmit_wait"), &["N/A (no PMA)\n"])
            .list(&format!("{PORT}/hw_counters"), &names)
            .list(device, &names);
        let both = count(both, &format!("{PORT}/counters/link_downed"));
        let both = count(both, &format!("{PORT}/hw_counters/out_of_sequence"));
        let (tables, gaps) = result_of(both);
        let want = [
            rows("rxe0/1", &[1, 0, 1]),
            rows("rxe0/1 link_downed", &[3, 3, 3]),
            rows("rxe0/1 out_of_sequence", &[3, 3, 3]),
        ];
        assert_eq!((tables, gaps), (want.to_vec(), Vec::new()));
        let alone = active().list(device, &["rq_num_rnr"]);
        let (tables, _) = result_of(count(alone, &format!("{device}/rq_num_rnr")));
        assert_eq!(tables[1], rows("rxe0/1 rq_num_rnr", &[3, 3, 3]));
    }

    #[test]
    fn a_port_that_counts_nothing_or_goes_away_is_a_gap() {
        let (tables, gaps) = result_of(active());
        assert_eq!(tables, [rows("rxe0/1", &[1, 0, 1])]);
        assert_eq!(gaps, ["the driver of rxe0/1 counts nothing of use"]);
        let (tables, gaps) = result_of(Fake::default());
        assert_eq!((tables.len(), gaps.len()), (0, 1), "{gaps:?}");
    }
}
