//! Options that belong to transports: each row in the table of transports makes a flag, a variable and a key of the
//! configuration file.
//!
//! This module names no option. A new row in the table of transports is enough to add one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::sync::LazyLock;

use clap::builder::{BoolValueParser, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use linerate_plan::transport::{self, BIND, Kind, OptionInfo, Setting, TRANSPORTS, TransportInfo};
use linerate_units::Bytes;
use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::super::quantity;
use super::super::resolve::Needs;

/// An option of one or more transports, with its flag.
struct Flag {
    key: &'static str,
    /// The transports that have the option, each with its own row. All rows have the same kind of value, but may differ
    /// in bounds and words: the row of the chosen transport decides later.
    rows: Vec<(&'static TransportInfo, &'static OptionInfo)>,
    variable: String,
    /// The help of the flag; it names the transports that have the option.
    help: String,
}

/// Every option of the transports that users may choose, each once.
static FLAGS: LazyLock<Vec<Flag>> = LazyLock::new(|| {
    let mut flags: Vec<Flag> = Vec::new();
    for info in TRANSPORTS.iter().filter(|info| info.offered) {
        for row in info.options {
            match flags.iter_mut().find(|flag| flag.key == row.key) {
                Some(flag) => flag.rows.push((info, row)),
                None => flags.push(Flag {
                    key: row.key,
                    rows: vec![(info, row)],
                    variable: format!("LINERATE_{}", row.key.to_uppercase().replace('-', "_")),
                    help: String::new(),
                }),
            }
        }
    }
    for flag in &mut flags {
        flag.help = help(&flag.rows);
    }
    flags
});

/// The help of an option: each of its meanings, with the transports that have that meaning.
fn help(rows: &[(&TransportInfo, &OptionInfo)]) -> String {
    let mut meanings: Vec<(&OptionInfo, Vec<&str>)> = Vec::new();
    for (info, row) in rows {
        match meanings.iter_mut().find(|(same, _)| same == row) {
            Some((_, engines)) => engines.push(info.name),
            None => meanings.push((row, vec![info.name])),
        }
    }
    let words = meanings.iter();
    let words = words.map(|(row, all)| format!("{} (--engine {})", row.help, all.join(" or ")));
    words.collect::<Vec<_>>().join("; ")
}

static KEYS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| FLAGS.iter().map(|flag| flag.key).collect());

/// The options of transports that are set, for all transports and not only the chosen one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Own(BTreeMap<&'static str, Setting>);

impl Own {
    /// The options that are set and that this transport has.
    pub(crate) fn of(&self, info: &TransportInfo) -> transport::Options {
        let mut options = transport::Options::default();
        let own = info.options.iter().map(|row| row.key);
        for (key, setting) in own.filter_map(|key| Some((key, self.0.get(key)?))) {
            options.set(key, setting.clone());
        }
        options
    }

    /// A copy in which the option `key` is set to `setting`.
    pub(crate) fn with(&self, key: &'static str, setting: &Setting) -> Self {
        let mut own = self.clone();
        own.0.insert(key, setting.clone());
        own
    }
}

/// A verb that takes options of transports.
pub(crate) trait Verb: Clone + Send + Sync + 'static {
    /// The kinds of traffic that the verb needs of a transport.
    const NEEDS: Needs;
    /// Whether an option of words may have several values; the verb then measures with each.
    const SEVERAL: bool = false;
}

/// The key of an option, and its values in the order in which they were typed.
pub(crate) type Each = (&'static str, Vec<Setting>);

/// Options of the transports that a verb can use, as flags.
#[derive(Debug, Clone)]
pub(crate) struct Flags<V> {
    pub(crate) set: Own,
    /// Options for which several values were typed; `set` holds the first value.
    pub(crate) each: Vec<Each>,
    verb: PhantomData<V>,
}

impl<V: Verb> Flags<V> {
    fn of_verb() -> impl Iterator<Item = &'static Flag> {
        let needed = |(info, row): &(&TransportInfo, &OptionInfo)| {
            V::NEEDS.uses(row) && V::NEEDS.met_by(info)
        };
        FLAGS.iter().filter(move |flag| flag.rows.iter().any(needed))
    }
}

