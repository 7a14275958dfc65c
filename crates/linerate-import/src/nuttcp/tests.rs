use super::*;
use crate::format::Start;
use crate::summary::{all, notes, sample, transfer, transfers};

fn text(name: &str) -> String {
    sample(&format!("nuttcp/{name}"))
}

#[test]
fn samples_are_read_as_before() {
    insta::assert_snapshot!(all("nuttcp"));
}

#[test]
fn figures_are_those_of_the_text() {
    let rows = [
        ("6.1.2-tcp.txt", Direction::Forward, 43_561_679_200, Some(0), 0),
        ("6.1.2-intervals.txt", Direction::Forward, 22_291_231_700, Some(0), 2),
        ("6.1.2-receive.txt", Direction::Reverse, 28_614_777_800, Some(0), 1),
        ("6.1.2-v.txt", Direction::Forward, 17_672_246_700, Some(0), 0),
        ("6.1.2-parse.txt", Direction::Forward, 40_721_839_400, Some(0), 0),
        ("6.1.2-udp.txt", Direction::Forward, 133_915_300, None, 2),
    ];
    for (name, direction, goodput, retransmits, ticks) in rows {
        let got = transfer(&text(name));
        assert_eq!(
            (got.direction, got.goodput.0, got.retransmits),
            (direction, goodput, retransmits),
            "{name}"
        );
        assert_eq!((got.ticks.len(), got.counted), (ticks, Counted::Receiver), "{name}");
    }
    let lost = transfer(&text("6.1.2-udp.txt")).datagrams.unwrap();
    assert_eq!((lost.lost, lost.of), (3041, 9156));
    let cpu = transfer(&text("6.1.2-tcp.txt")).cpu;
    assert_eq!(
        [cpu.sender, cpu.receiver].map(|cpu| cpu.map(|cpu| cpu.total)),
        [Some(0.27), Some(0.71)]
    );
}

#[test]
fn the_direction_is_known_by_command_or_blocks_only() {
    assert!(notes(&text("6.1.2-parse.txt")).contains("does not print the direction"));
    for name in ["6.1.2-tcp.txt", "6.1.2-receive.txt", "6.1.2-v.txt"] {
        assert_eq!(notes(&text(name)), "", "{name}");
    }
}

#[test]
fn lines_follow_each_other_and_may_lack_their_end() {
    let two = format!("{0}{0}", text("6.1.2-parse.txt"));
    assert_eq!(transfers(&two).len(), 2);
    let whole = text("6.1.2-intervals.txt");
    let lines: Vec<&str> = whole.lines().take(2).collect();
    let cut = lines.join("\n");
    assert!(notes(&cut).contains("line of the whole test is missing"));
    assert_eq!(transfer(&cut).ticks.len(), 2);
    let old = "  112.3125 MB /   1.00 sec =  941.8852 Mbps\n";
    assert_eq!(transfer(old).goodput.0, 941_885_200);
    for near in
        ["112 MB / 1.00 sec\n", "112 MB / x sec = 5 Mbps\n", "megabytes=1\n", "nuttcp-x: v6\n"]
    {
        assert!(!(FORMAT.starts)(Start::of(near)), "{near}");
    }
}
