//! The end of the page of a host: kernel settings, and what could not be read.

use linerate_facts::odd::few;
use linerate_facts::{Gap, Tunable};

use super::super::{Document, Tone};
use super::put;

/// Largest number of lines about unknown facts on a page without `--explain`.
const SHOWN: usize = 3;

/// Writes the kernel settings, grouped by the part of their name before the last dot.
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

/// Unknown facts that one command would make readable, and why their readings failed.
#[derive(Default)]
struct Group<'a> {
    hint: &'a str,
    /// Reasons, each with the facts that are unknown for it.
    whys: Vec<(String, Vec<&'a str>)>,
}

/// Writes the unknown facts: gaps that one command would close are listed together, and gaps that no command would
/// close are last. With `explain` all of them, else the first lines.
pub(super) fn unknown(doc: &mut Document, gaps: &[Gap], explain: bool) {
    let mut groups = groups(gaps);
    groups.sort_by_key(|group| group.hint.is_empty());
    let most = if explain { usize::MAX } else { SHOWN };
    let (mut label, mut shown, mut more) = ("Unknown", 0, 0);
    for group in &groups {
        let left = most.saturating_sub(shown);
        for (why, whats) in group.whys.iter().take(left) {
            let names = if explain { whats.join(", ") } else { few(whats) };
            put(doc, label, &format!("{names}: {why}"));
            label = "";
        }
        if !group.hint.is_empty() && left > 0 {
            doc.detail(&[(Tone::Dim, "hint: "), (Tone::Plain, group.hint)], 6);
        }
        shown += group.whys.len().min(left);
        let hidden = group.whys.iter().skip(left);
        more += hidden.map(|(_, whats)| whats.len()).sum::<usize>();
    }
    if more > 0 {
        put(doc, "", &format!("and {more} more: linerate host --explain"));
    }
}

fn groups(gaps: &[Gap]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for gap in gaps {
        let at = groups.iter().position(|group| group.hint == gap.hint);
        let at = at.unwrap_or_else(|| {
            groups.push(Group { hint: &gap.hint, ..Group::default() });
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

/// Removes the number of an error, such as ` (os error 2)`, from a reason: the text already says it in words.
fn without_number(why: &str) -> String {
    let Some((text, rest)) = why.split_once(" (os error ") else {
        return why.to_owned();
    };
    let rest = rest.split_once(')').map_or("", |(_, rest)| rest);
    format!("{text}{rest}")
}

#[cfg(test)]
mod tests {
    use linerate_facts::Gap;

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
        unknown(&mut doc, &gaps, true);
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

    #[test]
    fn of_many_gaps_the_first_lines_are_shown_and_the_rest_is_counted() {
        let gap = |n: usize| Gap {
            what: format!("facts.f{n}"),
            why: format!("why {n}"),
            hint: String::new(),
        };
        let page = |n: usize, explain| {
            let gaps: Vec<Gap> = (0..n).map(gap).collect();
            let mut doc = Document::new();
            unknown(&mut doc, &gaps, explain);
            doc.text(Style::PLAIN)
        };
        assert_eq!(page(SHOWN, false), page(SHOWN, true));
        let more = page(SHOWN + 2, false);
        assert_eq!(more.lines().count(), SHOWN + 1);
        assert!(more.ends_with("and 2 more: linerate host --explain\n"), "{more}");
        assert_eq!(page(SHOWN + 2, true).lines().count(), SHOWN + 2);
    }
}
