use super::*;
use crate::summary::{all, notes, of, sample, transfer, transfers};
use linerate_plan::path::Direction::{Forward, Reverse};
use linerate_record::reported::Counted::{Receiver, Sender};
use linerate_record::reported::Transfer;

fn json(name: &str) -> String {
    sample(&format!("iperf3-json/{name}"))
}

#[test]
fn samples_are_read_as_before() {
    insta::assert_snapshot!(all("iperf3-json"));
}

/// Figures that another program read from the samples: goodput, retransmits, congestion window, mean round-trip time
/// in microseconds.
#[test]
fn figures_are_those_of_the_documents() {
    let table = "\
        3.1.3-tcp.json 0 Forward Receiver 6850366000 8 4321878 402
        3.1.3-reverse.json 0 Reverse Receiver 7376112000 27 - -
        3.1.3-udp.json 0 Forward Sender 38003690 - - -
        3.7-tcp.json 0 Forward Receiver 7301939964 3 4452844 440
        3.7-reverse.json 0 Reverse Receiver 7352495817 16 - -
        3.7-bidir.json 1 Reverse Receiver 3334036994 77 - -
        3.12-tcp.json 0 Forward Receiver 7839584830 11 3798014 325
        3.12-tcp-server.json 0 Forward Receiver 7839584830 - - -
        3.12-reverse.json 0 Reverse Receiver 11342883151 1 - -
        3.12-reverse-server.json 0 Reverse Sender 11347647578 1 4452844 325
        3.12-bidir.json 0 Forward Receiver 4330779856 23 4583810 4216
        3.12-bidir.json 1 Reverse Receiver 6039129459 15 - -
        3.12-bidir-server.json 0 Forward Receiver 4330779856 - - -
        3.12-bidir-server.json 1 Reverse Sender 6093871012 15 4583810 8438
        3.12-udp.json 0 Forward Receiver 39980722 - - -
        3.16-tcp.json 0 Forward Receiver 19501634918 12 1047728 43
        3.20-tcp.json 0 Forward Receiver 13186515072 4 1309660 289
        3.21+-tcp.json 0 Forward Receiver 11972772138 12 1047728 69
        3.21+-bidir.json 1 Reverse Receiver 4292888252 61 - -
        3.21+-udp.json 0 Forward Receiver 39961953 - - -";
    for row in table.lines().map(str::trim) {
        let mut words = row.split(' ');
        let (name, place) = (words.next().unwrap(), words.next().unwrap());
        let got = &transfers(&json(name))[place.parse::<usize>().unwrap()];
        let text = |value: Option<u64>| value.map_or("-".to_owned(), |n| n.to_string());
        let found = [
            text(got.retransmits),
            text(got.window.map(|n| n.0)),
            text(got.round_trip.mean.map(|n| n.0 / 1000)),
        ];
        let (direction, counted, goodput) = (got.direction, got.counted, got.goodput.0);
        let found =
            format!("{name} {place} {direction:?} {counted:?} {goodput} {}", found.join(" "));
        assert_eq!(found, row);
    }
}

#[test]
fn near_misses_are_not_ours() {
    for text in [
        "{}",
        "[]",
        "{\"fio version\" : \"fio-3.33\"}",
        "{\"start\": 1, \"end\": 2}",
        "{\"event\": \"login\", \"data\": {}}",
        "{\"event\": \"start",
        "\"start\": {\"version\": \"iperf 3.12\"}",
    ] {
        assert!(!starts(text), "{text}");
    }
    for text in [
        "{\n\t\"start\":\t{\n\t\t\"connected\":\t[],\n\t\t\"version\":\t\"iperf 3.12\"",
        "{\"error\":\"x\",\"start\":{},\"intervals\":[],\"end\":{}}",
        "{\"end\": {\"cpu_utilization_percent\": {}}, \"intervals\": []}",
        "{\"event\":\"start\",\"data\":{",
        "{\"event\":\"error\",\"data\":\"x\"}",
    ] {
        assert!(starts(text), "{text}");
    }
}

#[test]
fn many_connections_before_the_version_do_not_hide_it() {
    let connection = "{\"socket\":5,\"local_host\":\"192.0.2.1\",\"local_port\":40000}";
    let many = vec![connection; 256].join(",");
    let text = plain("").replace("{\"version\"", &format!("{{\"connected\":[{many}],\"version\""));
    assert!(text.find("\"version\"").is_some_and(|at| at > LOOKED_AT));
    assert_eq!(transfer(&text).goodput.0, 900);
}

