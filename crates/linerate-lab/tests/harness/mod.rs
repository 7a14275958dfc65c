//! Runs each case in its own process, as root and as an ordinary user.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, exit};

use linerate_test::program::{self, Outcome};
use linerate_test::{ask, turn};

/// A case: its name, and a function that panics if the case fails.
pub(crate) type Case = (&'static str, fn());

/// The user as whom a case is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    /// The user who runs the tests.
    Own,
    /// An ordinary user: the one who runs the tests, or `nobody` if that is root.
    Ordinary,
}

/// The user and group `nobody`.
const NOBODY: u32 = 65534;
/// Exit code of a case that was skipped, or that the machine disturbed each time.
const SKIPPED: i32 = 77;

/// Runs one case if `--case` names it, else all wanted cases: those `by_each` as root, if root runs the tests, and as
/// an ordinary user; those `by_one` only as an ordinary user.
pub(crate) fn main(by_each: &[Case], by_one: &[Case]) {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let all = || by_each.iter().chain(by_one);
    if let [flag, name] = &arguments[..]
        && flag == "--case"
    {
        let case = all().find(|(own, _)| own == name);
        case.expect("no such case").1();
        return;
    }
    let own = by_each.iter().filter(|_| is_root());
    let own = own.map(|(name, _)| (*name, User::Own));
    let ordinary = all().map(|(name, _)| (*name, User::Ordinary));
    program::main(&own.chain(ordinary).collect::<Vec<_>>(), |cases, tell| {
        for (name, user) in cases {
            let who = match user {
                User::Own => "as me",
                User::Ordinary => "as an ordinary user",
            };
            tell(&format!("{name} {who}"), run(name, *user));
        }
    });
}

fn run(name: &str, user: User) -> Outcome {
    if user == User::Own || !is_root() {
        return run_as(name, program(), None);
    }
    // Other users may not have access to the build folder, so the program is copied.
    let folder = tempfile::tempdir_in("/tmp").expect("a folder");
    let copy = folder.path().join("namespaces");
    std::fs::copy(program(), &copy).expect("a copy");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("a folder open to all");
    run_as(name, copy, Some(NOBODY))
}

fn program() -> PathBuf {
    env::current_exe().expect("this program's path")
}

fn run_as(name: &str, program: PathBuf, user: Option<u32>) -> Outcome {
    let mut command = Command::new(program);
    command.args(["--case", name]).current_dir("/");
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let status = command.status().expect("a process");
    match status.code() {
        Some(0) => Outcome::Passed,
        Some(SKIPPED) => Outcome::Skipped,
        _ => Outcome::Failed,
    }
}

pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}

/// Repeats `attempt` until it returns `Ok`. Ends the case as skipped if the machine was disturbed each time.
pub(crate) fn answer<T, F: FnMut() -> Result<T, String>>(attempt: F) -> T {
    ask(&turn(), attempt).unwrap_or_else(|| exit(SKIPPED))
}

/// Ends the case as skipped, and reports what is lacking.
pub(crate) fn skip(lacking: &str, why: &str) -> ! {
    linerate_test::skip(lacking, why);
    exit(SKIPPED)
}

/// Ends the case as skipped if a program that it needs is not installed, and reports that.
pub(crate) fn need(program: &str) {
    if !linerate_test::has(program) {
        exit(SKIPPED);
    }
}
