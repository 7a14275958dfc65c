//! Test programs with their own `main`. They accept the arguments that
//! `cargo test` passes to libtest, and end with the same summary line as libtest.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::time::Instant;

/// Test cases that the command line requests.
#[derive(Debug, Default, PartialEq)]
struct Requested {
    list: bool,
    filters: Vec<String>,
    skipped: Vec<String>,
}

impl Requested {
    /// Parses libtest's arguments: names of cases to run, `--skip NAME`, `--list`. Other flags are ignored.
    fn parse(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut requested = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => requested.list = true,
                "--skip" => requested.skipped.extend(arguments.next()),
                "--test-threads" | "--color" | "--format" => drop(arguments.next()),
                flag if flag.starts_with('-') => {}
                _ => requested.filters.push(argument),
            }
        }
        requested
    }

    fn wants(&self, name: &str) -> bool {
        let holds = |text: &String| name.contains(text.as_str());
        (self.filters.is_empty() || self.filters.iter().any(holds))
            && !self.skipped.iter().any(holds)
    }
}

/// The outcome of a test case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The case passed.
    Passed,
    /// The case failed.
    Failed,
    /// The case could not run here, and reported this itself.
    Skipped,
}

/// Runs `case`. It has passed if it does not panic.
pub fn outcome_of(case: impl FnOnce()) -> Outcome {
    match catch_unwind(AssertUnwindSafe(case)) {
        Ok(()) => Outcome::Passed,
        Err(_) => Outcome::Failed,
    }
}

/// Runs the requested cases in order, prints the outcome of each, and ends the process. `run` gets these cases, and a
/// function that it must call with the outcome of each case.
pub fn main<C>(
    cases: &[(&str, C)],
    run: impl FnOnce(&[&(&str, C)], &mut dyn FnMut(&str, Outcome)),
) -> ! {
    let requested = Requested::parse(env::args().skip(1));
    let wanted: Vec<&(&str, C)> = cases.iter().filter(|(name, _)| requested.wants(name)).collect();
    if requested.list {
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

    fn requested(words: &str) -> Requested {
        Requested::parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn names_choose_and_skips_leave_out() {
        assert!(requested("").wants("long::siege"));
        assert!(!requested("--skip long::").wants("long::siege"));
        assert!(requested("--skip long::").wants("short"));
        let two = requested("a b --skip c");
        assert!(two.wants("xa") && two.wants("b") && !two.wants("ac") && !two.wants("d"));
    }

    #[test]
    fn flags_of_libtest_are_passed_over() {
        let flags = requested("--nocapture --test-threads 2 --color never -q name --list");
        assert_eq!(flags.filters, ["name"]);
        assert!(flags.list && flags.skipped.is_empty());
    }

    #[test]
    fn a_panic_is_a_failure() {
        assert_eq!(outcome_of(|| {}), Outcome::Passed);
        assert_eq!(outcome_of(|| panic!("as meant")), Outcome::Failed);
    }
}
