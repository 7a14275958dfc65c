//! The report of `mtr`: the answers of each hop of a path.

use linerate_record::reported::{Hop, Measured, SizeRow};

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{Line, MILLI, Notes, count, nanos, number, quoted};

/// The entry in the table of formats.
pub(crate) static MTR: Format = Format {
    id: "mtr",
    label: "mtr --report",
    versions: "0.85 to 0.95, with the usual columns, and the screen of a run",
    evidence: "published: the source of mtr, ui/report.c, and reports as people publish them; the figures are made up",
    unknown: "Whether the last line is the destination, of a report that was cut; in which direction a packet was lost; the \
              throughput.",
    starts: |at| {
        let line = if is_start(at.line) { at.next } else { at.line };
        head(line).is_some() || is_hop(line)
    },
    read,
    extent: Extent::GoesOn(goes_on),
    ..Format::RESULTS
};

/// Largest number of hops: a packet's time to live allows no more.
const MOST: usize = 255;
/// The columns that mtr prints by default.
const COLUMNS: [&str; 7] = ["Loss%", "Snt", "Last", "Avg", "Best", "Wrst", "StDev"];

/// The columns in a heading: `HOST: name   Loss%   Snt   Last   Avg  Best  Wrst StDev`.
fn head(line: &str) -> Option<Vec<&str>> {
    let line = line.trim();
    let is_head = line.starts_with("HOST:") || line.starts_with("Host ");
    let columns: Vec<&str> = line.split_whitespace().skip_while(|word| *word != "Loss%").collect();
    (is_head && columns.contains(&"Snt") && columns.contains(&"Avg")).then_some(columns)
}

/// Splits a line into the number of the hop and the rest: `  4.|-- 192.0.2.1  0.0%  10  1.2 ...`, ` 4. 192.0.2.1
/// 0.0% ...`.
fn hop(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.trim().split_once('.')?;
    let number = number.parse().ok().filter(|n| (1..=255).contains(n))?;
    let rest = rest.strip_prefix("|--").unwrap_or(rest);
    rest.starts_with(' ').then(|| (number, rest.trim()))
}

/// Whether a line is a hop, whatever line precedes it: its figures must begin with a share in percent.
fn is_hop(line: &str) -> bool {
    let mut words = line.split_whitespace().rev();
    let is_share = |word: &str| word.trim_end_matches('%').parse::<f64>().is_ok();
    line.contains(".|-- ")
        && hop(line).is_some()
        && words.nth(COLUMNS.len() - 1).is_some_and(is_share)
}

fn is_start(line: &str) -> bool {
    line.starts_with("Start: ")
}

/// Whether a report continues at a line: at its heading, and at each hop after the first.
fn goes_on(before: &str, rest: &str) -> bool {
    let last = before.trim_end().rsplit('\n').next().unwrap_or_default();
    let next = rest.lines().next().unwrap_or_default();
    let further = || hop(next).is_some_and(|(number, _)| number > 1);
    if head(next).is_some() {
        is_start(last)
    } else {
        further() || is_start(last) || head(last).is_some()
    }
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut columns: Vec<&str> = COLUMNS.to_vec();
    let mut hops = Vec::new();
    let used = section.up_to(|Line { text, .. }, _| {
        let line = text.trim();
        if let Some(names) = head(line) {
            columns = names;
        } else if let Some((number, rest)) = hop(line).filter(|_| hops.len() < MOST) {
            hops.push(row(number, rest, &columns));
        } else {
            // Other addresses of a hop are in lines below it, which begin with a stroke.
            return line.is_empty() || is_start(line) || line.starts_with(['|', '`']);
        }
        true
    });
    if hops.iter().all(|hop| hop.lost().is_none()) {
        return Err("no hop answered".to_owned());
    }
    let found = Found::of("mtr", used, Notes::default());
    Ok(found.with("", section.line, Measured::Hops(hops)))
}

/// Reads a hop. One that never answered has no name.
fn row(number_of: u32, rest: &str, columns: &[&str]) -> Hop {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let (names, figures) = words.split_at(words.len().saturating_sub(columns.len()));
    let figure = |name: &str| {
        let at = columns.iter().position(|column| *column == name)?;
        Some(figures.get(at)?.trim_end_matches('%'))
    };
    let share = figure("Loss%").and_then(number).filter(|share| *share <= 100.0);
    let sent = figure("Snt").and_then(count);
    let lost = share.zip(sent).map(|(share, sent)| (share / 100.0 * sent as f64).round() as u64);
    let time = |name: &str| nanos(number(figure(name)?)?, MILLI);
    let answers = sent.zip(lost).map(|(sent, lost)| sent.saturating_sub(lost));
    // The number of an autonomous system may precede the name.
    let is_name = |word: &&&str| !(word.starts_with("AS") && words.len() > columns.len() + 1);
    let host = names.iter().find(is_name).copied().unwrap_or_default();
    Hop {
        number: number_of,
        host: if host == "???" || answers.is_none() { String::new() } else { quoted(host) },
        row: SizeRow {
            samples: answers,
            lost,
            least: time("Best"),
            mean: time("Avg"),
            most: time("Wrst"),
            deviation: time("StDev"),
            ..SizeRow::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{part, why};

    const REPORT: &str = include_str!("../tests/samples/mtr/report.txt");

    fn hops(text: &str) -> Vec<Hop> {
        match part(text).results.remove(0).measured {
            Measured::Hops(hops) => hops,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_hop_has_its_answers() {
        let hops = hops(REPORT);
        let seen: Vec<_> = hops.iter().map(|hop| (hop.number, hop.lost())).collect();
        let expected = [Some((0, 50)), None, Some((20, 50)), Some((1, 50))];
        assert_eq!(seen, [1, 2, 3, 4].into_iter().zip(expected).collect::<Vec<_>>());
        assert_eq!((hops[0].host.as_str(), hops[1].host.as_str()), ("2001:db8::1", ""));
        let row = hops[3].row;
        assert_eq!(
            [row.least, row.mean, row.most, row.deviation].map(|time| time.unwrap().0),
            [7_900_000, 8_300_000, 12_100_000, 400_000]
        );
    }

    #[test]
    fn hops_without_a_head_and_those_of_the_screen_are_read() {
        let bare = REPORT.lines().skip(3).collect::<Vec<_>>().join("\n");
        assert_eq!(hops(&bare).len(), 3);
        let screen = "Host              Loss%   Snt   Last   Avg  Best  Wrst StDev\n 1. 192.0.2.1      0.0%    12    0.4   0.5   0.3   0.9   0.1\n 2. (waiting for reply)\n 3. AS64500 host.example  8.3%  12  9.0  9.1  8.8  9.9  0.3\n";
        let screen = hops(screen);
        assert_eq!((screen[1].lost(), screen[2].lost()), (None, Some((1, 12))));
        assert_eq!(screen[2].host, "host.example");
    }

    #[test]
    fn two_reports_are_two_and_text_behind_them_is_none_of_theirs() {
        let text = format!("{REPORT}\nand the other way:\n{REPORT}$ ls\n");
        let parsed = crate::read(text.as_bytes()).unwrap();
        assert_eq!(parsed.parts.len(), 2);
        assert_eq!(parsed.notes.len(), 1);
        assert!(
            why("HOST: a  Loss%  Snt  Last  Avg  Best  Wrst  StDev\n").contains("no hop answered")
        );
    }
}
