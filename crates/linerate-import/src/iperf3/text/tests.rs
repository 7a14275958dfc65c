use linerate_core::path::Direction::{Forward, Reverse};
use proptest::prelude::*;

use super::*;
use crate::summary::{all, check, mutated, notes, of, sample, samples, transfer, transfers};

fn text(name: &str) -> String {
    sample(&format!("iperf3-text/{name}"))
}

#[test]
fn samples_are_read_as_before() {
    insta::assert_snapshot!(all("iperf3-text"));
}

/// Figures that a person reads in the samples.
#[test]
fn figures_are_those_of_the_text() {
    let table = "\
        3.1.3-tcp.txt 0 Forward Receiver 9890000000 Some(21) Some(2)
        3.1.3-tcp-server.txt 0 Forward Receiver 9820000000 None Some(2)
        3.1.3-rev.txt 0 Reverse Receiver 14100000000 Some(8) Some(1)
        3.1.3-rev-server.txt 0 Reverse Sender 13900000000 Some(8) Some(1)
        3.1.3-udp.txt 0 Forward Sender 19100000 None Some(1)
        3.12-bidir.txt 0 Forward Receiver 4040000000 Some(9) Some(2)
        3.12-bidir.txt 1 Reverse Receiver 2630000000 Some(109) Some(2)
        3.12-bidir-server.txt 0 Forward Receiver 4040000000 None Some(2)
        3.12-bidir-server.txt 1 Reverse Sender 2640000000 Some(109) Some(2)
        3.12-udp.txt 0 Forward Receiver 20000000 None Some(1)
        3.12-int.txt 0 Forward Sender 10500000000 Some(40) Some(1)
        case1-iperf3-gbe.txt 0 Forward Receiver 942000000 None Some(1)
        case1-iperf3-ipoib-1.txt 0 Forward Receiver 3730000000 None Some(1)";
    check(table, text);
    let lost = transfer(&text("3.1.3-udp-server.txt")).datagrams.unwrap();
    assert_eq!(
        (lost.lost, lost.of, lost.jitter.map(|n| n.0)),
        (573, 3334, Some(2000))
    );
}

#[test]
fn a_session_is_split_into_its_tests() {
    let server = format!(
        "{}{}",
        text("3.12-tcp-server.txt"),
        text("3.12-rev-server.txt")
    );
    let tail = "-----------------------------------------------------------\nServer listening on 5201 (test #3)\n\
                -----------------------------------------------------------\n";
    let server = format!("{server}{tail}");
    let got = transfers(&server);
    assert_eq!(
        got.iter().map(|t| t.direction).collect::<Vec<_>>(),
        [Forward, Reverse]
    );
    assert_eq!(notes(&server), "");
    // Two clients, one behind the other, and tables without their first lines.
    let clients = format!(
        "$ iperf3 -c x\n{}$ iperf3 -c x -u\n{}",
        text("3.20-tcp.txt"),
        text("3.20-udp.txt")
    );
    assert_eq!(
        (transfers(&clients).len(), notes(&clients).as_str()),
        (2, "")
    );
    let tables = format!("{0}\n{0}", text("case1-iperf3-gbe.txt"));
    assert_eq!(transfers(&tables).len(), 2, "{}", of(&tables));
    let wordy = format!(
        "{0}{0}{1}",
        text("3.21+-V-bidir-server.txt"),
        text("3.21+-V-bidir.txt")
    );
    assert_eq!((transfers(&wordy).len(), notes(&wordy).as_str()), (6, ""));
    assert!(
        transfers(&wordy)
            .iter()
            .all(|transfer| transfer.cpu.sender.is_some() || transfer.cpu.receiver.is_some())
    );
    // What stands behind the last line is no part of it.
    let other = format!("{}something else\n", text("3.20-tcp.txt"));
    assert!(notes(&other).contains("`something else`"));
}

#[test]
fn what_the_server_wrote_is_not_read_twice() {
    let whole = text("3.12-server-output.txt");
    assert_eq!(
        (transfer(&whole).goodput.0, notes(&whole).as_str()),
        (16_700_000_000, "")
    );
    let two = format!("{whole}{}", text("3.20-tcp.txt"));
    assert_eq!(transfers(&two).len(), 2);
}

#[test]
fn a_table_alone_takes_its_direction_from_columns_or_command() {
    let table = |name: &str| {
        let text = text(name);
        text[text.find("[ ID]").unwrap()..].to_owned()
    };
    let sender = transfer(&table("3.12-tcp.txt"));
    assert_eq!(sender.direction, Forward);
    assert!(!notes(&table("3.12-tcp.txt")).contains("which end"));
    assert_eq!(transfer(&table("3.12-rev.txt")).direction, Reverse);
    let gbe = text("case1-iperf3-gbe.txt");
    assert!(notes(&gbe).contains("does not say which end"));
    let with = format!("$ iperf3 -c 192.0.2.1 -R\n{gbe}");
    assert_eq!(
        (transfer(&with).direction, notes(&with).as_str()),
        (Reverse, "")
    );
}

#[test]
fn what_is_damaged_is_said() {
    let whole = text("3.20-tcp.txt");
    let cut = &whole[..whole.find("- - - -").unwrap()];
    assert!(transfers(cut).is_empty() || notes(cut).contains("summary is missing"));
    let rows: Vec<&str> = whole.lines().collect();
    let broken = whole.replacen(rows[4], "[  5]   0.00-1.00   sec  1.00 GBytes  8.6", 1);
    assert!(
        notes(&broken).contains("not understood: `[  5]   0.00-1.00"),
        "{}",
        notes(&broken)
    );
    let comma = text("case1-iperf3-ipoib-1.txt").replace('.', ",");
    assert_eq!(transfer(&comma).goodput.0, 3_730_000_000);
    assert!(notes(&comma).contains("decimal comma"));
    assert!(!notes(&whole).contains("comma"));
    let units = text("case1-iperf3-gbe.txt").replace(" Mbits/sec", "");
    assert!(of(&units).starts_with("refused"), "{}", of(&units));
}

#[test]
fn near_misses_are_not_ours() {
    for text in [
        "[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0-10.0 sec  1.10 GBytes   942 Mbits/sec\n",
        "[ ID] Interval       Transfer     Bandwidth\n[  3] 0.00-10.00 sec  1.10 GBytes   942 Mbits/sec\n",
        "[ ID] Interval       Transfer     Bandwidth\n[  1] 0.0000-10.0000 sec  1.10 GBytes   942 Mbits/sec\n",
        "[ ID] Interval           Transfer     Bitrate\n",
        "Connecting to host x\n",
        "-----------------------------------------------------------\nServer listening on TCP port 5001\n",
        "iperf 3\n",
    ] {
        assert!(!starts(text), "{text}");
    }
    assert!(starts(
        "[ ID] Interval           Transfer     Bitrate\n[  5]   0.00-1.00   sec  1.10 GBytes   942 Mbits/sec\n"
    ));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        place in 0_usize..1000,
        changes in proptest::collection::vec((any::<u8>(), any::<usize>(), any::<usize>()), 1..5),
    ) {
        let samples = samples("iperf3-text");
        let (_, text) = &samples[place % samples.len()];
        let _ = of(&mutated(text, &changes));
    }
}
