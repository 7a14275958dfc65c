//! The end of the page: settings, and what could not be read.

use linerate_core::facts::{Gap, Tunable};

use super::super::{Document, Tone};
use super::put;

/// Settings, those of one part of the kernel together.
pub(super) fn settings(doc: &mut Document, tunables: &[Tunable]) {
    let mut parts: Vec<(&str, Vec<String>)> = Vec::new();
    for tunable in tunables {
        let (part, name) = tunable.name.rsplit_once('.').unwrap_or(("", &tunable.name));
        let words = format!("{name} {}", tunable.value);
        match parts.iter_mut().find(|(known, _)| *known == part) {
            Some((_, all)) => all.push(words),
            None => parts.push((part, vec![words])),
        }
    }
    for (i, (part, words)) in parts.iter().enumerate() {
        let label = if i == 0 { "Settings" } else { "" };
        let words = words.join(", ");
        match *part {
            "" => put(doc, label, &words),
            part => put(doc, label, &format!("{part}: {words}")),
        }
    }
}

/// What one command would allow to read, and why it could not be.
#[derive(Default)]
struct Group<'a> {
    hint: &'a str,
    /// Reasons, each with what is missing for it.
    whys: Vec<(String, Vec<&'a str>)>,
}

/// What is unknown: gaps that the same command would close together, those that no command would
/// close last.
pub(super) fn unknown(doc: &mut Document, gaps: &[Gap]) {
    let mut groups = groups(gaps);
    groups.sort_by_key(|group| group.hint.is_empty());
    let mut label = "Unknown";
    for group in &groups {
        for (why, whats) in &group.whys {
            put(doc, label, &format!("{}: {why}", whats.join(", ")));
            label = "";
        }
        if !group.hint.is_empty() {
            doc.detail(&[(Tone::Dim, "hint: "), (Tone::Plain, group.hint)], 6);
        }
    }
}

fn groups(gaps: &[Gap]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for gap in gaps {
        let at = groups.iter().position(|group| group.hint == gap.hint);
        let at = at.unwrap_or_else(|| {
            groups.push(Group {
                hint: &gap.hint,
                ..Group::default()
            });
            groups.len() - 1
        });
        let what = gap.what.strip_prefix("facts.").unwrap_or(&gap.what);
        let (why, whys) = (without_number(&gap.why), &mut groups[at].whys);
        match whys.iter_mut().find(|(known, _)| *known == why) {
            Some((_, whats)) => whats.push(what),
            None => whys.push((why, vec![what])),
        }
    }
    groups
}

/// The number of an error, which its text says in words: ` (os error 2)`.
fn without_number(why: &str) -> String {
    let Some((text, rest)) = why.split_once(" (os error ") else {
        return why.to_owned();
    };
    let rest = rest.split_once(')').map_or("", |(_, rest)| rest);
    format!("{text}{rest}")
}

#[cfg(test)]
mod tests {
    use linerate_core::facts::Gap;

    use super::super::super::Style;
    use super::*;

    #[test]
    fn gaps_that_one_command_closes_stand_together() {
        let gap = |what: &str, why: &str, hint: &str| Gap {
            what: format!("facts.{what}"),
            why: why.to_owned(),
            hint: hint.to_owned(),
        };
        let gaps = [
            gap("a", "x", "do"),
            gap("b", "y", ""),
            gap("c", "cannot read z: gone (os error 2)", "do"),
            gap("d", "x", "do"),
        ];
        let mut doc = Document::new();
        unknown(&mut doc, &gaps);
        let page = doc.text(Style::PLAIN);
        let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
        let want = [
            "Unknown         a, d: x",
            "                c: cannot read z: gone",
            "                hint: do",
            "                b: y",
        ];
        assert_eq!(lines, want);
    }
}
