//! Checks what the pages of the cases say about published results. For each sentence, a small change of the published
//! figures must remove it.

use super::{CASES, Solved, Style, of_case};

/// The page of a case as one line, after replacing texts in the case file.
fn page(name: &str, changes: &[(&str, &str)]) -> String {
    let (_, source) = CASES.iter().find(|(known, _)| *known == name).unwrap();
    let mut text = (*source).to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{name} has no {from:?}");
        text = text.replace(from, to);
    }
    let solved = Solved::of(&text, &[]).unwrap();
    let page = of_case(&text, &solved, &[], Style::PLAIN);
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A sentence, and the replacements in the case file that remove it.
type Said<'a> = (&'a str, &'a [(&'a str, &'a str)]);

#[track_caller]
fn says(name: &str, all: &[Said<'_>]) {
    let whole = page(name, &[]);
    for (sentence, silenced) in all {
        assert!(whole.contains(sentence), "{name} does not say {sentence:?}: {whole}");
        let without = page(name, silenced);
        assert!(!without.contains(sentence), "{name} still says {sentence:?} with {silenced:?}");
    }
}

#[test]
fn case1_clears_the_network_and_doubts_the_headline() {
    says(
        "case1",
        &[
            (
                "files are slow from client to server, and the network is not",
                &[("write,375", "write,1500"), ("read,718", "read,1500")],
            ),
            ("the network carried 16.3 Gb/s (2.04 GB/s) there", &[("8,16.3", "8,15.3")]),
            ("that RDMA moved the bytes is not shown", &[("read,2201", "read,3201")]),
            (
                "no figure reaches `goodput>=20Gbit/s`: the best is 18.4 Gb/s (2.30 GB/s)",
                &[("write,2301", "write,2601")],
            ),
            ("from 4 to 6 streams the rate grew x2.18", &[("6,15.2", "6,10.4")]),
            (
                "8 streams carried most, and 12 only 77 % of it",
                &[("10,13.2", "10,16.0"), ("12,12.6", "12,16.0")],
            ),
            (
                "a copy moved 4.5 Gb/s (562 MB/s) in the direction in which the row `sequential write` has 3 Gb/s \
                 (375 MB/s)",
                &[("copy write,562", "copy write,400")],
            ),
            (
                "a copy moved 8.1 Gb/s (1.01 GB/s) in the direction in which the row `sequential read` has 5.74 Gb/s \
                 (718 MB/s)",
                &[("copy read,1012", "copy read,720")],
            ),
        ],
    );
}

#[test]
fn case1_explains_ports_and_ibping_and_holds_the_hardware_beside() {
    says(
        "case1",
        &[
            ("port 1: Initializing: the wire works", &[("State: Initializing", "State: Active")]),
            (
                "port 2: Polling: the port looks for another end",
                &[
                    ("Physical state: Polling", "Physical state: LinkUp"),
                    ("State: Down", "State: Active"),
                ],
            ),
            (
                "its rate of 40 is no rate of a link",
                &[
                    ("State: Down", "State: Active"),
                    ("Physical state: Polling", "Physical state: LinkUp"),
                ],
            ),
            ("its times are 296 us to 625 us", &[("0.296 ms", "0.280 ms")]),
            ("its times are 239 us to 464 us", &[("0.239 ms", "0.250 ms")]),
            (
                "the ceiling of the hardware as described is reached: 942 Mb/s (118 MB/s) (iperf3 over the GbE port \
                 of the board) of 949 Mb/s (link)",
                &[("942 Mbits/sec", "842 Mbits/sec"), ("4,934", "4,834")],
            ),
            (
                "the hardware as described is not the limit: the best is 18.4 Gb/s",
                &[("pcie = \"gen3x8\"", "pcie = \"gen2x4\"")],
            ),
        ],
    );
}

#[test]
fn case2_names_the_timer_first_and_the_fall_of_mpich() {
    let whole = page("case2", &[]);
    let first = whole.find("Found sockets on the GE1000TC: a timer of 200 us");
    assert!(first.is_some_and(|first| Some(first) == whole.find("Found ")), "{whole}");
    assert_eq!(whole.matches("a timer of").count(), 2, "one is named, and once more beside MPICH");
    // Replacements in the tables of the case that remove the 200 us timer of the sockets.
    let steady = [
        ("1,2000,0.800074,0.039996", "1,2000,0.700074,0.045709"),
        ("2,2000,0.799940,0.080006", "2,2000,0.710940,0.090022"),
        ("4,2000,0.800093,0.159981", "4,2000,0.730093,0.175320"),
        ("8,2000,0.800074,0.319970", "8,2000,0.750074,0.341300"),
        ("16,2000,0.799951,0.640039", "16,2000,0.770951,0.664115"),
        ("32,2000,0.799979,1.280034", "32,2000,0.790979,1.294598"),
        ("64,2000,0.799963,2.560118", "64,2000,0.820963,2.494631"),
        ("128,2000,0.800653,5.115824", "128,2000,0.860653,4.759177"),
        ("512,1953,1.566108,10.215755", "512,1953,1.766108,9.058880"),
    ];
    says(
        "case2",
        &[
            ("sockets on the GE1000TC: a timer of 200 us sets the times", &steady),
            ("this rate is 2.1 kB for each 400 us, there and back", &steady),
            (
                "MPICH on the GE1000TC: from 4 KiB to 8 KiB the rate falls from 67.4 Mb/s (8.43 MB/s) to 41.7 Mb/s \
                 (5.22 MB/s)",
                &[("65536,15,2.847520,5.523628", "65536,15,1.847520,8.513378")],
            ),
        ],
    );
    for card in ["sockets on the GA620T: a timer", "MPICH on the GA620T: a timer"] {
        assert!(!whole.contains(card), "{card}");
    }
}

#[test]
fn case3_finds_the_code_counted_twice_and_holds_each_card_beside_its_slot() {
    says(
        "case3",
        &[
            (
                "`ceiling=3.2GB/s` takes the line code of the near slot off twice: 0.8 of 32 Gb/s (4.00 GB/s)",
                &[("ceiling=3.2GB/s", "ceiling=3.4GB/s")],
            ),
            (
                "3300 MB/s = 26.4 Gb/s, SRP over both ports of a card with two; computed 23.2 to 26.9 Gb/s: is inside \
                 the range of the ceiling",
                &[("mps=128", "mps=256")],
            ),
            (
                "the best figure is 98 % of `ceiling=3.2GB/s`: 25.2 Gb/s (3.15 GB/s) (SRP over one card, taken for reads)",
                &[("read,3148", "read,3000")],
            ),
        ],
    );
    assert!(!page("case3", &[]).contains("measured x"));
}

#[test]
fn case4_names_a_flow_cap_and_one_core_and_reaches_its_link() {
    says(
        "case4",
        &[
            (
                "each of 5 streams carried on average about 5 Gb/s: so much a cloud allows one flow; one full \
                 processor for all of them would look alike",
                &[("\n5,25\n", "\n5,20\n")],
            ),
            (
                "the ceiling of the hardware as described is reached within 10 %: 100 Gb/s (12.5 GB/s)",
                &[("\n20,100\n", "\n20,80\n")],
            ),
            (
                "`goodput>=100Gbit/s` is more than the hardware as described carries, 99.1 Gb/s",
                &[("\n20,100\n", "\n20,99\n")],
            ),
            (
                "80 Gb/s, iperf3, about 20 processes: what the author counts on",
                &[("80 Gb/s\"", "79 Gb/s\"")],
            ),
        ],
    );
}

#[test]
fn case5_shows_its_tables_its_tail_and_that_the_port_is_not_the_limit() {
    says(
        "case5",
        &[
            ("RDMA read, whole round trips in us", &[("RDMA_Read", "RDMA_Write")]),
            ("send, halves of round trips in us", &[("Send Latency", "RDMA_Write Latency")]),
            ("RDMA write, halves of round trips in us", &[("RDMA_Write", "RDMA_Read")]),
            (
                "the longest of 1000 at 4 B took 95.8 us, 40 times the typical 2.37 us",
                &[("95.75 ", "15.75 ")],
            ),
            (
                "whole round trips take 18.3 us through sockets and 2.36 us by verbs",
                &[("16,9.133", "16,9.633")],
            ),
            (
                "the 7 us before are of two applications, and no time that was read is",
                &[("before.application.latency", "before.sockets.latency")],
            ),
            (
                "sockperf, UDP over IPoIB: 18.3 us through sockets, whole round trips of 16 B",
                &[("before.application.latency", "before.sockets.latency")],
            ),
            ("1 switch as 0 ns", &[("switches = 1", "switches = 1\nswitch-latency = \"170ns\"")]),
            (
                "the hardware as described is not the limit: the best is 13.8 Gb/s",
                &[("\"gen2x8\"", "\"gen2x4\"")],
            ),
            ("link 49.5 to 54.2 Gb/s;", &[("4x FDR", "4x QDR")]),
        ],
    );
}
