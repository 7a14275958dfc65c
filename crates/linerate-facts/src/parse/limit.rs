//! The limit of a queueing discipline: read from its options (`TCA_OPTIONS`), and written into them. Structures are
//! from linux/pkt_sched.h.

use super::Malformed;
use super::netlink::{attributes, change_attributes, u16_at, u32_at, u64_at};
use super::shaping::TICK;
use linerate_plan::change::Queue;

const WHAT: &str = "options of a queueing discipline";

/// Attributes `TCA_TBF_PARMS`, `TCA_TBF_RATE64` and `TCA_TBF_BURST`.
const PARMS: u16 = 1;
const RATE: u16 = 4;
const BURST: u16 = 6;

/// Offsets of the peak rate, the limit and the bucket in `struct tc_tbf_qopt`. The rate before them has 12 bytes; both
/// rates end with the number of bytes per second.
const PEAK: usize = 20;
const LIMIT: usize = 24;
const BUCKET: usize = 28;

/// Link layer `TC_LINKLAYER_ATM`, for which bytes are counted in ATM cells.
const CELLS: u8 = 2;

/// The limit of a discipline: bytes for a token bucket, packets for a packet queue.
pub fn limit(queue: Queue, options: &[u8]) -> Result<u32, Malformed> {
    match queue {
        // The only field of `struct tc_fifo_qopt` is the limit.
        Queue::Pfifo => u32_at(options, 0, WHAT),
        Queue::Tbf => Ok(bucket(options)?.limit),
    }
}

/// Encodes the options of a discipline with the limit `limit`. All other options are as the kernel reported them.
pub fn with_limit(queue: Queue, options: &[u8], limit: u32) -> Result<Vec<u8>, Malformed> {
    let limit = limit.to_ne_bytes();
    if queue == Queue::Pfifo {
        u32_at(options, 0, WHAT)?;
        return Ok([&limit, &options[4..]].concat());
    }
    let burst = bucket(options)?.burst.to_ne_bytes();
    let mut options = options.to_vec();
    change_attributes(&mut options, |kind, value| {
        if let Some(place) = value.get_mut(LIMIT..BUCKET).filter(|_| kind == PARMS) {
            place.copy_from_slice(&limit);
        }
    });
    // Head of an attribute: its length is 8 bytes.
    options.extend([8_u16.to_ne_bytes(), BURST.to_ne_bytes()].concat());
    options.extend(burst);
    Ok(options)
}

/// The fields of a token bucket that are needed to write its limit.
struct Bucket {
    limit: u32,
    /// The most bytes that the bucket holds.
    burst: u32,
}

/// Reads a token bucket. The kernel reports the bucket's size as the time, in ticks, in which it fills, and expects
/// bytes. This returns the largest size with the same number of ticks: a smaller bucket might no longer let the largest
/// packets pass.
fn bucket(options: &[u8]) -> Result<Bucket, Malformed> {
    let (mut parms, mut wide) = (None, None);
    for attribute in attributes(options) {
        match attribute? {
            (PARMS, value) => parms = Some(value),
            (RATE, value) => wide = Some(u64_at(value, 0, WHAT)?),
            _ => {}
        }
    }
    let parms = parms.ok_or(Malformed::Missing(WHAT))?;
    let ticks = u32_at(parms, BUCKET, WHAT)?;
    // A second bucket, for peaks, is reported in ticks as well. A discipline with such a bucket is not changed.
    if u32_at(parms, PEAK, WHAT)? != 0 || parms.get(1) == Some(&CELLS) {
        return Err(Malformed::Missing(WHAT));
    }
    let overhead = u64::from(u16_at(parms, 2, WHAT)?);
    let rate = wide.unwrap_or(u32_at(parms, 8, WHAT)?.into());
    // The time is shorter by one or two nanoseconds, since the kernel divides by a multiplication.
    let nanos = u128::from(ticks) * u128::from(TICK) + u128::from(TICK) - 2;
    let bytes = u128::from(rate) * nanos / 1_000_000_000;
    let bytes = bytes.saturating_sub(overhead.into());
    Ok(Bucket {
        limit: u32_at(parms, LIMIT, WHAT)?,
        burst: u32::try_from(bytes).unwrap_or(u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse::netlink::tests::attr;

    /// A token bucket of 1 Gb/s with a limit of 20 kB and a size of 65,536 bytes: 8,192 ticks.
    fn parms() -> [u8; 36] {
        let mut parms = [0; 36];
        for (at, value) in [(8, 125_000_000u32), (LIMIT, 20_000), (BUCKET, 8_192)] {
            parms[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        parms
    }

    fn tbf() -> Vec<u8> {
        [attr(9, &[9; 8]), attr(PARMS, &parms())].concat()
    }

    #[test]
    fn a_limit_is_read_and_changed_and_nothing_else_is() {
        for (queue, options) in
            [(Queue::Tbf, tbf()), (Queue::Pfifo, 20_000u32.to_ne_bytes().to_vec())]
        {
            assert_eq!(limit(queue, &options), Ok(20_000));
            let changed = with_limit(queue, &options, 0x0102_0304).unwrap();
            assert_eq!(limit(queue, &changed), Ok(0x0102_0304));
            let differing = options.iter().zip(&changed).filter(|(a, b)| a != b);
            assert!((1..=4).contains(&differing.count()));
            let back = with_limit(queue, &changed, 20_000).unwrap();
            assert!(back.starts_with(&options));
        }
    }

    #[test]
    fn a_bucket_is_given_all_that_fills_it_in_as_many_ticks() {
        let burst = |parms: &[u8], more: &[u8]| {
            let options = [attr(PARMS, parms), more.to_vec()].concat();
            bucket(&options).map(|bucket| bucket.burst)
        };
        // A tick is 64 ns, which is 8 bytes at this rate: all sizes from 65,536 to 65,543 bytes are reported as 8,192
        // ticks.
        assert_eq!(burst(&parms(), &[]), Ok(65_543));
        let wide = attr(RATE, &1_250_000_000u64.to_ne_bytes());
        assert_eq!(burst(&parms(), &wide), Ok(655_437));
        let mut odd = parms();
        odd[2] = 24;
        assert_eq!(burst(&odd, &[]), Ok(65_519), "each packet counts for more");
        for at in [1, PEAK] {
            let mut odd = parms();
            odd[at] = CELLS;
            assert!(burst(&odd, &[]).is_err());
        }
    }

    #[test]
    fn options_without_a_limit_are_an_error() {
        for (queue, options) in [
            (Queue::Pfifo, vec![1, 2, 3]),
            (Queue::Tbf, attr(RATE, &[9; 8])),
            (Queue::Tbf, attr(PARMS, &[0; 31])),
        ] {
            assert!(limit(queue, &options).is_err());
            assert!(with_limit(queue, &options, 1).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_options_have_a_limit_or_none(bytes: Vec<u8>, tbf: bool, new: u32) {
            let queue = if tbf { Queue::Tbf } else { Queue::Pfifo };
            let changed = with_limit(queue, &bytes, new);
            prop_assert_eq!(changed.is_ok(), limit(queue, &bytes).is_ok());
        }
    }
}
