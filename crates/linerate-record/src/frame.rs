//! The file format of a record: frames that are only ever appended.
//!
//! ```text
//! file   = magic (8 bytes) version (u32) frame*
//! frame  = length (u32, of the payload) crc32 (u32, of all that follows) kind (u8) payload
//! ```
//!
//! Numbers are little-endian. The checksum covers the length, as four bytes, and then kind and payload.
//! A payload is one CBOR item with definite lengths and without tags. The first frame is the start of the run, and
//! there is only one; the frame of the run's end is the last.
//!
//! The guarantee: every intact frame is read, and the reader says which bytes were lost. Behind a damaged frame it
//! continues where the frame's length says that the next one begins, or else at the next bytes that are a frame with
//! a right checksum. Frames of a kind that this version does not know are skipped and counted. Memory grows with the
//! bytes that are there, never with a length that they claim.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::stored::{Budget, StoredStep};
use super::{End, FORMAT, Host, Imported, Made, Record, Set, Start, Step, TrialPlan};
use crate::cbor;

/// The first bytes of a record. The first byte is not text, and both kinds of line ends follow, so that a transfer
/// that rewrites text is noticed.
pub const MAGIC: [u8; 8] = *b"\x89LNR\r\n\x1a\n";

/// Largest number of values, times included, in the tables of one record: 2 GiB once unpacked, or more than an hour
/// of 64 streams at 100 ms.
pub const MAX_VALUES: u64 = 1 << 28;

/// Number of damaged places that a message names one by one.
const PLACES_NAMED: usize = 3;

/// Most bytes that may be hashed in search of the next frame, in multiples of the file's size: a hostile file may
/// claim a frame at each byte.
const SEARCH_MAX: usize = 8;

/// Largest kind of a frame that the search accepts: newer versions may have kinds that this one does not know.
const KIND_MAX: u8 = 32;

const FILE_HEADER: usize = MAGIC.len() + 4;
const FRAME_HEADER: usize = 9;

/// Why bytes are no record, or a record cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The bytes do not begin with [`MAGIC`].
    #[error("this is not a record of linerate")]
    NotARecord,
    /// The record was written by a version with a newer format.
    #[error("format {found} of the record is not known here (this linerate reads format {FORMAT})")]
    UnknownFormat {
        /// The version of the format in the file.
        found: u32,
    },
    /// The frame of the run's start cannot be read.
    #[error("the start of the record cannot be read: {0}")]
    NoStart(Cut),
    /// A table cannot be written because no reader would accept it.
    #[error("column `{column}` of table `{table}` has another length than its times")]
    Ragged {
        /// Source and subject of the table.
        table: String,
        /// Name of the column.
        column: String,
    },
    /// There are more readings than a record may hold, or more bytes than a frame may hold.
    #[error("one step has too many readings for a record ({values} values)")]
    TooLarge {
        /// Number of values in the step.
        values: u64,
    },
}

/// The parts of a record that a reader could not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Number of skipped frames, of kinds that this version does not know; all other frames were read.
    pub skipped: u32,
    /// The parts that were lost, in the order of the file.
    pub cuts: Vec<Cut>,
}

/// A damaged part of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// First byte that is not used, counted from the start of the file.
    pub at: usize,
    /// Number of bytes lost, from `at` on.
    pub lost: usize,
    /// The problem at `at`, as a lowercase sentence fragment.
    pub what: String,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, lost, what } = self;
        write!(f, "{what} at byte {at}; {lost} bytes from there on are lost")
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, cut) in self.cuts.iter().take(PLACES_NAMED).enumerate() {
            let between = if n > 0 { "; " } else { "" };
            write!(f, "{between}{cut}")?;
        }
        if let Some(more) = self.cuts.len().checked_sub(PLACES_NAMED).filter(|n| *n > 0) {
            write!(f, "; and at {more} more places")?;
        }
        if !self.cuts.is_empty() && self.skipped > 0 {
            f.write_str("; ")?;
        }
        if self.skipped > 0 {
            let count = self.skipped;
            write!(f, "{count} frames of a kind unknown here were skipped")?;
        }
        Ok(())
    }
}