impl<V: Verb> Args for Flags<V> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::of_verb().map(|flag| match flag.kind() {
            Kind::Word(_) if V::SEVERAL => flag.arg().value_delimiter(',').value_name("WHAT,..."),
            _ => flag.arg(),
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<V: Verb> FromArgMatches for Flags<V> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let set = |flag: &'static Flag| {
            let setting = matches.get_one::<Setting>(flag.key)?;
            Some((flag.key, setting.clone()))
        };
        let several = |flag: &'static Flag| {
            let words: Vec<Setting> = matches.get_many(flag.key)?.cloned().collect();
            (words.len() > 1).then_some((flag.key, words))
        };
        Ok(Self {
            set: Own(Self::of_verb().filter_map(set).collect()),
            each: Self::of_verb().filter_map(several).collect(),
            verb: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Flag {
    /// The kind of value, which is the same in all rows.
    fn kind(&self) -> Kind {
        self.rows.first().map_or(Kind::Switch, |(_, row)| row.kind)
    }

    fn arg(&'static self) -> Arg {
        let arg = Arg::new(self.key)
            .long(self.key)
            .env(self.variable.as_str())
            .help(self.help.as_str())
            .help_heading("Load")
            .value_parser(self.parser());
        // iperf3 has `-B` for this purpose too.
        let arg = if self.key == BIND.key { arg.short('B') } else { arg };
        match self.kind() {
            Kind::Switch => arg.value_name("BOOL"),
            Kind::Count { .. } => arg.value_name("N"),
            Kind::Size { .. } => arg.value_name("SIZE"),
            Kind::Word(_) => arg.value_name("WHAT"),
            Kind::Name(_) => arg.value_name("NAME"),
            Kind::Path(_) => arg.value_name("PATH"),
        }
    }

    /// A valid value of the option, as it is written in a configuration file.
    fn sample(&self) -> String {
        match self.kind() {
            Kind::Switch => "true".to_owned(),
            Kind::Count { least, .. } => least.to_string(),
            Kind::Size { least, .. } => format!("\"{least}B\""),
            Kind::Word(words) => format!("\"{}\"", words.first().unwrap_or(&"")),
            Kind::Name(example) | Kind::Path(example) => format!("\"{example}\""),
        }
    }

    /// The parser for the option's value on the command line.
    fn parser(&'static self) -> ValueParser {
        match self.kind() {
            Kind::Word(_) => PossibleValuesParser::new(self.words()).map(Setting::Word).into(),
            Kind::Switch => BoolValueParser::new().map(Setting::Switch).into(),
            Kind::Count { .. } | Kind::Size { .. } | Kind::Name(_) | Kind::Path(_) => {
                ValueParser::from(move |text: &str| self.accepted(|row| written(row, text)))
            }
        }
    }

    /// The words that any of the rows accepts, each once.
    fn words(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        for (_, row) in &self.rows {
            let Kind::Word(words) = row.kind else { continue };
            for word in words {
                if !all.contains(word) {
                    all.push(*word);
                }
            }
        }
        all
    }

    /// The value that the first accepting row reads; if none accepts it, the error of the first row.
    fn accepted<T>(&self, read: impl Fn(&OptionInfo) -> Result<T, String>) -> Result<T, String> {
        let mut all = self.rows.iter().map(|(_, row)| read(row));
        let first = all.next().unwrap_or_else(|| Err(format!("{} has no values", self.key)));
        first.or_else(|why| all.find_map(Result::ok).ok_or(why))
    }
}

/// Parses a value of an option from text, and checks it against the row.
fn written(row: &OptionInfo, text: &str) -> Result<Setting, String> {
    let setting = match row.kind {
        Kind::Count { least, most } => Setting::Number(quantity::read(text, (least, most))?),
        Kind::Size { least, most } => {
            Setting::Number(quantity::read(text, (Bytes(least), Bytes(most)))?.0)
        }
        Kind::Switch | Kind::Word(_) | Kind::Name(_) | Kind::Path(_) => {
            Setting::Word(text.to_owned())
        }
    };
    row.check(&setting)?;
    Ok(setting)
}

/// The options as samples for the configuration file; `defaults.toml` has no group for them.
pub(crate) fn samples() -> String {
    let mut text = "\n[engine]\n".to_owned();
    for flag in FLAGS.iter() {
        let line = format!("#? {} = {}", flag.key, flag.sample());
        let _ = writeln!(text, "{line:<25} # {}", flag.help);
    }
    text
}

impl Serialize for Own {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, setting) in &self.0 {
            let flag = FLAGS.iter().find(|flag| flag.key == *key);
            match (flag.map(Flag::kind), setting) {
                // A size is written with its unit, because a size without one is refused when it is read.
                (Some(Kind::Size { .. }), Setting::Number(bytes)) => {
                    map.serialize_entry(key, &format!("{bytes}B"))?;
                }
                _ => map.serialize_entry(key, setting)?,
            }
        }
        map.end()
    }
}

