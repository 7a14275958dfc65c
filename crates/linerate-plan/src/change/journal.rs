//! How a change is written to a journal before it is made, and read back after the program was killed.

use std::fmt;

use super::{SETTINGS, Setting, words};

/// A change of a setting, as it is written to disk before it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Boot id of the machine. After another boot the change is gone.
    pub boot: String,
    /// Network namespace in which the change was made.
    pub network: String,
    /// The setting that was changed.
    pub setting: Setting,
    /// The port of the setting; empty for settings that belong to no port.
    pub port: String,
    /// The numbers of the setting before the change.
    pub old: Vec<u64>,
    /// The numbers that were to be set.
    pub new: Vec<u64>,
}

/// Why a journal cannot be trusted: one of its lines is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Damaged {
    /// Number of the damaged line, from 1.
    pub line: usize,
    /// The problem with the line.
    pub what: &'static str,
}

/// First word of each line of a journal: the name and version of its format.
const FORMAT: &str = "linerate-change-1";

/// Largest number of entries in a journal.
const ENTRIES_MAX: usize = 64;

/// Longest name in an entry, in bytes. The name of a port has at most 15.
const NAME_MAX: usize = 64;

/// Largest journal that is read, in bytes.
pub const JOURNAL_MAX: usize = 64 * 1024;

impl Entry {
    /// Name of the setting that was changed, for people.
    pub fn what(&self) -> String {
        self.setting.row().what(&self.port)
    }

    /// The entry as a line of a journal; `None` if one of its names cannot be written to the journal.
    pub fn line(&self) -> Option<String> {
        let Self { boot, network, setting, port, old, new } = self;
        let id = setting.row().id;
        let text = [FORMAT, boot, network, id, port, &words(old), &words(new)].join("\t");
        let line = format!("{text}\t{:08x}\n", crc32fast::hash(text.as_bytes()));
        (journal(line.as_bytes()).as_deref() == Ok(std::slice::from_ref(self))).then_some(line)
    }

    fn read(line: &str) -> Result<Self, &'static str> {
        let (text, sum) = line.rsplit_once('\t').ok_or("it is no entry")?;
        if sum != format!("{:08x}", crc32fast::hash(text.as_bytes())) {
            return Err("its checksum does not fit");
        }
        let fields: Vec<&str> = text.split('\t').collect();
        let [FORMAT, boot, network, id, port, old, new] = fields[..] else {
            return Err("it has another format");
        };
        if ![boot, network, port].into_iter().all(is_name) {
            return Err("a name in it is none");
        }
        let row = SETTINGS.iter().find(|row| row.id == id);
        let row = row.ok_or("it names no setting that linerate changes")?;
        if boot.is_empty() || network.is_empty() || row.of_port() == port.is_empty() {
            return Err("it does not say where");
        }
        let numbers = |text| numbers(text).filter(|numbers| row.holds(numbers));
        Ok(Self {
            boot: boot.to_owned(),
            network: network.to_owned(),
            setting: row.setting,
            port: port.to_owned(),
            old: numbers(old).ok_or("its old value is none")?,
            new: numbers(new).ok_or("its new value is none")?,
        })
    }
}

impl fmt::Display for Entry {
    /// Writes the setting and its old value, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let old = self.setting.row().words(&self.old);
        write!(f, "{} from \"{old}\"", self.what())
    }
}

