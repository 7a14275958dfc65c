//! Checks of documents that the program can write and the repository contains.

/// Fails if the file `name` of the repository differs from `now`, the text that the program writes. If
/// `LINERATE_TEST_BLESS` is set, the text is first written to the file.
///
/// # Panics
/// If the file and the text differ.
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

/// Fails if the text `part` is not in the file `name` of the repository.
///
/// # Panics
/// If the file does not contain the text.
pub fn has_part(name: &str, part: &str) {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    let kept = std::fs::read_to_string(&path).expect(name);
    assert!(kept.contains(part.trim()), "{name} lacks this part:\n{part}");
}
