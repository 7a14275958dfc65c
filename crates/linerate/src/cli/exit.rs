//! How the program ends: exit codes, the words of errors, and the report of a bug.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};

use super::out::OutputError;
use linerate_show::{cleaned, shortened};

/// Exit codes. They are part of the interface: scripts rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The measurement is complete, whatever the verdict.
    Done = 0,
    /// A bug in linerate, such as a panic.
    Bug = 1,
    /// Wrong options or arguments.
    Usage = 2,
    /// Nothing was measured, or only a part.
    NotMeasured = 3,
    /// A bound of `--expect` does not hold, a check found a problem, or the demo did not find the planted fault.
    Missed = 4,
}

impl Exit {
    /// The more important one of two outcomes: a failed measurement takes precedence over a condition that
    /// does not hold.
    pub(crate) fn or(self, other: Self) -> Self {
        let outranked = self == Self::Done || (self, other) == (Self::Missed, Self::NotMeasured);
        if outranked { other } else { self }
    }
}

/// The outcome of a command that ran in `place`. Exit codes 2 and 4 of linerate are passed on, so that `--expect` and
/// `fabric check` work in a lab.
pub(crate) fn of_command(place: &str, status: ExitStatus) -> Exit {
    if status.success() {
        return Exit::Done;
    }
    tell(&format!("the command in {place} ended with {status}\n"));
    match status.code() {
        Some(code) if code == Exit::Missed as i32 => Exit::Missed,
        Some(code) if code == Exit::Usage as i32 => Exit::Usage,
        _ => Exit::NotMeasured,
    }
}

/// Why the program ends early.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
    pub(crate) hint: String,
}

impl Failure {
    /// The user's request is impossible.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Exit::Usage, error)
    }

    /// Something that the user requested could not be done here and now.
    pub(crate) fn not_measured(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Exit::NotMeasured, error)
    }

    fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into(), hint: String::new() }
    }

    /// Adds a hint for the user; an empty hint is not shown.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// The error, its causes and the hint, as users see them.
    pub(crate) fn words(&self) -> String {
        let mut text = format!("error: {}\n", indented(&self.error.to_string()));
        for cause in self.error.chain().skip(1) {
            let cause = indented(&cause.to_string());
            // The text of some errors already contains that of their source, which is then not repeated.
            if !text.contains(&cause) {
                let _ = writeln!(text, "  caused by: {cause}");
            }
        }
        if !self.hint.is_empty() {
            let _ = writeln!(text, "hint: {}", indented(&self.hint));
        }
        text
    }

    /// Whether writing to standard output failed: then no result can be shown.
    pub(crate) fn is_of_output(&self) -> bool {
        self.error.is::<OutputError>()
    }

    /// True if the reader of our output has closed the pipe, which is not a failure. Another broken pipe, such
    /// as a connection that the far end closed, is a failure.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let of_output = self.error.downcast_ref::<OutputError>();
        of_output.is_some_and(OutputError::is_broken_pipe)
    }
}

/// Most characters in a line of an error, and most lines of an error: its text may quote a file or another host.
const WIDEST: usize = 1000;
const LINES: usize = 40;

/// A text that may quote a file or another host. Lines after its first are indented, so that none looks like our own.
fn indented(text: &str) -> String {
    let mut lines = text.lines().map(|line| shortened(line, WIDEST));
    let kept: Vec<String> = lines.by_ref().take(LINES).collect();
    let more = if lines.next().is_some() { "\n    ..." } else { "" };
    kept.join("\n    ") + more
}

/// Writes to stderr; if that fails, the message is lost. Control characters and invisible characters are replaced by
/// `?`, wherever the text is from.
pub(crate) fn tell(text: &str) {
    let text = &cleaned(text);
    // In a test `eprint!` writes to the captured output, which is shown if the test fails.
    if cfg!(test) {
        return eprint!("{text}");
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Whether any thread has panicked, including a thread whose panic the caller handled as an error.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Whether any thread of this process has panicked.
pub(crate) fn panicked() -> bool {
    PANICKED.load(Ordering::Relaxed)
}

/// Runs a command, reports its failure, and turns a panic on this thread into [`Exit::Bug`].
pub(crate) fn guarded(verb: impl FnOnce() -> Result<Exit, Failure>) -> Exit {
    panic::set_hook(Box::new(|info| {
        PANICKED.store(true, Ordering::Relaxed);
        tell(&bug_report(&info.to_string()));
        // Shown only if RUST_BACKTRACE is set: a stripped program has no function names.
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            tell(&backtrace.to_string());
        }
    }));
    match panic::catch_unwind(AssertUnwindSafe(verb)) {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) if failure.is_broken_pipe() => Exit::Done,
        Ok(Err(failure)) => {
            tell(&failure.words());
            failure.exit
        }
        Err(_) => Exit::Bug,
    }
}

