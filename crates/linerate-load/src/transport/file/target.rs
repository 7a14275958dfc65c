//! The file that a load reads or writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use linerate_plan::transport::Options;
use linerate_plan::transport::file::{BUFFERED, FILE_SIZE, FILE_SIZE_DEFAULT};
use rustix::fs::{Mode, OFlags};

use super::ALIGNED;
use super::data::stamp;
use crate::LoadError;
use crate::pages::Pages;

/// Bytes of a write while a file is laid out.
const PIECE: usize = 4 << 20;
/// Time after which a file on a slow disk is large enough.
const LAID_OUT: Duration = Duration::from_secs(10);
/// A file that is open.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) file: File,
    /// Bytes of it that a load uses.
    pub(super) len: u64,
    /// Options that it lacks, each with the reason.
    pub(super) gaps: Vec<(&'static str, String)>,
}

/// A file of our own, without a name. It lasts until the program ends, so that it is laid out once.
#[derive(Debug)]
struct Own {
    folder: String,
    file: OwnedFd,
    size: u64,
    len: u64,
}

/// The files of our own.
static OWN: Mutex<Vec<Arc<Own>>> = Mutex::new(Vec::new());

impl Target {
    /// Opens a file or a disk that exists to be read, or a file of our own in a folder.
    pub(super) fn open(
        path: &str,
        options: &Options,
        writes: bool,
        block: u32,
    ) -> Result<Self, LoadError> {
        let kind = std::fs::metadata(path).map_err(|e| failed("cannot be opened", path, &e))?;
        let kind = kind.file_type();
        if kind.is_dir() {
            let own = own(path, options.number(FILE_SIZE.key).unwrap_or(FILE_SIZE_DEFAULT))?;
            let mut target = Self::reopen(
                &format!("/proc/self/fd/{}", own.file.as_raw_fd()),
                path,
                options,
                true,
            )?;
            target.len = own.len;
            if own.len < own.size {
                let why = format!(
                    "the disk took {} s to write {}",
                    LAID_OUT.as_secs(),
                    linerate_units::Bytes(own.len)
                );
                target.gaps.push((FILE_SIZE.key, why));
            }
            return target.fits(path, block);
        }
        if writes {
            return Err(LoadError::Failed {
                what: format!("{path} holds data, and is not written"),
                hint: "name a folder: linerate then writes a file of its own there",
            });
        }
        if !kind.is_file() && !kind.is_block_device() {
            let what = format!("{path} is no file, no disk and no folder");
            return Err(LoadError::Unsupported { what });
        }
        let mut target = Self::reopen(path, path, options, false)?;
        target.len = end_of(&target.file).map_err(|e| failed("has no size", path, &e))?;
        target.fits(path, block)
    }

    /// Opens `opened`, which the user knows as `path`, past the page cache if that is possible and not refused.
    fn reopen(opened: &str, path: &str, options: &Options, write: bool) -> Result<Self, LoadError> {
        let open = |flags: OFlags| {
            OpenOptions::new()
                .read(true)
                .write(write)
                .custom_flags(flags.bits() as i32)
                .open(opened)
        };
        let mut gaps = Vec::new();
        let file = if options.is_on(BUFFERED.key) {
            open(OFlags::empty())
        } else {
            open(OFlags::DIRECT).or_else(|error| {
                if error.raw_os_error() != Some(rustix::io::Errno::INVAL.raw_os_error()) {
                    return Err(error);
                }
                gaps.push((
                    "direct",
                    "its file system has no O_DIRECT: the page cache takes part".to_owned(),
                ));
                open(OFlags::empty())
            })
        };
        let file = file.map_err(|e| failed("cannot be opened", path, &e))?;
        Ok(Self { file, len: 0, gaps })
    }

    /// Whether operations go past the page cache.
    pub(super) fn is_direct(&self) -> bool {
        rustix::fs::fcntl_getfl(&self.file).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
    }

