//! The command that printed an output, and its options.

use super::Section;

/// The command before an output, if it runs a program that `is_program` accepts: `cat` of a file shows no options.
pub(crate) fn command_of<'a>(
    section: &Section<'a>,
    is_program: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let command = section.command?;
    let mut words = command.split_whitespace();
    words.any(|word| is_program(word.rsplit('/').next().unwrap_or(word))).then_some(command)
}

/// The value of an option in a command, in any of these spellings: `-m 64`, `-m64`, `--msg-size=64`, `--msg-size 64`.
pub(crate) fn option<'a>(command: &'a str, names: &[&str]) -> Option<&'a str> {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        for name in names {
            match word.strip_prefix(name) {
                Some("") => return words.next(),
                Some(value) if name.starts_with("--") => {
                    if let Some(value) = value.strip_prefix('=') {
                        return Some(value);
                    }
                }
                Some(value) if value.starts_with(|c: char| c.is_ascii_digit()) => {
                    return Some(value);
                }
                _ => {}
            }
        }
    }
    None
}

/// Whether one of the words of a command is one of `names`.
pub(crate) fn flag(command: &str, names: &[&str]) -> bool {
    command.split_whitespace().any(|word| names.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_programs_read_them() {
        for command in ["x -m 64 -t 2", "x -m64", "x --msg-size=64", "x --msg-size 64"] {
            let value = option(command, &["-m", "--msg-size"]);
            assert_eq!(value, Some("64"), "{command}");
        }
        assert_eq!(option("x --mps=64", &["-m", "--msg-size"]), None);
        assert!(flag("x -b --report_gbits", &["--report_gbits"]));
    }

    #[test]
    fn a_command_is_of_its_program() {
        let of = |command| {
            let section = Section { text: "", line: 1, command: Some(command) };
            command_of(&section, |program| program == "sockperf").is_some()
        };
        assert!(of("sudo /usr/bin/sockperf pp"));
        assert!(!of("cat sockperf.txt"));
    }
}
