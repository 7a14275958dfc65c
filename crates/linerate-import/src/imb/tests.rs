use linerate_explain::Table;
use linerate_record::reported::Trip;
use linerate_units::{Bytes, Rate};

use crate::read;
use crate::sample::{notes, ns, part, sizes, why};

const PINGPONG: &str = include_str!("../../tests/samples/imb/pingpong.txt");
const SENDRECV: &str = include_str!("../../tests/samples/imb/sendrecv.txt");

#[test]
fn a_ping_pong_is_half_a_round_trip_and_proves_its_unit() {
    let old = part(&format!("$ mpirun -np 2 --host c1,c2 IMB-MPI1 PingPong\n{PINGPONG}"));
    let table = sizes(&old.results[0]);
    assert_eq!((table.operation.as_str(), table.trip), ("MPI ping-pong", Trip::Half));
    assert_eq!(table.setup.hosts, ["c1", "c2"]);
    assert_eq!(table.rows.len(), 20);
    let last = table.rows[19];
    assert_eq!((last.size, last.samples, last.mean), (Bytes(262_144), Some(160), ns(48_820)));
    // The sample has 5121.09 x 2^20 bytes per second.
    assert_eq!(last.rate, Some(Rate((5121.09_f64 * 8.0 * 1_048_576.0).round() as u64)));
    assert_eq!(old.notes, []);
    let new = part(&PINGPONG.replace("5121.09", "5369.60"));
    assert_eq!(sizes(&new.results[0]).rows[19].rate, Some(Rate(42_956_800_000)));
}

#[test]
fn sendrecv_counts_both_ways_and_a_collective_is_no_message() {
    let parsed = read(SENDRECV.as_bytes()).unwrap();
    assert_eq!(parsed.parts.len(), 2, "{parsed:?}");
    let table = sizes(&parsed.parts[0].results[0]);
    assert!(table.both && Table::is_sum(table));
    let row = &table.rows[1];
    assert_eq!(row.rate, Some(Rate(140_932_880_000)));
    assert_eq!(Table::each_way(table, row), Some(Rate(70_466_440_000)));
    let all = sizes(&parsed.parts[1].results[0]);
    assert!(all.setup.collective && all.rows.len() == 3);
    assert_eq!(Table::rate(all, &all.rows[2]), None);
}

#[test]
fn a_table_without_its_title_is_read_and_one_without_rows_is_refused() {
    let bare = &PINGPONG[PINGPONG.find("       #bytes").unwrap()..];
    let part = part(bare);
    assert_eq!(sizes(&part.results[0]).rows.len(), 20);
    assert!(notes(&part, "10^6"));
    assert!(why(&PINGPONG[..PINGPONG.find("            0 ").unwrap()]).contains("no table"));
}
