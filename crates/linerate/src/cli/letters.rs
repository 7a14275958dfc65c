//! The letters of iperf3 that have another name here.

use clap::error::{ContextKind, ContextValue};

/// Options of iperf3, and what they are called here.
const ROWS: [(&str, &str); 18] = [
    ("-R", "-d reverse"),
    ("--reverse", "-d reverse"),
    ("--bidir", "-d both"),
    ("-u", "--engine udp"),
    ("--udp", "--engine udp"),
    (
        "-b",
        "--pacing RATE, for each stream, such as --pacing 100Mbit/s",
    ),
    (
        "--bitrate",
        "--pacing RATE, for each stream, such as --pacing 100Mbit/s",
    ),
    (
        "-i",
        "nothing: `bw` prints the rate of each second by itself, and --stream-json as it is measured",
    ),
    (
        "-n",
        "nothing: a measurement has a time, not an amount: --time 10s",
    ),
    ("-l", "--size SIZE"),
    ("-w", "--send-buffer SIZE and --recv-buffer SIZE"),
    ("-M", "--mss BYTES"),
    ("-C", "--congestion NAME"),
    ("-Z", "--copy zerocopy"),
    ("-S", "--dscp N: a quarter of the type of service"),
    ("--tos", "--dscp N: a quarter of the type of service"),
    ("-J", "--json"),
    ("-O", "nothing: the first second never counts"),
];

/// What an option of iperf3 that was typed is called here; `None` if the error is about another option.
pub(super) fn hint(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let row = ROWS.iter().find(|(letter, _)| letter == typed);
    row.map(|(letter, here)| format!("hint: {letter} of iperf3 is here: {here}\n"))
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
    fn letters_of_iperf3_are_answered_by_their_names_here() {
        assert_eq!(
            hinted(&["-R"]).unwrap(),
            "hint: -R of iperf3 is here: -d reverse\n"
        );
        for (typed, here) in [
            (&["-u"][..], "--engine udp"),
            (&["-uR"], "--engine udp"),
            (&["-b", "1G"], "--pacing"),
            (&["-i", "1"], "each second"),
            (&["-n", "1G"], "--time"),
            (&["--bidir"], "-d both"),
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
