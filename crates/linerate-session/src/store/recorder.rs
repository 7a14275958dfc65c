//! The sink that writes a record to a file during the run.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use linerate_facts::Gap;
use linerate_record::frame::{self, Frame, MAX_VALUES};
use linerate_record::{Record, Start};
use linerate_units::stamp;

use super::Loaded;
use linerate_judge::event::{Event, RunControl, Sink};

/// Length of the timestamp at the start of a file's name, in characters: `2026-11-21T10-31-07`.
pub(super) const STAMP: usize = 19;

/// Largest number of characters of a peer's name that are used in a file's name.
const PEER: usize = 64;

/// Number of file names that are tried for records of the same second and peer.
const SUFFIXES: u32 = 1000;

/// Writes the events of one run to its own file, which is created at [`Event::Started`].
///
/// If a write fails (a full disk, no permission), the run continues, the file keeps the parts already written,
/// and [`Recorder::problem`] gives the reason.
#[derive(Debug)]
pub struct Recorder {
    dir: PathBuf,
    open: Option<Open>,
    path: Option<PathBuf>,
    problem: Option<Gap>,
}

/// An open record file.
#[derive(Debug)]
struct Open {
    file: File,
    /// Length of all complete frames, in bytes.
    length: u64,
    /// Number of values in the steps written so far; a record may contain only a limited number.
    values: u64,
    /// Whether a step was written.
    measured: bool,
}

impl Recorder {
    pub(super) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), open: None, path: None, problem: None }
    }

    /// Returns the path of the file; `None` before the run has begun.
    /// The file may be incomplete if there is a [`Self::problem`].
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns why the record is incomplete; `None` if it is complete. Only the first reason is kept.
    pub fn problem(&self) -> Option<&Gap> {
        self.problem.as_ref()
    }

    /// Writes a record that is already complete: imported results of other programs.
    pub fn keep(&mut self, record: &Record) {
        self.begin(&record.start);
        if let Some(imported) = &record.imported {
            self.write(&Frame::Imported(imported));
        }
        if let Some(end) = &record.end {
            self.write(&Frame::End(end));
        }
        self.finish();
    }

    /// Copies the file of a record, byte by byte, to a new file.
    pub fn copy(&mut self, loaded: &Loaded) {
        let opened = File::open(&loaded.path)
            .and_then(|from| Ok((from, create(&self.dir, &loaded.record.start)?)));
        let (mut from, (path, file)) = match opened {
            Ok(opened) => opened,
            Err(e) => return self.give_up(&format!("no file could be made: {e}"), e.kind()),
        };
        let open = self.open.insert(Open { file, length: 0, values: 0, measured: false });
        let copied = io::copy(&mut from, &mut open.file);
        self.path = Some(path);
        if let Err(e) = copied {
            self.give_up(&format!("writing failed: {e}"), e.kind());
            // A file with half a record would be mistaken for the newest record.
            self.remove_unless_begun();
        }
        self.finish();
    }

    /// Replaces the file for the next frames, to test how its errors are handled.
    #[cfg(test)]
    pub(super) fn replace_file(&mut self, file: File) {
        self.open.as_mut().expect("a file was made").file = file;
    }

    /// Creates the file and writes its start frame.
    fn begin(&mut self, start: &Start) {
        match create(&self.dir, start) {
            Ok((path, file)) => {
                self.path = Some(path);
                self.open = Some(Open { file, length: 0, values: 0, measured: false });
                self.append(&frame::header());
                self.write(&Frame::Start(start));
                self.remove_unless_begun();
            }
            Err(error) => self.give_up(&format!("no file could be made: {error}"), error.kind()),
        }
    }

    /// Removes the file if it has no start frame: an empty file would be mistaken for the newest record.
    fn remove_unless_begun(&mut self) {
        if self.open.is_none()
            && let Some(path) = self.path.take()
        {
            // If the file cannot be removed, reading it will report the error.
            let _ = std::fs::remove_file(path);
        }
    }

    fn write(&mut self, frame: &Frame<'_>) {
        let Some(open) = &mut self.open else { return };
        if let Frame::Step(step) = frame {
            open.measured = true;
            open.values += frame::values(step);
            if open.values > MAX_VALUES {
                return self.give_up("it is full", io::ErrorKind::Other);
            }
        }
        match frame::encode(frame) {
            Ok(bytes) => self.append(&bytes),
            Err(error) => self.give_up(&error.to_string(), io::ErrorKind::InvalidData),
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let Some(open) = &mut self.open else { return };
        match open.file.write_all(bytes) {
            Ok(()) => open.length += bytes.len() as u64,
            Err(error) => {
                // A partial frame would be reported as damage; without that frame, the record only ends early. If the
                // truncation fails too, the reader still copes with the file.
                let _ = open.file.set_len(open.length);
                self.give_up(&format!("writing failed: {error}"), error.kind());
            }
        }
    }

    /// Flushes the file and its directory entry to the disk.
    fn finish(&mut self) {
        let Some(open) = self.open.take() else { return };
        let synced = open.file.sync_data();
        if let Err(error) = synced.and_then(|()| File::open(&self.dir)?.sync_data()) {
            self.give_up(&format!("it could not be written to the disk: {error}"), error.kind());
        }
    }

    /// Stops writing and stores the reason. An earlier reason is kept.
    fn give_up(&mut self, why: &str, kind: io::ErrorKind) {
        self.open = None;
        let place = self.path.as_ref().unwrap_or(&self.dir);
        self.problem.get_or_insert(Gap {
            what: "record".to_owned(),
            why: format!("{}: {why}", place.display()),
            hint: hint(kind).to_owned(),
        });
    }
}

impl Sink for Recorder {
    fn event(&mut self, event: &Event<'_>) -> RunControl {
        match event {
            Event::Started(start) => self.begin(start),
            Event::Host(host) => self.write(&Frame::Host(host)),
            Event::Set(set) => self.write(&Frame::Set(set)),
            Event::Trial { plan, .. } => self.write(&Frame::Trial(plan)),
            Event::Step(step) => self.write(&Frame::Step(step)),
            Event::Ended(end) => {
                self.write(&Frame::End(end));
                if self.open.as_ref().is_some_and(|open| !open.measured) {
                    // A run that measured nothing has already reported why. Without
                    // its file, the newest record is one that can be shown.
                    self.open = None;
                    self.remove_unless_begun();
                }
                self.finish();
            }
            Event::StepBegan { .. }
            | Event::Progress { .. }
            | Event::Proved { .. }
            | Event::Notice { .. } => {}
        }
        RunControl::Go
    }
}

fn hint(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or name another directory: --save DIR"
        }
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory => "name a writable directory: --save DIR",
        _ => "",
    }
}

/// Creates a new file for the run, and returns its path. An existing file is never opened.
fn create(dir: &Path, start: &Start) -> io::Result<(PathBuf, File)> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let name = name(start.wall_secs, start.plan.peer.as_deref());
    for n in 1..=SUFFIXES {
        let suffix = if n == 1 { String::new() } else { format!("-{n}") };
        let path = dir.join(format!("{name}{suffix}.{}", super::EXTENSION));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match file {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(|file| (path, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns a name such as `2026-11-21T10-31-07-PEER`, in UTC; characters that are unsuitable in file names become
/// `_`.
pub(super) fn name(wall_secs: u64, peer: Option<&str>) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' }
    };
    let peer = peer.unwrap_or("self");
    let peer = peer.strip_prefix("ssh://").unwrap_or(peer);
    let peer: String = peer.chars().take(PEER).map(plain).collect();
    format!("{}-{peer}", stamp(wall_secs))
}