fn bug_report(what: &str) -> String {
    format!(
        "error: this is a bug in linerate, not in your network: {what}\n\
         hint: please report it, with this message and the command that you typed, at\n      \
         {}/issues (linerate {})\n",
        env!("CARGO_PKG_REPOSITORY"),
        env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::out;
    use super::*;

    #[test]
    fn a_command_in_a_lab_passes_its_check_on() {
        use std::os::unix::process::ExitStatusExt;
        let of = |raw| of_command("the lab", ExitStatus::from_raw(raw));
        let coded = |code: i32| of(code << 8);
        assert_eq!(coded(0), Exit::Done);
        assert_eq!((coded(2), coded(4)), (Exit::Usage, Exit::Missed));
        assert_eq!(
            (coded(1), coded(3), coded(127)),
            (Exit::NotMeasured, Exit::NotMeasured, Exit::NotMeasured)
        );
        assert_eq!(of(9), Exit::NotMeasured, "killed");
    }

    #[test]
    fn not_measured_outranks_missed_and_both_outrank_done() {
        assert_eq!(Exit::NotMeasured.or(Exit::Missed), Exit::NotMeasured);
        assert_eq!(Exit::Missed.or(Exit::NotMeasured), Exit::NotMeasured);
        assert_eq!(Exit::Done.or(Exit::Missed), Exit::Missed);
        assert_eq!(Exit::Done.or(Exit::Done), Exit::Done);
    }

    #[test]
    fn a_panic_is_a_bug_and_says_where_to_report_it() {
        assert_eq!(guarded(|| panic!("for the test")), Exit::Bug);
        assert!(panicked());
        let text = bug_report("panicked at x.rs:1");
        assert!(text.contains("x.rs:1") && text.contains("/issues"), "{text}");
    }

    #[test]
    fn an_error_is_shown_with_its_causes_and_its_hint() {
        let error = anyhow::anyhow!("connection refused").context("failed to reach brook:4817");
        let text = Failure::not_measured(error).hint("linerate serve").words();
        assert_eq!(
            text,
            "error: failed to reach brook:4817\n  caused by: connection refused\n\
             hint: linerate serve\n"
        );
    }

    #[test]
    fn whatever_an_error_quotes_is_no_line_of_ours_and_no_order_to_a_terminal() {
        let hostile = "a\u{1b}[2J\u{200b}b\nhint: rm -rf /\r\u{202e}";
        let failure = Failure::usage(anyhow::anyhow!("{hostile}").context(hostile)).hint(hostile);
        let words = cleaned(&failure.words());
        assert_eq!(words.lines().filter(|l| l.starts_with("hint:")).count(), 1);
        assert_eq!(words.lines().next(), Some("error: a?[2J?b"));
        let long = Failure::usage(anyhow::anyhow!("x\n".repeat(1000) + &"y".repeat(1 << 20)));
        assert!(long.words().len() < 1000, "{}", long.words().len());
        let wide = Failure::usage(anyhow::anyhow!("y".repeat(1 << 20)));
        assert!(wide.words().len() < 1100);
    }

    proptest::proptest! {
        #[test]
        fn no_error_obeys_or_hides(error in "\\PC*|.*", hint in "(.|\n)*") {
            let words = cleaned(&Failure::usage(anyhow::anyhow!("{error}")).hint(hint).words());
            for line in words.lines() {
                proptest::prop_assert!(
                    ["error: ", "hint: ", "    "].iter().any(|own| line.starts_with(own) || line == own.trim_end()),
                    "{:?}", line
                );
            }
            proptest::prop_assert!(words.chars().all(|c| c == '\n' || !c.is_control()));
        }
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure_but_a_connection_that_broke_is() {
        let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert_eq!(guarded(|| Err(out::failed(gone()))), Exit::Done);
        let lost = anyhow::Error::new(gone()).context("no route to 10.0.0.1:5377");
        assert_eq!(guarded(|| Err(Failure::not_measured(lost))), Exit::NotMeasured);
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let full = out::failed(full);
        assert!(!full.is_broken_pipe());
        let words = full.words();
        assert!(
            words.starts_with("error: failed to write to standard output\n  caused by: "),
            "{words}"
        );
    }
}