    /// Refuses a block that the file cannot be read by.
    fn fits(self, path: &str, block: u32) -> Result<Self, LoadError> {
        if self.len < u64::from(block) {
            let (len, block) =
                (linerate_units::Bytes(self.len), linerate_units::Bytes(block.into()));
            let what = format!("{path} has {len}, less than one operation of {block}");
            return Err(LoadError::Unsupported { what });
        }
        let unit = unit(&self.file);
        if self.is_direct() && !block.is_multiple_of(unit) {
            return Err(LoadError::Failed {
                what: format!(
                    "an operation of {block} B does not fit {path}: past the page cache it takes multiples of {unit} B"
                ),
                hint: "use another --size, or --buffered",
            });
        }
        Ok(self)
    }
}

/// The unit in which a file is read and written past the page cache.
fn unit(file: &File) -> u32 {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let asked = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    // A file system that does not know it, and one before Linux 6.1, leaves zero.
    let known = asked.ok().map(|known| known.stx_dio_offset_align).filter(|unit| *unit > 0);
    known.unwrap_or(512).min(ALIGNED)
}

/// Number of bytes in a file or a disk.
fn end_of(file: &File) -> io::Result<u64> {
    use std::io::{Seek as _, SeekFrom};
    (&*file).seek(SeekFrom::End(0))
}

/// The file of our own in a folder, laid out the first time.
fn own(folder: &str, size: u64) -> Result<Arc<Own>, LoadError> {
    let mut all = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(one) = all.iter().find(|one| one.folder == folder && one.size == size) {
        return Ok(Arc::clone(one));
    }
    let file = unnamed(Path::new(folder)).map_err(|e| failed("cannot hold a file", folder, &e))?;
    let len = lay_out(&file, size).map_err(|e| failed("cannot be written", folder, &e))?;
    let made = Arc::new(Own { folder: folder.to_owned(), file: file.into(), size, len });
    all.push(Arc::clone(&made));
    Ok(made)
}

/// Makes a file without a name. Where the file system has none, the name is removed at once.
fn unnamed(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(folder, flags, mode) {
        Ok(file) => return Ok(file.into()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {
        }
        Err(error) => return Err(error.into()),
    }
    let path = folder.join(format!(".linerate-{}", std::process::id()));
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Writes the whole file, so that no part of it is a hole, and returns its length. It ends early on a slow disk.
fn lay_out(file: &File, size: u64) -> io::Result<u64> {
    let mut piece = Pages::default();
    piece.fill(PIECE)?;
    let mut state = getrandom::u64().map_err(io::Error::other)?;
    let began = Instant::now();
    let mut len = 0;
    // The page cache is not filled: what is read later comes from the disk.
    let direct = File::from(
        rustix::fs::open(
            format!("/proc/self/fd/{}", file.as_raw_fd()),
            OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .or_else(|_| rustix::io::dup(file))?,
    );
    while len < size && began.elapsed() < LAID_OUT {
        stamp(piece.bytes_mut(), &mut state);
        let part = (size - len).min(PIECE as u64);
        // A last part that O_DIRECT does not take is left out.
        let part =
            if part < PIECE as u64 { part / u64::from(ALIGNED) * u64::from(ALIGNED) } else { part };
        if part == 0 {
            break;
        }
        direct.write_all_at(&piece.bytes()[..part as usize], len)?;
        len += part;
    }
    rustix::fs::fdatasync(file)?;
    Ok(len)
}

/// Says what failed on which file, and what helps.
fn failed(what: &str, path: &str, error: &io::Error) -> LoadError {
    use rustix::io::Errno;
    let hint = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => {
            "free some room, or use a smaller file: --file-size, or --size of `linerate disk`"
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            "name a folder or a file that this user may open, or use sudo"
        }
        Some(Errno::ROFS) => "name a folder on a file system that can be written",
        _ => "",
    };
    LoadError::Failed { what: format!("{path} {what}: {error}"), hint }
}
