use linerate_record::reported::Trip;
use linerate_units::Bytes;

use super::payload;
use crate::read;
use crate::sample::{notes, ns, part, sizes, why};

const V4: &str = include_str!("../../tests/samples/ping/ipv4.txt");
const V6: &str = include_str!("../../tests/samples/ping/ipv6.txt");
const QUIET: &str = include_str!("../../tests/samples/ping/quiet.txt");
const FLOOD: &str = include_str!("../../tests/samples/ping/flood.txt");
const UNREACHABLE: &str = include_str!("../../tests/samples/ping/unreachable.txt");
const IB: &str = include_str!("../../tests/samples/ibping/answers.txt");
const IB_NONE: &str = include_str!("../../tests/samples/ibping/no-answer.txt");

#[test]
fn statistics_are_whole_round_trips() {
    for (text, size, samples, mean) in
        [(V4, 56, 5, 29_000), (V6, 56, 2, 34_000), (QUIET, 1000, 5, 20_000)]
    {
        let part = part(text);
        let table = sizes(&part.results[0]);
        assert_eq!((table.trip, table.rows.len()), (Trip::Whole, 1));
        let row = table.rows[0];
        assert_eq!((row.size, row.samples, row.mean), (Bytes(size), Some(samples), ns(mean)));
        assert_eq!(part.notes, []);
    }
    let flood = part(FLOOD);
    assert_eq!(sizes(&flood.results[0]).rows[0].samples, Some(50));
    assert_eq!(flood.notes, []);
    let part = part(V4);
    let row = sizes(&part.results[0]).rows[0];
    assert_eq!((row.least, row.most, row.deviation), (ns(22_000), ns(47_000), ns(9000)));
}

#[test]
fn other_pings_write_their_size_otherwise() {
    assert_eq!(payload("PING h (192.0.2.1): 56 data bytes"), Some(Bytes(56)));
    assert_eq!(payload("PING h (192.0.2.1) 1000(1028) bytes of data."), Some(Bytes(1000)));
    assert_eq!(payload("PING bytes"), None);
    let busybox = "PING h (192.0.2.1): 56 data bytes\n\n--- h ping statistics ---\n1 packets transmitted, 1 packets received, 0% packet loss\nround-trip min/avg/max = 0.022/0.029/0.047 ms\n";
    assert_eq!(sizes(&part(busybox).results[0]).rows[0].mean, ns(29_000));
}

#[test]
fn lost_packets_are_said_and_none_are_refused() {
    let part = part(&V4.replace("5 received", "4 received"));
    assert!(notes(&part, "1 of 5 packets"));
    assert!(why(UNREACHABLE).contains("no packet was answered"));
    assert!(why(&V4[..V4.find("rtt").unwrap()]).contains("end is missing"));
    // Without the statistics, the single answers are used.
    let cut = crate::sample::part(&V4[..V4.find("---").unwrap()]);
    let row = sizes(&cut.results[0]).rows[0];
    assert_eq!((row.samples, row.lost, row.ttl), (Some(5), None, Some(64)));
    assert!(notes(&cut, "statistics of ping are missing"));
    assert!(why("PING h (192.0.2.1) 56(84) bytes of data.\n\n").contains("no answer"));
    let one = V4.replace("5 packets transmitted, 5 received", "1 packets transmitted, 1 received");
    assert_eq!(sizes(&crate::sample::part(&one).results[0]).rows[0].deviation, None);
}

#[test]
fn late_answers_are_no_loss_and_the_time_to_live_is_that_of_all() {
    let late = "PING h (192.0.2.1): 56 data bytes\nRequest timeout for icmp_seq 0\n64 bytes from 192.0.2.1: icmp_seq=0 ttl=57 time=1106.7 ms\n64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=904.0 ms\n\n--- h ping statistics ---\n2 packets transmitted, 2 packets received, 0.0% packet loss\nround-trip min/avg/max/stddev = 904.0/1005.3/1106.7/101.3 ms\n";
    let whole = part(late);
    let row = sizes(&whole.results[0]).rows[0];
    assert_eq!((row.lost, row.ttl), (Some(0), Some(57)));
    assert_eq!(whole.notes, []);
    let other = part(
        &late
            .replace("seq=1 ttl=57", "seq=1 ttl=58")
            .replace("2 packets received", "1 packets received"),
    );
    let row = sizes(&other.results[0]).rows[0];
    assert_eq!((row.lost, row.ttl), (Some(1), None));
}

#[test]
fn a_decimal_comma_is_clear_between_strokes() {
    let german = V4.replace("0.022/0.029/0.047/0.009", "0,022/0,029/0,047/0,009");
    let german = part(&german);
    assert_eq!(sizes(&german.results[0]).rows[0].mean, ns(29_000));
    assert!(notes(&german, "decimal commas"));
    assert!(why(&V4.replace("0.029", "1,000.029")).contains("no numbers"));
    assert!(why(&V4.replace("0.009 ms", "0.009 s")).contains("no milliseconds"));
}

#[test]
fn ibping_without_answers_prints_zeros() {
    let answered = part(IB);
    assert_eq!(answered.results[0].title, "host-3 (Lid 4)");
    let row = sizes(&answered.results[0]).rows[0];
    assert_eq!((row.samples, row.mean, row.deviation), (Some(10), ns(14_000), None));
    assert!(why(IB_NONE).contains("no packet was answered"));
}

const PONGS: &str =
    "Pong from host-3 (Lid 4): time 0.239 ms\nPong from host-3 (Lid 4): time 0.625 ms\n";

#[test]
fn answers_without_statistics_have_their_extremes_and_from_three_on_a_median() {
    let two = part(PONGS);
    let row = sizes(&two.results[0]).rows[0];
    assert_eq!((row.least, row.most), (ns(239_000), ns(625_000)));
    assert_eq!((row.samples, row.typical), (Some(2), None));
    assert_eq!(row.mean, ns(432_000));
    let three = format!("{PONGS}Pong from host-3 (Lid 4): time 0.3 ms\n");
    let three = part(&three);
    assert_eq!(sizes(&three.results[0]).rows[0].typical, ns(300_000));
}

#[test]
fn answers_before_statistics_are_counted_once() {
    let whole = format!("{PONGS}\n{}", IB.lines().take(3).collect::<Vec<_>>().join("\n"));
    let parts = read(whole.as_bytes()).unwrap().parts;
    assert_eq!((parts.len(), parts[0].notes.len()), (1, 0));
    assert_eq!(parts[0].results[0].title, "host-3 (Lid 4)");
    assert_eq!(sizes(&parts[0].results[0]).rows[0].samples, Some(10));
}

#[test]
fn two_in_a_row_are_two() {
    assert_eq!(read(format!("{V4}{V6}").as_bytes()).unwrap().parts.len(), 2);
}
