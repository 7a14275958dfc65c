//! Record files: they are written during a run, and found and read afterwards.
//!
//! Each frame is passed to the kernel in one write when its event arrives. If linerate crashes or
//! is killed, no written frame is lost, except at most the one that is being written. The file is
//! flushed to disk (`fdatasync`) only at the end of the run, because disk writes would disturb the
//! measurement. So a power failure during a run may lose the record. A file is never overwritten,
//! and only its owner may read it. A run that ends without a measurement leaves no file.
//!
//! If a record cannot be written, the run continues all the same: see [`Recorder::problem`].

mod recorder;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use linerate_record::frame::{self, Damage, FrameError};
use linerate_record::{Record, Start};

pub use recorder::Recorder;

/// File name extension of records.
const EXTENSION: &str = "lnr";

/// Prefix of a note where the user names a record by its note: `note:before the new cable`.
const NOTE: &str = "note:";

/// Largest file that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// Number of bytes at the beginning of a file in which the start frame
/// must lie. The longest one that linerate writes is a tenth of this.
const START: u64 = 16 << 10;

/// Why a record cannot be shown. [`StoreError::hint`] returns what helps.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Neither `XDG_STATE_HOME` nor `HOME` is set.
    #[error(
        "there is no directory for records: neither XDG_STATE_HOME nor HOME is an absolute path"
    )]
    NoPlace,
    /// No run was recorded yet.
    #[error("there is no record yet in {}", dir.display())]
    NoneYet {
        /// Directory in which records would be stored.
        dir: PathBuf,
    },
    /// No file and no record has the requested name.
    #[error("there is no record with the name or the note `{name}` in {}, and no such file", dir.display())]
    NotFound {
        /// Name that was requested.
        name: String,
        /// Directory in which records are stored.
        dir: PathBuf,
    },
    /// The file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file contains no valid record.
    #[error("{}: {source}", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// Why the record is invalid.
        source: FrameError,
    },
}

impl StoreError {
    /// Returns the command or change that helps the user; empty if there is none.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoPlace => "name a directory: --save DIR",
            Self::NoneYet { .. } => "linerate run PEER",
            Self::NotFound { .. } => {
                "linerate list shows all records, and `last` is the newest one"
            }
            Self::Format { source: FrameError::UnknownFormat { .. }, .. } => {
                "show it with the linerate that wrote it, or with a newer one"
            }
            Self::Read { .. } | Self::Format { .. } => "",
        }
    }
}

/// A record that was read from a file.
#[derive(Debug)]
pub struct Loaded {
    /// Path of the record's file.
    pub path: PathBuf,
    /// The record in the file.
    pub record: Record,
    /// Number of older records with the same note, if the user named the record by its note.
    pub alike: usize,
    /// Part of the file that could not be used, to be shown to the user.
    pub damage: Option<Damage>,
}

impl Loaded {
    /// Returns a text that other records have the same note; `None` if no other record has it.
    pub fn choice(&self) -> Option<String> {
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let note = &self.record.start.note;
        (self.alike > 0).then(|| {
            let all = self.alike + 1;
            format!("{all} records have the note `{note}`: this is the newest, {name}")
        })
    }

    /// Returns whether parts of the record are lost.
    pub fn is_damaged(&self) -> bool {
        self.damage.as_ref().is_some_and(|d| !d.cuts.is_empty())
    }

    /// Returns a text that describes which parts of the record are
    /// lost and which survive; `None` if the file is complete.
    pub fn warning(&self) -> Option<String> {
        let damage = self.damage.as_ref()?;
        let Record { hosts, steps, .. } = &self.record;
        Some(format!(
            "{}: {damage}; {} hosts and {} steps survive",
            self.path.display(),
            hosts.len(),
            steps.len(),
        ))
    }
}

/// Returns the user's folder for linerate's state: `$XDG_STATE_HOME/linerate`, otherwise `~/.local/state/linerate`;
/// `None` if neither is an absolute path. `env` looks up an environment variable.
pub fn state_directory(env: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    // Rule of XDG: a path that is not absolute is treated as not set.
    let absolute = |name| env(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("linerate"))
}

