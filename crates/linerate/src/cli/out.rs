//! Standard output. Nothing else in the program writes to it: a write may fail, and the exit code says so where
//! `println!` would panic.

use std::io::{self, IsTerminal, Write};

use super::exit::Failure;
use super::options::{Color, Format, Global, Options};
use linerate_show::{Document, Style};

/// Wider pages are hard to read.
const WIDEST: usize = 100;

/// Writes `text` to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(failed)
}

/// Prints a result. A reader that has seen enough does not change how the program ends.
pub(crate) fn last(text: &str) -> Result<(), Failure> {
    print(text).or_else(|failure| if failure.is_broken_pipe() { Ok(()) } else { Err(failure) })
}

/// Prints a result in the form that `options` ask for: one JSON document, or a document for people.
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
        // CSV is refused where there is no table.
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

/// The style for standard output and the user's options.
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

/// Number of columns of the terminal.
pub(crate) fn columns() -> usize {
    let found = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    found.map_or(Style::PLAIN.width, |c| c.min(WIDEST))
}
