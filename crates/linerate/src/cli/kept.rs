//! Documents that the program writes and the repository keeps.

/// Fails where `docs/NAME` is not what the program says `now`; writes it first where
/// `LINERATE_TEST_BLESS` is set.
pub(super) fn check(name: &str, now: &str) {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("LINERATE_TEST_BLESS").is_some() {
        std::fs::write(&path, now).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(
        kept == now,
        "docs/{name} is out of date: LINERATE_TEST_BLESS=1 cargo test -p linerate --lib"
    );
}