/// A value of an option in a configuration file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Switch(bool),
    Number(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for Own {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Group;
        impl<'de> Visitor<'de> for Group {
            type Value = Own;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("options of engines")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Own, M::Error> {
                let mut own = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    let found = FLAGS.iter().find(|flag| flag.key == key);
                    let flag = found.ok_or_else(|| de::Error::unknown_field(&key, &KEYS))?;
                    let setting = match map.next_value()? {
                        Value::Switch(on) => {
                            let setting = Setting::Switch(on);
                            flag.accepted(|row| row.check(&setting).map(|()| setting.clone()))
                        }
                        Value::Number(number) => {
                            flag.accepted(|row| written(row, &number.to_string()))
                        }
                        Value::Text(text) => flag.accepted(|row| written(row, &text)),
                    };
                    own.insert(flag.key, setting.map_err(de::Error::custom)?);
                }
                Ok(Own(own))
            }
        }
        deserializer.deserialize_map(Group)
    }
}

#[cfg(test)]
mod tests {
    use linerate_plan::transport::{MEMORY, TCP, UDP};

    use super::*;

    const SWITCH: OptionInfo =
        OptionInfo { key: "direct", help: "", kind: Kind::Switch, pattern: None, of_path: false };
    const SIZE: OptionInfo = OptionInfo {
        key: "inline",
        help: "",
        kind: Kind::Size { least: 64, most: 1024 },
        pattern: None,
        of_path: false,
    };

    fn file(text: &str) -> Result<Own, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_survives_being_written_and_read() {
        for text in ["access = \"read\"\nmemory-node = 3\n", ""] {
            let own = file(text).unwrap();
            let written = toml::to_string(&own).unwrap();
            assert_eq!(file(&written), Ok(own), "{written}");
        }
    }

    #[test]
    fn every_sample_is_valid() {
        for line in samples().lines().filter_map(|line| line.strip_prefix("#? ")) {
            assert_eq!(file(line).unwrap().0.len(), 1, "{line}");
        }
    }

    #[test]
    fn wrong_values_are_refused_with_what_is_possible() {
        for (text, part) in [
            ("access = \"move\"", "read, write, copy"),
            ("memory-node = 1024", "0 to 1023"),
            ("memory-node = \"one\"", "`one` is not a whole number"),
            ("memory-node = true", "another kind"),
            ("acces = \"read\"", "`access`"),
        ] {
            let why = file(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
        assert!(written(&SIZE, "64B").is_ok() && written(&SIZE, "1KiB").is_ok());
        assert!(written(&SIZE, "63B").unwrap_err().contains("allowed: 64 B"));
        assert!(written(&SIZE, "64").unwrap_err().contains("no unit"));
        assert!(written(&SWITCH, "yes").is_err());
    }

    #[test]
    fn an_option_has_a_meaning_for_each_transport() {
        const WIDE: OptionInfo =
            OptionInfo { help: "More", kind: Kind::Size { least: 1, most: 4096 }, ..SIZE };
        let rows = vec![(&MEMORY, &SIZE), (&TCP, &WIDE), (&UDP, &WIDE)];
        assert_eq!(help(&rows[1..]), "More (--engine tcp or udp)");
        assert_eq!(help(&rows), " (--engine memory); More (--engine tcp or udp)");
        let flag = Flag { key: "inline", rows, variable: String::new(), help: String::new() };
        let read = |text| flag.accepted(|row| written(row, text));
        assert_eq!(read("64B"), Ok(Setting::Number(64)));
        assert_eq!(read("4096B"), Ok(Setting::Number(4096)), "of another transport");
        assert!(read("4097B").unwrap_err().contains("allowed: 64 B"));
    }

    #[test]
    fn values_of_an_option_have_one_shape() {
        for flag in FLAGS.iter() {
            let shape = std::mem::discriminant(&flag.kind());
            let same = |(_, row): &(_, &OptionInfo)| std::mem::discriminant(&row.kind) == shape;
            assert!(flag.rows.iter().all(same), "{}", flag.key);
        }
    }

    #[test]
    fn a_transport_takes_its_own_options_and_no_others() {
        let own = file("access = \"read\"\nmemory-node = 3\n").unwrap();
        assert_eq!(own.of(&MEMORY).word("access"), Some("read"));
        assert!(own.of(&TCP).is_empty());
    }
}
