//! Decodes the settings (`TCA_OPTIONS`) of queueing disciplines and classes that delay packets. Attribute numbers and
//! structures are from linux/pkt_sched.h. Rates there are in bytes per second.

use super::Malformed;
use super::netem::netem;
use super::netlink::{attributes, u16_at, u32_at, u64_at};
use super::qdisc::Qdisc;
use crate::shaping::Shaping;
use linerate_units::{Bytes, Rate};

pub(super) const WHAT: &str = "settings of a queueing discipline";

/// Nanoseconds in one tick of the kernel's packet scheduler.
//= include/net/pkt_sched.h, PSCHED_SHIFT
pub(super) const TICK: u64 = 64;

/// Length of an Ethernet header in bytes, which cake does not count where an overhead is configured.
//= net/sched/sch_cake.c, cake_calc_overhead
const ETHERNET: i32 = 14;

/// The limits that a discipline sets; `None` if it has no limits, or if its kind is unknown.
pub fn discipline(qdisc: &Qdisc<'_>) -> Result<Option<Shaping>, Malformed> {
    let set = match &*qdisc.kind {
        "tbf" => tbf(qdisc.options)?,
        "fq" => fq(qdisc.options)?,
        "cake" => cake(qdisc.options)?,
        "netem" => netem(qdisc.options)?,
        _ => return Ok(None),
    };
    Ok(Some(set).filter(Shaping::is_set))
}

/// The limits that a class sets; `None` if it has no limits, or if its kind is unknown.
pub fn class(class: &Qdisc<'_>) -> Result<Option<Shaping>, Malformed> {
    let set = match &*class.kind {
        "htb" => htb(class.options)?,
        "hfsc" => hfsc(class.options)?,
        _ => return Ok(None),
    };
    Ok(Some(set).filter(Shaping::is_set))
}

/// Whether a discipline of this kind has classes that may delay packets.
pub fn has_classes(kind: &str) -> bool {
    matches!(kind, "htb" | "hfsc")
}

/// Decodes `struct tc_ratespec`: the rate in bytes per second, and the extra bytes that are counted for each packet. If
/// a rate does not fit, another attribute has it.
fn spec(value: &[u8], at: usize) -> Result<(u64, i32), Malformed> {
    let overhead = u16_at(value, at + 2, WHAT)?;
    let rate = u32_at(value, at + 8, WHAT)?;
    Ok((u64::from(rate), i32::from(overhead as i16)))
}

pub(super) fn rate(bytes_per_sec: u64) -> Option<Rate> {
    (bytes_per_sec > 0).then(|| Rate(bytes_per_sec.saturating_mul(8)))
}

/// Decodes tbf: `TCA_TBF_PARMS` (1) and `TCA_TBF_RATE64` (4).
fn tbf(options: &[u8]) -> Result<Shaping, Malformed> {
    let (mut parms, mut wide) = (None, None);
    for attribute in attributes(options) {
        match attribute? {
            // The bucket follows two rates and the limit.
            (1, value) => parms = Some((spec(value, 0)?, u32_at(value, 28, WHAT)?)),
            (4, value) => wide = Some(u64_at(value, 0, WHAT)?),
            _ => {}
        }
    }
    let ((narrow, overhead), bucket) = parms.ok_or(Malformed::Missing(WHAT))?;
    let bytes = wide.unwrap_or(narrow);
    // The kernel reports the bucket's size as the time in which the bucket fills.
    let burst = u128::from(bytes) * u128::from(bucket) * u128::from(TICK) / 1_000_000_000;
    Ok(Shaping {
        rate: rate(bytes),
        burst: Some(Bytes(u64::try_from(burst).unwrap_or(u64::MAX))),
        overhead,
        ..Shaping::default()
    })
}

