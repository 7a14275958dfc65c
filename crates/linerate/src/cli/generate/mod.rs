//! `linerate generate`: files that belong to an installed program, made from its own declarations.

mod man;

use std::fmt::Write as _;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use clap_complete::Shell;

use super::config::DEFAULTS;
use super::exit::{Exit, Failure};
use super::options::own;
use super::{help, out};
use linerate_show::schemas::{SCHEMAS, schema};

// `linerate generate`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print the manual page; to read it: linerate generate man | man -l -
    Man,
    /// Print a completion script for a shell
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Print the JSON schema of a document, or list the schemas
    Schema {
        /// Name of the schema
        #[arg(value_parser = PossibleValuesParser::new(SCHEMAS.iter().map(|schema| schema.name)))]
        name: Option<String>,
    },
    /// Print a configuration file with every option and its default
    Config,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    let text = match &args.what {
        What::Man => man::page(help::command()).map_err(Failure::not_measured)?,
        What::Completions { shell } => completions(*shell),
        What::Schema { name: None } => schemas(),
        // clap accepts only known names of schemas, so that the default is never used.
        What::Schema { name: Some(name) } => schema(name).map_or("", |found| found.text).to_owned(),
        What::Config => config(),
    };
    out::print(&text)?;
    Ok(Exit::Done)
}

fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut help::command(), "linerate", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

fn schemas() -> String {
    SCHEMAS.iter().fold(String::new(), |mut list, schema| {
        let _ = writeln!(list, "{:16}{}", schema.name, schema.of);
        list
    })
}

const CONFIG_HEAD: &str = "\
# linerate's configuration file: every option with its default.
#
# Keep it as $XDG_CONFIG_HOME/linerate/config.toml (usually ~/.config/linerate/config.toml), or name
# it with --config. Nothing is changed until the `# ` before an option is taken away: what stays a
# comment follows the defaults of later versions. Lines that begin with `#?` are samples of options
# that are unset by default. A flag outranks its environment variable, which outranks this file.

";

/// The configuration file with every option and its default, each as a comment.
fn config() -> String {
    let from = DEFAULTS.find("\n[").map_or(0, |at| at + 1);
    let mut text = CONFIG_HEAD.to_owned();
    let all = format!("{}{}", &DEFAULTS[from..], own::samples());
    for line in all.lines() {
        if line.is_empty() || line.starts_with(['[', '#']) {
            text.push_str(line);
        } else {
            // Removes as many spaces as were added, so that the comments behind the options stay aligned.
            let _ = write!(text, "# {}", line.replacen("   #", " #", 1));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::{Command, ValueEnum};

    use super::super::config::{layer, parse};
    use super::super::options::Options;
    use super::*;

    /// All commands of the program, including those within other commands.
    fn commands(command: &Command) -> Vec<&Command> {
        let within = command.get_subcommands().flat_map(commands);
        std::iter::once(command).chain(within).collect()
    }

    fn built() -> Command {
        let mut program = help::command();
        program.build();
        program
    }

    #[test]
    fn completions_of_every_shell_know_every_verb_and_option() {
        let program = built();
        for shell in Shell::value_variants() {
            let script = completions(*shell);
            for command in commands(&program) {
                assert!(script.contains(command.get_name()), "{shell}");
                for long in command.get_arguments().filter_map(|arg| arg.get_long()) {
                    assert!(script.contains(long), "{shell}: no --{long}");
                }
            }
        }
    }

    #[test]
    fn the_manual_page_has_every_verb_and_option_once_under_its_verb() {
        let program = built();
        let page = man::page(help::command()).unwrap();
        for command in commands(&program).into_iter().skip(1) {
            let name = command.get_bin_name().unwrap();
            let heading = format!(".SH \"{}\"\n", name.to_uppercase());
            let (_, after) = page.split_once(&heading).unwrap();
            let chapter = after.split("\n.SH ").next().unwrap();
            let own = command.get_arguments().filter(|arg| !arg.is_global_set());
            let own = own.filter_map(|arg| arg.get_long());
            for long in own.filter(|long| *long != "help") {
                let name = format!("\\-\\-{}", long.replace('-', "\\-"));
                assert!(chapter.contains(&name), "{heading} has no {name}");
            }
        }
        assert_eq!(page.matches("\n.SH \"GLOBAL OPTIONS\"\n").count(), 1);
        assert_eq!(page.matches("\n.SH NAME\n").count(), 1);
    }

    #[test]
    fn every_schema_is_one_and_is_named_after_what_it_describes() {
        for schema in SCHEMAS {
            let text: serde_json::Value = serde_json::from_str(schema.text).unwrap();
            assert!(jsonschema::meta::is_valid(&text), "{}", schema.name);
            let id = text["$id"].as_str().unwrap();
            assert!(id.ends_with(&format!("/{}.schema.json", schema.name)));
            assert!(schemas().contains(schema.of));
        }
    }

    #[test]
    fn the_configuration_changes_nothing_as_it_is_nor_with_every_default_uncommented() {
        let text = config();
        let plain = layer(&Options::default(), toml::Table::new()).unwrap();
        let read = layer(&Options::default(), parse(&text).unwrap()).unwrap();
        assert_eq!(read, plain);
        let (head, body) = text.split_once("\n\n").unwrap();
        assert!(head.lines().all(|line| line.starts_with('#')));
        let lines = body.lines();
        let bare = lines.map(|line| line.strip_prefix("# ").unwrap_or(line));
        let uncommented = bare.collect::<Vec<_>>().join("\n");
        assert_ne!(parse(&uncommented).unwrap()["run"], parse(&text).unwrap()["run"]);
        let read = layer(&Options::default(), parse(&uncommented).unwrap()).unwrap();
        assert_eq!(read, plain);
    }

    #[test]
    fn the_configuration_has_every_option_of_every_group() {
        // On an unknown name, the parser's error lists the names that it knows.
        let known = |text: &str| -> Vec<String> {
            let why = parse(text).unwrap_err();
            let (_, expected) = why.split_once("expected").unwrap();
            let names = expected.split('`').skip(1).step_by(2);
            names.map(str::to_owned).collect()
        };
        let text = config();
        let groups = known("[no-such-group]\n");
        assert!(groups.len() > 5, "{groups:?}");
        for group in groups {
            let (_, after) = text.split_once(&format!("[{group}]\n")).unwrap();
            let body = after.split("\n[").next().unwrap();
            for option in known(&format!("[{group}]\nno-such-option = 1\n")) {
                let line = format!(" {option} = ");
                assert!(body.contains(&line), "[{group}] has no {option}");
            }
        }
    }
}
