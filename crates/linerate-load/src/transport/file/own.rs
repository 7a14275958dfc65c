//! A file of linerate's own in a folder. It has no name, so that nothing is left behind however the program ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use super::ALIGNED;
use super::data::{seal, stamp};
use super::target::failed;
use crate::LoadError;
use crate::pages::Pages;

/// Bytes of a write while a file is laid out: a stop is noticed after each.
const PIECE: usize = 1 << 20;
/// Pieces after which the page cache is emptied to the disk, where a file is laid out through it.
const SYNCED: u64 = 16;
/// Time after which a file on a slow disk is large enough.
pub(super) const LAID_OUT: Duration = Duration::from_secs(10);

/// A file of our own, without a name. It lasts until the program ends, so that it is laid out once.
#[derive(Debug)]
pub(super) struct Own {
    folder: String,
    size: u64,
    sealed: bool,
    file: OwnedFd,
    /// Bytes that were laid out.
    pub(super) len: u64,
}

/// The files of our own.
static OWN: Mutex<Vec<Arc<Own>>> = Mutex::new(Vec::new());

/// Closes the files of our own. A load that still uses one keeps it.
pub(in super::super) fn forget() {
    OWN.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

impl Own {
    /// The path by which this process opens the file once more.
    pub(super) fn path(&self) -> String {
        path(&self.file)
    }
}

fn path(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The file of our own in a folder, laid out the first time. Its contents are `sealed` where reads check them.
pub(super) fn own(
    folder: &str,
    size: u64,
    sealed: bool,
    given_up: &dyn Fn() -> bool,
) -> Result<Arc<Own>, LoadError> {
    let mut all = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |one: &&Arc<Own>| (&*one.folder, one.size, one.sealed) == (folder, size, sealed);
    if let Some(one) = all.iter().find(is_it) {
        return Ok(Arc::clone(one));
    }
    let file = unnamed(Path::new(folder)).map_err(|e| failed("cannot hold a file", folder, &e))?;
    let len = lay_out(&file, size, sealed, given_up);
    let Some(len) = len.map_err(|e| failed("cannot be written", folder, &e))? else {
        return Err(LoadError::Interrupted);
    };
    let made = Arc::new(Own { folder: folder.to_owned(), size, sealed, file: file.into(), len });
    all.push(Arc::clone(&made));
    Ok(made)
}

/// Makes a file without a name. Where the file system has none, the name is removed at once.
fn unnamed(folder: &Path) -> io::Result<File> {
    use rustix::io::Errno;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(folder, flags, mode) {
        Ok(file) => return Ok(file.into()),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
        Err(error) => return Err(error.into()),
    }
    let path = folder.join(format!(".linerate-{}", std::process::id()));
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Writes the whole file, so that no part of it is a hole, and returns its length. It ends early on a slow disk; `None` if
/// the user asked to stop.
fn lay_out(
    file: &File,
    size: u64,
    sealed: bool,
    given_up: &dyn Fn() -> bool,
) -> io::Result<Option<u64>> {
    let mut piece = Pages::default();
    piece.fill(PIECE)?;
    let mut state = getrandom::u64().map_err(io::Error::other)?;
    let began = Instant::now();
    let mut len = 0;
    // The page cache is not filled: what is read later comes from the disk.
    let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
    let direct = rustix::fs::open(path(file), flags, Mode::empty());
    let is_direct = direct.is_ok();
    let to = File::from(direct.or_else(|_| rustix::io::dup(file))?);
    while len < size && began.elapsed() < LAID_OUT {
        if given_up() {
            return Ok(None);
        }
        // A last part that O_DIRECT does not take is left out.
        let part = (size - len).min(PIECE as u64) / u64::from(ALIGNED) * u64::from(ALIGNED);
        if part == 0 {
            break;
        }
        stamp(piece.bytes_mut(), &mut state);
        if sealed {
            seal(piece.bytes_mut(), len);
        }
        to.write_all_at(&piece.bytes()[..part as usize], len)?;
        len += part;
        if !is_direct && (len / PIECE as u64).is_multiple_of(SYNCED) {
            rustix::fs::fdatasync(file)?;
        }
    }
    rustix::fs::fdatasync(file)?;
    Ok(Some(len))
}
