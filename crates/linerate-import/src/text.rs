//! Decodes bytes to text, and removes what terminals, web pages and mail added.

use std::borrow::Cow;

use crate::iperf_row::bracket;
use crate::reading::is_one_of;

/// The text in these bytes; `None` if they are binary.
pub(crate) fn decoded(bytes: &[u8]) -> Option<Cow<'_, str>> {
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => utf8(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if bytes.contains(&0) {
        return None;
    }
    // In a text of another character set the figures are still ASCII. This check is slow, and hardly ever needed.
    let text = std::str::from_utf8(bytes).map(Cow::Borrowed);
    Some(text.unwrap_or_else(|_| String::from_utf8_lossy(bytes)))
}

/// Decodes UTF-16, which Windows programs save.
fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Cow<'static, str>> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let each = char::decode_utf16(units).map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER));
    let text: String = each.collect();
    (!text.contains('\0')).then_some(Cow::Owned(text))
}

/// The text without the escape sequences that set colours in a terminal.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\x1b') {
        plain.push_str(before);
        rest = match after.strip_prefix('[') {
            Some(code) => {
                let code = code.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
                let mut code = code.chars();
                code.next();
                code.as_str()
            }
            None => after,
        };
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// HTML entities that occur in pasted outputs, with the characters that they mean.
const ENTITIES: &[(&str, &str)] = &[
    ("&nbsp;", " "),
    ("\u{a0}", " "),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&#37;", "%"),
    ("&amp;", "&"),
];
/// The ASCII character for a typographic one, which word processors and web pages put in its place.
const fn plain_sign(sign: char) -> char {
    match sign {
        '\u{201c}' | '\u{201d}' => '"',
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{2010}'..='\u{2013}' | '\u{2212}' => '-',
        other => other,
    }
}
/// HTML tags that occur at the ends of lines.
const TAGS: &[&str] = &["br", "pre", "code", "p"];
/// Longest tag in bytes, attributes included.
const MOST_TAG: usize = 100;
/// Largest number of tags that are removed at one end of a line.
const MOST_TAGS: usize = 8;

/// The text without what web pages and mail added: entities, tags at the ends of lines, fences of Markdown,
/// typographic characters, tabs and wrapped rows. The number of lines does not change.
pub(crate) fn tidy(text: &str) -> Cow<'_, str> {
    let text = signs(text);
    match whole_rows(&text) {
        Some(whole) => Cow::Owned(without_marks(&whole).into_owned()),
        None => match text {
            Cow::Borrowed(text) => without_marks(text),
            Cow::Owned(text) => Cow::Owned(without_marks(&text).into_owned()),
        },
    }
}

fn signs(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || text.chars().all(|c| plain_sign(c) == c) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(plain_sign).collect())
}

/// Longest rest of a wrapped row in bytes, which is in a line of its own.
const REST_MAX: usize = 40;
/// Shortest line in bytes that can be the start of a wrapped row.
const WRAPPED_MIN: usize = 40;

/// The text with complete rows of iperf, where mail wrapped them or their columns became tabs; `None` if no row is
/// such. The lines of the rests become blank lines.
fn whole_rows(text: &str) -> Option<String> {
    let rows = || text.lines().filter(|line| line.starts_with('['));
    rows().next()?;
    let has_tabs = rows().take(MOST_ROWS).any(|row| row.contains('\t'));
    let is_rest_next = |pair: (&str, &str)| is_broken(pair.0) && is_rest(pair.1);
    let has_broken = || text.lines().zip(text.lines().skip(1)).any(is_rest_next);
    if !has_tabs && !has_broken() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with('[') {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        out.push_str(&line.replacen("[\t", "[  ", 1).replace('\t', "   "));
        let mut blank = 0;
        while let Some(rest) = lines.next_if(|next| is_broken(line) && is_rest(next)) {
            out.push(' ');
            out.push_str(rest.trim());
            blank += 1;
        }
        (0..=blank).for_each(|_| out.push('\n'));
    }
    Some(out)
}

/// Number of rows of a text that are searched for tabs.
const MOST_ROWS: usize = 100;

fn is_broken(line: &str) -> bool {
    line.len() >= WRAPPED_MIN && bracket(line).is_some()
}

/// Whether a line is the rest of a wrapped row of iperf: it has only words of the last columns.
fn is_rest(line: &str) -> bool {
    const WORDS: &str = "sender receiver Retr Cwnd Bytes KBytes MBytes GBytes Bitrate Jitter ms \
        Lost/Total Datagrams port (omitted)";
    let is_column = |word: &str| {
        let is_figure = word.starts_with(|c: char| c.is_ascii_digit())
            && word.bytes().all(|b| b.is_ascii_digit() || b"./%".contains(&b));
        let is_share = word.starts_with('(') && word.ends_with("%)");
        is_figure || is_share || is_one_of(WORDS, word) || word.ends_with("bits/sec")
    };
    line.len() <= REST_MAX && !line.trim().is_empty() && line.split_whitespace().all(is_column)
}

