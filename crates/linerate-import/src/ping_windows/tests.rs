use linerate_record::reported::Trip;
use linerate_units::Bytes;

use crate::sample::{notes, ns, part, row, sizes, why};

const ANSWERS: &str = include_str!("../../tests/samples/ping-windows/answers.txt");

#[test]
fn statistics_are_whole_round_trips() {
    let part = part(ANSWERS);
    let table = sizes(&part.results[0]);
    let mut expected = row(32);
    (expected.samples, expected.lost, expected.ttl) = (Some(4), Some(0), Some(49));
    [expected.least, expected.most, expected.mean] = [19_000_000, 23_000_000, 20_000_000].map(ns);
    assert_eq!((table.trip, table.rows.as_slice()), (Trip::Whole, [expected].as_slice()));
    assert_eq!(part.notes, []);
}

#[test]
fn a_time_of_zero_is_unknown() {
    let fast = ANSWERS
        .replace("19ms, Maximum = 23ms, Average = 20ms", "0ms, Maximum = 1ms, Average = 0ms");
    assert!(why(&fast).contains("within a millisecond"));
    let some = part(&ANSWERS.replace("Minimum = 19ms", "Minimum = 0ms"));
    let row = sizes(&some.results[0]).rows[0];
    assert_eq!((row.size, row.least, row.mean), (Bytes(32), None, ns(20_000_000)));
}

#[test]
fn an_unreachable_host_answers_nothing() {
    let text = &ANSWERS[..ANSWERS.find("Approximate").unwrap()];
    let unreachable = |line: &str| match line.split_once(": bytes=") {
        Some((host, _)) => format!("{host}: Destination host unreachable.\n"),
        None => format!("{line}\n"),
    };
    let text: String = text.lines().map(unreachable).collect();
    assert!(why(&text).contains("no packet was answered"));
    assert!(why(ANSWERS.lines().next().unwrap()).contains("end is missing"));
    assert!(notes(&part(&ANSWERS.replace("Lost = 0", "Lost = 1")), "1 packets"));
}

const ROWS: &str = "Reply from 192.0.2.9: bytes=32 time=14ms TTL=64\nReply from 192.0.2.9: bytes=32 time<1ms TTL=64\nRequest timed out.\nReply from 192.0.2.9: bytes=32 time=100ms TTL=64\n";
const STATISTICS: &str = "\nPing statistics for 192.0.2.9:\n    Packets: Sent = 40, Received = 40, Lost = 0 (0% loss),\nApproximate round trip times in milli-seconds:\n    Minimum = 7ms, Maximum = 210ms, Average = 90ms\n";

#[test]
fn answers_without_statistics_are_counted() {
    let answers = part(ROWS);
    let row = sizes(&answers.results[0]).rows[0];
    assert_eq!((row.samples, row.lost, row.ttl), (Some(3), Some(1), Some(64)));
    assert_eq!((row.least, row.mean, row.most), (None, ns(38_000_000), ns(100_000_000)));
    assert_eq!(answers.results[0].title, "192.0.2.9");
    assert!(notes(&answers, "statistics of ping are missing"));
}

#[test]
fn what_a_router_answers_is_a_loss() {
    let text = ANSWERS.replacen("bytes=32 time=23ms TTL=49", "Destination host unreachable.", 1);
    assert_eq!(sizes(&part(&text).results[0]).rows[0].lost, Some(1));
}

#[test]
fn statistics_count_with_answers_or_alone() {
    let answered = ROWS.replace("Request timed out.\n", "");
    for text in [format!("{answered}{STATISTICS}"), STATISTICS.trim_start().to_owned()] {
        let all = part(&text);
        let row = sizes(&all.results[0]).rows[0];
        assert_eq!((row.samples, row.lost), (Some(40), Some(0)));
        assert_eq!(
            (row.least, row.mean, row.most),
            (ns(7_000_000), ns(90_000_000), ns(210_000_000))
        );
        assert_eq!((all.results[0].title.as_str(), row.size), ("192.0.2.9", Bytes(32)));
    }
    // Two runs in turn, the second one with and without its first lines.
    for next in [ANSWERS.to_owned(), format!("{ROWS}{STATISTICS}")] {
        let both = format!("{ROWS}{STATISTICS}\n{next}");
        assert_eq!(crate::read(both.as_bytes()).unwrap().parts.len(), 2);
    }
}
