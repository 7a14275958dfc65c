use linerate_record::reported::{Carrier, Trip};
use linerate_units::Bytes;

use super::trip;
use crate::sample::{bits, notes, ns, part, sizes, why};

const LATENCY: &str = include_str!("../../tests/samples/osu/latency.txt");
const PERCENTILES: &str = include_str!("../../tests/samples/osu/latency-percentiles.txt");
const BW: &str = include_str!("../../tests/samples/osu/bw.txt");
const MBW_MR: &str = include_str!("../../tests/samples/osu/mbw_mr.txt");
const SAME_NAMES: &str = include_str!("../../tests/samples/osu/latency-same-names.txt");
const BW_PERCENTILES: &str = include_str!("../../tests/samples/osu/bw-percentiles.txt");
const OLD: &str = include_str!("../../tests/samples/osu/latency-5.txt");

#[test]
fn latency_is_half_a_round_trip() {
    let new = part(LATENCY);
    assert_eq!(new.tool.version.as_deref(), Some("7.4"));
    let table = sizes(&new.results[0]);
    assert_eq!((table.trip, table.carrier), (Trip::Half, Some(Carrier::Messages)));
    assert_eq!(table.rows.len(), 17);
    assert_eq!((table.rows[3].size, table.rows[3].mean), (Bytes(8), ns(490)));
    assert_eq!(new.notes, []);
    let old = part(OLD);
    let table = sizes(&old.results[0]);
    assert_eq!((table.rows[0].size, table.rows[0].mean), (Bytes(0), ns(1840)));
}

#[test]
fn percentiles_stand_beside_the_mean() {
    let part = part(PERCENTILES);
    let row = sizes(&part.results[0]).rows[0];
    assert_eq!((row.mean, row.typical, row.p99), (ns(283_550), ns(540), ns(4_345_330)));
    assert!(notes(&part, "P90"));
}

#[test]
fn columns_of_the_same_name_are_passed_over() {
    let part = part(SAME_NAMES);
    let row = sizes(&part.results[0]).rows[0];
    assert_eq!((row.size, row.mean, row.typical, row.p99), (Bytes(1), ns(510), ns(490), None));
    assert!(notes(&part, "P99"));
}

#[test]
fn names_that_stand_close_are_parted() {
    let part = part(BW_PERCENTILES);
    let table = sizes(&part.results[0]);
    assert_eq!((table.rows[10].size, table.rows[10].rate), (Bytes(1024), bits(1_673_680_000)));
    assert!(notes(&part, "P50 Tail BW(MB/s)"));
}

#[test]
fn rates_are_of_10_to_the_6th_bytes() {
    let bw = part(BW);
    let table = sizes(&bw.results[0]);
    assert_eq!((table.rows[0].rate, table.trip), (bits(59_600_000), Trip::Unknown));
    let rates = part(MBW_MR);
    let table = sizes(&rates.results[0]);
    assert_eq!(table.rows[0].rate, None);
    assert_eq!(table.rows[0].messages, Some(3302.54));
    let pairs = part(&MBW_MR.replace("pairs: 1 ", "pairs: 4 "));
    assert!(notes(&pairs, "all pairs"));
}

#[test]
fn only_two_that_answer_each_other_halve() {
    for name in ["MPI Latency Test", "MPI-CUDA Latency Test", "MPI Multi Latency Test"] {
        assert_eq!(trip(name), Trip::Half, "{name}");
    }
    for name in ["MPI Allreduce Latency Test", "MPI_Put Latency Test", "MPI Bandwidth Test"] {
        assert_eq!(trip(name), Trip::Unknown, "{name}");
    }
    let both = part(&BW.replace("MPI Bandwidth", "MPI Bi-Directional Bandwidth"));
    assert!(sizes(&both.results[0]).both);
}

#[test]
fn a_table_without_rows_is_refused() {
    assert!(why("# OSU MPI Latency Test v7.4\n# Size  Latency (us)\n").contains("no table"));
    assert!(
        why("# OSU MPI Latency Test v7.4\n# Size  Latency (parsecs)\n1 2\n").contains("no table")
    );
    let part = part(&OLD.replace("1024                    2.18", "1024   2,18"));
    assert!(notes(&part, "1024   2,18"));
}

#[test]
fn hosts_of_the_launcher_and_collectives_are_known() {
    let of = |command: &str, text: &str| {
        let part = part(&format!("$ {command}\n{text}"));
        sizes(&part.results[0]).setup.clone()
    };
    let within = of("mpirun -np 2 --host c7:2 ./osu_bw", BW);
    assert_eq!((within.only_host(), within.collective), (Some("c7"), false));
    assert_eq!(of("mpirun -np 2 -H c7,c8 ./osu_bw", BW).hosts, ["c7", "c8"]);
    assert_eq!(of("cat bw.txt", BW).hosts, [""; 0]);
    let all = LATENCY.replace("MPI Latency", "MPI Allreduce Latency");
    assert!(of("mpirun -np 8 ./osu_allreduce", &all).collective);
}
