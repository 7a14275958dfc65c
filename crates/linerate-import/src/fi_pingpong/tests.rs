use linerate_record::reported::Trip;
use linerate_units::Bytes;

use crate::sample::{bits, notes, ns, part, row, sizes, why};

const ONE: &str = include_str!("../../tests/samples/fi-pingpong/64k.txt");
const ALL: &str = include_str!("../../tests/samples/fi-pingpong/all.txt");

#[test]
fn sizes_are_of_1024_and_rates_of_10_to_the_6th() {
    let part = part(ONE);
    let table = sizes(&part.results[0]);
    assert_eq!((table.trip, table.both), (Trip::Half, true));
    let mut expected = row(65_536);
    expected.samples = Some(100);
    expected.mean = ns(42_301_410);
    expected.rate = bits(12_400_000);
    assert_eq!(table.rows, [expected]);
    assert_eq!(part.notes, []);
}

#[test]
fn a_rate_that_is_rounded_to_zero_is_unknown() {
    let part = part(ALL);
    let table = sizes(&part.results[0]);
    assert_eq!((table.rows[1].size, table.rows[1].rate), (Bytes(1), None));
    assert!(table.rows.len() > 10);
}

#[test]
fn messages_that_were_not_acknowledged_are_said() {
    assert!(notes(&part(&ONE.replace("=100", "99")), "99 were acknowledged"));
    assert!(why(ONE.lines().next().unwrap()).contains("no row"));
    assert!(why(&ONE.replace("42301.41", "nan")).contains("no row"));
}
