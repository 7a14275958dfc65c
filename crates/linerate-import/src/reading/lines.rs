//! The text of an output, and its numbered lines.

use super::prompt::is_prompt;

/// The text of one output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    /// The text from the first line of the output on. It ends before the next line at which an output of any format
    /// begins. For JSON it is the whole rest of the input.
    pub(crate) text: &'a str,
    /// Number of the output's first line in the input, from 1.
    pub(crate) line: u64,
    /// The command in the line before the output, without the prompt; `None` if there is none.
    pub(crate) command: Option<&'a str>,
}

impl<'a> Section<'a> {
    /// The lines of the output.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'a>> + use<'a> {
        let mut end = 0;
        (self.line..).zip(self.text.split_inclusive('\n')).map(move |(number, whole)| {
            end += whole.len();
            Line { number, text: whole.lines().next().unwrap_or_default(), end }
        })
    }

    /// Number of bytes of the lines before the first one for which `takes` returns false, as it follows the output.
    /// `takes` gets the line, and the number of bytes before it.
    pub(crate) fn up_to(&self, mut takes: impl FnMut(Line<'a>, usize) -> bool) -> usize {
        let mut used = 0;
        for line in self.lines() {
            if !takes(line, used) {
                break;
            }
            used = line.end;
        }
        used
    }

    /// The first line of the output.
    pub(crate) fn first(&self) -> &'a str {
        self.text.lines().next().unwrap_or_default()
    }

    /// The part of the section before the next prompt of a shell.
    ///
    /// Readers of tables use this. Only a certain prompt ends a table: rows and comments may have the characters of
    /// prompts too.
    pub(crate) fn body(&self) -> Self {
        let end = self.lines().take_while(|line| line.number == self.line || !is_prompt(line.text));
        let end = end.last().map_or(0, |line| line.end);
        Self { text: &self.text[..end], ..*self }
    }
}

/// A place where an output may begin: always the start of a line.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    /// The rest of the input, from this place on.
    pub(crate) text: &'a str,
    /// The first line of the rest, and the second one; empty if there is none.
    pub(crate) line: &'a str,
    pub(crate) next: &'a str,
}

impl<'a> Start<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let mut lines = text.lines();
        let mut next = || lines.next().unwrap_or_default();
        Self { text, line: next(), next: next() }
    }
}

/// A line of an output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Number of the line in the input, from 1.
    pub(crate) number: u64,
    /// Text of the line, without the end of the line.
    pub(crate) text: &'a str,
    /// Number of bytes of the output up to the end of the line.
    pub(crate) end: usize,
}

impl<'a> Line<'a> {
    /// The text without blanks around it.
    pub(crate) fn trimmed(&self) -> &'a str {
        self.text.trim()
    }

    /// Whether the line begins with a blank.
    pub(crate) fn is_indented(&self) -> bool {
        self.text.starts_with([' ', '\t'])
    }

    /// The parts of the line before and after its first colon.
    pub(crate) fn pair(&self) -> Option<(&'a str, &'a str)> {
        pair(self.text)
    }
}

/// The first bytes of a text, which are enough to recognise it.
pub(crate) fn head(text: &str) -> &str {
    /// Number of bytes that are enough: headings of outputs are shorter.
    const LONGEST: usize = 4_096;
    &text[..floor(text, LONGEST)]
}

/// The last character boundary at or before byte `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let mut before = (0..=at.min(text.len())).rev();
    before.find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first line of a text, or its first bytes if it is very long.
pub(crate) fn first_line(text: &str) -> &str {
    head(text).lines().next().unwrap_or_default()
}

/// The parts of a text before and after its first colon, without blanks around them.
pub(crate) fn pair(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    Some((key.trim(), value.trim()))
}

/// The text after a key, up to a blank or a comma.
pub(crate) fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    rest.split([' ', ',']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_ends_at_a_prompt() {
        let end = |text: &str| {
            let section = Section { text, line: 1, command: None };
            section.body().text.len()
        };
        assert_eq!(end("a\nuser@host:~$ b\nc\n"), 2);
        assert_eq!(end("a\n[root@host ~]# b\n"), 2);
        assert_eq!(end("a\n$ b\n"), 2);
        let comments = "# a\n# b\nsockperf: # c\n---> d\n";
        assert_eq!(end(comments), comments.len());
    }
}
