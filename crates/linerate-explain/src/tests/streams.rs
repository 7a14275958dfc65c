//! Tests of the rules about streams and connections.

use super::*;

#[test]
fn a_rate_that_grows_faster_than_the_streams_is_doubted() {
    let ids: Vec<_> = remarks(home(375.0, &SWEEP), &[]);
    let jumps: Vec<_> = ids.iter().filter(|(id, _)| *id == "more-than-proportional").collect();
    assert_eq!(jumps.len(), 1, "{jumps:?}");
    assert!(jumps[0].1.contains("from 4 to 6 streams the rate grew x2.18"), "{jumps:?}");
    let even = [(4, 6.96), (6, 10.4)];
    assert!(!has("more-than-proportional", home(375.0, &even), &[]));
}

#[test]
fn more_streams_than_the_best_number_are_named_if_they_carry_less() {
    let all = remarks(home(375.0, &SWEEP), &[]);
    let words = &all.iter().find(|(id, _)| *id == "past-the-best").unwrap().1;
    assert!(words.starts_with("8 streams carried most, and 12 only 77 %"), "{words}");
    assert!(!has("past-the-best", home(375.0, &[(8, 16.3), (12, 15.9)]), &[]));
}

#[test]
fn a_mean_at_a_known_cap_may_be_capped_if_the_hardware_carries_more() {
    let says = |ceiling: f64, transfer: (u32, f64)| {
        let all = beside(hardware(ceiling, ceiling, 3, 8), &[transfer], &[]);
        find(&all, "flow-cap").map(|remark| remark.finding.what.clone())
    };
    let words = says(99.0, (5, 25.0)).unwrap();
    assert!(
        words.contains("on average about 5 Gb/s") && words.contains("one full processor"),
        "{words}"
    );
    assert_eq!(says(99.0, (5, 22.0)), None, "not at the cap");
    assert_eq!(says(24.7, (5, 24.7)), None, "the link is full");
    assert_eq!(says(99.0, (2, 10.0)), None, "two are no pattern");
    assert_eq!(find(&beside(Hardware::default(), &[(5, 25.0)], &[]), "flow-cap"), None);
}

#[test]
fn equal_streams_at_a_known_cap_may_be_capped() {
    let with = |each: Vec<f64>| {
        let Measured::Transfer(mut one) = tcp(each.len() as u32, 25.0) else {
            unreachable!();
        };
        one.each = each;
        vec![source(Side::Near, vec![Measured::Transfer(one)])]
    };
    assert!(has("flow-cap", with(vec![4.9e9, 4.95e9, 4.8e9, 4.97e9]), &[]));
    assert!(!has("flow-cap", with(vec![4.9e9, 4.95e9, 4.2e9]), &[]));
    assert!(!has("flow-cap", with(vec![4.9e9, 4.95e9]), &[]), "two are no pattern");
    assert!(has("streams-differ", with(vec![1e9, 4e9]), &[]));
    assert!(!has("streams-differ", with(vec![3e9, 4e9]), &[]));
}

#[test]
fn a_loss_is_named_where_it_leaves_about_the_rate() {
    // At 10 Mb/s, 8600 segments take 10 s. With a round trip of 50 ms, a loss of 0.1 % allows about 9 Mb/s.
    assert!(has("loss-explains", connection(0.010, 9_000_000, 50, 9), &[]));
    assert!(
        !has("loss-explains", connection(0.100, 9_000_000, 50, 9), &[]),
        "a tenth of that loss"
    );
    assert!(!has("loss-explains", connection(0.010, 9_000_000, 50, 0), &[]));
}

#[test]
fn runs_with_other_settings_are_no_sweep_of_streams() {
    type Change = fn(&mut Transfer);
    let changes: [(Change, bool); 4] = [
        (|_| {}, true),
        (|one| one.requested = Some(Rate(1_000_000_000)), false),
        (|one| one.buffer = Some(Bytes(65_536)), false),
        (|one| one.error = Some("interrupted".to_owned()), false),
    ];
    for (change, is_sweep) in changes {
        let slow = changed(1, 1.0, change);
        let both = || near(vec![slow.clone(), tcp(4, 9.4)]);
        assert_eq!(has("more-than-proportional", both(), &[]), is_sweep);
    }
}

#[test]
fn streams_that_fill_a_link_or_are_capped_are_both_readings() {
    let with = |streams: u32, each: f64, requested: Option<Rate>| {
        let each = vec![each * 1e9; streams as usize];
        let total = each.iter().sum::<f64>() / 1e9;
        near(vec![changed(streams, total, |one| {
            (one.each, one.requested) = (each, requested);
        })])
    };
    assert!(has("flow-cap", with(3, 4.9, None), &[]));
    assert!(!has("flow-cap", with(3, 4.9, Some(Rate(15_000_000_000))), &[]));
    // Five streams of 4.7 Gb/s may also be a full link of 25 Gb/s: a fact about the link must decide.
    let material = |sources| Material { sources, ..Material::default() };
    for (streams, each) in [(5, 4.7), (4, 9.4), (10, 9.4), (10, 4.7)] {
        let material = material(with(streams, each, None));
        let headline = explain(&material).headline.unwrap();
        assert_eq!(headline.candidates, ["flow-rate-cap", "wire-full"], "{streams}");
    }
}

#[test]
fn a_congestion_window_below_the_offered_one_is_what_limits() {
    let with = |congestion: u64| {
        let mut sources = connection(0.1, 700_000, 50, 0);
        let Measured::Transfer(one) = &mut sources[0].results[0].measured else {
            unreachable!();
        };
        one.window = Some(Bytes(congestion));
        sources
    };
    assert!(has("window-full", with(700_000), &[]));
    assert!(!has("window-full", with(650_000), &[]));
}

#[test]
fn a_window_is_full_if_its_bytes_are_in_flight() {
    // At 0.1 Gb/s, 625 kB are in flight in a round trip of 50 ms.
    assert!(has("window-full", connection(0.1, 700_000, 50, 0), &[]));
    assert!(!has("window-full", connection(0.1, 900_000, 50, 0), &[]), "it has room");
    assert!(!has("window-full", connection(0.1, 64_000, 50, 0), &[]), "not possible");
}