/// A document with these fields in `start.test_start`, these intervals, this `end`, and these further fields.
fn document(test: &str, intervals: &str, end: &str, rest: &str) -> String {
    format!(
        "{{\"start\":{{\"version\":\"iperf 3.22\",\"connecting_to\":{{}},\"test_start\":{{\"protocol\":\"TCP\"{test}}}}},\
         \"intervals\":[{intervals}],\"end\":{{{end}}}{rest}}}\n"
    )
}

const SENT: &str =
    "\"sum_sent\":{\"seconds\":10,\"bytes\":1250,\"bits_per_second\":1000,\"retransmits\":3}";
const RECEIVED: &str = "\"sum_received\":{\"seconds\":10,\"bytes\":1125,\"bits_per_second\":900}";

/// A complete document of a client that sends.
fn plain(rest: &str) -> String {
    document("", "", &format!("{SENT},{RECEIVED}"), rest)
}

#[test]
fn two_keys_of_one_name_are_read() {
    // Case (q): the key `error` occurs twice, for the server's error and for the client's.
    for name in ["3.21+-limit8.json", "3.21+-limit8.jsonl"] {
        let error = transfer(&json(name)).error;
        assert_eq!(
            error.as_deref(),
            Some("total required bandwidth is larger than server limit"),
            "{name}"
        );
    }
    let errors = ",\"error\":\"error - the first\",\"error\":\"the second\"";
    assert_eq!(transfer(&plain(errors)).error.as_deref(), Some("the first; the second"));
    let same = ",\"error\":\"one\",\"error\":\"one\"";
    assert_eq!(transfer(&plain(same)).error.as_deref(), Some("one"));
    // Versions 3.7 to 3.9 give the sums of both directions the same name.
    for name in ["3.7-bidir.json", "3.9-bidir.json"] {
        let both = transfers(&json(name));
        assert_eq!(both.len(), 2);
        assert!(both.iter().all(|transfer| transfer.both && transfer.ticks.len() == 2));
        assert_ne!(both[0].goodput, both[1].goodput);
    }
}

#[test]
fn zero_where_iperf3_cannot_know_is_unknown() {
    // Case (r): an interrupted client never receives the receiver's count.
    let interrupted = transfer(&json("3.12-int.json"));
    assert_eq!(interrupted.counted, Sender);
    assert!(interrupted.error.as_deref().is_some_and(|why| why.starts_with("interrupt")));
    assert!(interrupted.cpu.receiver.is_none() && interrupted.cpu.sender.is_some());
    let reverse = transfer(&json("3.12-int-R.json"));
    assert_eq!((reverse.counted, reverse.retransmits), (Receiver, None));
    // An interrupted sender of datagrams does not know how many were lost. That does not mean none.
    let datagrams = transfer(&json("3.18-int-u.json"));
    assert_eq!((datagrams.counted, datagrams.datagrams), (Sender, None));
    // With -R the client knows no window and no round-trip time of the sender. In a bidirectional test it reports its
    // own.
    for (name, place) in
        [("3.1.3-reverse.json", 0), ("3.12-reverse.json", 0), ("3.12-bidir.json", 1)]
    {
        let got = &transfers(&json(name))[place];
        let unknown = (got.window, got.offered, got.round_trip);
        assert_eq!(
            unknown,
            (None, None, linerate_record::reported::RoundTrips::default()),
            "{name}"
        );
    }
    // The sum of a server that receives datagrams has no bytes, so its intervals are used.
    for name in ["3.1.3-udp-server.json", "3.7-udp-server.json", "3.12-udp-server.json"] {
        let got = transfer(&json(name));
        assert!(got.goodput.0 > 20_000_000 && got.counted == Receiver, "{name}");
        assert!(got.datagrams.is_some() && got.segment.is_none(), "{name}");
    }
}

#[test]
fn the_direction_is_the_clients_and_not_the_writers() {
    // Case (s): the flag "sender" means that the end that wrote the document sends.
    for (client, server, direction) in [
        ("3.12-tcp.json", "3.12-tcp-server.json", Forward),
        ("3.12-reverse.json", "3.12-reverse-server.json", Reverse),
    ] {
        let [client, server] = [client, server].map(|name| transfer(&json(name)));
        assert_eq!((client.direction, server.direction), (direction, direction));
        // Client and server each call their own CPU time the host's.
        let own = |of: &Transfer, side: &str| {
            if side == "sender" { of.cpu.sender } else { of.cpu.receiver }
        };
        let side = if direction == Forward { "receiver" } else { "sender" };
        assert_eq!(own(&client, side), own(&server, side));
    }
    let of = |name: &str| transfers(&json(name));
    let (client, server) = (of("3.12-bidir.json"), of("3.12-bidir-server.json"));
    assert_eq!(client[0].goodput, server[0].goodput);
    assert_eq!(client[1].cpu.sender, server[1].cpu.sender);
}

