//! What a test does where it cannot run.

use std::env;

use crate::say;

/// Says that the running test is skipped, and why. `lacking` is a word of `LINERATE_TEST_REQUIRE`.
///
/// # Panics
/// If `LINERATE_TEST_REQUIRE` names what is lacking.
pub fn skip(lacking: &str, why: &str) {
    let required = env::var("LINERATE_TEST_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|r| r == lacking),
        "{lacking} is required (LINERATE_TEST_REQUIRE): {why}"
    );
    say(&format!("SKIPPED: {why}"));
}

/// Whether `program` is installed; if not, says that the test is skipped. It also looks into the folders of
/// administrators' programs, which are not in every PATH.
///
/// # Panics
/// If `LINERATE_TEST_REQUIRE` names the program and it is not installed.
pub fn has(program: &str) -> bool {
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    let found = env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !found {
        skip(program, &format!("{program} is not installed"));
    }
    found
}
