//! Tests of transfers that have two rates in their intervals.

use super::*;

/// The judge's answer to a transfer with these rates in Mb/s, of one second each: goodput in Mb/s, and the causes of
/// its limits.
fn said(megabits: &[f64]) -> (f64, Vec<&'static str>) {
    let mean = megabits.iter().sum::<f64>() / megabits.len() as f64;
    let Measured::Transfer(mut one) = tcp(1, mean / 1e3) else { unreachable!("it is a transfer") };
    one.ticks = megabits.iter().map(|rate| rate * 1e6).collect();
    one.tick = Some(1.0);
    let material = Material {
        sources: vec![source(Side::Near, vec![Measured::Transfer(one)])],
        ..Material::default()
    };
    let explained = explain(&material);
    let model = explained.model.unwrap();
    let named = explained.verdict.limits.iter().map(|limit| limit.cause);
    let goodput = model.directions[0].base.goodput.mean / 1e6;
    ((goodput * 10.0).round() / 10.0, named.collect())
}

#[test]
fn a_bucket_that_is_used_up_leaves_the_lasting_rate() {
    let lasting = [22.0, 14.7, 14.7, 13.6, 14.7, 14.7, 14.7, 13.6, 14.7];
    let after = |first: f64| said(&[&[first], &lasting[..]].concat());
    assert_eq!(after(2110.0), (14.7, vec!["burst-credit"]));
    assert_eq!(after(272.0), (14.7, vec!["burst-credit"]));
    let buffered = after(264.0);
    assert!(buffered.1.is_empty(), "buffers may hold 32 MiB: {buffered:?}");
    assert!(said(&lasting).1.is_empty());
}

#[test]
fn a_rate_that_wanders_is_no_credit() {
    let wanders = [2110.0, 14.0, 900.0, 2000.0, 30.0, 14.0, 500.0, 14.0, 14.0, 14.0];
    assert!(said(&wanders).1.is_empty());
}
