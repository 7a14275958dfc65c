//! The journal: a small file in the user's state directory, one for each network namespace. Each change of a setting is
//! recorded there before it is made.
//!
//! The process that holds the journal's lock may change the settings of the namespace. When a process is killed, the
//! kernel releases its lock: entries of an unlocked journal must be undone.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use linerate_plan::change::{self, Entry, JOURNAL_MAX};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::ChangeError;

/// A journal whose lock this process holds.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

/// Whether to create a journal if it does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Make {
    /// Create the file and its directory.
    Yes,
    /// Open the file only if it exists.
    No,
}

impl Journal {
    /// Opens the journal of `network` in `dir`; `None` if it does not exist and `make` is `No`.
    pub(super) fn open(dir: &Path, network: &str, make: Make) -> Result<Option<Self>, ChangeError> {
        let path = dir.join(format!("changes-{network}"));
        let failed = |source| ChangeError::Journal { path: path.clone(), source };
        if make == Make::Yes {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(dir).map_err(failed)?;
        }
        loop {
            let file = match open(&path, make) {
                Err(e) if e.kind() == io::ErrorKind::NotFound && make == Make::No => {
                    return Ok(None);
                }
                other => other.map_err(failed)?,
            };
            trusted(&file).map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(ChangeError::Busy),
                Err(e) => return Err(failed(e.into())),
            }
            // The file may have been removed after it was opened and before it was locked.
            if file.metadata().map_err(failed)?.nlink() > 0 {
                return Ok(Some(Self { file, path }));
            }
        }
    }

    /// Reads all entries of the journal.
    pub(super) fn read(&mut self) -> Result<Vec<Entry>, ChangeError> {
        let mut bytes = Vec::new();
        let mut read = || {
            self.file.seek(SeekFrom::Start(0))?;
            let most = JOURNAL_MAX as u64 + 1;
            Read::by_ref(&mut self.file).take(most).read_to_end(&mut bytes)
        };
        read().map_err(|e| self.failed(e))?;
        if bytes.len() > JOURNAL_MAX {
            return Err(self.failed(io::ErrorKind::FileTooLarge.into()));
        }
        change::journal(&bytes)
            .map_err(|source| ChangeError::Damaged { path: self.path.clone(), source })
    }

    /// Replaces the journal's content by `entry`. When this returns, the entry is on the disk.
    pub(super) fn write(&mut self, entry: &Entry) -> Result<(), ChangeError> {
        let mut write = || {
            let no_line = || io::Error::other("a name cannot be written to the journal");
            let line = entry.line().ok_or_else(no_line)?;
            self.file.set_len(0)?;
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(line.as_bytes())?;
            self.file.sync_all()
        };
        write().map_err(|e| self.failed(e))
    }

    /// Removes all entries of the journal.
    pub(super) fn clear(&mut self) -> Result<(), ChangeError> {
        self.file.set_len(0).map_err(|e| self.failed(e))
    }

    /// Removes the journal. A process that opened it in the meantime notices this and creates another.
    pub(super) fn remove(self) -> Result<(), ChangeError> {
        std::fs::remove_file(&self.path).map_err(|e| self.failed(e))
    }

    fn failed(&self, source: io::Error) -> ChangeError {
        ChangeError::Journal { path: self.path.clone(), source }
    }
}

fn open(path: &Path, make: Make) -> io::Result<File> {
    // NONBLOCK prevents a hang if the path is a pipe.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(make == Make::Yes)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// Checks that only this user can have written the file. It checks the open file, not its path.
fn trusted(file: &File) -> io::Result<()> {
    let meta = file.metadata()?;
    let own = meta.uid() == rustix::process::geteuid().as_raw();
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if !own || meta.mode() & 0o022 != 0 {
        let why = "other users can write to it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}
