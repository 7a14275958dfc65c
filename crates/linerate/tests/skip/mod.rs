//! What a test does where it cannot be run: it says so, loudly, and fails where it is required.

use std::io::Write;

/// Says why something is skipped, on a line of its own: so `./test.sh` finds and counts it.
///
/// # Panics
/// Where `LINERATE_TEST_REQUIRE` names what is lacking.
#[expect(
    clippy::explicit_write,
    reason = "the test runner shows what `println!` wrote only of tests that fail"
)]
pub(crate) fn skip(lacking: &str, why: &str) {
    let required = std::env::var("LINERATE_TEST_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|r| r == lacking),
        "{lacking} is required (LINERATE_TEST_REQUIRE): {why}"
    );
    writeln!(std::io::stdout(), "\nSKIPPED: {why}").unwrap();
}
