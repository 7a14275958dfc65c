//! The folder of a virtual machine: the files that it boots from, its console, and the files that it shares.

use std::fs::{self, DirBuilder};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::error::VmError;

const PREFIX: &str = "linerate-vm-";
/// Most bytes of the end of the console that an error shows.
const LAST_WORDS: u64 = 8192;

/// The folder of one virtual machine; it is removed with the machine.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Result<Self, VmError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let parent = std::env::temp_dir();
        remove_orphans(&parent);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{next}", std::process::id()));
        let make = |path: &Path| {
            let made = DirBuilder::new().mode(0o700).create(path);
            made.map_err(VmError::step(format!(
                "cannot make a folder {}",
                path.display()
            )))
        };
        make(&path)?;
        let folder = Self(path);
        make(&folder.shared())?;
        Ok(folder)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the folder that the guest has as `/out`.
    pub(super) fn shared(&self) -> PathBuf {
        self.path("out")
    }

    pub(super) fn write(&self, name: &str, content: &[u8]) -> Result<(), VmError> {
        let path = self.path(name);
        fs::write(&path, content).map_err(VmError::step(format!("cannot write {}", path.display())))
    }

    /// Returns the last lines of the guest's console and of QEMU's standard error.
    pub(super) fn last_words(&self) -> String {
        let words = ["console", "qemu"].map(|name| end_of(&self.path(name)));
        words.concat().trim().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If files remain, the next virtual machine removes them.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the folders of processes that were killed.
fn remove_orphans(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|n| n.strip_prefix(PREFIX));
        let owner = owner.and_then(|n| n.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns the end of a file, without terminal control characters.
fn end_of(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = fs::File::open(path) {
        let length = file.metadata().map_or(0, |m| m.len());
        let from = SeekFrom::Start(length.saturating_sub(LAST_WORDS));
        // The text only explains another error, so failures to read it are ignored.
        let _ = file.seek(from);
        let _ = file.take(LAST_WORDS).read_to_end(&mut bytes);
    }
    let text = String::from_utf8_lossy(&bytes);
    text.chars()
        .filter(|c| !c.is_control() || *c == '\n')
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_dead_are_removed_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let names = [
            // Larger than any process id.
            (format!("{PREFIX}4294967295-0"), false),
            (format!("{PREFIX}{own}-0"), true),
            (format!("{PREFIX}other"), true),
            ("4294967295-0".to_owned(), true),
        ];
        for (name, _) in &names {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        remove_orphans(parent.path());
        for (name, stays) in names {
            assert_eq!(parent.path().join(&name).exists(), stays, "{name}");
        }
    }

    #[test]
    fn last_words_are_the_end_and_plain() {
        let folder = Folder::new().unwrap();
        assert_eq!(folder.last_words(), "");
        let long = "x".repeat(3 * LAST_WORDS as usize);
        let text = format!("first\n{long}\n\x1b[31mlast\r\n");
        folder.write("console", text.as_bytes()).unwrap();
        let words = folder.last_words();
        assert!(words.ends_with("last") && !words.contains('\x1b'));
        assert!(!words.contains("first") && words.len() <= LAST_WORDS as usize);
    }
}
