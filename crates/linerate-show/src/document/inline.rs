//! Text inside a block of Markdown. Characters of a value that could be markup are escaped.

use super::Tone;

/// Spans as one line of Markdown, for a table cell or after other text. White space becomes a single space.
pub(super) fn inline(spans: &[(Tone, String)]) -> String {
    emphasized(&runs(&chars(spans)))
}

/// Spans as one line of Markdown at the start of a block, where `-`, `#` and `1.` are escaped too.
pub(super) fn block(spans: &[(Tone, String)]) -> String {
    let text = inline(spans);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_number =
        digits > 0 && matches!(&text.as_bytes()[digits..], [b'.' | b')', b' ', ..] | [b'.' | b')']);
    if is_number {
        let (number, rest) = text.split_at(digits);
        format!("{number}\\{rest}")
    } else if text.starts_with(['-', '+', '#', '>', '=']) {
        format!("\\{text}")
    } else {
        text
    }
}

/// A character that is safe to show: names are received from other hosts and read from files. Control characters of
/// terminals, characters that change the reading direction, and invisible ones are replaced by `?`.
pub fn clean(c: char) -> char {
    match c {
        c if c.is_control() || is_unseen(c) => '?',
        c => c,
    }
}

/// Whether a character has no shape of its own: it hides in a name, breaks a line, or turns the text around it.
//= https://www.unicode.org/Public/16.0.0/ucd/DerivedCoreProperties.txt, Default_Ignorable_Code_Point
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// A text of several lines in which unsafe characters are replaced.
pub fn cleaned(text: &str) -> String {
    let safe = |c| if c == '\n' { c } else { clean(c) };
    text.chars().map(safe).collect()
}

/// A text of one line in which unsafe characters and line breaks are replaced.
pub fn one_line(text: &str) -> String {
    text.chars().map(clean).collect()
}

/// A text of one line with unsafe characters replaced, shortened to at most `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    let mut rest = text.chars().map(clean);
    let mut kept: String = rest.by_ref().take(most).collect();
    if rest.next().is_some() {
        kept.push_str("...");
    }
    kept
}

/// A character, and whether it is emphasized (bold).
type Char = (char, bool);

/// The characters of all spans; white space between words is one space, at both ends it is removed.
fn chars(spans: &[(Tone, String)]) -> Vec<Char> {
    let mut all: Vec<Char> = Vec::new();
    for (tone, text) in spans {
        let is_strong = matches!(tone, Tone::Strong | Tone::Good | Tone::Warning);
        for c in text.chars().map(clean) {
            let c = if c.is_whitespace() { ' ' } else { c };
            if c != ' ' || all.last().is_some_and(|(last, _)| *last != ' ') {
                all.push((c, is_strong));
            }
        }
    }
    all.pop_if(|(last, _)| *last == ' ');
    all
}

/// Escaped Markdown text in runs, and whether each run is emphasized (bold).
fn runs(chars: &[Char]) -> Vec<(String, bool)> {
    let mut runs: Vec<(String, bool)> = Vec::new();
    let mut put = |text: &str, is_strong: bool| match runs.last_mut() {
        Some((run, strong)) if *strong == is_strong => run.push_str(text),
        _ => runs.push((text.to_owned(), is_strong)),
    };
    for word in chars.chunk_by(|a, b| (a.0 == ' ') == (b.0 == ' ')) {
        let text: String = word.iter().map(|(c, _)| c).collect();
        if needs_code(&text) {
            put(&code(&text), word.iter().all(|(_, strong)| *strong));
            continue;
        }
        for part in word.chunk_by(|a, b| a.1 == b.1) {
            let text: String = part.iter().map(|(c, _)| c).collect();
            put(&escaped(&text), part[0].1);
        }
    }
    runs
}

/// Whether GitHub would turn a word into a link, a mention, the number of an issue, an emoji or a formula. Not all
/// of these can be escaped, but none applies inside code. Addresses of hosts and devices are among such words.
//= https://github.github.com/gfm/#autolinks-extension-
fn needs_code(word: &str) -> bool {
    let after = |mark: char, is: fn(char) -> bool| {
        let rest = word.split(mark).skip(1);
        rest.into_iter().any(|rest| rest.starts_with(is))
    };
    word.contains("://")
        || word.contains('$')
        || word.to_ascii_lowercase().contains("www.")
        || after('@', char::is_alphanumeric)
        || after('#', |c| c.is_ascii_digit())
        || word.matches(':').count() > 1
}

/// A word as inline code, without the punctuation around it. Characters that would end the code or the table cell
/// are placed between pieces of code.
fn code(word: &str) -> String {
    let inner = word.trim_start_matches(['(', '\'', '"']);
    let (before, inner) = word.split_at(word.len() - inner.len());
    let trimmed = inner.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '\'', '"']);
    let (inner, behind) = inner.split_at(trimmed.len());
    let mut text = escaped(before);
    for piece in inner.split_inclusive(['`', '|', '\\']) {
        let bare = piece.trim_end_matches(['`', '|', '\\']);
        if !bare.is_empty() {
            text.extend(["`", bare, "`"]);
        }
        text.push_str(match &piece[bare.len()..] {
            // After an escaped backtick, another one in code would extend the row of backticks.
            "`" => "&#96;",
            "|" => "\\|",
            "\\" => "\\\\",
            _ => "",
        });
    }
    text + &escaped(behind)
}

