//! The file that a load reads or writes.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};

use linerate_plan::transport::Options;
use linerate_plan::transport::file::{
    BUFFERED, FILE_SIZE, FILE_SIZE_DEFAULT, READ_AHEAD, VERIFY, WRITE_TO,
};
use linerate_units::Bytes;
use rustix::fs::{OFlags, SeekFrom, seek};
use rustix::io::Errno;

use super::data::UNIT;
use super::own::{LAID_OUT, own};
use super::{ALIGNED, device};
use crate::LoadError;

/// Extents of a file that are looked at for holes.
const EXTENTS: u32 = 10_000;

/// A file that is open.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) file: File,
    /// Bytes of it that a load uses.
    pub(super) len: u64,
    /// Whether its contents are known, so that reads can check them.
    pub(super) is_known: bool,
    /// Options that it lacks, each with the reason.
    pub(super) gaps: Vec<(&'static str, String)>,
}

impl Target {
    /// Opens a file or a disk that exists to be read, a disk that the user lets be overwritten, or a file of our own in a
    /// folder. `given_up` returns whether the user asked to stop.
    pub(super) fn open(
        path: &str,
        options: &Options,
        writes: bool,
        block: u32,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Self, LoadError> {
        let about = std::fs::metadata(path).map_err(|e| failed("cannot be opened", path, &e))?;
        let kind = about.file_type();
        let consents = consents(path, options, kind)?;
        let target = match (kind.is_dir(), writes) {
            (true, _) => Self::in_folder(path, options, given_up),
            // A disk that is written later is refused before it is read.
            (false, _) if consents => Self::overwritten(path, options, &about),
            (false, true) => Err(LoadError::Failed {
                what: format!("{path} holds data, and is not written"),
                hint: if kind.is_block_device() {
                    "name a folder: linerate then writes a file of its own there; or lose all data of this disk: \
                     --write-to and its name"
                } else {
                    "name a folder: linerate then writes a file of its own there"
                },
            }),
            (false, false) => Self::existing(path, options, kind),
        };
        target?.fits(path, block)?.verifiable(path, options, writes, block)
    }

    fn in_folder(
        path: &str,
        options: &Options,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Self, LoadError> {
        let size = options.number(FILE_SIZE.key).unwrap_or(FILE_SIZE_DEFAULT);
        let own = own(path, size, options.is_on(VERIFY.key), given_up)?;
        let mut target = Self::reopen(&own.path(), path, options, true)?;
        (target.len, target.is_known) = (own.len, true);
        if own.len < size {
            let why = format!("the disk took {} s to write {}", LAID_OUT.as_secs(), Bytes(own.len));
            target.gaps.push((FILE_SIZE.key, why));
        }
        Ok(target)
    }

    fn overwritten(path: &str, options: &Options, about: &Metadata) -> Result<Self, LoadError> {
        if options.is_on(BUFFERED.key) {
            let what = format!("{path} is overwritten past the page cache only");
            return Err(LoadError::Failed { what, hint: "leave out --buffered" });
        }
        let file = device::claim(path, about)?;
        let target = Self { file, len: 0, is_known: false, gaps: Vec::new() };
        target.measured(path, options)
    }

    /// The target with the length of a disk or a file, or of the part of a disk that may be overwritten.
    fn measured(mut self, path: &str, options: &Options) -> Result<Self, LoadError> {
        let end = seek(&self.file, SeekFrom::End(0));
        let end = end.map_err(|e| failed("has no size", path, &e.into()))?;
        let part = options.word(WRITE_TO.key).and_then(|_| options.number(FILE_SIZE.key));
        self.len = end.min(part.unwrap_or(u64::MAX));
        Ok(self)
    }

    fn existing(path: &str, options: &Options, kind: FileType) -> Result<Self, LoadError> {
        if !kind.is_file() && !kind.is_block_device() {
            let what = format!("{path} is no file, no disk and no folder");
            return Err(LoadError::Unsupported { what });
        }
        let mut target = Self::reopen(path, path, options, false)?.measured(path, options)?;
        let holes = if kind.is_file() { holes(&target.file, target.len) } else { 0.0 };
        let what = format!("{:.0} % of it are holes, whose reads reach no disk", 100.0 * holes);
        if holes > 0.5 {
            return Err(LoadError::Failed {
                what: format!("{path} does not measure a disk: {what}"),
                hint: "name a folder: linerate then makes a whole file of its own there",
            });
        }
        if holes >= 0.01 {
            target.gaps.push(("holes", what));
        }
        Ok(target)
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
                if error.raw_os_error() != Some(Errno::INVAL.raw_os_error()) {
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
        if options.is_on(READ_AHEAD.key) {
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential)
                .map_err(|e| failed("takes no advice", path, &e.into()))?;
        }
        Ok(Self { file, len: 0, is_known: false, gaps })
    }

    /// Whether operations go past the page cache.
    pub(super) fn is_direct(&self) -> bool {
        rustix::fs::fcntl_getfl(&self.file).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
    }

    /// Refuses a block by which the file cannot be accessed.
    fn fits(self, path: &str, block: u32) -> Result<Self, LoadError> {
        if self.len < u64::from(block) {
            let (len, block) = (Bytes(self.len), Bytes(block.into()));
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

    /// Refuses `--verify` where nothing can be checked.
    fn verifiable(
        self,
        path: &str,
        options: &Options,
        writes: bool,
        block: u32,
    ) -> Result<Self, LoadError> {
        if !options.is_on(VERIFY.key) {
            return Ok(self);
        }
        if !block.is_multiple_of(UNIT as u32) {
            let what = format!(
                "an operation of {block} B cannot be verified: it is no multiple of {UNIT} B"
            );
            return Err(LoadError::Failed { what, hint: "use another --size" });
        }
        if !self.is_known && !writes {
            let what = format!("{path} cannot be verified: linerate has not written its data");
            let hint =
                "name a folder: linerate then reads a file of its own there; or leave out --verify";
            return Err(LoadError::Failed { what, hint });
        }
        Ok(self)
    }
}

/// Whether two names are of one file: a disk has several.
fn is_same(one: &str, other: &str) -> bool {
    let [full, other_full] = [one, other].map(|name| std::fs::canonicalize(name).ok());
    one == other || full.is_some() && full == other_full
}

/// Whether the user lets a disk be overwritten: its name is given twice.
fn consents(path: &str, options: &Options, kind: FileType) -> Result<bool, LoadError> {
    match options.word(WRITE_TO.key) {
        None => Ok(false),
        Some(_) if !kind.is_block_device() => Err(LoadError::Failed {
            what: format!("{path} is no disk that could be overwritten"),
            hint: "leave out --write-to",
        }),
        Some(other) if !is_same(other, path) => Err(LoadError::Failed {
            what: format!(
                "the disk to be measured is {path}, the one to be overwritten is {other}"
            ),
            hint: "give --write-to the same name, or leave it out",
        }),
        Some(_) => Ok(true),
    }
}

/// The share of a file that is holes, of as many extents as are looked at; zero where the file system does not tell.
fn holes(file: &File, len: u64) -> f64 {
    let (mut at, mut data) = (0, 0);
    for _ in 0..EXTENTS {
        if at >= len {
            break;
        }
        let begin = match seek(file, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            Err(Errno::NXIO) => len,
            Err(_) => return 0.0,
        };
        at = seek(file, SeekFrom::Hole(begin)).unwrap_or(len).clamp(begin, len.max(begin));
        data += at - begin;
    }
    if at == 0 { 0.0 } else { 1.0 - data as f64 / at as f64 }
}

/// The unit in which a file is read and written past the page cache.
fn unit(file: &File) -> u32 {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let asked = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    // A file system that does not know it, and one before Linux 6.1, leaves zero.
    let known = asked.ok().map(|known| known.stx_dio_offset_align).filter(|unit| *unit > 0);
    known.unwrap_or(512).min(ALIGNED)
}

/// Says what failed on which file, and what helps.
pub(super) fn failed(what: &str, path: &str, error: &io::Error) -> LoadError {
    let hint = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => {
            "free some room, or use a smaller file: --file-size, or --size of `linerate disk`"
        }
        Some(Errno::PERM) if rustix::process::geteuid().is_root() => {
            "this device or file system refuses it even to root: name a folder on another one"
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            "name a folder or a file that this user may open, or use sudo"
        }
        Some(Errno::ROFS) => "name a folder on a file system that can be written",
        _ => "",
    };
    LoadError::Failed { what: format!("{path} {what}: {error}"), hint }
}
