//! Reads the output of `sysctl`: settings of the kernel's network.

use linerate_facts::Tunable;

use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::MOST;

pub(crate) static SYSCTL: Format = Format {
    id: "sysctl",
    label: "sysctl, settings of the network",
    versions: "procps 3 and 4",
    evidence: "run here: procps-ng 4.0.2",
    unknown: "Settings that are not in the text, and whether a namespace of its own has others.",
    starts: |at| at.line.starts_with(NETWORK) && setting(at.line).is_some(),
    read,
    ..Format::FACTS
};

/// Start of the names of the settings that are kept.
const NETWORK: &str = "net.";
/// Longest value that is kept, in bytes.
const LONGEST: usize = 256;

/// The name and the value in a line such as `net.core.rmem_max = 212992`.
fn setting(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim_end(), value.trim());
    let is_word = |word: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_-/".contains(c);
        !word.is_empty() && word.chars().all(is_part)
    };
    let is_name = name.contains('.') && name.split('.').all(is_word);
    (is_name && !value.is_empty()).then_some((name, value))
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let is_other = |line: &str| setting(line).is_none() && !line.trim().is_empty();
    let mut reading = Reading::until(section, is_other);
    for line in std::mem::take(&mut reading.lines) {
        // Settings of other parts of the kernel are skipped.
        let found = setting(line.text).filter(|(name, _)| name.starts_with(NETWORK));
        let Some((name, value)) = found else { continue };
        if value.len() > LONGEST || reading.facts.tunables.len() >= MOST {
            reading.notes.at(line.number, format!("the value of `{name}` is left out"));
            continue;
        }
        let words: Vec<&str> = value.split_whitespace().collect();
        reading.facts.tunables.push(Tunable { name: name.to_owned(), value: words.join(" ") });
    }
    reading.found("sysctl")
}

#[cfg(test)]
mod tests {
    use super::super::samples::{merged, of, words};
    use super::*;

    fn value<'a>(all: &'a [Tunable], name: &str) -> Option<&'a str> {
        let found = all.iter().find(|tunable| tunable.name == name);
        found.map(|tunable| tunable.value.as_str())
    }

    #[test]
    fn settings_of_the_network_are_facts() {
        let (all, notes) = of(&["sysctl/network-4.0.2.txt"]);
        assert_eq!(all.tunables.len(), 9);
        let value = |name| value(&all.tunables, name);
        assert_eq!(value("net.core.rmem_max"), Some("4194304"));
        assert_eq!(value("net.ipv4.tcp_rmem"), Some("4096 131072 33554432"));
        assert_eq!(value("net.ipv4.tcp_congestion_control"), Some("bbr"));
        assert_eq!(words(&notes), [""; 0]);
    }

    #[test]
    fn other_settings_and_prose_are_no_facts() {
        let text = "net.core.rmem_max=212992\nkernel.pid_max = 32768\nIs that enough?\n";
        let (all, notes) = merged(&[text]);
        assert_eq!(all.tunables.len(), 1);
        assert_eq!(words(&notes), ["not understood: `Is that enough?`"]);
        for other in [
            "net.core.rmem_max is 212992",
            "net.core.rmem_max =",
            "network = 3",
            "net. = 3",
            "kernel.pid_max = 32768",
            "net.a b = 3",
        ] {
            assert!(crate::read(other.as_bytes()).is_err(), "{other}");
        }
    }

    #[test]
    fn a_long_value_is_left_out() {
        let of = |length: usize| {
            let text = format!("net.core.a = 1\nnet.core.b = {}\n", "1".repeat(length));
            let (all, notes) = merged(&[&text]);
            (all.tunables.len(), notes.len())
        };
        assert_eq!(of(LONGEST), (2, 0));
        assert_eq!(of(LONGEST + 1), (1, 1));
    }
}
