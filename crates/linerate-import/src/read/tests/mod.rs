use super::*;

/// The contents of all sample files in a folder and its subfolders.
#[expect(clippy::disallowed_methods, reason = "tests read their samples")]
pub(super) fn samples(folder: &std::path::Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap();
    let each = entries.map(|entry| entry.unwrap().path());
    each.flat_map(
        |path| {
            if path.is_dir() { samples(&path) } else { vec![std::fs::read(&path).unwrap()] }
        },
    )
    .collect()
}

#[test]
fn no_output_begins_like_prose() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    for bytes in samples(&folder) {
        let text = decoded(&bytes).unwrap_or_default();
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        for at in std::iter::once(0).chain(ends) {
            let rest = &text[at..];
            let known = || FORMATS.iter().find(|format| (format.starts)(Start::of(rest)));
            if is_prose(Start::of(rest)) {
                assert_eq!(known(), None, "{rest}");
            }
        }
    }
    let is_prose = |text| is_prose(Start::of(text));
    assert!(is_prose("Only words, here.\r\nand here\r\n") && is_prose("words"));
    assert!(!is_prose("size latency\n1 2\n") && !is_prose("Name Speed\n---- ---\n"));
    assert!(!is_prose("receiving incremental file list\nfile\n") && !is_prose("a: b\nc"));
}

#[test]
fn lines_of_no_output_have_few_notes() {
    let output = "[SUM]   0.00-9.00   sec  2.72 GBytes  2.60 Gbits/sec    receiver\n";
    let notes = |before: &str, after: &str| {
        let parsed = read(format!("{before}{output}{after}").as_bytes()).unwrap();
        let notes = parsed.notes.into_iter();
        notes.map(|note| (note.line, note.what)).collect::<Vec<_>>()
    };
    assert_eq!(notes("", "\n$ ls\n"), []);
    let three = notes("a\n\nb\n", "c\n");
    let expected = [(1, "a"), (3, "b"), (5, "c")];
    let expected = expected.map(|(line, text)| (Some(line), format!("not understood: `{text}`")));
    assert_eq!(three, expected);
    let four = "4 lines that are no output of a known program (2, 4, 6-7), the first: `a`";
    assert_eq!(notes("\na\n\nb\n", "c\nd\n"), [(Some(2), four.to_owned())]);
}
