use linerate_record::reported::Trip;
use linerate_units::Bytes;

use crate::read;
use crate::sample::{bits, notes, ns, part, sizes, why};

const FILE_3: &str = include_str!("../../tests/samples/netpipe/3-file.txt");
const FILE_5: &str = include_str!("../../tests/samples/netpipe/5-file.txt");
const CONSOLE_3: &str = include_str!("../../tests/samples/netpipe/3-console.txt");
const MPI_3: &str = include_str!("../../tests/samples/netpipe/3-console-mpi.txt");
const CONSOLE_5: &str = include_str!("../../tests/samples/netpipe/5-console.txt");

#[test]
fn the_file_and_the_console_of_version_3_agree() {
    let file = part(FILE_3);
    let table = sizes(&file.results[0]);
    assert_eq!((table.trip, table.both), (Trip::Half, true));
    assert_eq!((table.rows[0].size, table.rows[0].mean), (Bytes(1), ns(3260)));
    assert_eq!(table.rows[0].rate, bits((2.339_934 * 1_048_576.0_f64).round() as u64));
    assert!(notes(&file, "2^20"));
    let console = part(CONSOLE_3);
    let other = sizes(&console.results[0]);
    assert_eq!(table.rows.len(), other.rows.len());
    for (file, console) in table.rows.iter().zip(&other.rows) {
        assert_eq!((file.size, file.mean), (console.size, console.mean));
    }
    assert_eq!(other.rows[0].samples, Some(2426));
    assert_eq!(sizes(&part(MPI_3).results[0]).rows.len(), 82);
}

#[test]
fn version_5_has_other_units() {
    let file = part(FILE_5);
    let table = sizes(&file.results[0]);
    assert_eq!(table.rows.len(), 24);
    let last = table.rows[23];
    assert_eq!((last.size, last.mean, last.rate), (Bytes(4096), ns(68_450), bits(479_000_000)));
    assert!(!notes(&file, "2^20"));
    let console = part(CONSOLE_5);
    let last = sizes(&console.results[0]).rows[23];
    assert_eq!((last.size, last.mean, last.rate), (Bytes(4096), ns(68_451), bits(478_707_000)));
    assert!(notes(&console, "rounded"));
}

#[test]
fn seconds_of_older_consoles() {
    let text = "Now starting the main loop\n 68: 16383 bytes 22340 times --> 22114.91 Mbps in 0.000005652 sec\n";
    let part = part(text);
    assert_eq!(sizes(&part.results[0]).rows[0].mean, ns(5652));
}

#[test]
fn figures_that_prove_no_units_are_no_file() {
    for text in [
        "1 2.339934 0.00000326\n2 3.952613 0.00000386\n",
        "1 2.34 3.26\n2 3.95 3.86\n3 2.18 10.51\n",
        "2 3.952613 0.00000386\n3 2.177130 0.00001051\n4 2.562053 0.00001191\n",
    ] {
        assert!(read(text.as_bytes()).is_err(), "{text}");
    }
    let text = FILE_3.replacen("2.562053", "99.562053", 1);
    assert!(notes(&part(&text), "99.562053"));
    assert!(why("Now starting the main loop\n").contains("no row"));
}