#[test]
fn the_muddled_sum_of_datagrams_is_the_senders_rate() {
    // Case (t): the seconds in the sum are the receiver's, so that bytes over seconds is not a rate.
    let mixed = "\"sum\":{\"seconds\":20,\"bytes\":1250,\"bits_per_second\":1000,\"lost_packets\":1,\"packets\":10}";
    let text = document("", "", mixed, "").replace("TCP", "UDP");
    let got = transfer(&text);
    assert_eq!((got.goodput.0, got.counted), (1000, Sender));
    // If the receiver's own sum is there, it is used.
    let text = document("", "", &format!("{mixed},{RECEIVED}"), "").replace("TCP", "UDP");
    assert_eq!((transfer(&text).goodput.0, transfer(&text).counted), (900, Receiver));
    // If it is known that no datagram arrived, the goodput is zero.
    let none = mixed.replace("\"lost_packets\":1,", "\"lost_packets\":10,");
    let known = "\"cpu_utilization_percent\":{\"remote_total\":1}";
    let text = document("", "", &format!("{none},{known}"), "").replace("TCP", "UDP");
    assert_eq!((transfer(&text).goodput.0, transfer(&text).counted), (0, Receiver));
    let some = mixed.replace("\"lost_packets\":1,", "\"lost_packets\":9,");
    let text = document("", "", &format!("{some},{known}"), "").replace("TCP", "UDP");
    assert_eq!((transfer(&text).goodput.0, transfer(&text).counted), (1000, Sender));
}

#[test]
fn an_error_without_a_result_is_said() {
    assert!(of(&json("3.12-busy.json")).contains("the server is busy running a test"));
    assert!(of(&json("3.18-busystream.jsonl")).contains("the server is busy running a test"));
    // Case (u): version 3.18 hides why the server ended the test.
    let hidden = json("3.18-limit8.json");
    assert!(transfer(&hidden).error.is_some());
    assert!(notes(&hidden).contains("refused the test or ended it"), "{}", notes(&hidden));
    let refused = document("", "", "", ",\"error\":\"control socket has closed unexpectedly\"");
    assert!(notes(&refused).contains("refused the test or ended it"));
    assert!(!notes(&json("3.12-int.json")).contains("refused the test"));
    // After a document that cannot be read, the next document is read.
    let both = format!("{}{}", json("3.12-busy.json"), json("3.12-tcp.json"));
    assert_eq!(transfer(&both).goodput.0, 7_839_584_830);
    assert!(notes(&both).contains("busy"));
}

#[test]
fn more_received_than_sent_is_explained_by_omitted_seconds() {
    // Case (v): with omitted seconds, more bytes are received than sent.
    assert!(notes(&json("3.18-omit.json")).contains("more was received than sent"));
    let more = RECEIVED.replace("1125", "1251");
    let with = |omit: &str, received: &str| document(omit, "", &format!("{SENT},{received}"), "");
    assert!(notes(&with(",\"omit\":1", &more)).contains("more was received"));
    assert!(!notes(&with(",\"omit\":0", &more)).contains("more was received"));
    assert!(
        !notes(&with(",\"omit\":1", &RECEIVED.replace("1125", "1250")))
            .contains("more was received")
    );
    // Omitted intervals are not kept as ticks.
    assert_eq!(transfer(&json("3.18-omit.json")).ticks.len(), 2);
}

#[test]
fn a_limit_of_the_server_is_not_what_was_asked() {
    // Case (w): a server limits the mean rate over 5 s. A test of 3 s passes a limit of 100 Mb/s at any rate.
    let got = transfer(&json("3.21+-limit3.json"));
    assert_eq!((got.requested, got.error.as_deref()), (None, None));
    assert!(got.goodput.0 > 10_000_000_000);
    // The client's requested rate is that of each stream.
    let requested = transfer(&json("3.18-opts.json"));
    assert_eq!(requested.requested.map(|rate| rate.0), Some(2_000_000_000));
}

#[test]
fn a_quantity_that_ends_with_an_interval_is_said() {
    // Case (x): since version 3.16, 10 MB take a second; version 3.12 ends before all of them have arrived.
    for name in ["3.18-n.json", "3.12-n.json"] {
        assert!(notes(&json(name)).contains("the rate may be too low"), "{name}");
    }
    let interval = "{\"sum\":{\"seconds\":1,\"bytes\":125,\"bits_per_second\":1000}}";
    let of = |count: usize| {
        let intervals = vec![interval; count].join(",");
        notes(&document(",\"bytes\":5000", &intervals, &format!("{SENT},{RECEIVED}"), ""))
    };
    assert!(of(19).contains("too low"));
    assert!(!of(20).contains("too low"));
}

