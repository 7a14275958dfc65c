//! The environment variables that begin with `LINERATE_`.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::Command;
use linerate_plan::application;
use linerate_session::peer::keys;

/// The prefix of all variables.
const PREFIX: &str = "LINERATE_";
/// Prefix of variables that only the project's tests read.
const OF_TESTS: &str = "LINERATE_TEST_";

/// Names of all `LINERATE_` variables that are set.
pub(super) fn set() -> Vec<String> {
    ours(std::env::vars_os().map(|(name, _)| name))
}

/// Names of variables that are set but that neither the program nor the lab reads: most likely a typing error.
pub(super) fn unread(program: &Command) -> Vec<String> {
    let read = read(program);
    let mut set = set();
    set.retain(|name| !read.contains(name) && !name.starts_with(OF_TESTS));
    set
}

fn ours(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let names = names.filter_map(|name| name.into_string().ok());
    let ours: BTreeSet<String> = names.filter(|name| name.starts_with(PREFIX)).collect();
    ours.into_iter().collect()
}

/// All variables that the program reads: those of options of any verb, those of the lab, and the key. The key
/// has no option, since other users can see arguments.
fn read(program: &Command) -> BTreeSet<String> {
    let mut read = BTreeSet::from([application::VARIABLE, keys::KEY_VARIABLE].map(str::to_owned));
    let options = program.get_arguments().filter_map(clap::Arg::get_env);
    read.extend(options.map(|name| name.to_string_lossy().into_owned()));
    for verb in program.get_subcommands() {
        read.append(&mut self::read(verb));
    }
    read
}

#[cfg(test)]
mod tests {
    use super::super::help;
    use super::*;

    #[test]
    fn variables_of_every_verb_and_of_the_lab_are_read() {
        let read = read(&help::command());
        for name in [
            "LINERATE_WRITE_SIZE",
            "LINERATE_SERVE_OPEN",
            "LINERATE_COLOR",
            application::VARIABLE,
            keys::KEY_VARIABLE,
        ] {
            assert!(read.contains(name), "{name}");
        }
        assert!(!read.contains("LINERATE_SERVE_ALLOW"));
        assert!(read.iter().all(|name| name.starts_with(PREFIX)));
    }

    #[test]
    fn only_names_that_look_like_ours_count() {
        let names = ["PATH", "LINERATE_B", "XLINERATE_A", "LINERATE_A"];
        let ours = ours(names.into_iter().map(OsString::from));
        assert_eq!(ours, ["LINERATE_A", "LINERATE_B"]);
    }
}
