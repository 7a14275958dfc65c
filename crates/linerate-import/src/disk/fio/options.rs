//! Options of a job: its own, and the global ones that it does not set itself.

use linerate_core::units::Bytes;
use serde_json::Value;

use super::document::Words;
use super::{Pattern, SYNCHRONOUS};
use crate::disk::figures;

/// First version that lists options without a value.
//= measured: 3.33 leaves `group_reporting` and `time_based` out, 3.42 lists them as ""
const LISTS_ALL: (u32, u32) = (3, 42);
/// Options that make operations of several sizes.
const SIZES: &[&str] = &["bsrange", "blocksize_range", "bssplit"];

pub(super) struct Options<'a> {
    global: &'a Words,
    own: Option<&'a Words>,
    /// Whether an option that is missing was not given.
    complete: bool,
}

impl<'a> Options<'a> {
    pub(super) fn new(global: &'a Words, own: Option<&'a Words>, version: &str) -> Self {
        Self {
            global,
            own,
            complete: own.is_some() && lists_all(version),
        }
    }

    /// Whether the document has options of the job at all.
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

    /// What the job does; reads one after the other are the default.
    pub(super) fn pattern(&self) -> Option<Pattern> {
        match self.word(&["rw", "readwrite"]) {
            Some(word) => Pattern::of(word),
            None => self.own.and(Pattern::of("read")),
        }
    }

    /// Operations that a thread was asked to keep in flight.
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

    /// Whether the engine keeps one operation in flight; `None` if the engine is unknown.
    pub(super) fn synchronous(&self) -> Option<bool> {
        let engine = self.word(&["ioengine"])?;
        Some(SYNCHRONOUS.contains(&engine))
    }

    pub(super) fn direct(&self) -> Option<bool> {
        let on = |word: &str| word.is_empty() || word.trim() == "1";
        let direct = self.word(&["direct"]).map(on);
        let buffered = self.word(&["buffered"]).map(|word| !on(word));
        direct
            .or(buffered)
            .or_else(|| self.complete.then_some(false))
    }

    /// Payload of an operation as asked.
    pub(super) fn block(&self) -> Option<Bytes> {
        figures::size(self.word(&["bs", "blocksize"])?)
    }

    pub(super) fn of_several_sizes(&self) -> bool {
        self.has(SIZES)
    }

    pub(super) fn target(&self) -> &'a str {
        self.word(&["filename", "directory"]).unwrap_or_default()
    }

    pub(super) fn file(&self) -> Option<Bytes> {
        let size = figures::size(self.word(&["filesize", "size"])?)?;
        (size.0 > 0).then_some(size)
    }
}

/// Whether this version lists options without a value.
fn lists_all(version: &str) -> bool {
    let number = version.strip_prefix("fio-").unwrap_or(version);
    let mut parts = number.split(['.', '-']).map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= LISTS_ALL,
        _ => false,
    }
}
