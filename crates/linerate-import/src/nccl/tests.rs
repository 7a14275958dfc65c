use linerate_core::reported::Carrier;
use linerate_core::units::Bytes;

use crate::read;
use crate::sample::{bits, notes, ns, part, sizes, why};

const TWO: &str = include_str!("../../tests/samples/nccl/two-nodes.txt");
const OLD: &str = include_str!("../../tests/samples/nccl/old.txt");

#[test]
fn both_halves_of_a_table_are_results() {
    let part = part(&format!(
        "$ mpirun -np 2 ./build/all_reduce_perf -b 64M -e 1G\n{TWO}"
    ));
    let names: Vec<&str> = part.results.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(names, ["all_reduce, out of place", "all_reduce, in place"]);
    let table = sizes(&part.results[1]);
    assert_eq!(table.operation, "NCCL all_reduce in place");
    assert_eq!(table.carrier, Some(Carrier::Messages));
    assert_eq!(table.setup.hosts, ["gpu-a", "gpu-b"]);
    assert!(table.setup.collective);
    assert_eq!(table.rows.len(), 5);
    let row = table.rows[4];
    assert_eq!(
        (row.size, row.mean, row.rate),
        (Bytes(1 << 30), ns(43_719_000), bits(196_480_000_000))
    );
    assert_eq!(part.notes, []);
}

#[test]
fn a_rate_of_zero_of_one_processor_is_none() {
    let part = part(OLD);
    let table = sizes(&part.results[0]);
    assert_eq!(
        (table.rows[0].mean, table.rows[0].rate),
        (ns(3_456_500), None)
    );
    assert_eq!(table.setup.hosts.len(), 2);
}

#[test]
fn a_table_is_read_without_its_settings_and_two_stay_apart() {
    let table = &TWO[TWO.find("#                    ").unwrap()..];
    assert_eq!(part(table).results.len(), 2);
    assert_eq!(part(table).results[0].title, "out of place");
    let twice = read(format!("{TWO}{TWO}").as_bytes()).unwrap();
    assert_eq!(twice.parts.len(), 2);
}

#[test]
fn what_is_wrong_is_said() {
    let wrong = TWO.replace("24.56      0", "24.56      7");
    assert!(notes(&part(&wrong), "wrong values"));
    assert!(
        why(TWO
            .split_inclusive('\n')
            .take(9)
            .collect::<String>()
            .as_str())
        .contains("no table")
    );
}
