//! Tests of rules that compare tables by size with each other, and large sizes with smaller ones.

use super::*;

fn says(tables: Vec<Sizes>, id: &str) -> Option<String> {
    let measured = tables.into_iter().map(Measured::Sizes).collect();
    let all = remarks(near(measured), &[]);
    all.into_iter().find(|(found, _)| *found == id).map(|(_, words)| words)
}

/// Sizes in bytes, each with the time in microseconds that moves it at one of these rates in Gb/s.
fn at_rates(rates: &[f64]) -> Vec<(u64, f64)> {
    let size = |at: usize| 1_024_u64 << at;
    rates
        .iter()
        .enumerate()
        .map(|(at, rate)| (size(at), size(at) as f64 * 8.0 / rate / 1e3))
        .collect()
}

#[test]
fn a_highest_rate_that_larger_messages_do_not_hold_is_a_second_knee() {
    let of = |last: &[f64]| {
        let rising = [1.0, 4.0, 9.0, 12.0, 13.7, 13.8];
        let rows = at_rates(&[&rising[..], last].concat());
        says(vec![sizes(Carrier::Rdma, Trip::Half, &rows)], "second-knee")
    };
    let words = of(&[13.4]).unwrap();
    assert!(words.contains("32 KiB moves fastest") && words.contains("97 to 98 %"), "{words}");
    assert_eq!(of(&[13.6]), None, "within 2 %");
    assert!(of(&[12.0, 11.1]).is_some());
    assert_eq!(of(&[12.0, 10.0]), None, "that is a fall");
    assert_eq!(of(&[]), None);
}

#[test]
fn one_size_at_which_the_order_of_two_tables_turns_is_an_outlier() {
    let of = |sixth: f64, seventh: f64| {
        let slow: Vec<(u64, f64)> = (0..8).map(|at| (8 << at, 300.0)).collect();
        let mut fast: Vec<(u64, f64)> = (0..8).map(|at| (8 << at, 200.0)).collect();
        (fast[5].1, fast[6].1) = (sixth, seventh);
        let [mut a, mut b] = [slow, fast].map(|rows| sizes(Carrier::Messages, Trip::Whole, &rows));
        (a.operation, b.operation) = ("MPI".to_owned(), "sockets".to_owned());
        says(vec![a, b], "outlier")
    };
    let words = of(310.0, 200.0).unwrap();
    assert!(words.contains("sockets is faster than MPI at every size but 256 B"), "{words}");
    assert_eq!(of(305.0, 200.0), None, "within 3 %");
    assert_eq!(of(330.0, 200.0), None, "more than a disturbed run makes");
    assert_eq!(of(310.0, 310.0), None, "two sizes are a pattern");
    assert_eq!(of(200.0, 200.0), None);
}

#[test]
fn large_datagrams_that_take_longer_than_tcp_are_told() {
    let of = |small: f64, large: f64, size: u64| {
        let table = |carrier, first, last| sizes(carrier, Trip::Half, &[(16, first), (size, last)]);
        says(
            vec![table(Carrier::Udp, small, large), table(Carrier::Tcp, 10.5, 76.9)],
            "datagrams-slower",
        )
    };
    let words = of(9.1, 96.5, 65_506).unwrap();
    assert!(words.contains("by UDP take 193 us and by TCP 154 us"), "{words}");
    assert_eq!(of(9.1, 80.0, 65_506), None, "within 5 %");
    assert_eq!(of(11.0, 96.5, 65_506), None, "UDP is slower at every size");
    assert_eq!(of(9.1, 96.5, 1_400), None, "one packet");
}
