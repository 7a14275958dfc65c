//! Changes of this host's settings for a trial. Each change is recorded first, and undone when the trial, the session
//! or the process ends. If the process was killed, the next linerate that starts undoes its change.
//!
//! A value that another program has set after the change is never overwritten.

mod host;
mod journal;
mod queue;
mod spread;
#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use linerate_facts::Gap;
use linerate_plan::change::{Damaged, Entry, HostChange, SETTINGS, SettingRow};
use rustix::io::Errno;

use host::Host;
use journal::{Journal, Make};

/// Callback that shows a line to the user, without its line end.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Subject (`what`) of the gap that is reported if this host's settings cannot be changed although its user allowed it.
pub const SETTINGS_GAP: &str = "host settings";

/// Number of checks whether the lock of a killed process is free, and the pause between two checks. The lock is free
/// once the threads of that process have left the kernel and its memory is freed. Checks are counted instead of time,
/// so that a machine that was suspended gets as many checks.
const DYING: (u32, Duration) = (50, Duration::from_millis(10));

/// Why a setting was not changed, or not restored.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The user of this host did not allow changes.
    #[error("settings of this host may not be changed")]
    NotAllowed,
    /// Another linerate process changes settings: each of the two would undo the other's changes.
    #[error("another linerate is changing settings of this host")]
    Busy,
    /// Another program has changed the setting that a trial had changed.
    #[error("another program is changing settings of this host")]
    Spoiled,
    /// The change would leave the setting at its value, so both settings of the trial would be equal.
    #[error("{what} already has this value, or nearly")]
    Same {
        /// Name of the setting.
        what: String,
    },
    /// The request is outside the settings and values that linerate may change.
    #[error("{what}")]
    Bounds {
        /// Why the request is outside.
        what: String,
    },
    /// The system does not permit reading or writing the setting.
    #[error("cannot change {what}: {source}")]
    Setting {
        /// Name of the setting.
        what: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The old value of a setting could not be restored.
    #[error("cannot restore {what} to \"{old}\": {source}")]
    NotUndone {
        /// Name of the setting.
        what: String,
        /// The value that the setting had before the change.
        old: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The journal cannot be read or written.
    #[error("journal of changes {}: {source}", path.display())]
    Journal {
        /// Path of the journal.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// The journal has an entry that linerate did not write; nothing of it was undone.
    #[error("journal of changes {}: {source}", path.display())]
    Damaged {
        /// Path of the journal.
        path: PathBuf,
        /// What is wrong with the journal.
        source: Damaged,
    },
    /// The boot or the network namespace of this host could not be identified.
    #[error("cannot identify the boot and the network namespace of this host: {source}")]
    Nowhere {
        /// Error of the system call.
        #[from]
        source: io::Error,
    },
}

impl ChangeError {
    /// Returns the command or action that would help; empty if there is none.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAllowed => "start linerate on that host with --allow-changes",
            Self::Busy => "wait until it has ended",
            Self::Setting { source, .. } | Self::NotUndone { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                "sudo linerate ..."
            }
            Self::Journal { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "start linerate once as the owner of this file"
            }
            Self::Damaged { .. } => "check the settings that it names, then remove it",
            _ => "",
        }
    }
}

/// The folder of the journals that record changes, and the callback for warnings.
#[derive(Clone)]
pub struct Ledger {
    dir: PathBuf,
    tell: Tell,
    /// Root of this host's files, which is `/` except in tests.
    root: PathBuf,
}

impl Ledger {
    /// Makes a ledger with journals in `dir`, the state directory, which need not exist yet.
    pub fn new(dir: &Path, tell: Tell) -> Self {
        Self { dir: dir.to_owned(), tell, root: PathBuf::from("/") }
    }

    /// Reads the files of the host below another root: in tests, a directory tree that represents a host.
    #[must_use]
    pub fn under(self, root: &Path) -> Self {
        Self { root: root.to_owned(), ..self }
    }

