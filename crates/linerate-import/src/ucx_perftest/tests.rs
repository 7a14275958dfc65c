use linerate_record::reported::Trip;
use linerate_units::{Bytes, Rate};

use crate::sample::{bits, notes, ns, part, sizes, transfer, why};

const LAT: &str = include_str!("../../tests/samples/ucx-perftest/tag-lat.txt");
const BW: &str = include_str!("../../tests/samples/ucx-perftest/tag-bw.txt");
const CSV_LAT: &str = include_str!("../../tests/samples/ucx-perftest/tag-lat-csv.txt");
const PUT_LAT: &str = include_str!("../../tests/samples/ucx-perftest/put-lat-1.3.txt");
const TAG_BW: &str = include_str!("../../tests/samples/ucx-perftest/tag-bw-1.9.txt");
const CUT: &str = include_str!("../../tests/samples/ucx-perftest/tag-lat-cut.txt");

#[test]
fn the_whole_run_counts_and_not_its_last_second() {
    let part = part(&format!("$ ucx_perftest 192.0.2.1 -t tag_lat -n 2000\n{LAT}"));
    let table = sizes(&part.results[0]);
    assert_eq!((table.trip, table.operation.as_str()), (Trip::Half, "tag_lat"));
    let row = table.rows[0];
    assert_eq!((row.size, row.samples), (Bytes(8), Some(2000)));
    assert_eq!((row.typical, row.mean), (ns(4396), ns(620_404)));
    assert_eq!((row.messages, row.rate), (Some(1612.0), bits(83_886)));
    assert!(notes(&part, "2^20"));
}

#[test]
fn bandwidth_is_a_transfer() {
    let part = part(&format!("$ ucx_perftest 192.0.2.1 -t tag_bw -s 65536\n{BW}"));
    let moved = transfer(&part.results[0]);
    assert_eq!(moved.goodput, Rate((53.35 * 8.0 * 1_048_576.0_f64).round() as u64));
    assert_eq!((moved.size, moved.messages), (Some(Bytes(65_536)), Some(854.0)));
}

#[test]
fn the_size_is_named_or_proven() {
    let proven = part(BW);
    assert_eq!(transfer(&proven.results[0]).size, Some(Bytes(65_536)));
    assert!(notes(&proven, "rate and messages give 65536 bytes"));
    // 0.01 MB/s and 1612 messages per second may be of 4 or of 8 bytes each.
    assert!(why(LAT).contains("no size"));
    assert!(why(&format!("$ cat lat.txt\n{LAT}")).contains("no size"));
}

#[test]
fn older_tables_write_latency_above_every_test() {
    let old = part(PUT_LAT);
    let table = sizes(&old.results[0]);
    assert_eq!((table.trip, table.rows[0].size), (Trip::Unknown, Bytes(8)));
    assert_eq!((table.rows[0].typical, table.rows[0].mean), (ns(844), ns(851)));
    assert!(notes(&old, "does not name the test") && !notes(&old, "end is missing"));
    let bw = part(&format!("$ ucx_perftest host -t tag_bw -s 8\n{PUT_LAT}"));
    assert_eq!(transfer(&bw.results[0]).messages, Some(587_686.0));
    assert!(why(TAG_BW).contains("no size"));
    let named = part(&format!("$ ucx_perftest -t tag_bw -s 10000000 -n 1000 localhost\n{TAG_BW}"));
    assert_eq!(transfer(&named.results[0]).size, Some(Bytes(10_000_000)));
}

#[test]
fn a_description_below_the_head_is_read() {
    let lines = "| Test:         tag match latency        |\n| Message size: 4096    |\n[thread 0]";
    let part = part(&LAT.replacen("[thread 0]", lines, 1));
    let table = sizes(&part.results[0]);
    assert_eq!((table.trip, table.rows[0].size), (Trip::Half, Bytes(4096)));
    assert_eq!(table.operation, "tag match latency");
}

#[test]
fn without_a_command_a_time_may_be_whole_or_half() {
    let text = format!("$ ucx_perftest -t ucp_get\n{LAT}");
    assert_eq!(sizes(&part(&text).results[0]).trip, Trip::Whole);
    let text = format!("$ ucx_perftest\n{LAT}");
    assert_eq!(sizes(&part(&text).results[0]).trip, Trip::Unknown);
}

#[test]
fn lines_of_csv_and_a_run_that_was_cut() {
    let csv = part(&format!("$ ucx_perftest -t tag_lat -f -v\n{CSV_LAT}"));
    assert_eq!(sizes(&csv.results[0]).rows[0].mean, ns(1_198_042));
    let cut = part(&format!("$ ucx_perftest -t tag_lat\n{CUT}"));
    assert!(notes(&cut, "end is missing"));
    let head: String = LAT.split_inclusive('\n').take(5).collect();
    assert!(why(&head).contains("no row"));
}
