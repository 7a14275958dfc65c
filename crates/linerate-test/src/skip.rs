//! What a test calls if it cannot run on this machine.

use std::env;

use crate::say;

/// Reports that the running test is skipped, and why. `lacking` is a word that `LINERATE_TEST_REQUIRE` may contain.
///
/// # Panics
/// If `LINERATE_TEST_REQUIRE` contains the word `lacking`.
pub fn skip(lacking: &str, why: &str) {
    let required = env::var("LINERATE_TEST_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|r| r == lacking),
        "{lacking} is required (LINERATE_TEST_REQUIRE): {why}"
    );
    say(&format!("SKIPPED: {why}"));
}

/// Returns whether `program` is installed; if not, reports that the test is skipped. Also searches the folders of
/// administrators' programs, which are not in every PATH.
///
/// # Panics
/// If `LINERATE_TEST_REQUIRE` contains the program's name and it is not installed.
pub fn has(program: &str) -> bool {
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    let found = env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !found {
        skip(program, &format!("{program} is not installed"));
    }
    found
}
