//! Errors of the TOML parser, with the name that was probably meant.

use super::CaseError;

/// Keys that older case files had: the parser's message, and what to do instead.
const FORMER_KEYS: [(&str, &str); 1] = [(
    "unknown field `holds`",
    "delete `holds`: how a published figure compares with the computed one is derived from both",
)];

/// The error text with line and caret, and the word that was probably meant.
pub(super) fn in_file(error: &toml::de::Error) -> CaseError {
    let shown = error.to_string();
    let shown = shown.trim_end();
    let message = error.message();
    if let Some((_, now)) = FORMER_KEYS.iter().find(|(key, _)| message.starts_with(key)) {
        return CaseError(format!("{shown}\n{now}"));
    }
    CaseError(match meant(message) {
        Some(name) => format!("{shown}\ndid you mean `{name}`?"),
        None => shown.to_owned(),
    })
}

/// The message of an error without a position, and the name that was probably meant.
pub(super) fn explained(message: &str) -> String {
    match meant(message) {
        Some(name) => format!("{message}; did you mean `{name}`?"),
        None => message.to_owned(),
    }
}

/// The name that was probably meant: of the names in a parser's message, the one nearest to the rejected name. The
/// message quotes the rejected name first, then all allowed ones. `None` if no name is near.
fn meant(message: &str) -> Option<&str> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let typed = quoted.next()?;
    let near = |name: &&str| distance(typed, name);
    let best = quoted.min_by_key(near)?;
    (near(&best) <= typed.chars().count() / 3 + 1).then_some(best)
}

/// Number of characters to insert, delete or replace in order to turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_meant_and_a_far_one_is_not() {
        let message =
            |typed: &str| format!("unknown field `{typed}`, expected one of `mtu`, `pcie`, `link`");
        for (typed, name) in [("mut", Some("mtu")), ("pci", Some("pcie")), ("temperature", None)] {
            assert_eq!(meant(&message(typed)), name, "{typed}");
        }
        assert_eq!(meant("no quotes"), None);
        assert_eq!(meant("only `one`"), None);
    }

    #[test]
    fn distances_count_characters() {
        for (a, b, steps) in [("", "", 0), ("", "ab", 2), ("mtu", "mut", 2), ("link", "lnk", 1)] {
            assert_eq!(distance(a, b), steps, "{a} {b}");
            assert_eq!(distance(b, a), steps, "{b} {a}");
        }
    }
}
