//! Documents that the program writes and the repository keeps.

/// Fails if the file `name` of the repository differs from the program's text `now`. Writes it first if
/// `LINERATE_TEST_BLESS` is set.
///
/// # Panics
/// If they differ.
pub fn check(name: &str, now: &str) {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("LINERATE_TEST_BLESS").is_some() {
        std::fs::write(&path, now).expect(name);
    }
    let kept = std::fs::read_to_string(&path).expect(name);
    assert!(
        kept == now,
        "{name} is out of date: LINERATE_TEST_BLESS=1 cargo test -p linerate --lib"
    );
}

/// Fails if the file `name` of the repository does not contain `part`.
///
/// # Panics
/// If it does not.
pub fn has_part(name: &str, part: &str) {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    let kept = std::fs::read_to_string(&path).expect(name);
    assert!(kept.contains(part.trim()), "{name} lacks this part:\n{part}");
}
