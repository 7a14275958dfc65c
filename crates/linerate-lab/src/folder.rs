//! Temporary folders of virtual machines and simulators: the files that they start from, and their output.

use std::fs::{self, DirBuilder};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Most bytes from the end of a file that an error shows.
const LAST_WORDS: u64 = 8192;

/// A temporary folder that only this user can read. It is removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes a folder whose name begins with `prefix`. Folders with this prefix that killed processes left behind are
    /// removed.
    pub(crate) fn new(prefix: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let parent = std::env::temp_dir();
        remove_orphans(&parent, prefix);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{prefix}{}-{next}", std::process::id()));
        make(&path)?;
        Ok(Self(path))
    }

    /// Makes a folder inside this one.
    pub(crate) fn sub(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path(name);
        make(&path)?;
        Ok(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        fs::write(&path, content).map_err(|e| named(&path, &e))
    }

    /// Returns the last lines of the given files in this folder.
    pub(crate) fn last_words(&self, files: &[&str]) -> String {
        let words: String = files.iter().map(|name| end_of(&self.path(name))).collect();
        words.trim().to_owned()
    }
}

fn make(path: &Path) -> io::Result<()> {
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(|e| named(path, &e))
}

/// Adds the path of a file to an error.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If some files remain, the next lab that makes a folder with this prefix removes them.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the folders of processes that were killed.
fn remove_orphans(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|n| n.strip_prefix(prefix));
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
    text.chars().filter(|c| !c.is_control() || *c == '\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "linerate-test-";

    #[test]
    fn folders_of_the_dead_are_removed_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let names = [
            // This number is larger than any process id.
            (format!("{PREFIX}4294967295-0"), false),
            (format!("{PREFIX}{own}-0"), true),
            (format!("{PREFIX}other"), true),
            ("4294967295-0".to_owned(), true),
        ];
        for (name, _) in &names {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        remove_orphans(parent.path(), PREFIX);
        for (name, stays) in names {
            assert_eq!(parent.path().join(&name).exists(), stays, "{name}");
        }
    }

    #[test]
    fn last_words_are_the_end_and_plain() {
        let folder = Folder::new(PREFIX).unwrap();
        assert_eq!(folder.last_words(&["none", "console"]), "");
        let long = "x".repeat(3 * LAST_WORDS as usize);
        let text = format!("first\n{long}\n\x1b[31mlast\r\n");
        folder.write("console", text.as_bytes()).unwrap();
        let words = folder.last_words(&["none", "console"]);
        assert!(words.ends_with("last") && !words.contains('\x1b'));
        assert!(!words.contains("first") && words.len() <= LAST_WORDS as usize);
    }
}
