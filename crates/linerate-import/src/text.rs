//! Bytes as text, and the lines of a text.

use std::borrow::Cow;

/// The text that bytes hold; `None` if they are binary.
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
    // Of a text of another character set the figures are ASCII still. That check is slow, and hardly ever needed.
    let text = std::str::from_utf8(bytes).map(Cow::Borrowed);
    Some(text.unwrap_or_else(|_| String::from_utf8_lossy(bytes)))
}

/// Text as Windows programs save it.
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

/// Entities of HTML that stand in pasted outputs.
const ENTITIES: &[(&str, &str)] = &[
    ("&nbsp;", " "),
    ("\u{a0}", " "),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&#37;", "%"),
    ("&amp;", "&"),
];
/// Tags of HTML that stand at the ends of lines.
const TAGS: &[&str] = &["br", "pre", "code", "p"];
/// Longest tag, with its attributes.
const MOST_TAG: usize = 100;
/// Most tags at one end of a line.
const MOST_TAGS: usize = 8;

/// The text without what web pages add to it: entities, tags at the ends of lines, fences of Markdown. It has as
/// many lines.
pub(crate) fn tidy(text: &str) -> Cow<'_, str> {
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

/// Whether a line is only a fence, perhaps with the name of a language.
fn is_fence(line: &str) -> bool {
    let line = line.trim();
    ["```", "~~~"].iter().any(|fence| {
        line.strip_prefix(fence)
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_alphanumeric()))
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
    let inside = text
        .strip_prefix('<')
        .and_then(|text| text.strip_suffix('>'));
    inside
        .filter(|text| text.len() <= MOST_TAG)
        .is_some_and(|text| {
            let name = text.trim_start_matches('/').split([' ', '/']).next();
            TAGS.iter()
                .any(|tag| name.is_some_and(|name| name.eq_ignore_ascii_case(tag)))
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

/// The command in a line that begins with the prompt of a shell.
pub(crate) fn command(line: &str) -> Option<&str> {
    let line = line.trim();
    let after = ["$ ", "# ", "> ", "% "].iter().find_map(|prompt| {
        let (before, command) = line.split_once(prompt)?;
        // A prompt is short: `user@host:~/folder$ `, `[root@host ~]# `, `PS C:\> `.
        (before.len() <= 60 && before.split(' ').count() <= 3).then_some(command)
    })?;
    let command = after.trim();
    (!command.is_empty()).then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_windows_is_read_and_binary_is_not() {
        let utf16: Vec<u8> = "\u{feff}a 1"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(decoded(&utf16).as_deref(), Some("a 1"));
        let big: Vec<u8> = "\u{feff}a 1"
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect();
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
    fn a_prompt_has_a_command() {
        assert_eq!(command("user@host:~$ ibstat mlx4_0"), Some("ibstat mlx4_0"));
        assert_eq!(command("[root@host ~]# lspci -vv"), Some("lspci -vv"));
        assert_eq!(command("$ ethtool eth0"), Some("ethtool eth0"));
        assert_eq!(command("PS C:\\> Get-NetAdapter"), Some("Get-NetAdapter"));
        assert_eq!(command(" #bytes #iterations"), None);
        assert_eq!(command("the price in this shop is 5 $ a piece"), None);
    }
}
