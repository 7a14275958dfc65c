//! Removes prefixes of lines that hide an output in a paste: marks of quoting, indents, line numbers, titles,
//! prefixes of logs.

use crate::reading::is_digits;

/// Marks that begin quoted lines and comments.
const MARKS: &[&str] = &[">", "//"];
/// Longest title or prefix of a log, in bytes.
const MOST_TITLE: usize = 100;
/// Names of months as logs write them.
const MONTHS: &str = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";

/// Lines that had a common prefix, with the prefix removed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Peeled {
    /// Number of bytes of these lines, prefixes included.
    pub(crate) end: usize,
    /// The lines without their prefixes.
    pub(crate) text: String,
}

/// The first lines of a text, without the prefix that they share; `None` if they share none.
pub(crate) fn peeled(text: &str) -> Option<Peeled> {
    let first = text.lines().next()?;
    Prefix::all(first).into_iter().flatten().find_map(|prefix| {
        let least = prefix.least();
        let (run, lines) = run(text, prefix)?;
        (lines >= least).then_some(run)
    })
}

#[derive(Debug, Clone, Copy)]
enum Prefix<'a> {
    Mark(&'static str),
    /// A line number; the value is the number that the next line must have.
    Number(u64),
    Indent,
    Log,
    /// The rank and the stream, which Open MPI prints before each line.
    Rank,
    Title(&'a str),
}

impl<'a> Prefix<'a> {
    /// The kinds of prefixes that a line may have.
    fn all(line: &'a str) -> [Option<Self>; 6] {
        let inside = line.trim_start();
        if inside.is_empty() {
            return [None; 6];
        }
        let mark = MARKS.iter().find(|mark| inside.starts_with(**mark));
        [
            mark.map(|mark| Self::Mark(mark)),
            number(line).map(|(number, _)| Self::Number(number)),
            (inside.len() < line.len()).then_some(Self::Indent),
            logged(line).map(|_| Self::Log),
            ranked(line).map(|_| Self::Rank),
            title(line).map(Self::Title),
        ]
    }

    /// Number of consecutive lines that must have the prefix. A mark or an indent can be recognised in one line.
    const fn least(self) -> usize {
        match self {
            Self::Mark(_) | Self::Indent => 1,
            Self::Number(_) | Self::Log | Self::Rank | Self::Title(_) => 2,
        }
    }

    /// The line without the prefix; `None` if it does not have the prefix.
    fn strip<'l>(&mut self, line: &'l str) -> Option<&'l str> {
        match self {
            Self::Mark(mark) => {
                let rest = line.trim_start().strip_prefix(*mark)?;
                Some(rest.strip_prefix(' ').unwrap_or(rest))
            }
            Self::Number(next) => {
                let (number, rest) = number(line)?;
                (number == *next).then(|| *next = next.saturating_add(1))?;
                Some(rest)
            }
            Self::Indent => line
                .trim()
                .is_empty()
                .then_some("")
                .or_else(|| line.starts_with([' ', '\t']).then_some(line)),
            Self::Log => logged(line),
            Self::Rank => ranked(line),
            Self::Title(title) => {
                let is_empty = line == title.trim_end();
                line.strip_prefix(*title).or(is_empty.then_some(""))
            }
        }
    }
}

/// The line after a prefix such as `[1,0]<stdout>:`.
//= Open MPI: mpirun --tag-output
fn ranked(line: &str) -> Option<&str> {
    let (job, rest) = line.strip_prefix('[')?.split_once(']')?;
    let (job, rank) = job.split_once(',')?;
    let rest = ["<stdout>:", "<stderr>:"].iter().find_map(|stream| rest.strip_prefix(stream));
    rest.filter(|_| is_digits(job) && is_digits(rank))
}

/// The consecutive lines that have a prefix, and their number.
fn run(text: &str, mut prefix: Prefix<'_>) -> Option<(Peeled, usize)> {
    let (mut end, mut lines) = (0, Vec::new());
    for whole in text.split_inclusive('\n') {
        let line = whole.trim_end_matches(['\r', '\n']);
        let Some(inside) = prefix.strip(line) else {
            break;
        };
        lines.push(inside);
        end += whole.len();
    }
    let indent = match prefix {
        Prefix::Indent => common_indent(&lines)?,
        _ => 0,
    };
    let count = lines.len();
    let mut peeled = String::with_capacity(end);
    for line in lines {
        peeled.push_str(line.get(indent..).unwrap_or(""));
        peeled.push('\n');
    }
    Some((Peeled { end, text: peeled }, count))
}