    /// Undoes the changes that a killed process left, and reports each. Changes of a running linerate stay, since it
    /// still measures with them; a note reports them.
    pub fn undo_left(&self) -> Result<(), ChangeError> {
        let host = Host::below(&self.root)?;
        match self.journal(&host, Make::No) {
            Ok(Some(mut journal)) => {
                self.settle(&host, &mut journal)?;
                journal.remove()
            }
            Ok(None) => Ok(()),
            Err(ChangeError::Busy) => {
                (self.tell)(
                    "note: another linerate is changing settings of this host, which may affect this \
                     measurement",
                );
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the journal. A process that was just killed holds the journal's lock until its last thread has ended.
    fn journal(&self, host: &Host, make: Make) -> Result<Option<Journal>, ChangeError> {
        let (looks, apart) = DYING;
        let look = || Journal::open(&self.dir, &host.network, make);
        for _ in 1..looks {
            match look() {
                Err(ChangeError::Busy) => thread::sleep(apart),
                other => return other,
            }
        }
        look()
    }

    /// Undoes all entries of a journal that an ended process left.
    fn settle(&self, host: &Host, journal: &mut Journal) -> Result<(), ChangeError> {
        for entry in journal.read()?.iter().rev().filter(|e| host.is_of(e)) {
            let row = entry.setting.row();
            let (what, old) = (entry.what(), row.words(&entry.old));
            match undo(host, entry) {
                Ok(Undone::Back) => (self.tell)(&format!(
                    "undone: {what} back to \"{old}\" (left by a run that was killed)"
                )),
                Ok(Undone::Already) => {}
                Ok(Undone::Foreign(now)) => (self.tell)(&foreign(entry, &now)),
                Err(source) => return Err(ChangeError::NotUndone { what, old, source }),
            }
        }
        journal.clear()
    }
}

/// The result of an undo.
enum Undone {
    /// The old value was restored.
    Back,
    /// The setting already had its old value, or the port no longer exists.
    Already,
    /// Another program has set the setting to this value.
    Foreign(Vec<u64>),
}

fn undo(host: &Host, entry: &Entry) -> io::Result<Undone> {
    let (row, port) = (entry.setting.row(), entry.port.as_str());
    let now = match host.read(row, port) {
        Err(e) if e.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {
            return Ok(Undone::Already);
        }
        now => now?,
    };
    if now == entry.old {
        return Ok(Undone::Already);
    }
    // If the process was killed, it may have changed only some of the switches of this setting.
    let both = entry.old.iter().zip(&entry.new);
    let ours = |(n, (old, new)): (&u64, (&u64, &u64))| n == old || n == new;
    if now.len() != entry.old.len() || !now.iter().zip(both).all(ours) {
        return Ok(Undone::Foreign(now));
    }
    host.write(row, port, &entry.old)?;
    if host.read(row, port)? == entry.old {
        return Ok(Undone::Back);
    }
    Err(io::Error::other("the kernel did not accept the value"))
}

fn foreign(entry: &Entry, now: &[u64]) -> String {
    let row = entry.setting.row();
    format!(
        "not undone: {} is \"{}\" now, set by another program; before an experiment set it to \"{}\" it was \"{}\"",
        entry.what(),
        row.words(now),
        row.words(&entry.new),
        row.words(&entry.old),
    )
}

/// Changes of this host's settings by one end of a path, one change at a time. Dropping this value undoes the last
/// change.
pub struct Changes {
    ledger: Ledger,
    held: Option<Held>,
    made: Option<(HostChange, Entry)>,
    /// Whether another program has changed a setting that a trial changed.
    spoiled: bool,
}

/// The permission to change settings. It lasts as long as the journal is locked.
struct Held {
    host: Host,
    journal: Journal,
}

impl Changes {
    /// Makes the state of a host whose settings are not changed yet.
    pub fn new(ledger: Ledger) -> Self {
        Self { ledger, held: None, made: None, spoiled: false }
    }

    /// Returns the ids of the settings that trials can change on a path through `port`, and a gap if the host cannot be
    /// identified or the first setting may not be written. Offloads are included only if some are off.
    pub fn possible(&self, port: Option<&str>) -> (Vec<String>, Option<Gap>) {
        let lacks = |e: &ChangeError| Gap {
            what: SETTINGS_GAP.to_owned(),
            why: e.to_string(),
            hint: match e.hint() {
                "sudo linerate ..." => "sudo linerate ... --allow-changes".to_owned(),
                hint => hint.to_owned(),
            },
        };
        let host = match Host::below(&self.ledger.root) {
            Ok(host) => host,
            Err(e) => return (Vec::new(), Some(lacks(&e.into()))),
        };
        // Returns whether the largest change within the setting's bounds would change its value.
        let useful = |row: &SettingRow| {
            let port = if row.of_port() { port? } else { "" };
            let now = host.read(row, port).ok()?;
            Some(row.is_change(&now, &row.changed(&now, row.bounds.1)))
        };
        let rows =
            SETTINGS.iter().filter(|row| host.may_write(row).is_ok() && useful(row) == Some(true));
        let ids: Vec<String> = rows.map(|row| row.id.to_owned()).collect();
        let first = &SETTINGS[0];
        let why = host.may_write(first).err().map(|source| {
            let what = first.what("");
            lacks(&ChangeError::Setting { what, source })
        });
        (ids, why)
    }

    /// Makes the change `wanted`, or undoes the last change if it is `None`. After an error, the host is not in the
    /// state that the caller assumes.
    pub fn want(
        &mut self,
        wanted: Option<HostChange>,
        port: Option<&str>,
    ) -> Result<(), ChangeError> {
        if self.made.as_ref().map(|(change, _)| *change) == wanted && self.stands() {
            return Ok(());
        }
        self.undo()?;
        match wanted {
            None => Ok(()),
            Some(_) if self.spoiled => Err(ChangeError::Spoiled),
            Some(change) => self.make(change, port),
        }
    }

    fn make(&mut self, change: HostChange, port: Option<&str>) -> Result<(), ChangeError> {
        change.check().map_err(|what| ChangeError::Bounds { what })?;
        let row = change.setting.row();
        let port = if row.of_port() {
            port.ok_or_else(|| ChangeError::Bounds {
                what: format!("no port is known for {}", row.id),
            })?
        } else {
            ""
        };
        let what = row.what(port);
        let failed = |source| ChangeError::Setting { what: what.clone(), source };
        let held = hold(&mut self.held, &self.ledger)?;
        let old = held.host.read(row, port).map_err(failed)?;
        let entry = Entry {
            boot: held.host.boot.clone(),
            network: held.host.network.clone(),
            setting: change.setting,
            port: port.to_owned(),
            new: row.changed(&old, change.value),
            old,
        };
        if !row.is_change(&entry.old, &entry.new) {
            return Err(ChangeError::Same { what });
        }
        held.journal.write(&entry)?;
        let taken = held.host.write(row, port, &entry.new);
        let taken = taken.and_then(|()| held.host.read(row, port));
        let source = match taken {
            Ok(now) if now == entry.new => {
                self.made = Some((change, entry));
                return Ok(());
            }
            Ok(_) => io::Error::other("the kernel did not accept the value"),
            Err(e) => e,
        };
        // Any value that the setting has now was set by this process. If restoring it fails too, the journal still has
        // the old value.
        if held.host.write(row, port, &entry.old).is_ok() {
            held.journal.clear()?;
        }
        Err(ChangeError::Setting { what, source })
    }

    /// Returns whether the setting still has the value of the last change.
    fn stands(&self) -> bool {
        let (Some((_, entry)), Some(held)) = (&self.made, &self.held) else {
            return true;
        };
        let now = held.host.read(entry.setting.row(), &entry.port);
        now.is_ok_and(|now| now == entry.new)
    }

    /// Undoes the last change. Fails if that is impossible, or if another program has changed the setting.
    fn undo(&mut self) -> Result<(), ChangeError> {
        let (Some((_, entry)), Some(held)) = (&self.made, &mut self.held) else {
            return Ok(());
        };
        let undone = match undo(&held.host, entry) {
            Ok(undone) => undone,
            Err(source) => {
                let row = entry.setting.row();
                let (what, old) = (entry.what(), row.words(&entry.old));
                return Err(ChangeError::NotUndone { what, old, source });
            }
        };
        if let Undone::Foreign(now) = &undone {
            (self.ledger.tell)(&foreign(entry, now));
        }
        self.made = None;
        held.journal.clear()?;
        if matches!(undone, Undone::Back) {
            return Ok(());
        }
        self.spoiled = true;
        Err(ChangeError::Spoiled)
    }
}

/// Locks the journal, which permits changes, unless it is held already. Changes left by a killed process are undone
/// first.
fn hold<'a>(held: &'a mut Option<Held>, ledger: &Ledger) -> Result<&'a mut Held, ChangeError> {
    if held.is_none() {
        let host = Host::below(&ledger.root)?;
        if let Some(mut journal) = ledger.journal(&host, Make::Yes)? {
            ledger.settle(&host, &mut journal)?;
            *held = Some(Held { host, journal });
        }
    }
    held.as_mut().ok_or(ChangeError::Busy)
}

impl Drop for Changes {
    fn drop(&mut self) {
        match self.undo() {
            Ok(()) | Err(ChangeError::Spoiled) => {}
            // The journal stays, so the next linerate that starts tries to undo the change again.
            Err(error) => return (self.ledger.tell)(&format!("not undone: {error}")),
        }
        if let Some(Held { mut journal, .. }) = self.held.take()
            && journal.read().is_ok_and(|entries| entries.is_empty())
        {
            // If the removal fails, an empty journal remains, which is harmless.
            let _ = journal.remove();
        }
    }
}