/// A frame to write.
#[derive(Debug, Clone, Copy)]
pub enum Frame<'a> {
    /// The start of the run.
    Start(&'a Start),
    /// Facts of a host.
    Host(&'a Host),
    /// A set of connections, with the settings in force.
    Set(&'a Set),
    /// A planned trial.
    Trial(&'a TrialPlan),
    /// A step with its readings.
    Step(&'a Step),
    /// Outputs of other programs.
    Imported(&'a Imported),
    /// The end of the run.
    End(&'a End),
}

/// The numbers of the kinds of frames. A number is never used again for another kind.
mod kind {
    pub(super) const START: u8 = 1;
    pub(super) const HOST: u8 = 2;
    pub(super) const SET: u8 = 3;
    pub(super) const TRIAL: u8 = 4;
    pub(super) const STEP: u8 = 5;
    pub(super) const END: u8 = 6;
    pub(super) const IMPORTED: u8 = 7;
}

/// The first bytes of a file: the magic and [`FORMAT`].
pub fn header() -> Vec<u8> {
    [&MAGIC[..], &FORMAT.to_le_bytes()].concat()
}

/// The bytes of one frame, to be appended to a record.
pub fn encode(frame: &Frame<'_>) -> Result<Vec<u8>, FrameError> {
    match frame {
        Frame::Start(start) => build(kind::START, *start),
        Frame::Host(host) => build(kind::HOST, *host),
        Frame::Set(set) => build(kind::SET, *set),
        Frame::Trial(trial) => build(kind::TRIAL, *trial),
        Frame::Step(step) => {
            check(step)?;
            build(kind::STEP, &StoredStep::from(*step))
        }
        Frame::Imported(imported) => build(kind::IMPORTED, *imported),
        Frame::End(end) => build(kind::END, *end),
    }
}

/// The bytes of a whole record.
pub fn encode_all(record: &Record) -> Result<Vec<u8>, FrameError> {
    let mut bytes = header();
    let frames = std::iter::once(Frame::Start(&record.start))
        .chain(record.hosts.iter().map(Frame::Host))
        .chain(record.sets.iter().map(Frame::Set))
        .chain(record.trials.iter().map(Frame::Trial))
        .chain(record.steps.iter().map(Frame::Step))
        .chain(record.imported.iter().map(Frame::Imported))
        .chain(record.end.iter().map(Frame::End));
    for frame in frames {
        bytes.extend(encode(&frame)?);
    }
    Ok(bytes)
}

/// Number of values in a step, times included: the number that counts toward [`MAX_VALUES`].
pub fn values(step: &Step) -> u64 {
    let tables = step.ends.iter().flat_map(|e| &e.tables);
    // Times count once more for each table: they are stored once for all tables, and unpacked for each.
    tables.map(|t| t.at.len() as u64 * (t.columns.len() as u64 + 2)).sum()
}

/// Refuses a step that [`decode`] would refuse.
fn check(step: &Step) -> Result<(), FrameError> {
    for table in step.ends.iter().flat_map(|e| &e.tables) {
        if let Some(column) = table.ragged() {
            return Err(FrameError::Ragged {
                table: table.name(),
                column: column.name.to_string(),
            });
        }
    }
    let values = values(step);
    if values > MAX_VALUES {
        return Err(FrameError::TooLarge { values });
    }
    Ok(())
}

fn build<T: Serialize>(kind: u8, payload: &T) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; FRAME_HEADER];
    frame[8] = kind;
    ciborium::into_writer(payload, &mut frame)
        .expect("plain structs and lists always have a CBOR form, and a Vec takes all bytes");
    let length = u32::try_from(frame.len() - FRAME_HEADER)
        .map_err(|_| FrameError::TooLarge { values: MAX_VALUES })?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    let crc = checksum(length, &frame[8..]);
    frame[4..8].copy_from_slice(&crc.to_le_bytes());
    Ok(frame)
}

/// The checksum of a frame: of its length, and of kind and payload in `rest`, which follow the checksum.
fn checksum(length: u32, rest: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(rest);
    hasher.finalize()
}

/// The record in `bytes`, and the parts of it that could not be read.
pub fn decode(bytes: &[u8]) -> Result<(Record, Option<Damage>), FrameError> {
    let mut reader = opened(bytes)?;
    let mut record = reader.start().map_err(FrameError::NoStart)?;
    let mut cuts = Vec::new();
    while let Err(cut) = reader.rest(&mut record) {
        cuts.push(reader.resumed(cut, &record));
    }
    let skipped = reader.skipped;
    let damage = (skipped > 0 || !cuts.is_empty()).then_some(Damage { skipped, cuts });
    Ok((record, damage))
}

/// The start of the record that begins with `bytes`. Bytes after the first frame are not read and may be missing.
pub fn start(bytes: &[u8]) -> Result<Start, FrameError> {
    let record = opened(bytes)?.start().map_err(FrameError::NoStart)?;
    Ok(record.start)
}

/// A reader at the first frame, once magic and format are checked.
fn opened(bytes: &[u8]) -> Result<Reader<'_>, FrameError> {
    if bytes.len() < FILE_HEADER || bytes[..MAGIC.len()] != MAGIC {
        return Err(FrameError::NotARecord);
    }
    let found = number(&bytes[MAGIC.len()..]);
    if found != FORMAT {
        return Err(FrameError::UnknownFormat { found });
    }
    Ok(Reader { bytes, at: FILE_HEADER, searched: 0, skipped: 0, budget: Budget(MAX_VALUES) })
}

/// The u32 at the front; the caller has checked that there are four bytes.
fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Number of bytes hashed so far in search of the next frame.
    searched: usize,
    skipped: u32,
    budget: Budget,
}

impl<'a> Reader<'a> {
    fn cut(&self, what: impl Into<String>) -> Cut {
        Cut { at: self.at, lost: self.bytes.len() - self.at, what: what.into() }
    }

    /// Moves on to the next intact frame, and returns `cut` with the number of bytes lost.
    fn resumed(&mut self, cut: Cut, record: &Record) -> Cut {
        let next = self.next(record).unwrap_or(self.bytes.len());
        self.at = next;
        Cut { lost: next - cut.at, ..cut }
    }

    /// The place of the next intact frame behind the damaged one at `self.at`; `None` if there is none.
    fn next(&mut self, record: &Record) -> Option<usize> {
        if record.end.is_some() {
            return None;
        }
        // In most cases the length is intact, and only that frame is lost.
        let length = self.bytes.get(self.at..).filter(|b| b.len() >= 4).map(number)?;
        let named = self.at + FRAME_HEADER + length as usize;
        if named == self.bytes.len() || self.begins(named) {
            return Some(named);
        }
        // Outputs of other programs may hold frames of other records.
        if record.start.made == Made::Import {
            return None;
        }
        (self.at + 1..self.bytes.len()).find(|at| self.begins(*at))
    }

    /// Whether an intact frame begins at `at`.
    fn begins(&mut self, at: usize) -> bool {
        let Some([head @ .., kind, first]) = self.bytes.get(at..at + FRAME_HEADER + 1) else {
            return false;
        };
        // The payload of a frame is a map, or a text that names how the run ended.
        if !(kind::HOST..=KIND_MAX).contains(kind) || !matches!(first >> 5, 3 | 5) {
            return false;
        }
        let length = number(head);
        let Some(rest) = self.bytes[at + 8..].get(..=length as usize) else {
            return false;
        };
        if self.searched.saturating_add(rest.len()) > self.bytes.len().saturating_mul(SEARCH_MAX) {
            return false;
        }
        self.searched += rest.len();
        checksum(length, rest) == number(&head[4..])
    }

    /// Kind and payload of the frame at `self.at`, and the place of the next frame.
    fn frame(&self) -> Result<(u8, &'a [u8], usize), Cut> {
        let left = &self.bytes[self.at..];
        if left.len() < FRAME_HEADER {
            return Err(self.cut("the header of a frame is cut off"));
        }
        let length = number(left);
        let Some(rest) = left[8..].get(..=length as usize) else {
            return Err(self.cut(format!("a frame of {length} bytes is cut off, or damaged")));
        };
        if checksum(length, rest) != number(&left[4..]) {
            return Err(self.cut("the checksum of a frame is wrong"));
        }
        Ok((rest[0], &rest[1..], self.at + 8 + rest.len()))
    }

    /// Reads the start of the run, which must be the first frame.
    fn start(&mut self) -> Result<Record, Cut> {
        let (kind, payload, next) = self.frame()?;
        if kind != kind::START {
            return Err(self.cut("the first frame is not a start"));
        }
        let start = self.item(payload, "start")?;
        self.at = next;
        Ok(Record {
            start,
            hosts: Vec::new(),
            sets: Vec::new(),
            trials: Vec::new(),
            steps: Vec::new(),
            imported: None,
            end: None,
        })
    }

    /// Reads all other frames, until the end of the file or the next damage.
    fn rest(&mut self, record: &mut Record) -> Result<(), Cut> {
        while self.at < self.bytes.len() {
            if record.end.is_some() {
                return Err(self.cut("something follows the end of the record"));
            }
            let (kind, payload, next) = self.frame()?;
            match kind {
                kind::START => return Err(self.cut("a second start")),
                kind::HOST => record.hosts.push(self.item(payload, "host")?),
                kind::SET => record.sets.push(self.item(payload, "set")?),
                kind::TRIAL => record.trials.push(self.item(payload, "trial")?),
                kind::STEP => record.steps.push(self.step(payload)?),
                kind::IMPORTED => record.imported = Some(self.item(payload, "import")?),
                kind::END => record.end = Some(self.item(payload, "end")?),
                _ => self.skipped += 1,
            }
            self.at = next;
        }
        Ok(())
    }

    fn step(&mut self, payload: &'a [u8]) -> Result<Step, Cut> {
        let stored: StoredStep<'a> = self.item(payload, "step")?;
        stored
            .open(&mut self.budget)
            .map_err(|why| self.cut(format!("a step cannot be understood ({why})")))
    }

    /// Decodes the one CBOR item of which `payload` consists.
    fn item<T: Deserialize<'a>>(&self, payload: &'a [u8], what: &str) -> Result<T, Cut> {
        let (item, rest) = cbor::read(payload)
            .map_err(|why| self.cut(format!("a {what} cannot be understood ({why})")))?;
        if rest.is_empty() {
            Ok(item)
        } else {
            Err(self.cut(format!("a {what} is followed by other bytes in its frame")))
        }
    }
}
