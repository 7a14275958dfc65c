//! Options of a job: its own, and the global ones for those that it does not set itself.

use linerate_units::Bytes;
use serde_json::Value;

use super::document::Words;
use super::{Pattern, SYNCHRONOUS};
use crate::reading::size;

/// First version of fio that lists options that have no value.
//= measured: 3.33 leaves `group_reporting` and `time_based` out, 3.42 lists them as ""
const LISTS_ALL: (u32, u32) = (3, 42);
/// Options that give operations several sizes.
const SIZES: &[&str] = &["bsrange", "blocksize_range", "bssplit"];

pub(super) struct Options<'a> {
    global: &'a Words,
    own: Option<&'a Words>,
    /// Whether an option that is not listed was not given by the user.
    complete: bool,
}

impl<'a> Options<'a> {
    pub(super) fn new(global: &'a Words, own: Option<&'a Words>, version: &str) -> Self {
        Self { global, own, complete: own.is_some() && lists_all(version) }
    }

    /// Whether the document has options of the job.
    pub(super) fn known(&self) -> bool {
        self.own.is_some()
    }

    fn word(&self, names: &[&str]) -> Option<&'a str> {
        let of = |words: &'a Words| names.iter().find_map(|name| words.get(*name));
        let own = self.own.and_then(of);
        own.or_else(|| of(self.global)).and_then(Value::as_str)
    }

    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.word(names).is_some()
    }

    /// Value of `rw`, the job's pattern of operations; the default is sequential reads.
    pub(super) fn rw(&self) -> Option<&'a str> {
        self.word(&["rw", "readwrite"]).or(self.own.map(|_| "read"))
    }

    pub(super) fn pattern(&self) -> Option<Pattern> {
        Pattern::of(self.rw()?)
    }

    /// Operations that each thread was requested to keep in flight.
    pub(super) fn depth(&self) -> Option<u32> {
        self.count("iodepth")
    }

    pub(super) fn jobs(&self) -> Option<u32> {
        self.count("numjobs")
    }

    fn count(&self, name: &str) -> Option<u32> {
        match self.word(&[name]) {
            Some(word) => word.trim().parse().ok().filter(|n| *n > 0),
            None => self.own.map(|_| 1),
        }
    }

    /// Name of the I/O engine; empty if unknown.
    pub(super) fn engine(&self) -> &'a str {
        self.word(&["ioengine"]).unwrap_or_default()
    }

    /// Whether the I/O engine keeps only one operation in flight; `None` if the engine is unknown.
    pub(super) fn synchronous(&self) -> Option<bool> {
        let engine = self.word(&["ioengine"])?;
        Some(SYNCHRONOUS.contains(&engine))
    }

    /// Flushes per write that were requested; `None` if unknown.
    //= fio, HOWTO, "fsync": "issue an fsync(2) ... for every number of blocks given"; "sync": "O_SYNC", "O_DSYNC"
    pub(super) fn flushed(&self) -> Option<f64> {
        let sync = self.word(&["sync"]);
        if sync.is_some_and(|word| ["1", "", "sync", "dsync"].contains(&word)) {
            return Some(1.0);
        }
        match self.word(&["fsync", "fdatasync"]) {
            Some("0") => Some(0.0),
            Some(word) => word.parse().ok().map(|every: u32| f64::from(every.max(1)).recip()),
            None => self.complete.then_some(0.0),
        }
    }

    pub(super) fn direct(&self) -> Option<bool> {
        let on = |word: &str| word.is_empty() || word.trim() == "1";
        let direct = self.word(&["direct"]).map(on);
        let buffered = self.word(&["buffered"]).map(|word| !on(word));
        direct.or(buffered).or_else(|| self.complete.then_some(false))
    }

    /// Requested payload of an operation.
    pub(super) fn block(&self) -> Option<Bytes> {
        size(self.word(&["bs", "blocksize"])?)
    }

    pub(super) fn of_several_sizes(&self) -> bool {
        self.has(SIZES)
    }

    pub(super) fn target(&self) -> &'a str {
        self.word(&["filename", "directory"]).unwrap_or_default()
    }

    pub(super) fn file(&self) -> Option<Bytes> {
        let size = size(self.word(&["filesize", "size"])?)?;
        (size.0 > 0).then_some(size)
    }
}

/// The options of a command with one job; `None` if it has several jobs, or if the options are in a file.
pub(super) fn given(command: &str) -> Option<Words> {
    let words = command.split_whitespace();
    let mut words = words.skip_while(|word| !word.ends_with("fio"));
    words.next()?;
    let mut words = words.peekable();
    let mut options = Words::new();
    while let Some(word) = words.next() {
        let bare = word.trim_start_matches('-');
        let (key, value) = match bare.split_once('=') {
            Some(pair) => pair,
            None if word.starts_with("--") => {
                (bare, words.next_if(|next| !next.starts_with('-')).unwrap_or_default())
            }
            None => continue,
        };
        let twice = options.insert(key.to_owned(), Value::from(value)).is_some();
        if twice && key == "name" {
            return None;
        }
    }
    options.contains_key("name").then_some(options)
}

/// Whether this version of fio lists options that have no value.
fn lists_all(version: &str) -> bool {
    let number = version.strip_prefix("fio-").unwrap_or(version);
    let mut parts = number.split(['.', '-']).map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= LISTS_ALL,
        _ => false,
    }
}