/// The text without entities, tags at the ends of lines and fences of Markdown.
fn without_marks(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '`', '~', '\u{a0}']) {
        return Cow::Borrowed(text);
    }
    let mut tidy = String::with_capacity(text.len());
    for whole in text.split_inclusive('\n') {
        let line = whole.trim_end_matches(['\r', '\n']);
        if !is_fence(line) {
            without_entities(without_tags(line), &mut tidy);
        }
        tidy.push_str(&whole[line.len()..]);
    }
    Cow::Owned(tidy)
}

/// Whether a line is a fence of Markdown, alone or with the name of a language.
fn is_fence(line: &str) -> bool {
    let line = line.trim();
    ["```", "~~~"].iter().any(|fence| {
        line.strip_prefix(fence).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_alphanumeric()))
    })
}

fn without_tags(mut line: &str) -> &str {
    for _ in 0..MOST_TAGS {
        let first = line.trim_start();
        let start = first.find('>').map(|end| first.split_at(end + 1));
        if let Some((_, rest)) = start.filter(|(tag, _)| is_tag(tag)) {
            line = rest;
            continue;
        }
        let last = line.trim_end();
        let end = last.rfind('<').map(|start| last.split_at(start));
        match end.filter(|(_, tag)| is_tag(tag)) {
            Some((rest, _)) => line = rest,
            None => break,
        }
    }
    line
}

fn is_tag(text: &str) -> bool {
    let inside = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    inside.filter(|text| text.len() <= MOST_TAG).is_some_and(|text| {
        let name = text.trim_start_matches('/').split([' ', '/']).next();
        TAGS.iter().any(|tag| name.is_some_and(|name| name.eq_ignore_ascii_case(tag)))
    })
}

fn without_entities(line: &str, to: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find(['&', '\u{a0}']) {
        to.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = ENTITIES.iter().find(|(name, _)| rest.starts_with(name));
        let (taken, put) = known.map_or((1, "&"), |(name, put)| (name.len(), *put));
        to.push_str(put);
        rest = &rest[taken..];
    }
    to.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_windows_is_read_and_binary_is_not() {
        let utf16: Vec<u8> = "\u{feff}a 1".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decoded(&utf16).as_deref(), Some("a 1"));
        let big: Vec<u8> = "\u{feff}a 1".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decoded(&big).as_deref(), Some("a 1"));
        assert_eq!(decoded(b"\xef\xbb\xbfa").as_deref(), Some("a"));
        assert_eq!(decoded(b"a\xffb").as_deref(), Some("a\u{fffd}b"));
        assert_eq!(decoded(b"\x7fELF\0"), None);
    }

    #[test]
    fn colours_are_taken_out() {
        assert_eq!(plain("\x1b[2;35msockperf\x1b[0m: x"), "sockperf: x");
        assert_eq!(plain("a\x1b"), "a");
        assert_eq!(plain("a\x1b[1"), "a");
        assert_eq!(plain("a\x1b[1\u{e9}b"), "ab");
    }

    #[test]
    fn what_web_pages_add_is_taken_out() {
        assert_eq!(tidy("a 84&#37;&nbsp;b&amp;lt;&x\u{a0}&"), "a 84% b&lt;&x &");
        assert_eq!(tidy("<br>a<br/>\r\n<pre class=\"x\"><code>b"), "a\r\nb");
        assert_eq!(tidy("c\n</code></pre>\n"), "c\n\n");
        assert_eq!(tidy("x\n```json\n{}\n```\n"), "x\n\n{}\n\n");
        for same in ["4: eth0: <UP>", "a <b", "``` two words", "<i>a", "p > q"] {
            assert_eq!(tidy(same), same);
        }
    }

    #[test]
    fn broken_rows_are_whole_and_tabs_are_columns() {
        let row = "[  5]   0.00-1.00   sec    141 MBytes  1.18 Gbits/sec    1   612 KBytes";
        let broken = row.replace("    1   612", "   \n1   612");
        assert_eq!(tidy(&format!("a\n{broken}\nb\n")), format!("a\n{row}\n\nb\n"));
        let summary =
            "[  5]   0.00-3.00   sec    422 MBytes  1.18 Gbits/sec    \n             receiver\n";
        assert!(
            tidy(summary).starts_with(
                "[  5]   0.00-3.00   sec    422 MBytes  1.18 Gbits/sec     receiver\n\n"
            )
        );
        let tabs = "[\t5]\t0.00-1.00\tsec\t112 MBytes\t941 Mbits/sec\n";
        assert_eq!(tidy(tabs), "[  5]   0.00-1.00   sec   112 MBytes   941 Mbits/sec\n");
        // Neither a line of words nor a complete row is changed.
        for same in [
            "[  5]   0.00-1.00   sec    141 MBytes  1.18 Gbits/sec\nafter the change\n",
            "[a]\n1 2\n",
            "\tSpeed: 1\n",
        ] {
            assert_eq!(tidy(same), same);
        }
        assert_eq!(tidy("\u{201c}a\u{201d}: 1\u{2013}2"), "\"a\": 1-2");
    }
}
