//! Source `psi`: time in which at least one task of the machine waited for a CPU.

use std::io::ErrorKind;

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::pressure;

use super::source::{Row, Source};
use super::{read, unreadable};

const PATH: &str = "/proc/pressure/cpu";
const METRICS: &[Metric] = &[metric::PSI_CPU_SOME];

/// Reads `/proc/pressure/cpu`.
pub(super) struct Psi;

impl Source for Psi {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        let some = read(row.machine, PATH, pressure::some_us).map_err(|error| {
            // If pressure stall information is disabled at boot, the file cannot be read, or does not exist.
            let off = error.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error());
            let hint = if off || error.kind() == ErrorKind::NotFound { "psi=1" } else { "" };
            unreadable("psi", PATH, &error, hint)
        })?;
        row.push(METRICS, (), || "cpu".to_owned(), &[Some(some)]);
        Ok(())
    }
}
