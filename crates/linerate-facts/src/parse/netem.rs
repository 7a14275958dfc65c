//! Decodes the settings of netem: delay, loss and rate.

use super::Malformed;
use super::netlink::{after, attributes, u32_at, u64_at};
use super::shaping::{TICK, WHAT, rate};
use crate::shaping::Shaping;
use linerate_units::Nanos;

/// Length of `struct tc_netem_qopt`, which has: delay in ticks, limit, loss, gap, duplication, jitter.
const FIXED: usize = 24;

/// Decodes `struct tc_netem_qopt`, and after it the attributes `TCA_NETEM_LOSS` (5), `TCA_NETEM_RATE` (6),
/// `TCA_NETEM_RATE64` (8) and `TCA_NETEM_LATENCY64` (10).
pub(super) fn netem(options: &[u8]) -> Result<Shaping, Malformed> {
    let mut delay = u64::from(u32_at(options, 0, WHAT)?) * TICK;
    let mut loss = share(u32_at(options, 8, WHAT)?);
    let (mut narrow, mut wide, mut overhead) = (0, None, 0);
    for attribute in attributes(after(options, FIXED, WHAT)?) {
        match attribute? {
            (5, value) => loss = modelled(value)?.unwrap_or(loss),
            (6, value) => {
                narrow = u64::from(u32_at(value, 0, WHAT)?);
                overhead = u32_at(value, 4, WHAT)? as i32;
            }
            (8, value) => wide = Some(u64_at(value, 0, WHAT)?),
            (10, value) => delay = u64_at(value, 0, WHAT)?,
            _ => {}
        }
    }
    Ok(Shaping {
        rate: rate(wide.unwrap_or(narrow)),
        delay: (delay > 0).then_some(Nanos(delay)),
        // Any share above zero counts at least as one in a million: netem loses packets on purpose.
        loss_ppm: (loss > 0.0).then_some((loss.min(1.0) * 1e6).round().max(1.0) as u32),
        limit: Some(u32_at(options, 4, WHAT)?),
        overhead,
        ..Shaping::default()
    })
}

/// Converts a number to a share, where 2^32 is all.
fn share(of: u32) -> f64 {
    f64::from(of) / 4_294_967_296.0
}

/// The mean share of packets that a model of burst loss loses: `NETEM_LOSS_GI` (1) or `NETEM_LOSS_GE` (2). `None` if
/// the model is unknown, or may end in a state that it never leaves.
fn modelled(nested: &[u8]) -> Result<Option<f64>, Malformed> {
    let mut mean = None;
    for attribute in attributes(nested) {
        let (kind, value) = attribute?;
        let at = |n: usize| u32_at(value, n * 4, WHAT).map(share);
        mean = match kind {
            1 => Some(four_states([at(0)?, at(1)?, at(2)?, at(3)?, at(4)?])),
            2 => Some(two_states([at(0)?, at(1)?, at(2)?, at(3)?])),
            _ => mean,
        };
    }
    Ok(mean.filter(|mean| mean.is_finite()))
}

/// The mean lost share in `struct tc_netem_gimodel`. Its parameters are probabilities of transitions: from a gap into a
/// burst (13) and out of it (31), from a loss in a burst to a received packet in it (32) and back (23), and to a single
/// loss in a gap (14). The time in each state is computed relative to the gap.
//= Salsano et al., "Definition of a general and intuitive loss model for packet networks and its implementation in the
//= Netem module in the Linux kernel", 2012; Linux, net/sched/sch_netem.c: loss_4state
fn four_states([p13, p31, p32, p14, p23]: [f64; 5]) -> f64 {
    let over = |a: f64, b: f64| if a > 0.0 { a / b } else { 0.0 };
    let burst = over(p13, p31);
    let comes = over(burst * p32, p23);
    (burst + p14) / (1.0 + burst + p14 + comes)
}