/// A text with all markup escaped. An underscore within a word is no markup: names of settings stay readable.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        let is_within = [before, next].iter().all(|c| c.is_some_and(char::is_alphanumeric));
        let is_markup = match c {
            '\\' | '`' | '*' | '[' | '<' | '|' | '~' => true,
            '_' => !is_within,
            '&' => next.is_some_and(|next| next.is_alphanumeric() || next == '#'),
            _ => false,
        };
        if is_markup {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
    out
}

/// Joins runs to one text. If Markdown would not recognize the stars around a run as emphasis, they are left out:
/// the text matters more.
fn emphasized(runs: &[(String, bool)]) -> String {
    let mut out = String::new();
    for (i, (run, is_strong)) in runs.iter().enumerate() {
        let core = run.trim_matches(' ');
        if !is_strong || core.is_empty() {
            out.push_str(run);
            continue;
        }
        let start = run.len() - run.trim_start_matches(' ').len();
        let (lead, trail) = (&run[..start], &run[start + core.len()..]);
        out.push_str(lead);
        let before = out.chars().next_back();
        let behind = trail.chars().next().or_else(|| runs.get(i + 1)?.0.chars().next());
        let (first, last) = (core.chars().next(), core.chars().next_back());
        if flanks(before, first) && flanks(behind, last) {
            out.extend(["**", core, "**"]);
        } else {
            out.push_str(core);
        }
        out.push_str(trail);
    }
    out
}

/// Whether Markdown takes stars between the characters `outer` and `inner` as emphasis, however it classifies
/// characters other than letters, digits, ASCII punctuation and white space.
//= https://spec.commonmark.org/0.31.2/#left-flanking-delimiter-run
fn flanks(outer: Option<char>, inner: Option<char>) -> bool {
    let is_apart = outer.is_none_or(|c| c.is_whitespace() || c.is_ascii_punctuation());
    is_apart || inner.is_some_and(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        block(&[(Tone::Plain, text.to_owned())])
    }

    fn spans(spans: &[(Tone, &str)]) -> String {
        inline(&super::super::kept(spans))
    }

    #[test]
    fn what_is_no_markup_is_left_as_it_is() {
        for text in [
            "on brook: sudo sysctl -w net.ipv4.tcp_rmem='4096 131072 1048576'",
            "kernel: 6.12.0 -> 6.13.1",
            "4.71 Gb/s ±0.4 %, 1 stream (95 % of 12)",
            "10.0.0.2:5377, 2 of 3",
            "Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz",
            "R&D, a & b; x > y!",
        ] {
            assert_eq!(plain(text), text.replace("R&D", "R\\&D"));
        }
    }

    #[test]
    fn markup_is_escaped() {
        for (text, want) in [
            ("a|b", "a\\|b"),
            ("*a* _b_ `c`", "\\*a\\* \\_b\\_ \\`c\\`"),
            ("a__b", "a\\_\\_b"),
            ("<b>", "\\<b>"),
            ("[a](b) ![c]", "\\[a](b) !\\[c]"),
            ("~~a~~ \\", "\\~\\~a\\~\\~ \\\\"),
            ("&lt; &#x3c;", "\\&lt; \\&#x3c;"),
            ("a\x1b[1m\nb\tc\u{202e}d", "a?\\[1m?b?c?d"),
        ] {
            assert_eq!(plain(text), want, "{text}");
        }
    }

    #[test]
    fn the_start_of_a_block_is_escaped() {
        for (text, want) in [
            ("- a", "\\- a"),
            ("--- a", "\\--- a"),
            ("# a", "\\# a"),
            ("> a", "\\> a"),
            ("1. a", "1\\. a"),
            ("12) a", "12\\) a"),
            ("1.", "1\\."),
            ("1.5 a", "1.5 a"),
            ("a - # 1. > b", "a - # 1. > b"),
        ] {
            assert_eq!(plain(text), want, "{text}");
        }
    }

    #[test]
    fn what_github_would_link_or_replace_is_code() {
        for (text, want) in [
            ("see http://x.org/a.", "see `http://x.org/a`."),
            ("WWW.x.org", "`WWW.x.org`"),
            ("root@brook, @you", "`root@brook`, `@you`"),
            ("0000:3b:00.0 at (fe80::1)", "`0000:3b:00.0` at (`fe80::1`)"),
            ("a#1 #b", "`a#1` #b"),
            ("a$b$", "`a$b$`"),
            ("http://a|b`c\\d", "`http://a`\\|`b`&#96;`c`\\\\`d`"),
            ("a:b", "a:b"),
            ("::", "::"),
        ] {
            assert_eq!(plain(text), want, "{text}");
        }
    }

    #[test]
    fn emphasis_stands_where_markdown_takes_it_as_such() {
        let of = |before: &str, strong: &str, behind: &str| {
            spans(&[(Tone::Plain, before), (Tone::Strong, strong), (Tone::Dim, behind)])
        };
        assert_eq!(of("at: ", "cause", ", x"), "at: **cause**, x");
        assert_eq!(of("at:", " cause ", "x"), "at: **cause** x");
        assert_eq!(of("a", "b", "c"), "a**b**c");
        assert_eq!(of("a", "(b)", "c"), "a(b)c");
        assert_eq!(of("a ", "(b)", "c"), "a (b)c");
        assert_eq!(of("a ", "(b)", " c"), "a **(b)** c");
        assert_eq!(of("a", " ", "c"), "a c");
        let both = [(Tone::Strong, "a "), (Tone::Warning, "b")];
        assert_eq!(spans(&both), "**a b**");
    }

    #[test]
    fn a_word_in_several_spans_is_one_word() {
        let parts = [(Tone::Plain, "http:"), (Tone::Strong, "//x")];
        assert_eq!(spans(&parts), "`http://x`");
    }
}
