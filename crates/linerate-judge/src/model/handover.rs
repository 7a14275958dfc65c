//! Whether the kernel really sent payload without a copy, if linerate requested that.

use super::Load;
use super::readings::{Window, growth};
use linerate_facts::metric as m;
use linerate_record::EndReadings;

/// Largest share of sends that the kernel copied anyway, at which the load counts as sent without a copy.
const FEW: f64 = 0.05;

impl Load {
    /// Whether the kernel sent the program's own pages: it reported this for nearly all sends.
    pub fn uncopied(&self) -> bool {
        self.copied.is_some_and(|share| share <= FEW)
    }
}

/// The share of completed zero-copy sends that the kernel copied anyway.
pub(super) fn copied(end: &EndReadings, set: u32, window: Window) -> Option<f64> {
    let prefix = format!("s{set}/");
    let (mut done, mut copied) = (0.0, 0.0);
    for table in end.about("zerocopy", |s| s.starts_with(&prefix)) {
        done += growth(table, m::ZEROCOPY_COMPLETIONS, window)?.0;
        copied += growth(table, m::ZEROCOPY_COPIED, window)?.0;
    }
    (done > 0.0).then(|| copied / done)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, table};
    use super::*;

    fn share(reported: &[(&str, [i64; 2], [i64; 2])]) -> Option<f64> {
        let one = |(subject, done, copied): &(&str, _, _)| {
            let columns = [(m::ZEROCOPY_COMPLETIONS, *done), (m::ZEROCOPY_COPIED, *copied)];
            table(subject, &columns)
        };
        let end =
            EndReadings { tables: reported.iter().map(one).collect(), ..EndReadings::default() };
        copied(&end, 3, WHOLE)
    }

    #[test]
    fn the_share_is_of_all_streams_of_the_set_and_of_nothing_it_is_unknown() {
        assert_eq!(share(&[]), None);
        assert_eq!(share(&[("s3/0", [5, 5], [5, 5])]), None, "told before");
        assert_eq!(share(&[("s3/0", [5, 9], [5, 5])]), Some(0.0));
        let two = [("s3/0", [0, 30], [0, 30]), ("s3/1", [0, 10], [0, 0])];
        assert_eq!(share(&two), Some(0.75));
        assert_eq!(share(&[("s4/0", [0, 9], [0, 9])]), None, "another set");
    }
}