/// Decodes fq: `TCA_FQ_RATE_ENABLE` (5) and `TCA_FQ_FLOW_MAX_RATE` (7), where all bits set mean no limit.
fn fq(options: &[u8]) -> Result<Shaping, Malformed> {
    let (mut enabled, mut most) = (true, None);
    for attribute in attributes(options) {
        match attribute? {
            (5, value) => enabled = u32_at(value, 0, WHAT)? != 0,
            (7, value) => most = Some(u32_at(value, 0, WHAT)?),
            _ => {}
        }
    }
    let most = most.filter(|most| enabled && *most != u32::MAX);
    Ok(Shaping { flow_rate: most.and_then(|most| rate(u64::from(most))), ..Shaping::default() })
}

/// Decodes cake: `TCA_CAKE_BASE_RATE64` (2), where 0 means no limit, `TCA_CAKE_OVERHEAD` (6), and `TCA_CAKE_RAW` (12),
/// which is present if frames are counted without overhead.
fn cake(options: &[u8]) -> Result<Shaping, Malformed> {
    let (mut bytes, mut overhead, mut raw) = (0, 0, false);
    for attribute in attributes(options) {
        match attribute? {
            (2, value) => bytes = u64_at(value, 0, WHAT)?,
            (6, value) => overhead = u32_at(value, 0, WHAT)? as i32,
            (12, _) => raw = true,
            _ => {}
        }
    }
    Ok(Shaping {
        rate: rate(bytes),
        overhead: if raw { 0 } else { overhead.saturating_sub(ETHERNET) },
        ..Shaping::default()
    })
}

/// Decodes an htb class: `TCA_HTB_PARMS` (1), `TCA_HTB_RATE64` (6) and `TCA_HTB_CEIL64` (7).
fn htb(options: &[u8]) -> Result<Shaping, Malformed> {
    let (mut parms, mut assured, mut ceil) = (None, None, None);
    for attribute in attributes(options) {
        match attribute? {
            (1, value) => parms = Some((spec(value, 0)?, spec(value, 12)?)),
            (6, value) => assured = Some(u64_at(value, 0, WHAT)?),
            (7, value) => ceil = Some(u64_at(value, 0, WHAT)?),
            _ => {}
        }
    }
    let ((narrow_rate, _), (narrow_ceil, overhead)) = parms.ok_or(Malformed::Missing(WHAT))?;
    Ok(Shaping {
        rate: rate(ceil.unwrap_or(narrow_ceil)),
        assured: rate(assured.unwrap_or(narrow_rate)),
        overhead,
        ..Shaping::default()
    })
}

