//! The layers of options: defaults, then configuration file, then environment and flags.
//!
//! The layers are merged as TOML tables and then read once, so this module names almost no option.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use toml::{Table, Value};

use super::exit::{Failure, tell};
use super::options::Options;

pub(crate) const DEFAULTS: &str = include_str!("../defaults.toml");

/// Longest configuration file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Group, option, and the options of that group that it unsets in lower layers.
const OUTRANKS: &[(&str, &str, &[&str])] = &[
    ("load", "size", &["write-size", "read-size"]),
    ("report", "json", &["format"]),
    ("report", "format", &["json"]),
    ("records", "save", &["no-save"]),
    ("records", "no-save", &["save", "note"]),
    ("records", "note", &["no-save"]),
    ("run", "time", &["quick", "thorough"]),
    ("run", "quick", &["thorough"]),
    ("run", "thorough", &["quick"]),
    ("peer", "ipv4", &["ipv6"]),
    ("peer", "ipv6", &["ipv4"]),
];

/// Merges the layers: typed options take precedence over the file, and the file over the defaults. `typed` holds flags
/// and environment, which clap has merged already.
pub(crate) fn resolve(typed: &Options) -> Result<Options, Failure> {
    let (path, wanted) = match &typed.global.config {
        Some(path) => (Some(path.clone()), true),
        None => (default_path(), false),
    };
    let file = match path {
        Some(path) => read(&path, wanted)?,
        None => Table::new(),
    };
    layer(typed, file).map_err(Failure::usage)
}

pub(super) fn layer(typed: &Options, file: Table) -> anyhow::Result<Options> {
    let mut merged: Table = DEFAULTS.parse().context("the built-in defaults")?;
    merge(&mut merged, file);
    merge(&mut merged, Table::try_from(typed)?);
    // Read from text, as a file is: a second deserializer for tables would double the compiled code.
    let mut options: Options = toml::from_str(&merged.to_string())?;
    options.global.config.clone_from(&typed.global.config);
    Ok(options)
}

/// `$XDG_CONFIG_HOME/linerate/config.toml`, or `~/.config/linerate/config.toml` without the variable.
fn default_path() -> Option<PathBuf> {
    Some(user_folder("XDG_CONFIG_HOME", ".config")?.join("linerate/config.toml"))
}

/// A folder of the user's files: the absolute path in `variable`, else `in_home` under the home folder.
pub(super) fn user_folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(in_home)))
}

/// Reads a configuration file; a missing file is an error only if the user named it.
fn read(path: &Path, wanted: bool) -> Result<Table, Failure> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 > LONGEST => {
            let error =
                anyhow::anyhow!("the configuration file {} is longer than 1 MiB", path.display());
            return Err(Failure::usage(error).hint("linerate generate config > FILE writes one"));
        }
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound && !wanted => return Ok(Table::new()),
        // After a change of the user (`su`, `sudo`), HOME is often still that of the first user.
        Err(e)
            if !wanted
                && matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::NotADirectory) =>
        {
            tell(&format!(
                "note: {} may not be read, so no configuration file is used: {e}\n",
                path.display()
            ));
            return Ok(Table::new());
        }
        Err(e) => {
            let what = format!("failed to read the configuration file {}", path.display());
            let failure = Failure::usage(anyhow::Error::new(e).context(what));
            return Err(failure.hint("linerate generate config > FILE writes one"));
        }
    }
    parse(&text).map_err(|e| {
        let what = format!("the configuration file {} is not valid", path.display());
        Failure::usage(anyhow::anyhow!("{}", e.trim_end()).context(what))
            .hint("`linerate COMMAND --help` lists every option")
    })
}

/// Checks every name and value in the text itself, so that errors have line and column.
pub(super) fn parse(text: &str) -> Result<Table, String> {
    toml::from_str::<Options>(text).map_err(|e| e.to_string())?;
    text.parse::<Table>().map_err(|e| e.to_string())
}