#[test]
fn a_shorter_interval_at_the_end_is_no_tick() {
    let of = |last: f64| {
        let row = |seconds: f64| {
            format!("{{\"sum\":{{\"seconds\":{seconds},\"bytes\":125,\"bits_per_second\":1000}}}}")
        };
        let intervals = format!("{},{},{}", row(1.0), row(1.0), row(last));
        transfer(&document("", &intervals, &format!("{SENT},{RECEIVED}"), "")).ticks.len()
    };
    assert_eq!((of(0.89), of(0.91)), (2, 3));
}

#[test]
fn text_around_documents_and_several_documents_are_read() {
    let text = format!(
        "warning: something\n$ iperf3 -J\n{}\ndone\n{}",
        json("3.12-tcp.json"),
        json("3.12-udp.json")
    );
    assert_eq!(transfers(&text).len(), 2);
    assert!(notes(&text).contains("`warning: something`") && notes(&text).contains("`done`"));
    // Documents on one line, with their keys in alphabetical order.
    let tcp: serde_json::Value = serde_json::from_str(&json("3.12-tcp.json")).unwrap();
    let sorted = format!("{tcp}\n{tcp}\n");
    assert!(sorted.starts_with("{\"end\""), "{sorted}");
    let before = transfer(&json("3.12-tcp.json"));
    assert_eq!(transfers(&sorted), vec![before.clone(), before]);
}

#[test]
fn the_complete_part_of_a_cut_document_is_read() {
    let whole = json("3.21+-limit3.json");
    let end = whole.find("\"end\":\t{").unwrap();
    let cut = transfer(&whole[..end]);
    assert_eq!((cut.counted, cut.ticks.len()), (Sender, 3));
    assert!(cut.window.is_some() && cut.round_trip.mean.is_some());
    assert!(notes(&whole[..end]).contains("ends early"));
    let inside = whole.find("\"end\":\t1.").unwrap();
    assert!(of(&whole[..inside]).contains("cannot be read"));
    // The next document follows where the end of the first is missing.
    let two = format!("{}\n{}", &whole[..end], json("3.12-udp.json"));
    assert_eq!(transfers(&two).len(), 2, "{}", of(&two));
    assert!(notes(&two).contains("damaged"), "{}", notes(&two));
}

#[test]
fn events_are_one_test_and_not_repeated() {
    let full = json("3.21+-streamfull.jsonl");
    assert_eq!(transfers(&full).len(), 1);
    let two = format!("{}{}", json("3.18-stream.jsonl"), json("3.21+-streambidir.jsonl"));
    assert_eq!(transfers(&two).len(), 3);
    // A foreign line between the events, and an event that is truncated.
    let mut lines: Vec<String> = full.lines().take(3).map(str::to_owned).collect();
    lines.insert(1, "iperf3: warning".to_owned());
    lines.insert(1, lines[2][..100].to_owned());
    let text = lines.join("\n");
    assert_eq!(transfer(&text).ticks.len(), 1);
    assert!(
        notes(&text).contains("is damaged") && notes(&text).contains("no event"),
        "{}",
        notes(&text)
    );
    // If the event `end` is missing, the intervals are used.
    let cut: String =
        json("3.21+-streambidir.jsonl").lines().take(3).collect::<Vec<_>>().join("\n");
    assert_eq!(transfers(&cut).len(), 2);
}

#[test]
fn strange_values_are_unknown_and_no_failure() {
    let strange = "\"sum_received\":{\"seconds\":\"x\",\"bytes\":[1],\"bits_per_second\":{\"a\":1}},\"streams\":{},\"cpu_utilization_percent\":[]";
    assert!(of(&document("", "", strange, "")).contains("no interval and no sum"));
    let huge = RECEIVED.replace("900", "1e300");
    assert_eq!(transfer(&document("", "", &huge, "")).goodput.0, u64::MAX);
    let deep = format!(",\"title\":{}1{}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(of(&plain(&deep)).contains("iperf3-json"));
}

#[test]
fn a_document_names_its_writer_or_says_that_it_does_not() {
    let text = plain("").replace("\"connecting_to\":{},", "");
    assert!(notes(&text).contains("does not say which end wrote it"));
    assert_eq!(transfer(&text).direction, Forward);
    assert!(!notes(&plain("")).contains("which end"));
}
