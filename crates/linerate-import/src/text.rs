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
    fn a_prompt_has_a_command() {
        assert_eq!(command("user@host:~$ ibstat mlx4_0"), Some("ibstat mlx4_0"));
        assert_eq!(command("[root@host ~]# lspci -vv"), Some("lspci -vv"));
        assert_eq!(command("$ ethtool eth0"), Some("ethtool eth0"));
        assert_eq!(command("PS C:\\> Get-NetAdapter"), Some("Get-NetAdapter"));
        assert_eq!(command(" #bytes #iterations"), None);
        assert_eq!(command("the price in this shop is 5 $ a piece"), None);
    }
}
