//! `/sys/class/block/NAME/stat`: what a block device did.
//= Linux Documentation/block/stat.rst

use super::{Malformed, text};

const WHAT: &str = "statistics of a block device";
/// Bytes of a sector in these statistics, whatever the device's own are.
const SECTOR: u64 = 512;

/// Counters of a block device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskStat {
    /// Reads that are complete, after merging.
    pub reads: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Writes that are complete, after merging.
    pub writes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Milliseconds in which requests were in flight.
    pub busy_ms: u64,
    /// Milliseconds that requests were in flight, summed over all of them.
    pub queue_ms: u64,
}

/// Reads the counters. Newer kernels append more of them.
pub fn parse(text: &[u8]) -> Result<DiskStat, Malformed> {
    let line = text::lines(text, WHAT).next().ok_or(Malformed::Missing(WHAT))??;
    let mut fields = text::fields(line);
    let mut next = || {
        let field = fields.next().ok_or(Malformed::Missing(WHAT))?;
        text::decimal(field).ok_or(Malformed::NotANumber(WHAT))
    };
    let [reads, _, read, _] = [next()?, next()?, next()?, next()?];
    let [writes, _, written, _] = [next()?, next()?, next()?, next()?];
    let bytes = |sectors: u64| sectors.saturating_mul(SECTOR);
    Ok(DiskStat {
        reads,
        read_bytes: bytes(read),
        writes,
        written_bytes: bytes(written),
        in_flight: next()?,
        busy_ms: next()?,
        queue_ms: next()?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_real_file_parses_exactly_and_a_cut_one_not_at_all() {
        let real = b"   24593     7012  2262338    12014    81302    30129  9130720   112063        3    44348   131288        0        0        0        0     4024     7210\n";
        let stat = DiskStat {
            reads: 24_593,
            read_bytes: 2_262_338 * 512,
            writes: 81_302,
            written_bytes: 9_130_720 * 512,
            in_flight: 3,
            busy_ms: 44_348,
            queue_ms: 131_288,
        };
        assert_eq!(parse(real), Ok(stat));
        for end in 0..real.len() {
            assert!(parse(&real[..end]).is_err(), "cut at {end}");
        }
        // Kernels before 4.18 have eleven fields.
        assert_eq!(parse(b"1 0 8 0 0 0 0 0 0 1 1\n").map(|stat| stat.read_bytes), Ok(4096));
        assert!(parse(b"1 0 8 0 0 0 0 0 0 -1 1\n").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>) {
            let _ = parse(&text);
        }
    }
}
