//! Help texts: clap derives them from the options, and the defaults of `defaults.toml` are added here.

use clap::{Arg, Command, CommandFactory};
use linerate_record::iperf3::STREAMS_MAX;
use toml::{Table, Value};

use super::Cli;
use super::config::DEFAULTS;

/// Placeholders of values that are numbers. Such options accept a leading `-`, so that their own parsers can explain
/// why a negative value is wrong.
const NUMBERS: [&str; 6] = ["BYTES", "CLAIM", "N", "RATE", "SIZE", "TIME"];

/// Sets what all switches and all numeric options have in common. A switch may be given without or with a value.
fn by_value(command: Command) -> Command {
    let of_value = |arg: Arg| match arg.get_value_names().unwrap_or_default() {
        [name] if name == "BOOL" => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_possible_values(true),
        [name] if NUMBERS.contains(&name.as_str()) => arg.allow_hyphen_values(true),
        _ => arg,
    };
    command.mut_args(of_value).mut_subcommands(by_value)
}

/// The program's command line, with its help texts.
pub(crate) fn command() -> Command {
    let defaults: Table = DEFAULTS.parse().unwrap_or_default();
    by_value(Cli::command()).mut_args(|arg| document(arg, "global", &defaults)).mut_subcommands(
        |verb| {
            let name = verb.get_name().to_owned();
            let verb = if name == "bw" { single(verb) } else { verb };
            verb.mut_args(|arg| document(arg, &name, &defaults))
        },
    )
}

/// Changes the help of `--streams` for `bw`: it uses exactly this number, and an iperf3 server allows fewer.
fn single(verb: Command) -> Command {
    let streams = format!(
        "Number of connections, 1 to 10000 (with an iperf3 server at most {STREAMS_MAX}) [default: 1]"
    );
    verb.mut_arg("streams", |arg| arg.help(streams))
}

/// Adds the default to the help, unless the help states one. Hides the environment variable: its name follows from the
/// option, as the end of the program's help explains.
fn document(arg: Arg, verb: &str, defaults: &Table) -> Arg {
    let arg = arg.hide_env(true);
    // The help states a default itself if another group has an option with this name.
    let reported = arg.get_help().is_some_and(|help| help.to_string().contains("[default: "));
    let Some(default) = default_of(&arg, verb, defaults).filter(|_| !reported) else {
        return arg;
    };
    let text = |help: Option<String>| format!("{} [default: {default}]", help.unwrap_or_default());
    let long = arg.get_long_help().map(ToString::to_string);
    let short = arg.get_help().map(ToString::to_string);
    let arg = arg.help(text(short));
    match long {
        Some(long) => arg.long_help(text(Some(long))),
        None => arg,
    }
}

/// The default in the verb's own group of `defaults.toml`, else in any group.
fn default_of(arg: &Arg, verb: &str, defaults: &Table) -> Option<String> {
    let name = arg.get_long()?;
    let own = defaults.get(verb).into_iter();
    let value = own.chain(defaults.values()).find_map(|group| group.get(name))?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        // Switches are off and lists are empty by default, which the help does not state.
        _ => None,
    }
}
