//! Runs each case in a process of its own, and understands what `cargo test` passes on.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, exit};

/// A case: its name, and what panics if it fails.
pub(crate) type Case = (&'static str, fn());

/// The user and group `nobody`.
const NOBODY: u32 = 65534;
/// How a case says that it could not be run.
const SKIPPED: i32 = 77;

/// Runs one case if asked to, or all whose name contains the filter: those `by_each` as each user, those
/// `by_one` as an ordinary user alone.
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
    if arguments.iter().any(|a| a == "--list") {
        for (name, _) in all() {
            println!("{name}: test");
        }
        return;
    }
    let filter = arguments.iter().find(|a| !a.starts_with('-'));
    let wanted = |(name, _): &&Case| filter.is_none_or(|f| name.contains(f.as_str()));
    let each = by_each.iter().filter(wanted).map(|(name, _)| run(name));
    let one = by_one
        .iter()
        .filter(wanted)
        .map(|(name, _)| usize::from(!run_with_least(name)));
    let failed: usize = each.chain(one).sum();
    if failed > 0 {
        println!("{failed} failed");
        exit(1);
    }
}

/// Runs a case as each user; gives the number of failures.
fn run(name: &str) -> usize {
    let as_root = is_root().then(|| run_as(name, program(), None));
    usize::from(as_root == Some(false)) + usize::from(!run_with_least(name))
}

/// Runs a case as an ordinary user; gives whether it did not fail.
fn run_with_least(name: &str) -> bool {
    if !is_root() {
        return run_as(name, program(), None);
    }
    // The build folder may be closed to others: the copy is not.
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

fn run_as(name: &str, program: PathBuf, user: Option<u32>) -> bool {
    let mut command = Command::new(program);
    command.args(["--case", name]).current_dir("/");
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let who = user.map_or("me", |_| "an ordinary user");
    let status = command.status().expect("a process");
    let word = match status.code() {
        Some(0) => "ok",
        Some(SKIPPED) => "SKIPPED",
        _ => "FAILED",
    };
    println!("test {name} as {who} ... {word}");
    word != "FAILED"
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}

/// Ends the case as skipped, loudly, unless what it needs was said to be required.
pub(crate) fn need(program: &str) {
    let found = env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|p| p.join(program).exists()));
    if found {
        return;
    }
    let required = env::var("LINERATE_TEST_REQUIRE").unwrap_or_default();
    if required.split(',').any(|r| r == program) {
        println!("FAILED: {program} is required (LINERATE_TEST_REQUIRE) and not installed");
        exit(1);
    }
    println!("SKIPPED: this case needs {program}, which is not installed");
    exit(SKIPPED);
}
