//! Test programs with a `main` of their own: they understand what `cargo test` passes to libtest, and
//! end with the same line.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::time::Instant;

/// What the command line asks for.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    list: bool,
    filters: Vec<String>,
    skipped: Vec<String>,
}

impl Asked {
    /// Reads libtest's arguments: names to run, `--skip NAME`, `--list`. Other flags change nothing here.
    fn parse(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut asked = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => asked.list = true,
                "--skip" => asked.skipped.extend(arguments.next()),
                "--test-threads" | "--color" | "--format" => drop(arguments.next()),
                flag if flag.starts_with('-') => {}
                _ => asked.filters.push(argument),
            }
        }
        asked
    }

    fn wants(&self, name: &str) -> bool {
        let holds = |text: &String| name.contains(text.as_str());
        (self.filters.is_empty() || self.filters.iter().any(holds))
            && !self.skipped.iter().any(holds)
    }
}

/// The outcome of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The case passed.
    Passed,
    /// The case failed.
    Failed,
    /// It could not run here, which it said itself.
    Skipped,
}

/// Passed if `case` does not panic.
pub fn outcome_of(case: impl FnOnce()) -> Outcome {
    match catch_unwind(AssertUnwindSafe(case)) {
        Ok(()) => Outcome::Passed,
        Err(_) => Outcome::Failed,
    }
}

/// Runs the requested cases in order, prints the outcome of each, and ends the process. `run` is called with
/// these cases, and with a function to call for each outcome.
pub fn main<C>(
    cases: &[(&str, C)],
    run: impl FnOnce(&[&(&str, C)], &mut dyn FnMut(&str, Outcome)),
) -> ! {
    let asked = Asked::parse(env::args().skip(1));
    let wanted: Vec<&(&str, C)> = cases.iter().filter(|(name, _)| asked.wants(name)).collect();
    if asked.list {
        for (name, _) in &wanted {
            println!("{name}: test");
        }
        exit(0);
    }
    let began = Instant::now();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut last = began;
    if !wanted.is_empty() {
        run(&wanted, &mut |name, outcome| {
            let (word, count) = match outcome {
                Outcome::Passed => ("ok", &mut passed),
                Outcome::Failed => ("FAILED", &mut failed),
                Outcome::Skipped => ("SKIPPED", &mut skipped),
            };
            *count += 1;
            let seconds = last.elapsed().as_secs_f64();
            println!("test {name} ... {word} ({seconds:.1} s)");
            last = Instant::now();
        });
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {word}. {passed} passed; {failed} failed; {skipped} ignored; 0 measured; {} filtered out; \
         finished in {:.2}s",
        cases.len() - wanted.len(),
        began.elapsed().as_secs_f64()
    );
    exit(i32::from(failed > 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &str) -> Asked {
        Asked::parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn names_choose_and_skips_leave_out() {
        assert!(asked("").wants("long::siege"));
        assert!(!asked("--skip long::").wants("long::siege"));
        assert!(asked("--skip long::").wants("short"));
        let two = asked("a b --skip c");
        assert!(two.wants("xa") && two.wants("b") && !two.wants("ac") && !two.wants("d"));
    }

    #[test]
    fn flags_of_libtest_are_passed_over() {
        let flags = asked("--nocapture --test-threads 2 --color never -q name --list");
        assert_eq!(flags.filters, ["name"]);
        assert!(flags.list && flags.skipped.is_empty());
    }

    #[test]
    fn a_panic_is_a_failure() {
        assert_eq!(outcome_of(|| {}), Outcome::Passed);
        assert_eq!(outcome_of(|| panic!("as meant")), Outcome::Failed);
    }
}
