//! Memory: sizes from the kernel, and the memory modules that the firmware lists.

use std::io;

use linerate_facts::memory::{Memory, Module};
use linerate_facts::parse::{meminfo, smbios};

use super::{PROC, Reader, is_absent, numbered};
use crate::{gap, read};

const TABLE: &str = "/sys/firmware/dmi/tables/DMI";
const ENTRIES: &str = "/sys/firmware/dmi/entries";

impl Reader<'_> {
    pub(super) fn memory(&mut self) -> Memory {
        const PATH: &str = "/proc/meminfo";
        let text = self.get("memory.total", PATH, PROC, |text| Ok(text.to_vec()));
        let text = text.as_deref().unwrap_or_default();
        let total = meminfo::bytes(text, "MemTotal");
        if total.is_none() {
            self.lack(gap("facts.memory.total", &format!("{PATH} does not contain it"), ""));
        }
        Memory {
            total,
            available: meminfo::bytes(text, "MemAvailable"),
            huge_page: meminfo::bytes(text, "Hugepagesize"),
            huge_pages: meminfo::count(text, "HugePages_Total"),
            modules: self.modules(),
        }
    }

    pub(super) fn modules(&mut self) -> Option<Vec<Module>> {
        let found = match read(self.machine, TABLE, smbios::modules) {
            // Kernels that do not show the whole table may show its entries one by one.
            Err(error) if is_absent(&error) => match self.entries() {
                Ok(modules) if modules.is_empty() => Err(error),
                entries => entries,
            },
            found => found,
        };
        let lack = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => "sudo linerate host",
                // Some kernels do not show the table, but dmidecode can read it from memory as root.
                _ if is_absent(&error) => "sudo dmidecode --type memory",
                _ => "",
            };
            let why = format!("cannot read {TABLE}: {error}");
            self.lack(gap("facts.memory.modules", &why, hint));
        };
        found.map_err(lack).ok()
    }

    /// Reads the table's entries of type 17, one file for each memory device: `17-0`, `17-1` ...
    fn entries(&self) -> io::Result<Vec<Module>> {
        let Ok(names) = self.machine.list(ENTRIES) else {
            return Ok(Vec::new());
        };
        let mut modules = Vec::new();
        for number in numbered(&names, "17-") {
            let path = format!("{ENTRIES}/17-{number}/raw");
            modules.append(&mut read(self.machine, &path, smbios::modules)?);
        }
        Ok(modules)
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;
    use crate::testing::Fake;
    use crate::{Captured, Replay, facts::inventory};

    #[test]
    fn root_can_read_modules_that_the_kernel_does_not_show() {
        let hint = |captured: Captured| {
            let gaps = inventory(&Replay::new(captured), &|_| {}).gaps;
            let mut gaps = gaps.into_iter();
            gaps.find(|gap| gap.what == "facts.memory.modules").unwrap().hint
        };
        let absent = Fake::default().failing(TABLE, &[], Errno::NOENT);
        assert_eq!(hint(absent.0), "sudo dmidecode --type memory");
        let refused = Fake::default().failing(TABLE, &[], Errno::ACCESS);
        assert_eq!(hint(refused.0), "sudo linerate host");
        let broken = Fake::default().failing(TABLE, &[], Errno::IO);
        assert_eq!(hint(broken.0), "");
    }
}