/// Adds the options of `over` to `under`, group by group; an option in `over` replaces the one in `under`.
fn merge(under: &mut Table, over: Table) {
    for (group, options) in over {
        let Value::Table(options) = options else {
            continue;
        };
        let below = under.entry(group.clone()).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(below) = below else {
            continue;
        };
        for (_, _, losers) in
            OUTRANKS.iter().filter(|(g, winner, _)| *g == group && options.contains_key(*winner))
        {
            for loser in *losers {
                below.remove(*loser);
            }
        }
        below.extend(options);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_units::Bytes;

    use super::super::options;
    use super::*;

    fn file(text: &str) -> Table {
        parse(text).unwrap()
    }

    #[test]
    fn defaults_are_valid_and_complete_where_the_program_relies_on_them() {
        let options = layer(&Options::default(), parse(DEFAULTS).unwrap()).unwrap();
        assert_eq!(options.run.time.unwrap().0.duration(), Duration::from_secs(60));
        // If unset, more streams are tried; if set, exactly this many are measured.
        assert_eq!(options.load.streams, None);
    }

    #[test]
    fn the_sample_lines_of_the_defaults_are_valid_too() {
        // Each sample is parsed alone, because some of them exclude each other.
        let mut group = "";
        for line in DEFAULTS.lines() {
            if line.starts_with('[') {
                group = line;
            }
            if let Some(sample) = line.strip_prefix("#? ") {
                parse(&format!("{group}\n{sample}\n")).unwrap();
            }
        }
    }

    #[test]
    fn a_file_outranks_defaults_and_flags_outrank_the_file() {
        let text = "[run]\ntime = '20s'\n[load]\nstreams = 4\n";
        let mut typed = Options::default();
        assert_eq!(layer(&typed, file(text)).unwrap().load.streams.unwrap().0, 4);
        typed.load.streams = "8".parse().ok();
        let options = layer(&typed, file(text)).unwrap();
        assert_eq!(options.load.streams.unwrap().0, 8);
        assert_eq!(options.run.time.unwrap().0.duration(), Duration::from_secs(20));
    }

    #[test]
    fn a_size_that_was_typed_outranks_the_finer_sizes_of_the_file() {
        let mut typed = Options::default();
        typed.load.size = "64KiB".parse().ok();
        let options = layer(&typed, file("[load]\nwrite-size = '1MiB'\n")).unwrap();
        assert_eq!(options.load.write_size, None);
        assert_eq!(options.load.size.unwrap().0, Bytes(65_536));
    }

    #[test]
    fn a_budget_that_was_typed_outranks_a_quick_or_thorough_look_of_the_file() {
        let of = |run: options::Run, text: &str| {
            let typed = Options { run, ..Options::default() };
            let run = layer(&typed, file(text)).unwrap().run;
            (run.quick, run.thorough)
        };
        let timed = options::Run { time: "2min".parse().ok(), ..options::Run::default() };
        let thorough = options::Run { thorough: Some(true), ..options::Run::default() };
        let quick = "[run]\nquick = true\n";
        assert_eq!(of(timed, quick), (None, None));
        assert_eq!(of(thorough, quick), (None, Some(true)));
        assert_eq!(of(options::Run::default(), quick), (Some(true), None));
    }

    #[test]
    fn a_directory_that_was_typed_outranks_no_save_of_the_file() {
        let mut typed = Options::default();
        typed.records.save = Some("/tmp".into());
        let options = layer(&typed, file("[records]\nno-save = true\n")).unwrap();
        assert_eq!(options.records.no_save, None);
    }

    #[test]
    fn a_typo_is_shown_with_its_line_and_what_was_expected() {
        let why = parse("[run]\ntme = '20s'\n").unwrap_err();
        assert!(why.contains("line 2"), "{why}");
        assert!(why.contains("^^^"), "{why}");
        assert!(why.contains("`time`"), "{why}");
    }

    #[test]
    fn a_wrong_value_is_shown_with_its_line_and_range() {
        let why = parse("[run]\n\ntime = 20\n").unwrap_err();
        assert!(why.contains("line 3") && why.contains("no unit"), "{why}");
        let why = parse("[load]\nstreams = 0\n").unwrap_err();
        assert!(why.contains("1 to 10000"), "{why}");
    }
}
