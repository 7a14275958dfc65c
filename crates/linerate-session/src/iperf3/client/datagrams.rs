//! Limits of iperf3 tests with datagrams.

use linerate_plan::Knobs;
use linerate_plan::transport::UDP;
use linerate_record::iperf3::{DATAGRAM_MAX, DATAGRAM_MIN, Width};

use super::ClientError;

/// Longest test, in seconds, whose datagrams have 32-bit numbers; longer tests use 64 bits. 32-bit numbers, which
/// every server supports, run out after ten minutes at seven million datagrams a second.
const NARROW_SECONDS: u64 = 600;

/// Refuses settings that UDP tests do not support.
pub(super) fn bounds(knobs: &Knobs) -> Result<(), ClientError> {
    let refuse = |what: String| Err(ClientError::Unsupported(what));
    let size = knobs.write_size.0;
    if !matches!(size, 0 | DATAGRAM_MIN..=DATAGRAM_MAX) {
        return refuse(format!(
            "a datagram of {size} B: iperf3 supports {DATAGRAM_MIN} B to {DATAGRAM_MAX} B"
        ));
    }
    UDP.check(knobs).or_else(refuse)
}

/// Returns the width of datagram numbers in a test of `seconds` seconds.
pub(super) fn width(seconds: u64) -> Width {
    if seconds > NARROW_SECONDS { Width::Wide } else { Width::Narrow }
}

#[cfg(test)]
mod tests {
    use linerate_plan::Handover;
    use linerate_units::Bytes;

    use super::*;

    #[test]
    fn sizes_are_bounded_and_what_only_connections_have_is_refused() {
        let good = |change: fn(&mut Knobs)| {
            let mut knobs = Knobs::default();
            change(&mut knobs);
            bounds(&knobs).is_ok()
        };
        assert!(good(|_| ()));
        assert!(good(|k| k.write_size = Bytes(DATAGRAM_MIN)));
        assert!(!good(|k| k.write_size = Bytes(DATAGRAM_MIN - 1)));
        assert!(good(|k| k.write_size = Bytes(DATAGRAM_MAX)));
        assert!(!good(|k| k.write_size = Bytes(DATAGRAM_MAX + 1)));
        assert!(!good(|k| k.mss = Some(536)));
        assert!(!good(|k| k.congestion = Some("bbr".to_owned())));
        assert!(!good(|k| k.copy = Handover::Sendfile));
        assert!(good(|k| k.nodelay = true));
        assert_eq!(width(NARROW_SECONDS), Width::Narrow);
        assert_eq!(width(NARROW_SECONDS + 1), Width::Wide);
    }
}
