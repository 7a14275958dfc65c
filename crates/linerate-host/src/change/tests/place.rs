//! Settings in a directory tree that represents a host. Tests of other crates include this file.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use linerate_host::change::Ledger;
use linerate_plan::change::{HostChange, Setting};
use linerate_plan::path::Side;
use tempfile::TempDir;

pub(crate) const OLD: &str = "4096 131072 524288";
pub(crate) const NEW: &str = "4096 131072 2097152";

/// A host with one setting, and a state directory for journals.
pub(crate) struct Place {
    dir: TempDir,
    pub(crate) reported: Arc<Mutex<Vec<String>>>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { dir: TempDir::new().unwrap(), reported: Arc::default() };
        for folder in ["proc/sys/net/ipv4", "proc/sys/kernel/random"] {
            fs::create_dir_all(place.dir.path().join(folder)).unwrap();
        }
        place.boot("this-boot");
        place.set(OLD);
        place
    }

    pub(crate) fn boot(&self, id: &str) {
        let path = self.dir.path().join("proc/sys/kernel/random/boot_id");
        fs::write(path, format!("{id}\n")).unwrap();
    }

    pub(crate) fn sysctl(&self) -> PathBuf {
        self.dir.path().join("proc/sys/net/ipv4/tcp_rmem")
    }

    pub(crate) fn set(&self, value: &str) {
        fs::write(self.sysctl(), value.replace(' ', "\t") + "\n").unwrap();
    }

    pub(crate) fn value(&self) -> String {
        let text = fs::read_to_string(self.sysctl()).unwrap();
        // Unlike a sysctl, an ordinary file is empty for a moment while it is written.
        text.lines().next().unwrap_or_default().replace('\t', " ")
    }

    pub(crate) fn ledger(&self) -> Ledger {
        let reported = Arc::clone(&self.reported);
        let tell = Arc::new(move |line: &str| reported.lock().unwrap().push(line.to_owned()));
        Ledger::new(&self.dir.path().join("state"), tell).under(self.dir.path())
    }

    /// Returns the paths of the journals that exist.
    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        let state = fs::read_dir(self.dir.path().join("state"));
        let entries = state.into_iter().flatten();
        entries.map(|e| e.unwrap().path()).collect()
    }
}

pub(crate) fn larger() -> HostChange {
    HostChange { side: Side::Far, setting: Setting::TcpRmem, value: 2_097_152 }
}