/// Decodes an hfsc class: `TCA_HFSC_USC` (3), the curve that the class never exceeds. Its second slope is the permanent
/// rate.
fn hfsc(options: &[u8]) -> Result<Shaping, Malformed> {
    let mut upper = 0;
    for attribute in attributes(options) {
        if let (3, value) = attribute? {
            upper = u64::from(u32_at(value, 8, WHAT)?);
        }
    }
    Ok(Shaping { rate: rate(upper), ..Shaping::default() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse::netlink::tests::attr;

    fn qdisc<'a>(kind: &'a str, options: &'a [u8]) -> Qdisc<'a> {
        Qdisc {
            port: 4,
            handle: 0x1_0000,
            parent: u32::MAX,
            kind: kind.into(),
            options,
            stats: None,
        }
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    /// Encodes `struct tc_ratespec`.
    fn rate_spec(overhead: i16, bytes: u32) -> Vec<u8> {
        let head = [&[0, 1][..], &overhead.to_ne_bytes(), &[0; 4]].concat();
        [head, bytes.to_ne_bytes().to_vec()].concat()
    }

    fn tbf_options(bytes: u32, wide: Option<u64>) -> Vec<u8> {
        let parms = [rate_spec(4, bytes), rate_spec(0, 0), words(&[65_536, 16_384, 0])].concat();
        let wide = wide.map(|w| attr(4, &w.to_ne_bytes())).unwrap_or_default();
        [attr(1, &parms), wide].concat()
    }

    #[test]
    fn a_token_bucket_tells_rate_and_burst() {
        let options = tbf_options(62_500_000, None);
        let got = discipline(&qdisc("tbf", &options)).unwrap().unwrap();
        assert_eq!(got.rate, Some(Rate(500_000_000)));
        // 16384 ticks of 64 ns at 62.5 MB/s are 65,536 bytes.
        assert_eq!((got.burst, got.overhead), (Some(Bytes(65_536)), 4));
        let options = tbf_options(u32::MAX, Some(12_500_000_000));
        let got = discipline(&qdisc("tbf", &options)).unwrap().unwrap();
        assert_eq!(got.rate, Some(Rate(100_000_000_000)));
        assert!(discipline(&qdisc("tbf", &[])).is_err());
    }

    #[test]
    fn fq_limits_flows_only_where_it_is_told_to() {
        let options = |enabled: u32, most: u32| {
            let all = [attr(5, &enabled.to_ne_bytes()), attr(7, &most.to_ne_bytes())];
            all.concat()
        };
        let got = |enabled, most| discipline(&qdisc("fq", &options(enabled, most))).unwrap();
        let flow_rate = got(1, 12_500_000).unwrap().flow_rate;
        assert_eq!(flow_rate, Some(Rate(100_000_000)));
        assert_eq!(got(1, u32::MAX), None);
        assert_eq!(got(0, 12_500_000), None, "rates are switched off");
        assert_eq!(discipline(&qdisc("fq_codel", &[1])).unwrap(), None);
    }

    #[test]
    fn cake_counts_from_the_packet_where_it_has_an_overhead() {
        let options = |raw: bool, bytes: u64| {
            let raw = if raw { attr(12, &[0; 4]) } else { Vec::new() };
            let rate = attr(2, &bytes.to_ne_bytes());
            [rate, attr(6, &38i32.to_ne_bytes()), raw].concat()
        };
        let got = |raw, bytes| discipline(&qdisc("cake", &options(raw, bytes))).unwrap();
        let reported = got(false, 1_250_000).unwrap();
        assert_eq!((reported.rate, reported.overhead), (Some(Rate(10_000_000)), 24));
        assert_eq!(got(true, 1_250_000).unwrap().overhead, 0);
        assert_eq!(got(true, 0), None, "unlimited");
    }

    #[test]
    fn classes_tell_their_ceiling_and_what_they_are_sure_of() {
        let parms = |wide: &[Vec<u8>]| {
            let parms = [rate_spec(0, 12_500_000), rate_spec(0, 62_500_000), vec![0; 20]];
            [attr(1, &parms.concat()), wide.concat()].concat()
        };
        let options = parms(&[]);
        let got = class(&qdisc("htb", &options)).unwrap().unwrap();
        assert_eq!(got.rate, Some(Rate(500_000_000)));
        assert_eq!(got.assured, Some(Rate(100_000_000)));
        let options = parms(&[attr(7, &5_000_000_000u64.to_ne_bytes())]);
        let got = class(&qdisc("htb", &options)).unwrap().unwrap();
        assert_eq!(got.rate, Some(Rate(40_000_000_000)));
        let curve = attr(3, &words(&[9, 9, 1_250_000]));
        let got = class(&qdisc("hfsc", &curve)).unwrap().unwrap();
        assert_eq!(got.rate, Some(Rate(10_000_000)));
        let no_upper = attr(2, &words(&[9, 9, 1_250_000]));
        assert_eq!(class(&qdisc("hfsc", &no_upper)).unwrap(), None);
        assert!(has_classes("htb") && !has_classes("tbf"));
    }

    proptest! {
        #[test]
        fn arbitrary_settings_never_panic(bytes: Vec<u8>) {
            for kind in ["tbf", "fq", "cake", "netem", "htb", "hfsc"] {
                let _ = (discipline(&qdisc(kind, &bytes)), class(&qdisc(kind, &bytes)));
            }
        }
    }
}
