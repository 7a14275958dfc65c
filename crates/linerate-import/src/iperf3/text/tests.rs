use super::*;
use crate::summary::{all, check, notes, of, sample, transfer, transfers};
use linerate_plan::path::Direction::{Forward, Reverse};
use linerate_record::reported::Counted;

fn text(name: &str) -> String {
    sample(&format!("iperf3-text/{name}"))
}

#[test]
fn samples_are_read_as_before() {
    insta::assert_snapshot!(all("iperf3-text"));
}

/// The figures that a person reads in the samples, compared with those that were read here.
#[test]
fn figures_are_those_of_the_text() {
    let table = "\
        3.1.3-tcp.txt 0 Forward Receiver 9890000000 Some(21) Some(2)
        3.1.3-tcp-server.txt 0 Forward Receiver 9820000000 None Some(2)
        3.1.3-rev.txt 0 Reverse Receiver 14100000000 Some(8) Some(1)
        3.1.3-rev-server.txt 0 Reverse Sender 13900000000 Some(8) Some(1)
        3.1.3-udp.txt 0 Forward Receiver 15817367 None Some(1)
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
    assert_eq!((lost.lost, lost.of, lost.jitter.map(|n| n.0)), (573, 3334, Some(2000)));
}

#[test]
fn a_session_is_split_into_its_tests() {
    let server = format!("{}{}", text("3.12-tcp-server.txt"), text("3.12-rev-server.txt"));
    let tail = "-----------------------------------------------------------\nServer listening on 5201 (test #3)\n\
                -----------------------------------------------------------\n";
    let server = format!("{server}{tail}");
    let got = transfers(&server);
    assert_eq!(got.iter().map(|t| t.direction).collect::<Vec<_>>(), [Forward, Reverse]);
    assert_eq!(notes(&server), "");
    // The outputs of two clients in turn, and then tables without their first lines.
    let clients = format!(
        "$ iperf3 -c x\n{}$ iperf3 -c x -u\n{}",
        text("3.20-tcp.txt"),
        text("3.20-udp.txt")
    );
    assert_eq!((transfers(&clients).len(), notes(&clients).as_str()), (2, ""));
    let tables = format!("{0}\n{0}", text("case1-iperf3-gbe.txt"));
    assert_eq!(transfers(&tables).len(), 2, "{}", of(&tables));
    let wordy = format!("{0}{0}{1}", text("3.21+-V-bidir-server.txt"), text("3.21+-V-bidir.txt"));
    assert_eq!((transfers(&wordy).len(), notes(&wordy).as_str()), (6, ""));
    assert!(
        transfers(&wordy)
            .iter()
            .all(|transfer| transfer.cpu.sender.is_some() || transfer.cpu.receiver.is_some())
    );
    // A line after the last one is not part of the output.
    let other = format!("{}something else\n", text("3.20-tcp.txt"));
    assert!(notes(&other).contains("`something else`"));
}

#[test]
fn what_the_server_wrote_is_not_read_twice() {
    let whole = text("3.12-server-output.txt");
    assert_eq!((transfer(&whole).goodput.0, notes(&whole).as_str()), (16_700_000_000, ""));
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
    assert_eq!((transfer(&with).direction, notes(&with).as_str()), (Reverse, ""));
}

#[test]
fn what_is_damaged_is_said() {
    let whole = text("3.20-tcp.txt");
    let cut = &whole[..whole.find("- - - -").unwrap()];
    assert!(transfers(cut).is_empty() || notes(cut).contains("summary is missing"));
    let rows: Vec<&str> = whole.lines().collect();
    let broken = whole.replacen(rows[4], "[  5]   0.00-1.00   sec  1.00 GBytes  8.6", 1);
    assert!(notes(&broken).contains("not understood: `[  5]   0.00-1.00"), "{}", notes(&broken));
    let comma = text("case1-iperf3-ipoib-1.txt").replace('.', ",");
    assert_eq!(transfer(&comma).goodput.0, 3_730_000_000);
    assert!(notes(&comma).contains("decimal comma"));
    assert!(!notes(&whole).contains("comma"));
    let units = text("case1-iperf3-gbe.txt").replace(" Mbits/sec", "");
    assert!(of(&units).starts_with("refused"), "{}", of(&units));
}

const OLD: &str = "\
[ ID] Interval           Transfer     Bandwidth       Jitter    Lost/Total Datagrams
[  4]   0.00-10.00  sec  1.24 GBytes  1.06 Gbits/sec  0.001 ms  135795/162217 (84%)
[  4] Sent 162217 datagrams
";

const SUMS: &str = "\
[SUM]   0.00-360.00 sec  2.72 TBytes  66.4 Gbits/sec  19545340             sender
[SUM]   0.00-360.00 sec  2.72 TBytes  66.4 Gbits/sec                  receiver
";

#[test]
fn a_server_without_a_summary_receives() {
    let head = "Accepted connection from 192.0.2.1, port 45420\n\
                [  5] local 192.0.2.2 port 5201 connected to 192.0.2.1 port 45424\n";
    let rows = "[ ID] Interval           Transfer     Bandwidth\n\
                [  5]   0.00-1.00   sec   375 MBytes  3.14 Gbits/sec\n";
    let cut = transfer(&format!("{head}{rows}"));
    assert_eq!((cut.direction, cut.counted), (Forward, Counted::Receiver));
    let sends = rows.replace("Bandwidth", "Bandwidth       Retr  Cwnd");
    let sends = sends.replace("/sec\n", "/sec    3   1.41 KBytes\n");
    let sends = transfer(&format!("{head}{sends}"));
    assert_eq!((sends.direction, sends.retransmits), (Reverse, Some(3)));
    // A system without the columns for retransmits and windows.
    let end = "[ ID] Interval           Transfer     Bandwidth\n\
               [  5]   0.00-1.00   sec   375 MBytes  3.14 Gbits/sec   sender\n";
    let sends = transfer(&format!("{head}{rows}- - - -\n{end}"));
    assert_eq!(sends.direction, Reverse);
}

