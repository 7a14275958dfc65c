//! Standard output. Only this module writes to it, because a write may fail: the exit code then reports that, where
//! `println!` would panic.

use std::io::{self, IsTerminal, Write};

use super::exit::Failure;
use super::options::{Color, Format, Global, Options};
use linerate_show::{Document, Style};

/// Most columns of a page: wider lines are hard to read.
const WIDEST: usize = 100;

/// Writes `text` to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(failed)
}

/// Prints the last result. If its reader has already closed the pipe, this is no failure.
pub(crate) fn last(text: &str) -> Result<(), Failure> {
    print(text).or_else(|failure| if failure.is_broken_pipe() { Ok(()) } else { Err(failure) })
}

/// Prints a result in the form that `options` select: JSON, or a document for people.
pub(crate) fn result(
    options: &Options,
    json: impl FnOnce() -> serde_json::Result<String>,
    document: impl FnOnce() -> Document,
) -> Result<(), Failure> {
    if options.report.json == Some(true) {
        last(&json().map_err(Failure::not_measured)?)
    } else {
        last(&rendered(&document(), options))
    }
}

/// A document in the form that `options` select.
pub(crate) fn rendered(document: &Document, options: &Options) -> String {
    match options.report.format {
        Some(Format::Markdown) => document.markdown(),
        // CSV without a table has been refused before.
        Some(Format::Text | Format::Csv) | None => document.text(style(&options.global)),
    }
}

/// Writing to standard output failed. This is a separate type, because the same system error means
/// something else if it comes from the network.
#[derive(Debug, thiserror::Error)]
#[error("failed to write to standard output")]
pub(crate) struct OutputError(#[source] io::Error);

impl OutputError {
    /// Whether the reader has closed the pipe.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

/// The failure of a write to standard output.
pub(crate) fn failed(error: io::Error) -> Failure {
    Failure::not_measured(OutputError(error))
}

/// The style for standard output: its width, and colour if the terminal and the user's options permit it.
pub(crate) fn style(global: &Global) -> Style {
    let terminal = io::stdout().is_terminal();
    let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
        || std::env::var_os("TERM").is_some_and(|v| v == "dumb");
    Style {
        width: if terminal { columns() } else { Style::PLAIN.width },
        color: match global.color {
            Some(Color::Always) => true,
            Some(Color::Never) => false,
            Some(Color::Auto) | None => terminal && !refused,
        },
    }
}

/// Columns of a page: those of the terminal, but at most `WIDEST`.
pub(crate) fn columns() -> usize {
    let found = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    found.map_or(Style::PLAIN.width, |c| c.min(WIDEST))
}
