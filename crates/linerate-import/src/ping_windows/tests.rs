use linerate_core::reported::Trip;
use linerate_core::units::Bytes;

use crate::sample::{notes, ns, part, row, sizes, why};

const ANSWERS: &str = include_str!("../../tests/samples/ping-windows/answers.txt");

#[test]
fn statistics_are_whole_round_trips() {
    let part = part(ANSWERS);
    let table = sizes(&part.results[0]);
    let mut expected = row(32);
    expected.samples = Some(4);
    [expected.least, expected.most, expected.mean] = [19_000_000, 23_000_000, 20_000_000].map(ns);
    assert_eq!(
        (table.trip, table.rows.as_slice()),
        (Trip::Whole, [expected].as_slice())
    );
    assert_eq!(part.notes, []);
}

#[test]
fn a_time_of_zero_is_unknown() {
    let fast = ANSWERS.replace(
        "19ms, Maximum = 23ms, Average = 20ms",
        "0ms, Maximum = 1ms, Average = 0ms",
    );
    assert!(why(&fast).contains("within a millisecond"));
    let some = part(&ANSWERS.replace("Minimum = 19ms", "Minimum = 0ms"));
    let row = sizes(&some.results[0]).rows[0];
    assert_eq!(
        (row.size, row.least, row.mean),
        (Bytes(32), None, ns(20_000_000))
    );
}

#[test]
fn an_unreachable_host_answers_nothing() {
    let text = &ANSWERS[..ANSWERS.find("Approximate").unwrap()];
    let text = text.replace("bytes=32 time=23ms TTL=49", "Destination host unreachable.");
    assert!(why(&text).contains("no packet was answered"));
    assert!(why(ANSWERS.lines().next().unwrap()).contains("end is missing"));
    assert!(notes(
        &part(&ANSWERS.replace("Lost = 0", "Lost = 1")),
        "1 packets"
    ));
}
