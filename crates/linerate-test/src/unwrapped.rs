/// Returns the words of a text on one line, separated by one space. A test cannot know where a page breaks its lines.
///
/// ```
/// assert_eq!(linerate_test::unwrapped("  the port\n   is down\n"), "the port is down");
/// ```
#[must_use]
pub fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
