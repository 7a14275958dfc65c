//! Parses `/proc/net/stat/nf_conntrack`: counters of the kernel's table of connections, with one line for each CPU.

use super::text;

/// The sum of the column `name` (such as `early_drop`) over all CPUs; `None` if there is no such column, or if a line
/// is damaged.
pub fn sum(text: &[u8], name: &str) -> Option<u64> {
    let mut lines = text::lines(text, "nf_conntrack").filter_map(Result::ok);
    let at = text::fields(lines.next()?).position(|field| field == name.as_bytes())?;
    let values = lines.map(|line| text::hexadecimal(text::fields(line).nth(at)?));
    values.sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::sum;

    const REAL: &[u8] = b"entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart\n\
        00000c21  00000000 00000000 00000000 00000010 0000aaaa 00000000 00000000 00000000 00000002 00000005 00000001 00000000  00000000 00000000 00000000 00000003\n\
        00000c21  00000000 00000000 00000000 00000004 0000bbbb 00000000 00000000 00000000 00000001 0000000a 00000010 00000000  00000000 00000000 00000000 00000000\n";

    #[test]
    fn columns_are_found_by_their_names_and_summed_over_cpus() {
        assert_eq!((sum(REAL, "drop"), sum(REAL, "early_drop")), (Some(15), Some(17)));
        assert_eq!(sum(REAL, "chaintoolong"), None);
        assert_eq!(sum(b"", "drop"), None);
        assert_eq!(sum(b"drop\nx\n", "drop"), None);
        assert_eq!(sum(b"a drop\n1\n", "drop"), None, "a short line");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = sum(&bytes, "drop");
        }
    }
}
