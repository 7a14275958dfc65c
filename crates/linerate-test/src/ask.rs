//! Measurements of tests that are repeated if the machine was disturbed.
//!
//! On a machine whose CPUs are busy with other work, a test with real sockets measures a wrong figure. It then measures
//! again, with a new load. Each attempt that could not be decided is printed with the test's name, and `test.sh` counts
//! these lines: in CI, it fails if there are more than a few. If no disturbance can explain a wrong figure, the test
//! itself must assert this: a panic always fails the test.

use std::any::type_name;
use std::env;
use std::thread;

use crate::disturbed::Disturbance;
use crate::{Turn, Watch, say};

/// Largest number of attempts of a measurement.
const ATTEMPTS: usize = 3;
/// Largest number of attempts that may fail although the machine was quiet.
/// What a load does also depends on chance, but it should not fail twice.
const QUIET: usize = 1;

/// Runs `attempt` until it succeeds, at most three times. `attempt` returns `Err` with what it measured if a disturbed
/// machine can explain this, and panics if nothing can. Disturbances are watched only during the attempts, not while a
/// test waits for its turn: the caller already has the turn.
///
/// Returns `None` if the machine was disturbed in each attempt. In CI, this is a failure.
///
/// # Panics
/// If two attempts failed while the machine was quiet; with `CI=true`, also if no attempt succeeded.
pub fn ask<T, F>(_turn: &Turn, mut attempt: F) -> Option<T>
where
    F: FnMut() -> Result<T, String>,
{
    let name = name::<F>();
    let look = || {
        let watch = Watch::begin();
        let answer = attempt();
        let seen = watch.end();
        answer.map_err(|why| (why, seen))
    };
    let tried = answer(look, |why, seen| {
        say(&line(&name, why, seen));
    });
    match tried {
        Ok(answer) => Some(answer),
        Err(Why::Quiet) => panic!("{name}: failed {} times on a quiet machine", QUIET + 1),
        Err(Why::Disturbed) => {
            let ci = env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!ci, "{name}: could not tell {ATTEMPTS} times in a row");
            None
        }
    }
}

/// Why no attempt succeeded.
#[derive(Debug, PartialEq)]
enum Why {
    /// Too many attempts failed although the machine was quiet.
    Quiet,
    /// All attempts failed, and nearly all of them were disturbed.
    Disturbed,
}

fn answer<T>(
    mut look: impl FnMut() -> Result<T, (String, Disturbance)>,
    mut tell: impl FnMut(&str, &Disturbance),
) -> Result<T, Why> {
    let mut quiet = 0;
    for _ in 0..ATTEMPTS {
        match look() {
            Ok(answer) => return Ok(answer),
            Err((why, seen)) => {
                tell(&why, &seen);
                quiet += usize::from(!seen.counts());
                if quiet > QUIET {
                    return Err(Why::Quiet);
                }
            }
        }
    }
    Err(Why::Disturbed)
}

/// Returns the line that `test.sh` counts. The disturbance precedes the reason, because the reason may be long.
fn line(name: &str, why: &str, seen: &Disturbance) -> String {
    let why: Vec<&str> = why.split_whitespace().collect();
    format!("COULD NOT TELL: {name}: {seen}: {}", why.join(" "))
}

/// Returns the name of the test, which libtest gives to its thread.
/// Without libtest, returns the function that calls [`ask`].
fn name<F>() -> String {
    let thread = thread::current();
    let test = thread.name().filter(|name| *name != "main");
    test.unwrap_or_else(|| name_of::<F>()).to_owned()
}

/// Returns the path of the function that contains the closure of type `F`.
fn name_of<F>() -> &'static str {
    let name = type_name::<F>();
    name.split("::{{closure}}").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    fn seen(late_ms: u64) -> Disturbance {
        Disturbance { late: Duration::from_millis(late_ms), stolen: 0.0, others: 0.0 }
    }

    /// Runs attempts with these outcomes: `None` succeeds; otherwise the machine was late by this many milliseconds.
    /// Returns the result and the number of reported failures.
    fn outcome(attempts: &[Option<u64>]) -> (Result<usize, Why>, usize) {
        let (mut at, reported) = (0, Cell::new(0));
        let result = answer(
            || {
                at += 1;
                match attempts[at - 1] {
                    None => Ok(at),
                    Some(late) => Err(("no".to_owned(), seen(late))),
                }
            },
            |_, _| reported.set(reported.get() + 1),
        );
        (result, reported.get())
    }

    #[test]
    fn an_answer_ends_it_and_each_attempt_before_is_counted() {
        assert_eq!(outcome(&[None]), (Ok(1), 0));
        assert_eq!(outcome(&[Some(500), None]), (Ok(2), 1));
        assert_eq!(outcome(&[Some(500), Some(0), None]), (Ok(3), 2));
    }

    #[test]
    fn two_failures_on_a_quiet_machine_are_the_end() {
        assert_eq!(outcome(&[Some(0), Some(0)]), (Err(Why::Quiet), 2));
        assert_eq!(outcome(&[Some(0), Some(500), Some(0)]), (Err(Why::Quiet), 3));
    }

    #[test]
    fn three_disturbed_attempts_tell_nothing() {
        let disturbed = [Some(500); 3];
        assert_eq!(outcome(&disturbed), (Err(Why::Disturbed), 3));
        assert_eq!(outcome(&[Some(0), Some(500), Some(500)]), (Err(Why::Disturbed), 3));
    }

    fn named<F: FnMut() -> usize + Send + 'static>(thread: &str, _: F) -> String {
        let builder = thread::Builder::new().name(thread.to_owned());
        let named = builder.spawn(name::<F>).expect("a thread");
        named.join().expect("a name")
    }

    #[test]
    fn the_name_is_that_of_the_test_or_of_the_function_that_asks() {
        assert_eq!(named("long::a_test", || 1), "long::a_test");
        assert_eq!(
            named("main", || 1),
            "linerate_test::ask::tests::the_name_is_that_of_the_test_or_of_the_function_that_asks"
        );
    }

    #[test]
    fn what_could_not_be_told_is_one_line() {
        let line = line("a_test", "{\n  \"a\": 1\n}", &seen(0));
        assert_eq!(line, "COULD NOT TELL: a_test: the machine was quiet: { \"a\": 1 }");
    }
}
