//! Options of transports. Each option is declared once, as a row. The row gives the flag, its help, its key in files
//! and records, and the check of what a peer requests.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PatternKind;
use linerate_units::shell::word;

/// Largest number of options in a plan. A peer's plan is checked against it before anything else.
const OPTIONS_MAX: usize = 32;

/// An option of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionInfo {
    /// The key in records, JSON and the configuration file. With `--` before it, it is the flag.
    pub key: &'static str,
    /// The help text: one line without a full stop.
    pub help: &'static str,
    /// The kind of value that the option accepts.
    pub kind: Kind,
    /// The only pattern that has the option; `None` if all patterns have it.
    pub pattern: Option<PatternKind>,
    /// Whether the option selects the path, so that a probe of this path needs the option too.
    pub of_path: bool,
}

/// The kind of value that an option accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The value is yes or no.
    Switch,
    /// The value is a number.
    Count {
        /// The smallest allowed value.
        least: u64,
        /// The largest allowed value.
        most: u64,
    },
    /// The value is a size in bytes.
    Size {
        /// The smallest allowed value.
        least: u64,
        /// The largest allowed value.
        most: u64,
    },
    /// The value is one of the listed words.
    Word(&'static [&'static str]),
    /// The value is the name of something on a host, such as a device. The text is an example.
    Name(&'static str),
    /// The value is the path of a file or a device. The text is an example.
    Path(&'static str),
}

/// Longest path that an option accepts, in bytes.
const PATH_MAX: usize = 255;

/// Whether a text can be a path in a message to the user: it is no control sequence.
fn is_path(text: &str) -> bool {
    (1..=PATH_MAX).contains(&text.len()) && !text.contains(char::is_control)
}

/// Longest name that an option accepts, in bytes.
const NAME_MAX: usize = 64;

/// Whether a text is a valid name: it has only letters, digits and the signs `_-.:`.
fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

/// The value that was set for an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "OptionValue")]
pub enum Setting {
    /// The value of an option that is a switch.
    Switch(bool),
    /// The value of an option that is a number, or a size in bytes.
    Number(u64),
    /// The value of an option that is a word or a name.
    Word(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => f.write_str(if *on { "yes" } else { "no" }),
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// The access of operations, in the words of [`crate::Access`].
pub const ACCESS: OptionInfo = OptionInfo {
    key: "access",
    help: "What each operation does with the memory [default: copy]",
    kind: Kind::Word(&["read", "write", "copy"]),
    pattern: Some(PatternKind::Operations),
    of_path: false,
};

/// The NUMA node whose memory the load uses.
pub const MEMORY_NODE: OptionInfo = OptionInfo {
    key: "memory-node",
    help: "Use memory of this NUMA node [default: the node of each thread's CPU]",
    //= Linux include/linux/numa.h: NODES_SHIFT is 10 at most
    kind: Kind::Count { least: 0, most: 1023 },
    pattern: None,
    of_path: true,
};

/// Size of the shared memory of each stream and direction.
pub const RING: OptionInfo = OptionInfo {
    key: "ring",
    help: "Size of the shared memory of each stream and direction, a power of two such as 1MiB",
    kind: Kind::Size { least: 4096, most: 16 << 20 },
    pattern: None,
    of_path: false,
};

/// Whether a preloaded library replaces the program's sockets, and moves their bytes by RDMA.
pub const PRELOAD: OptionInfo = OptionInfo {
    key: "preload",
    help: "Start the programs with librdmacm's socket preload (librspreload), which carries their bytes by RDMA",
    kind: Kind::Switch,
    pattern: None,
    of_path: true,
};

/// The DSCP of packets, by which queues on the path may sort them. Both ends set it on what they send.
pub const DSCP: OptionInfo = OptionInfo {
    key: "dscp",
    help: "DSCP of all packets of the load and its round trips, at both ends, such as 46 [default: 0]",
    //= RFC 2474, section 3: six bits
    kind: Kind::Count { least: 0, most: 63 },
    pattern: None,
    of_path: true,
};

/// The local address or device from which the near end connects. The far end ignores this option.
pub const BIND: OptionInfo = OptionInfo {
    key: "bind",
    help: "Source of the load on this machine: one of its addresses, or a device such as eth1 [default: by the route]",
    kind: Kind::Name("10.0.0.2"),
    pattern: None,
    of_path: true,
};

/// Size of a stream's ring in bytes where [`RING`] is not set.
pub const RING_DEFAULT: u64 = 4 << 20;

/// Options that were set, by key. An option that is not here has its transport's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Options(BTreeMap<String, Setting>);

impl Options {
    /// Whether no option is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the option `key`.
    pub fn set(&mut self, key: &str, setting: Setting) {
        self.0.insert(key.to_owned(), setting);
    }

    /// All options that are set, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.0.iter().map(|(key, setting)| (key.as_str(), setting))
    }

    /// The value of the option `key`, if it is set.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.0.get(key)
    }

    /// The value of the option `key`, if it is a number or a size.
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.0.get(key) {
            Some(Setting::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// The value of the option `key`, if it is a word or a name.
    pub fn word(&self, key: &str) -> Option<&str> {
        match self.0.get(key) {
            Some(Setting::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Whether the option `key` is a switch that is on.
    pub fn is_on(&self, key: &str) -> bool {
        self.0.get(key) == Some(&Setting::Switch(true))
    }

    /// The options that apply to a pattern, for a transport whose options are `rows`.
    #[must_use]
    pub fn of(&self, rows: &[OptionInfo], pattern: PatternKind) -> Self {
        let has = |key: &str| rows.iter().any(|row| row.key == key && row.is_of(pattern));
        let own = self.0.iter().filter(|(key, _)| has(key));
        Self(own.map(|(key, set)| (key.clone(), set.clone())).collect())
    }

    /// The options that select the path, for a transport whose options are `rows`.
    #[must_use]
    pub fn of_path(&self, rows: &[OptionInfo]) -> Self {
        let selects = |key: &str| rows.iter().any(|row| row.key == key && row.of_path);
        let own = self.0.iter().filter(|(key, _)| selects(key));
        Self(own.map(|(key, set)| (key.clone(), set.clone())).collect())
    }

    /// Whether a transport whose options are `rows` accepts all set options for a `pattern`. The error is the reason,
    /// as a lowercase fragment.
    pub fn check(&self, rows: &[OptionInfo], pattern: PatternKind) -> Result<(), String> {
        if self.0.len() > OPTIONS_MAX {
            return Err(format!("more than {OPTIONS_MAX} options"));
        }
        self.iter().try_for_each(|(key, setting)| {
            let row = rows.iter().find(|row| row.key == key);
            let row =
                row.ok_or_else(|| "an option that this transport does not have".to_owned())?;
            if !row.is_of(pattern) {
                return Err(format!("{key} is an option of another pattern"));
            }
            row.check(setting)
        })
    }
}

impl OptionInfo {
    /// Whether the option applies to a pattern.
    pub fn is_of(&self, pattern: PatternKind) -> bool {
        self.pattern.is_none_or(|own| own == pattern)
    }

    /// The value as text after the flag of a command line: ` read`, ` 64B`, empty for a switch that is on.
    pub fn argument(&self, setting: &Setting) -> String {
        match (self.kind, setting) {
            (Kind::Switch, Setting::Switch(true)) => String::new(),
            (Kind::Switch, _) => "=false".to_owned(),
            (Kind::Size { .. }, Setting::Number(bytes)) => format!(" {bytes}B"),
            (_, setting) => format!(" {}", word(&setting.to_string())),
        }
    }

    /// Whether the option accepts a value. The error is the reason, as a lowercase fragment.
    pub fn check(&self, setting: &Setting) -> Result<(), String> {
        let key = self.key;
        match (self.kind, setting) {
            (Kind::Switch, Setting::Switch(_)) => Ok(()),
            (Kind::Count { least, most } | Kind::Size { least, most }, Setting::Number(number)) => {
                let fits = (least..=most).contains(number);
                fits.then_some(())
                    .ok_or_else(|| format!("{key} {number}: {least} to {most} are possible"))
            }
            (Kind::Word(words), Setting::Word(word)) => {
                let known = words.contains(&word.as_str());
                let list = words.join(", ");
                known.then_some(()).ok_or_else(|| format!("{key} takes one of {list}"))
            }
            (Kind::Name(example), Setting::Word(name)) => is_name(name)
                .then_some(())
                .ok_or_else(|| format!("{key} takes a name such as {example}")),
            (Kind::Path(example), Setting::Word(path)) => is_path(path)
                .then_some(())
                .ok_or_else(|| format!("{key} takes a path such as {example}")),
            _ => Err(format!("{key} has a value of another kind")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [OptionInfo; 5] = [
        OptionInfo {
            key: "device",
            help: "",
            kind: Kind::Path("/dev/sdx"),
            pattern: None,
            of_path: false,
        },
        OptionInfo {
            key: "port",
            help: "",
            kind: Kind::Name("mlx5_0:1"),
            pattern: None,
            of_path: true,
        },
        OptionInfo {
            key: "inline",
            help: "",
            kind: Kind::Size { least: 1, most: 9 },
            pattern: None,
            of_path: false,
        },
        OptionInfo {
            key: "verb",
            help: "",
            kind: Kind::Word(&["read", "write"]),
            pattern: None,
            of_path: false,
        },
        OptionInfo {
            key: "direct",
            help: "",
            kind: Kind::Switch,
            pattern: Some(PatternKind::Operations),
            of_path: false,
        },
    ];

    fn check(key: &str, setting: Setting) -> bool {
        let mut options = Options::default();
        options.set(key, setting);
        options.check(&ROWS, PatternKind::Operations).is_ok()
    }

    #[test]
    fn values_are_checked_on_both_sides_of_each_limit() {
        for (key, setting, good) in [
            ("inline", Setting::Number(0), false),
            ("inline", Setting::Number(1), true),
            ("inline", Setting::Number(9), true),
            ("inline", Setting::Number(10), false),
            ("inline", Setting::Switch(true), false),
            ("verb", Setting::Word("read".into()), true),
            ("verb", Setting::Word("reads".into()), false),
            ("port", Setting::Word("mlx5_0:1".into()), true),
            ("port", Setting::Word("x".repeat(64)), true),
            ("port", Setting::Word("x".repeat(65)), false),
            ("port", Setting::Word(String::new()), false),
            ("port", Setting::Word("../mlx5_0".into()), false),
            ("port", Setting::Number(1), false),
            ("device", Setting::Word("/dev/disk/by-id/a b".into()), true),
            ("device", Setting::Word("x".repeat(255)), true),
            ("device", Setting::Word("x".repeat(256)), false),
            ("device", Setting::Word(String::new()), false),
            ("device", Setting::Word("/dev/\u{1b}[2J".into()), false),
            ("device", Setting::Switch(true), false),
            ("direct", Setting::Switch(false), true),
            ("direct", Setting::Word("yes".into()), false),
            ("other", Setting::Switch(true), false),
        ] {
            assert_eq!(check(key, setting.clone()), good, "{key} {setting:?}");
        }
    }

    #[test]
    fn a_plan_of_too_many_options_is_refused_before_they_are_looked_at() {
        let mut options = Options::default();
        for n in 0..=OPTIONS_MAX {
            options.set(&n.to_string(), Setting::Switch(true));
        }
        let refused = options.check(&ROWS, PatternKind::Operations);
        assert!(refused.unwrap_err().contains("more than"));
    }

    #[test]
    fn an_option_of_one_pattern_is_no_option_of_the_others() {
        let mut options = Options::default();
        options.set("direct", Setting::Switch(true));
        options.set("inline", Setting::Number(3));
        let timed = PatternKind::RoundTrips;
        let why = options.check(&ROWS, timed).unwrap_err();
        assert_eq!(why, "direct is an option of another pattern");
        let own = options.of(&ROWS, timed);
        assert_eq!(own.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["inline"]);
        assert_eq!(options.of(&ROWS, PatternKind::Operations), options);
        assert!(own.check(&ROWS, timed).is_ok());
        options.set("port", Setting::Word("mlx5_0".into()));
        let of_path = options.of_path(&ROWS);
        let keys: Vec<_> = of_path.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["port"]);
    }

    #[test]
    fn options_are_read_as_they_were_written() {
        let mut options = Options::default();
        options.set("inline", Setting::Number(3));
        options.set("verb", Setting::Word("read".into()));
        options.set("direct", Setting::Switch(true));
        let mut bytes = Vec::new();
        ciborium::into_writer(&options, &mut bytes).unwrap();
        let read: Options = ciborium::from_reader(bytes.as_slice()).unwrap();
        assert_eq!(read, options);
        assert_eq!((read.number("inline"), read.word("verb")), (Some(3), Some("read")));
        assert!(read.is_on("direct") && !read.is_on("verb"));
    }
}