/// Number of bytes of the indent that all lines share, apart from blank lines.
fn common_indent(lines: &[&str]) -> Option<usize> {
    let mut lines = lines.iter().filter(|line| !line.is_empty());
    let first = lines.next()?;
    let indent = first.len() - first.trim_start_matches([' ', '\t']).len();
    let same = |most: usize, line: &&str| {
        let pairs = line.bytes().zip(first.bytes()).take(most);
        pairs.take_while(|(one, other)| one == other).count()
    };
    Some(lines.fold(indent, same))
}

/// Reads a line number: `  12: text`, `12\ttext`, `12. text`.
fn number(line: &str) -> Option<(u64, &str)> {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &line[..line.len() - rest.len()];
    let number = (digits.len() <= 9).then(|| digits.parse().ok())??;
    let rest = rest.strip_prefix([':', '.', '|', ')']).unwrap_or(rest);
    if rest.is_empty() {
        return Some((number, rest));
    }
    Some((number, rest.strip_prefix([' ', '\t'])?))
}

/// The title before a line, such as `200:  ` of `iperf3 -T 200`.
fn title(line: &str) -> Option<&str> {
    let at = line.find(":  ")?;
    (at > 0 && at <= MOST_TITLE).then(|| &line[..at + 3])
}

/// The text after `Nov 28 10:00:00 host iperf3[123]: `, or after such a prefix with a time in ISO 8601.
fn logged(line: &str) -> Option<&str> {
    let word = line.split(' ').next()?;
    let is_month = word.len() == 3 && MONTHS.split(' ').any(|month| month == word);
    let is_iso = word.len() > 18 && word.as_bytes().get(4) == Some(&b'-') && word.contains('T');
    let is_iso = is_iso && word.starts_with(|c: char| c.is_ascii_digit());
    (is_month || is_iso).then_some(())?;
    let at = line.find("]: ").map(|at| at + 3).or_else(|| {
        let is_empty = line.ends_with("]:");
        is_empty.then_some(line.len())
    })?;
    (at <= MOST_TITLE).then(|| &line[at..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;
    use crate::sample::transfer;

    const OUTPUT: &str = "\
$ iperf3 -c 192.0.2.1 -R
Connecting to host 192.0.2.1, port 5201
[ ID] Interval           Transfer     Bitrate

[  5]   0.00-1.00   sec   375 MBytes  3.14 Gbits/sec
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-10.00  sec  3.86 GBytes  3.32 Gbits/sec                  receiver
";

    /// The output between lines of prose, with a prefix before each of its lines.
    fn with(prefix: impl Fn(usize) -> String) -> String {
        let lines = OUTPUT.lines().enumerate();
        let lines: Vec<String> = lines.map(|(at, line)| prefix(at) + line).collect();
        format!("Some words\n{}\n\nMore words\n", lines.join("\n"))
    }

    #[test]
    fn an_output_is_found_behind_each_prefix() {
        for text in [
            with(|_| String::new()),
            with(|_| "> ".to_owned()),
            with(|_| "> > ".to_owned()),
            with(|_| ">     ".to_owned()),
            with(|_| "    ".to_owned()),
            with(|_| "\t".to_owned()),
            with(|_| "// ".to_owned()),
            with(|_| "200:  ".to_owned()),
            with(|at| format!("{:3}: ", at + 8)),
            with(|at| format!("{:6}\t", at + 1)),
            with(|at| format!("[1,{}]<stdout>:", at % 2)),
            with(|at| format!("Nov 28 10:00:0{at} host iperf3[12]: ")),
            with(|at| format!("2026-11-28T10:00:0{at}+00:00 host iperf3[12]: ")),
        ] {
            let got = read(text.as_bytes()).unwrap();
            assert_eq!(got.parts.len(), 1, "{text}");
            assert_eq!(got.parts[0].line, 3, "{text}");
            let one = transfer(&got.parts[0].results[0]);
            assert_eq!(one.goodput.0, 3_320_000_000, "{text}");
            assert_eq!(one.direction, linerate_plan::path::Direction::Reverse);
            assert_eq!(got.notes.len(), 2, "{:?}", got.notes);
            assert_eq!(got.notes[1].line, Some(11), "{text}");
        }
    }

    #[test]
    fn what_no_run_shares_is_left() {
        assert_eq!(peeled("plain\n"), None);
        assert_eq!(peeled("\n  x\n"), None);
        assert_eq!(peeled("1: a\n3: b\n"), None);
        assert_eq!(peeled("one:  a\ntwo:  b\n"), None);
        let end = "  a\n    b\n\n".len();
        let text = "a\n  b\n\n".to_owned();
        assert_eq!(peeled("  a\n    b\n\nc\n"), Some(Peeled { end, text }));
        let text = "a\nb\n".to_owned();
        assert_eq!(peeled("7: a\n8: b\n10: c"), Some(Peeled { end: 10, text }));
    }
}
