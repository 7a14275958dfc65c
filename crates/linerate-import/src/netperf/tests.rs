use super::*;
use crate::format::Start;
use crate::summary::{all, notes, of, results, sample, transfer};
use linerate_plan::path::Direction::{Forward, Reverse};
use linerate_record::reported::{Counted, Sizes};

fn text(name: &str) -> String {
    sample(&format!("netperf/{name}"))
}

fn sizes(text: &str) -> Sizes {
    match results(text).remove(0) {
        Measured::Sizes(sizes) => sizes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn samples_are_read_as_before() {
    insta::assert_snapshot!(all("netperf"));
}

#[test]
fn transfers_have_the_figures_of_the_text() {
    let rows = [
        ("2.7.1-stream.txt", Forward, 27_452_150_000, 16384),
        ("2.7.1-stream-c.txt", Forward, 17_527_630_000, 16384),
        ("2.7.1-maerts.txt", Reverse, 28_965_860_000, 16384),
        ("2.7.1-udp.txt", Forward, 1_098_650_000, 1400),
        ("2.7.1-omni.txt", Forward, 10_141_540_000, 16384),
        // The sample has 1673.65 x 2^20 bytes per second.
        ("2.7.1-fM.txt", Forward, 14_039_593_779, 16384),
    ];
    for (name, direction, goodput, size) in rows {
        let got = transfer(&text(name));
        assert_eq!(
            (got.direction, got.goodput.0, got.counted),
            (direction, goodput, Counted::Receiver),
            "{name}"
        );
        assert_eq!(got.size.map(|size| size.0), Some(size), "{name}");
    }
    let lost = transfer(&text("2.7.1-udp.txt")).datagrams.unwrap();
    assert_eq!((lost.lost, lost.of), (223_971 - 98_110, 223_971));
    let omni = transfer(&text("2.7.1-omni.txt"));
    assert_eq!((omni.retransmits, omni.segment), (Some(14), Some(65483)));
    assert!(notes(&text("2.7.1-i.txt")).contains("confidence"));
    assert!(!notes(&text("2.7.1-stream.txt")).contains("confidence"));
}

#[test]
fn requests_are_whole_round_trips() {
    let times = sizes(&text("2.7.1-rr.txt"));
    assert_eq!(
        (times.trip, times.rows[0].mean.map(|n| n.0)),
        (linerate_record::reported::Trip::Whole, Some(19793))
    );
    let row = sizes(&text("2.7.1-rrk.txt")).rows[0];
    let found = [row.least, row.typical, row.mean, row.p99, row.most].map(|time| time.map(|n| n.0));
    assert_eq!(found, [Some(6000), Some(7000), Some(7330), Some(13000), Some(1_003_000)]);
    // With several requests in flight, no time follows from the rate.
    let burst = text("2.7.1-rr.txt").replace("first burst 0", "first burst 8");
    assert_eq!(
        (sizes(&burst).rows[0].mean, sizes(&burst).rows[0].messages),
        (None, Some(50521.68))
    );
    let uneven = text("2.7.1-rr-c.txt");
    assert!(notes(&uneven).contains("64 B and responses 1024 B"));
}

#[test]
fn what_is_unknown_or_damaged_is_said() {
    let stream = text("2.7.1-stream.txt");
    let unit = stream.replace("10^6bits/sec", "            ");
    assert!(of(&unit).contains("no unit"), "{}", of(&unit));
    let cut = &stream[..stream.rfind("131072").unwrap()];
    assert!(of(cut).contains("no complete row"));
    let omni = text("2.7.1-omni.txt");
    assert!(
        of(&omni.replace("THROUGHPUT_UNITS=10^6bits/s", "THROUGHPUT_UNITS=Trans/s"))
            .contains("`Trans/s` is unknown")
    );
    assert_eq!(transfer(&omni.replace("RETRANS=14", "RETRANS=-1")).retransmits, None);
    // An output of an older version, and a session with two commands.
    let old = "TCP STREAM TEST to 192.0.2.1\nRecv   Send    Send\nSocket Socket  Message  Elapsed\nSize   Size    Size     Time     Throughput\nbytes  bytes   bytes    secs.    10^6bits/sec\n\n 87380  16384  16384    10.00     941.33\n";
    assert_eq!(transfer(old).goodput.0, 941_330_000);
    let two = format!("$ netperf -H x\n{old}$ netperf -t TCP_RR\n{}", text("2.7.1-rr.txt"));
    assert_eq!((results(&two).len(), notes(&two).as_str()), (2, ""));
    for near in ["THE TEST from x to y", "TCP STREAM TEST", "TCP something TEST from x"] {
        assert!(!(FORMAT.starts)(Start::of(near)), "{near}");
    }
}
