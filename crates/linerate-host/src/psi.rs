//! Source `psi`: time in which tasks of the machine waited for a CPU.

use std::io::ErrorKind;

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::pressure;
use linerate_record::Table;

use super::sheets::Sheets;
use super::source::Source;
use super::{Machine, read, unreadable};

const PATH: &str = "/proc/pressure/cpu";
const METRICS: &[Metric] = &[metric::PSI_CPU_SOME];

/// Reads `/proc/pressure/cpu`.
pub(super) struct Psi {
    sheets: Sheets<()>,
}

impl Psi {
    pub(crate) fn new() -> Self {
        Self { sheets: Sheets::new(METRICS, "") }
    }
}

impl Source for Psi {
    fn observe(&mut self, machine: &dyn Machine, at: u64, gaps: &mut Vec<Gap>) -> Result<(), Gap> {
        let some = read(machine, PATH, pressure::some_us).map_err(|error| {
            // If pressure stall information is disabled at boot, the file exists but cannot be read, or it does not
            // exist.
            let off = error.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error());
            let hint = if off || error.kind() == ErrorKind::NotFound { "psi=1" } else { "" };
            unreadable("psi", PATH, &error, hint)
        })?;
        self.sheets.push((), || "cpu".to_owned(), at, &[Some(some)], gaps);
        Ok(())
    }

    fn take(&mut self) -> Vec<Table> {
        self.sheets.take()
    }
}