/// Reads all entries of a journal, or none if a line is damaged. A last line without a line end was cut off while it
/// was written: its change was never made.
pub fn journal(bytes: &[u8]) -> Result<Vec<Entry>, Damaged> {
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
    let lines = bytes[..whole].split_inclusive(|b| *b == b'\n');
    let mut entries = Vec::new();
    for (i, line) in lines.enumerate() {
        let damaged = |what| Damaged { line: i + 1, what };
        let text = std::str::from_utf8(line).map_err(|_| damaged("it is not text"))?;
        let entry = Entry::read(text.trim_end_matches('\n')).map_err(damaged)?;
        if entries.len() == ENTRIES_MAX {
            return Err(damaged("it is one entry too many"));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "-_.:@+".contains(c);
    text.len() <= NAME_MAX && text.chars().all(plain)
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    let of = |word: &str| word.bytes().all(|b| b.is_ascii_digit()).then(|| word.parse().ok())?;
    text.split(' ').map(of).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::QUEUES_MAX;
    use super::*;

    fn entry() -> Entry {
        Entry {
            boot: "6f0c3a52-9d1e-4b6e-8d0f-0a1b2c3d4e5f".to_owned(),
            network: "cookie:4711".to_owned(),
            setting: Setting::TcpRmem,
            port: String::new(),
            old: vec![4096, 131_072, 524_288],
            new: vec![4096, 131_072, 2_097_152],
        }
    }

    #[test]
    fn an_entry_comes_back_and_a_line_that_was_cut_off_counts_for_nothing() {
        let line = entry().line().expect("plain names");
        assert_eq!(journal(line.as_bytes()), Ok(vec![entry()]));
        assert_eq!(journal(b""), Ok(Vec::new()));
        for cut in 0..line.len() {
            assert_eq!(journal(&line.as_bytes()[..cut]), Ok(Vec::new()), "at {cut}");
        }
        let two = [line.as_bytes(), &line.as_bytes()[..20]].concat();
        assert_eq!(journal(&two), Ok(vec![entry()]));
    }

    #[test]
    fn one_bad_line_spoils_the_journal() {
        let line = entry().line().expect("plain names");
        let bad = journal(format!("{line}nonsense\n{line}").as_bytes());
        let what = "it is no entry";
        assert_eq!(bad, Err(Damaged { line: 2, what }));
        let many = journal(line.repeat(ENTRIES_MAX + 1).as_bytes());
        assert!(many.is_err());
        assert!(journal(line.repeat(ENTRIES_MAX).as_bytes()).is_ok());
    }

    /// Reads a journal with one entry of these `fields` and a right checksum, as somebody may forge it to make linerate
    /// change a setting.
    fn forged(fields: [&str; 6]) -> Result<Vec<Entry>, Damaged> {
        let text = format!("{FORMAT}\t{}", fields.join("\t"));
        let sum = crc32fast::hash(text.as_bytes());
        journal(format!("{text}\t{sum:08x}\n").as_bytes())
    }

    #[test]
    fn only_settings_of_the_table_and_numbers_that_the_kernel_has_are_taken() {
        let (good, new) = ("4096 131072 524288", "4096 131072 9");
        assert!(forged(["b", "n", "tcp-rmem", "", good, new]).is_ok());
        assert!(forged(["b", "n", "send-offloads", "eth0", "0 1", "1 1"]).is_ok());
        assert!(forged(["b", "n", "queue-bytes", "eth0", "65536 1", "65536 9"]).is_ok());
        let many = "0 ".repeat(QUEUES_MAX) + "0";
        assert!(forged(["b", "n", "packet-cpus", "eth0", &many[2..], &many[2..]]).is_ok());
        for fields in [
            ["b", "n", "../../kernel/core_pattern", "", good, new],
            ["b", "n", "tcp-rmem", "", "4096 131072", new],
            ["b", "n", "tcp-rmem", "", "4096 131072 2147483648", new],
            ["b", "n", "tcp-rmem", "", "4096 131072 -1", new],
            ["b", "n", "tcp-rmem", "", "4096 131072 +1", new],
            ["b", "n", "tcp-rmem", "", "", new],
            ["b", "n", "tcp-rmem", "eth0", good, new],
            ["b", "n", "send-offloads", "", "0 1", "1 1"],
            ["b", "n", "send-offloads", "../eth0", "0 1", "1 1"],
            ["b", "n", "send-offloads", "eth0", "0 2", "1 1"],
            ["b", "n", "queue-bytes", "", "65536 1", "65536 9"],
            ["b", "n", "queue-bytes", "eth0", "1", "9"],
            ["b", "n", "queue-packets", "eth0", "65536 4294967296", "65536 9"],
            ["b", "n", "packet-cpus", "eth0", "4294967296", "1"],
            ["b", "n", "packet-cpus", "eth0", &many, &many],
            ["", "n", "tcp-rmem", "", good, new],
            ["b", "", "tcp-rmem", "", good, new],
        ] {
            assert!(forged(fields).is_err(), "{fields:?}");
        }
    }

    #[test]
    fn a_name_that_would_not_come_back_is_not_written() {
        let mut odd = entry();
        odd.network = "a\tb".to_owned();
        assert_eq!(odd.line(), None);
        odd.network = "x".repeat(NAME_MAX + 1);
        assert_eq!(odd.line(), None);
    }

    proptest! {
        #[test]
        fn a_bent_journal_is_an_error_or_the_same(at in 0usize..200, bits in 1u8..) {
            let mut bytes = entry().line().expect("plain names").into_bytes();
            let at = at % bytes.len();
            bytes[at] ^= bits;
            let read = journal(&bytes).unwrap_or_default();
            prop_assert!(read.is_empty());
        }

        #[test]
        fn any_bytes_are_a_journal_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = journal(&bytes);
        }
    }
}