#[test]
fn of_an_old_summary_of_datagrams_what_arrived_counts() {
    for text in [
        OLD.to_owned(),
        format!("Test Complete. Summary Results:\n{OLD}"),
        format!("Test Complete. Summary Results:\n{}", &OLD[..OLD.find("[  4] Sent").unwrap()]),
    ] {
        let got = transfer(&text);
        assert_eq!(
            (got.direction, got.counted, got.goodput.0),
            (Forward, Counted::Receiver, 172_653_421)
        );
        assert_eq!(got.datagrams.map(|n| (n.lost, n.of)), Some((135_795, 162_217)));
        assert!(notes(&text).contains("was not lost"), "{}", notes(&text));
    }
    let none = OLD.replace("135795/", "0/");
    assert_eq!(transfer(&none).goodput.0, 1_060_000_000);
    assert!(!notes(&none).contains("was not lost"));
}

#[test]
fn each_test_of_a_paste_is_a_result() {
    let head = "Test Complete. Summary Results:\n";
    let paste = format!("One:\n{head}{OLD}\nTwo:\n{head}{OLD}\nThree:\n{OLD}{OLD}");
    assert_eq!(transfers(&paste).len(), 4, "{}", of(&paste));
    let prose = "and so on\n".repeat(12);
    let cut = text("3.20-tcp.txt").replace("iperf Done.\n", "");
    let paste = format!("{cut}{prose}{cut}{prose}{cut}");
    assert_eq!(transfers(&paste).len(), 3, "{}", of(&paste));
    // Tables that lack their first lines and their ends.
    let table = &cut[cut.find("[ ID]").unwrap()..];
    let table = &table[..table.find("- - -").unwrap()];
    let paste = format!("{table}{prose}{table}");
    assert_eq!(transfers(&paste).len(), 2, "{}", of(&paste));
}

#[test]
fn rows_of_the_sum_alone_are_a_result() {
    let header = "[ ID] Interval           Transfer     Bitrate         Retr\n";
    for text in [SUMS.to_owned(), format!("{header}{SUMS}"), format!("see:\n{SUMS}bye\n")] {
        let got = transfer(&text);
        assert_eq!(
            (got.goodput.0, got.counted, got.retransmits, got.streams),
            (66_400_000_000, Counted::Receiver, Some(19_545_340), None)
        );
    }
    let text = "Connecting to host 192.0.2.1, port 5201
Reverse mode, remote host 192.0.2.1 is sending
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  1]   0.00-1.10   sec  7.31 MBytes  55.7 Mbits/sec  0.474 ms  1158/6480 (18%)
[SUM]   0.00-1.10   sec  60.2 MBytes   459 Mbits/sec  0.501 ms  7982/51824 (15%)
- - - - - - - - - - - - - - - - - - - - - - - - -
[SUM]   0.00-10.23  sec  3.33 GBytes  2.79 Gbits/sec  0.000 ms  0/2481270 (0%)  sender
[SUM]   0.00-12.51  sec   566 MBytes   380 Mbits/sec  0.635 ms  1506183/1918521 (61%)";
    for text in [text.to_owned(), format!("{text}  receiver\n")] {
        let got = transfer(&text);
        assert_eq!((got.direction, got.goodput.0), (Reverse, 380_000_000));
        assert_eq!(got.datagrams.map(|n| (n.lost, n.of)), Some((1_506_183, 1_918_521)));
    }
}

#[test]
fn without_its_end_an_output_has_the_retransmits_of_its_intervals() {
    let text = "Connecting to host 192.0.2.1, port 5201
[ ID] Interval           Transfer     Bandwidth       Retr  Cwnd
[  4]   0.00-1.00   sec  84.8 KBytes   694 Kbits/sec    2   2.82 KBytes
[  4]   1.00-2.00   sec  0.00 Bytes  0.00 bits/sec    1   1.41 KBytes
[  4]   2.00-3.00   sec  0.00 Bytes  0.00 bits/sec    4   1.41 KBytes
[  4]   3.00-";
    let got = transfer(text);
    assert_eq!((got.retransmits, got.window.map(|n| n.0)), (Some(7), Some(2887)));
    assert!(notes(text).contains("summary is missing"), "{}", notes(text));
}

#[test]
fn an_output_without_its_padding_is_one_result() {
    let text = text("3.1.3-tcp.txt");
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let squeezed = lines.collect::<Vec<_>>().join("\n");
    assert_eq!(transfers(&squeezed).len(), 1, "{}", of(&squeezed));
    assert_eq!(transfer(&squeezed).goodput, transfer(&text).goodput);
}

#[test]
fn words_without_rows_are_no_output() {
    for text in [
        "Accepted connection from 192.0.2.1, port 5 was all I saw.\n",
        "Connecting to host x, port 1 never ends\n",
        "iperf 3.6 (cJSON 1.5.2)\nOptional features available: none\n",
    ] {
        assert!(!starts(Start::of(text)), "{text}");
        let far = format!("{text}{}{SUMS}", "words\n".repeat(20));
        assert!(!starts(Start::of(&far)));
        assert!(starts(Start::of(&format!("{text}{SUMS}"))));
    }
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
        assert!(!starts(Start::of(text)), "{text}");
    }
    assert!(starts(Start::of(
        "[ ID] Interval           Transfer     Bitrate\n[  5]   0.00-1.00   sec  1.10 GBytes   942 Mbits/sec\n"
    )));
}
