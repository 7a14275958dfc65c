use linerate_facts::infiniband::Layer;
use linerate_record::reported::{Carrier, Setup};
use linerate_units::Bytes;

use crate::read;
use crate::sample::{bits, notes, ns, part, sizes, why};

const TWO: &str = include_str!("../../tests/samples/nccl/two-nodes.txt");
const OLD: &str = include_str!("../../tests/samples/nccl/old.txt");

#[test]
fn both_halves_of_a_table_are_results() {
    let part = part(&format!("$ mpirun -np 2 ./build/all_reduce_perf -b 64M -e 1G\n{TWO}"));
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
    assert_eq!((table.rows[0].mean, table.rows[0].rate), (ns(3_456_500), None));
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
        why(TWO.split_inclusive('\n').take(9).collect::<String>().as_str()).contains("no table")
    );
}

/// A line of the log with this message.
fn info(said: &str) -> String {
    format!("gpu-a:77:81 [0] NCCL INFO {said}\n")
}

/// The protocol and the set-up that are read from the table, with these messages before it or within it.
fn with(lines: &[&str], is_before: bool) -> (Option<Carrier>, Setup) {
    let log: String = lines.iter().map(|said| info(said)).collect();
    let at = if is_before { 0 } else { TWO.find("#                    ").unwrap() };
    let part = part(&format!("{}{log}{}", &TWO[..at], &TWO[at..]));
    assert_eq!(part.notes, [], "{lines:?}");
    let table = sizes(&part.results[0]).clone();
    (table.carrier, table.setup)
}

#[test]
fn the_log_says_what_carries_the_messages() {
    let sockets = [
        "NET/IB : No device found.",
        "NET/Socket : Using [0]enp7s0:192.0.2.5<0>",
        "Using network Socket",
    ];
    for is_before in [true, false] {
        let (carrier, setup) = with(&sockets, is_before);
        assert_eq!(carrier, Some(Carrier::Sockets));
        assert_eq!(setup.ports, ["enp7s0"]);
        assert_eq!(setup.no_rdma, "NET/IB : No device found.");
    }
    let (_, setup) = with(&[&["Failed to open libibverbs.so[.1]"], &sockets[..]].concat(), true);
    assert_eq!(setup.no_rdma, "Failed to open libibverbs.so[.1]");
    let rdma = "NET/IB : Using [0]mlx5_2:1/IB [1]mlx5_3:1/IB/SHARP [RO]; OOB enp7s0:192.0.2.5<0>";
    let (carrier, setup) = with(&[rdma, "Using network IB"], true);
    assert_eq!(carrier, Some(Carrier::Messages));
    assert_eq!(setup.ports, ["mlx5_2", "mlx5_3"]);
    assert_eq!(setup.layer, Some(Layer::InfiniBand));
    assert_eq!((setup.no_rdma.as_str(), setup.processes), ("", Some(2)));
    let (_, roce) = with(&["NET/IB : Using [0]rocep1s0:1/RoCE ; OOB lo:127.0.0.1<0>"], false);
    assert_eq!(roce.layer, Some(Layer::Ethernet));
}

#[test]
fn sockets_that_a_host_does_not_need_carry_nothing() {
    let alone = TWO.replace("gpu-b", "gpu-a");
    let named = format!("{}{alone}", info("Using network Socket"));
    assert_eq!(sizes(&part(&named).results[0]).carrier, Some(Carrier::Messages));
    let used = format!("{named}{}", info("Channel 00 : 0[7] -> 1[7] via NET/Socket/0"));
    assert_eq!(sizes(&part(&used).results[0]).carrier, Some(Carrier::Sockets));
    // A log without a table has no results.
    assert!(why(&info("Using network Socket")).contains("no table"));
}

#[test]
fn logs_belong_to_the_table_behind_them() {
    let end = info("comm 0x5 rank 0 nranks 2 - Destroy COMPLETE");
    let log = |name: &str| format!("{}{}", info("Bootstrap : Using lo:127.0.0.1<0>"), info(name));
    let text =
        format!("{}{TWO}{end}{}{TWO}{end}", log("Using network Socket"), log("Using network IB"));
    let parts = read(text.as_bytes()).unwrap().parts;
    let carriers: Vec<_> =
        parts.iter().map(|part| (part.results.len(), sizes(&part.results[0]).carrier)).collect();
    let (sockets, messages) = (Some(Carrier::Sockets), Some(Carrier::Messages));
    assert_eq!(carriers, [(2, sockets), (2, messages)]);
    // A log after the last table belongs to that table.
    let behind = part(&format!("{TWO}{}", log("Using network Socket")));
    assert_eq!(sizes(&behind.results[0]).carrier, sockets);
}

#[test]
fn the_command_names_hosts_and_ports() {
    let table = &TWO[TWO.find("#                    ").unwrap()..];
    let with = |options: &str| {
        let text =
            format!("+ mpirun -np 16 -H n1:8,n2:8 {options} ./all_reduce_perf -g 1\n{table}");
        sizes(&part(&text).results[0]).setup.clone()
    };
    let setup = with("-x NCCL_IB_HCA=mlx5_0,mlx5_1:1");
    assert_eq!(setup.hosts, ["n1", "n2"]);
    assert_eq!(setup.ports, ["mlx5_0", "mlx5_1"]);
    assert!(!setup.command.contains("n1:8") && setup.command.ends_with("-g 1"));
    // The start of names, and names that are excluded, do not list the ports.
    for options in ["-x NCCL_IB_HCA=mlx5", "-x NCCL_IB_HCA=^mlx5_3", ""] {
        assert_eq!(with(options).ports, [""; 0], "{options}");
    }
    // Each command has its own run.
    let both = format!(
        "+ mpirun -H a,b ./all_reduce_perf\n{table}+ mpirun -H a,c ./all_reduce_perf\n{table}"
    );
    let parts = read(both.as_bytes()).unwrap().parts;
    let hosts: Vec<_> =
        parts.iter().map(|part| sizes(&part.results[0]).setup.hosts.join(" ")).collect();
    assert_eq!(hosts, ["a b", "a c"]);
}
