//! Questions that a disturbed machine cannot answer.
//!
//! A test with real sockets measures a wrong figure on a machine whose CPUs were busy with other work. It then
//! measures again, with fresh load. Each attempt without an answer is counted and printed by name; `test.sh`
//! fails in CI if there are more than a few. The test itself must assert a wrong answer that no disturbance can
//! explain: a panic is never forgiven.

use std::any::type_name;
use std::env;
use std::thread;

use crate::disturbed::Disturbance;
use crate::{Turn, Watch, say};

/// How often a measurement is repeated.
const ATTEMPTS: usize = 3;
/// How many attempts may fail while the machine was quiet: chance has a part in what a load does,
/// but not twice.
const QUIET: usize = 1;

/// Asks until there is an answer, three times at most. `attempt` returns `Err` with what it saw
/// where a disturbed machine can explain it, and panics where nothing can. The watch sees attempts
/// alone, and not how long a test waits for its turn: the caller has it already.
///
/// `None` if the machine was disturbed each time. That is a failure in CI.
///
/// # Panics
/// If two attempts failed while the machine was quiet; with `CI=true` also if none succeeded.
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

/// Why there is no answer.
#[derive(Debug, PartialEq)]
enum Why {
    /// Attempts failed though nothing disturbed them.
    Quiet,
    /// Each attempt was disturbed.
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

/// One line, which `test.sh` counts. What the machine did stands first: the reason may be long.
fn line(name: &str, why: &str, seen: &Disturbance) -> String {
    let why: Vec<&str> = why.split_whitespace().collect();
    format!("COULD NOT TELL: {name}: {seen}: {}", why.join(" "))
}

/// The name of the test: libtest gives it to the thread. Elsewhere the function that asks.
fn name<F>() -> String {
    let thread = thread::current();
    let test = thread.name().filter(|name| *name != "main");
    test.unwrap_or_else(|| name_of::<F>()).to_owned()
}

/// The path of the function that contains a closure.
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

    /// Attempts with these outcomes: `None` succeeds, otherwise the machine was late by this much.
    fn outcome(attempts: &[Option<u64>]) -> (Result<usize, Why>, usize) {
        let (mut at, told) = (0, Cell::new(0));
        let result = answer(
            || {
                at += 1;
                match attempts[at - 1] {
                    None => Ok(at),
                    Some(late) => Err(("no".to_owned(), seen(late))),
                }
            },
            |_, _| told.set(told.get() + 1),
        );
        (result, told.get())
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
