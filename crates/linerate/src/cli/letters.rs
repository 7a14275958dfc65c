//! Options of iperf3 that have another name in linerate.

use clap::error::{ContextKind, ContextValue};

/// Options of iperf3, and the options of linerate that replace them.
const ROWS: [(&str, &str); 18] = [
    ("-R", "-d reverse"),
    ("--reverse", "-d reverse"),
    ("--bidir", "-d both"),
    ("-u", "--engine udp"),
    ("--udp", "--engine udp"),
    ("-b", "--pacing RATE, for each stream, such as --pacing 100Mbit/s"),
    ("--bitrate", "--pacing RATE, for each stream, such as --pacing 100Mbit/s"),
    (
        "-i",
        "not needed: `bw` prints the rate of each second by itself, and --stream-json as it is measured",
    ),
    ("-n", "an amount, and here a measurement has a time: --time 10s"),
    ("-l", "--size SIZE"),
    ("-w", "--send-buffer SIZE and --recv-buffer SIZE"),
    ("-M", "--mss BYTES"),
    ("-C", "--congestion NAME"),
    ("-Z", "--copy zerocopy"),
    ("-S", "--dscp N: a quarter of the type of service"),
    ("--tos", "--dscp N: a quarter of the type of service"),
    ("-J", "--json"),
    ("-O", "not needed: the first second never counts"),
];

/// The hint for a typed option of iperf3: its name in linerate. `None` if the error is about another option.
pub(super) fn hint(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    // Only verbs that measure have these options.
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else {
        return None;
    };
    let usage = usage.to_string();
    if !["bw", "lat", "run"].iter().any(|verb| usage.contains(&format!("linerate {verb} "))) {
        return None;
    }
    let row = ROWS.iter().find(|(letter, _)| letter == typed);
    row.map(|(letter, here)| format!("hint: iperf3's {letter} is here: {here}\n"))
}

#[cfg(test)]
mod tests {
    use super::super::help;
    use super::*;

    fn hinted(args: &[&str]) -> Option<String> {
        let words = ["linerate", "bw", "brook"].iter().chain(args);
        let error = help::command().try_get_matches_from(words).unwrap_err();
        hint(&error)
    }

    #[test]
    fn the_options_that_are_named_exist() {
        let command = help::command();
        let bw = command.find_subcommand("bw").unwrap();
        let is_known = |name: &str| bw.get_arguments().any(|arg| arg.get_long() == Some(name));
        for (letter, here) in ROWS {
            let words = here.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
            let named = words.filter_map(|word| word.strip_prefix("--"));
            for name in named.filter(|name| !name.is_empty()) {
                assert!(is_known(name), "{letter}: --{name}");
            }
        }
        // `list` has no such option, so there is no hint.
        let error =
            help::command().try_get_matches_from(["linerate", "list", "-n", "5"]).unwrap_err();
        assert_eq!(hint(&error), None);
    }

    #[test]
    fn letters_of_iperf3_are_answered_by_their_names_here() {
        assert_eq!(hinted(&["-R"]).unwrap(), "hint: iperf3's -R is here: -d reverse\n");
        for (typed, here) in [
            (&["-u"][..], "--engine udp"),
            (&["-uR"], "--engine udp"),
            (&["-b", "1G"], "--pacing"),
            (&["-i", "1"], "each second"),
            (&["-n", "1G"], "--time"),
            (&["--bidir"], "-d both"),
            (&["-O", "1"], "not needed"),
        ] {
            let said = hinted(typed).unwrap();
            assert!(said.contains(here), "{typed:?}: {said}");
        }
        assert_eq!(hinted(&["-X"]), None);
        assert_eq!(hinted(&["--time", "x"]), None);
    }

    #[test]
    fn no_letter_has_another_meaning_here() {
        for (letter, _) in ROWS {
            assert!(hinted(&[letter]).is_some(), "{letter} is an option");
        }
    }
}
