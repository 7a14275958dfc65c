use crate::summary::{all, check, notes, of, sample, transfer, transfers};
use linerate_record::reported::Counted::Receiver;

fn text(name: &str) -> String {
    sample(&format!("iperf2/{name}"))
}

#[test]
fn samples_are_read_as_before() {
    insta::assert_snapshot!(all("iperf2"));
}

/// The figures that a person reads in the samples, compared with those that were read here.
#[test]
fn figures_are_those_of_the_text() {
    let table = "\
        2.0-udp.txt 0 Forward Receiver 95700000 None Some(1)
        2.0-udp.txt 1 Forward Receiver 95700000 None Some(1)
        2.0-tcp-server.txt 0 Forward Receiver 39000000 None Some(1)
        2.1.8-tcp.txt 0 Forward Sender 34700000000 None Some(1)
        2.1.8-tcp2.txt 0 Forward Sender 28700000000 None Some(2)
        2.1.8-e.txt 0 Forward Sender 30900000000 Some(3) Some(1)
        2.1.8-R.txt 0 Reverse Receiver 24700000000 None Some(1)
        2.1.8-fd.txt 0 Forward Sender 11200000000 None Some(1)
        2.1.8-fd.txt 1 Reverse Receiver 26000000000 None Some(1)
        2.1.8-d.txt 1 Reverse Receiver 24400000000 None Some(1)
        2.1.8-server.txt 1 Forward Receiver 28700000000 None Some(2)
        2.1.8-server.txt 4 Reverse Sender 24500000000 None Some(1)
        2.1.8-udp.txt 0 Forward Receiver 21000000 None Some(1)
        2.1.8-csv.txt 0 Forward Sender 54810439755 None Some(2)
        2.1.8-csv1.txt 0 Forward Sender 16055889153 None Some(1)";
    check(table, text);
    assert_eq!(transfer(&text("2.1.8-w.txt")).buffer.map(|n| n.0), Some(128 * 1024));
    assert_eq!(transfer(&text("2.1.8-tcp.txt")).buffer, None);
    let lost = transfers(&text("2.0-udp.txt"))[0].datagrams.unwrap();
    assert_eq!((lost.lost, lost.of), (24_605, 512_674));
}

#[test]
fn both_directions_are_at_once_only_where_this_is_known() {
    assert!(transfers(&text("2.1.8-fd.txt")).iter().all(|transfer| transfer.both));
    let dual = text("2.1.8-d.txt");
    assert!(notes(&dual).contains("loaded at once") && !transfers(&dual)[0].both);
    let known = format!("$ iperf -c 192.0.2.1 -d\n{dual}");
    assert!(!notes(&known).contains("loaded at once") && transfers(&known)[0].both);
    let after = format!("$ iperf -c 192.0.2.1 -r\n{dual}");
    assert!(!notes(&after).contains("loaded at once") && !transfers(&after)[0].both);
}

#[test]
fn absurd_and_incomplete_rows_are_said() {
    let absurd = of(&text("2.0.5-absurd.txt"));
    assert!(absurd.starts_with("refused"), "{absurd}");
    let cut = text("2.0.13-e.txt");
    assert!(notes(&cut).contains("the row of the whole time is missing"));
    assert_eq!(transfer(&cut).retransmits, None);
    let whole = format!(
        "{cut}[  6] 0.00-7.01 sec  22.4 GBytes  27.4 Gbits/sec  183500/0          1     3197K/33 us  1.00\n"
    );
    assert!(!notes(&whole).contains("missing"));
    assert_eq!(
        (transfer(&whole).retransmits, transfer(&whole).goodput.0),
        (Some(1), 27_400_000_000)
    );
    // The sample is as published: a digit of its rate is missing.
    assert!(notes(&text("2.0-tcp-server.txt")).contains("does not fit"));
    assert!(!notes(&text("2.0-udp.txt")).contains("does not fit"));
    let refused = format!("{}read failed: Connection refused\n", text("2.1.8-tcp.txt"));
    assert!(notes(&refused).contains("read failed"));
}

#[test]
fn tables_alone_and_sessions_are_read() {
    let whole = text("2.1.8-tcp.txt");
    let table = &whole[whole.find("[ ID]").unwrap()..];
    assert!(notes(table).contains("which end"));
    assert_eq!(transfer(table).goodput.0, 34_700_000_000);
    let two = format!("{whole}{}", text("2.1.8-udp.txt"));
    assert_eq!((transfers(&two).len(), notes(&two).as_str()), (2, ""));
    let csv = format!("$ iperf -s -y C\n{}", text("2.1.8-csv.txt"));
    assert_eq!((transfer(&csv).counted, notes(&csv).as_str()), (Receiver, ""));
    for text in ["2024,1,2,3,4,5,6,7,8", "20261128101513,127.0.0.1,x,127.0.0.1,17021,1,0.0-0.5,1,2"]
    {
        assert!(of(text).contains("no output of a known program"), "{text}");
    }
}

#[test]
fn each_table_of_a_paste_is_a_result() {
    let header = "[ ID] Interval       Transfer     Bandwidth\n";
    let rows = "[  3]  0.0- 1.0 sec  112 MBytes   940 Mbits/sec\n\
                [  3]  0.0- 1.0 sec  112 MBytes   940 Mbits/sec\n";
    assert_eq!(transfers(&format!("{header}{rows}")).len(), 1);
    assert_eq!(transfers(&format!("{header}{rows}{header}{rows}")).len(), 2);
    let paste = format!("{header}{rows}and then\n{header}{rows}and\n{header}{rows}");
    assert_eq!(transfers(&paste).len(), 3, "{}", of(&paste));
}
