//! Parallel links between two hosts: together they carry the sum of their rates, but each stream uses only one link.

/// Number of streams on each member link when `streams` are spread over `members` links as evenly as can be.
pub fn spread(streams: u32, members: u32) -> Vec<u32> {
    let (each, more) = match members {
        0 => return Vec::new(),
        m => (streams / m, streams % m),
    };
    (0..members).map(|i| each + u32::from(i < more)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_stays_on_one_member() {
        assert_eq!(spread(1, 3), [1, 0, 0]);
        assert_eq!(spread(7, 3), [3, 2, 2]);
        assert_eq!(spread(2, 0), [0u32; 0]);
    }
}