/// The mean lost share in `struct tc_netem_gemodel`: the probability to enter the bad state (p), to leave it (r), that
/// a packet passes in the bad state (h), and that a packet is lost in the good state (k1).
//= Linux, net/sched/sch_netem.c: loss_gilb_ell
fn two_states([p, r, h, k1]: [f64; 4]) -> f64 {
    let bad = if p > 0.0 { p / (p + r) } else { 0.0 };
    bad * (1.0 - h) + (1.0 - bad) * k1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse::netlink::tests::attr;
    use linerate_units::Rate;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    fn of(share: f64) -> u32 {
        (share * 4_294_967_296.0).min(4_294_967_295.0) as u32
    }

    /// `struct tc_netem_qopt` with a delay of 64 us in ticks, a limit of 1000 packets, and a lost share.
    fn fixed(loss: f64) -> Vec<u8> {
        words(&[1_000, 1_000, of(loss), 0, 0, 0])
    }

    #[test]
    fn netem_tells_rate_delay_loss_and_limit() {
        let got = netem(&fixed(0.01)).unwrap();
        assert_eq!(got.delay, Some(Nanos::from_micros(64)));
        assert_eq!((got.loss_ppm, got.rate), (Some(10_000), None));
        assert_eq!(got.limit, Some(1_000));
        let more = [
            attr(6, &words(&[5_000_000, 0, 0, 0])),
            // This attribute replaces the delay in ticks.
            attr(10, &20_000_000i64.to_ne_bytes()),
        ];
        let options = [fixed(0.0), more.concat()].concat();
        let got = netem(&options).unwrap();
        assert_eq!(got.delay, Some(Nanos::from_millis(20)));
        assert_eq!((got.rate, got.loss_ppm), (Some(Rate(40_000_000)), None));
        assert!(netem(&options[..20]).is_err());
    }

    /// The lost share of a model, in millionths, where the plain share is 1 %.
    fn lost(kind: u16, shares: &[f64]) -> Option<u32> {
        let shares: Vec<u32> = shares.iter().map(|s| of(*s)).collect();
        let model = attr(5, &attr(kind, &words(&shares)));
        netem(&[fixed(0.01), model].concat()).unwrap().loss_ppm
    }

    #[test]
    fn a_loss_in_bursts_is_told_by_its_mean() {
        // `loss gemodel 1% 9%`: all packets are lost for a tenth of the time; then `loss gemodel 1% 9% 50% 10%`.
        assert_eq!(lost(2, &[0.01, 0.09, 0.0, 0.0]), Some(100_000));
        assert_eq!(lost(2, &[0.01, 0.09, 0.5, 0.1]), Some(140_000));
        assert_eq!(lost(2, &[0.0, 0.0, 0.0, 0.0]), None, "never");
        assert_eq!(lost(2, &[1e-9, 0.5, 0.0, 0.0]), Some(1), "seldom");
        // `loss state 1%`, where a burst ends with 99 %; then only single losses; then bursts in which half of the
        // packets pass.
        assert_eq!(lost(1, &[0.01, 0.99, 0.0, 0.0, 1.0]), Some(10_000));
        assert_eq!(lost(1, &[0.0, 1.0, 0.0, 0.25, 1.0]), Some(200_000));
        assert_eq!(lost(1, &[0.25, 0.25, 0.5, 0.0, 0.5]), Some(333_333));
        assert_eq!(lost(1, &[0.01, 0.0, 0.0, 0.0, 1.0]), Some(10_000), "stuck");
        assert_eq!(lost(3, &[0.5]), Some(10_000), "another model");
        let cut = attr(5, &attr(2, &words(&[1, 2])));
        assert!(netem(&[fixed(0.0), cut].concat()).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_models_lose_no_more_than_all(kind in 1_u16..3, shares: [u32; 5]) {
            let model = attr(5, &attr(kind, &words(&shares)));
            let got = netem(&[fixed(0.0), model].concat()).unwrap();
            prop_assert!(got.loss_ppm.is_none_or(|ppm| ppm <= 1_000_000));
        }
    }
}