/// A directory of record files.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// Makes a store of the records in `dir`, which need not exist yet.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Returns the user's records: `$XDG_STATE_HOME/linerate/records`, otherwise `~/.local/state/linerate/records`.
    /// `env` looks up an environment variable.
    pub fn of_user(env: impl Fn(&str) -> Option<std::ffi::OsString>) -> Result<Self, StoreError> {
        let records = state_directory(env).map(|state| state.join("records"));
        records.map(Self::new).ok_or(StoreError::NoPlace)
    }

    /// Returns the directory of the records.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes a recorder that writes the events of one run to a file.
    pub fn recorder(&self) -> Recorder {
        Recorder::new(&self.dir)
    }

    /// Lists all record files, oldest first.
    pub fn list(&self) -> Result<Vec<PathBuf>, StoreError> {
        let failed = |source| StoreError::Read { path: self.dir.clone(), source };
        let entries = match std::fs::read_dir(&self.dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed)?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|e| e == EXTENSION) {
                paths.push(path);
            }
        }
        paths.sort_by_cached_key(|path| age(path));
        Ok(paths)
    }

    /// Returns the path of the newest record file.
    pub fn last(&self) -> Result<PathBuf, StoreError> {
        self.list()?.pop().ok_or_else(|| StoreError::NoneYet { dir: self.dir.clone() })
    }

    /// Returns the path of the file that `which` names: `last`, the name of a record with or without `.lnr`, a path, or
    /// the note of a record. If several records have the note, the newest is returned. `note:TEXT` is always a note.
    pub fn find(&self, which: &str) -> Result<PathBuf, StoreError> {
        self.choose(which).map(|(path, _)| path)
    }

    /// Returns the path as [`Store::find`] does, and the number of older records with the same note.
    fn choose(&self, which: &str) -> Result<(PathBuf, usize), StoreError> {
        if which == "last" {
            return Ok((self.last()?, 0));
        }
        let note = which.strip_prefix(NOTE);
        let named = self.dir.join(format!("{which}.{EXTENSION}"));
        let mut named = [named, self.dir.join(which), PathBuf::from(which)].into_iter();
        let named = named.find(|path| note.is_none() && !which.is_empty() && path.exists());
        if let Some(path) = named {
            return Ok((path, 0));
        }
        let found = self.noted(note.unwrap_or(which))?;
        found.ok_or_else(|| StoreError::NotFound { name: which.to_owned(), dir: self.dir.clone() })
    }

    /// Returns the newest record with a note, and the number of older records with this note.
    fn noted(&self, note: &str) -> Result<Option<(PathBuf, usize)>, StoreError> {
        if note.is_empty() {
            return Ok(None);
        }
        let has = |path: &PathBuf| start(path).is_ok_and(|start| start.note == note);
        let mut found: Vec<PathBuf> = self.list()?.into_iter().filter(has).collect();
        let newest = found.pop();
        Ok(newest.map(|path| (path, found.len())))
    }

    /// Reads the record that `which` names; [`Store::find`] lists the possible names.
    pub fn load(&self, which: &str) -> Result<Loaded, StoreError> {
        let (path, alike) = self.choose(which)?;
        Ok(Loaded { alike, ..open(path)? })
    }
}

/// Reads the record in a file.
pub fn open(path: PathBuf) -> Result<Loaded, StoreError> {
    let bytes = match read(&path) {
        Ok(bytes) => bytes,
        Err(source) => return Err(StoreError::Read { path, source }),
    };
    match frame::decode(&bytes) {
        Ok((record, damage)) => Ok(Loaded { path, record, alike: 0, damage }),
        Err(source) => Err(StoreError::Format { path, source }),
    }
}

/// Reads only the start of the record in a file.
pub fn start(path: &Path) -> Result<Start, StoreError> {
    let bytes = regular(path).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(START).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let path = || path.to_owned();
    let bytes = bytes.map_err(|source| StoreError::Read { path: path(), source })?;
    frame::start(&bytes).map_err(|source| StoreError::Format { path: path(), source })
}

/// Returns the sort key of a record file: the time in its name, then its modification time if two names have the same
/// second. A file whose name has no time was named by the user. It sorts by its name, before all others.
fn age(path: &Path) -> (String, Option<SystemTime>, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stamp: String = name.chars().take(recorder::STAMP).collect();
    let form = |c: char| if c.is_ascii_digit() { '0' } else { c };
    if !stamp.chars().map(form).eq("0000-00-00T00-00-00".chars()) {
        return (String::new(), None, name.into_owned());
    }
    let modified = path.metadata().and_then(|m| m.modified()).ok();
    (stamp, modified, String::new())
}

/// Reads a whole file of at most [`LARGEST`] bytes.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        let why = format!("it is larger than {} MiB", LARGEST >> 20);
        return Err(io::Error::other(why));
    }
    Ok(bytes)
}

/// Opens a file. Devices and pipes are refused because they may have no end.
fn regular(path: &Path) -> io::Result<File> {
    let kind = path.metadata()?.file_type();
    if kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

#[cfg(test)]
mod tests;
