use linerate_record::reported::{Carrier, Counted, Trip};
use linerate_units::{Bytes, Rate};

use crate::read;
use crate::sample::{notes, ns, part, sizes, transfer, why};

const UDP: &str = include_str!("../../tests/samples/sockperf/ping-pong-udp.txt");
const FULL_RTT: &str = include_str!("../../tests/samples/sockperf/ping-pong-tcp-full-rtt.txt");
const CUT: &str = include_str!("../../tests/samples/sockperf/ping-pong-3.8-cut.txt");
const FEW: &str = include_str!("../../tests/samples/sockperf/under-load-13-answers.txt");
const LOADED: &str = include_str!("../../tests/samples/sockperf/under-load.txt");
const LOG: &str = include_str!("../../tests/samples/sockperf/full-log.txt");
const NONE: &str = include_str!("../../tests/samples/sockperf/no-observations.txt");
const TCP: &str = include_str!("../../tests/samples/sockperf/throughput-tcp.txt");
const GIGA: &str = include_str!("../../tests/samples/sockperf/throughput-udp-giga.txt");
const SERVER: &str = include_str!("../../tests/samples/sockperf/server.txt");

#[test]
fn half_a_round_trip() {
    let part = part(&format!("$ sockperf ping-pong -i 192.0.2.1 -m 64\n{UDP}"));
    assert_eq!(part.tool.version.as_deref(), Some("3.7"));
    let sizes = sizes(&part.results[0]);
    assert_eq!((sizes.carrier, sizes.trip), (Some(Carrier::Udp), Trip::Half));
    let row = sizes.rows[0];
    assert_eq!((row.size, row.samples), (Bytes(64), Some(89_685)));
    assert_eq!((row.least, row.typical, row.mean), (ns(2377), ns(2702), ns(8634)));
    assert_eq!((row.deviation, row.p99), (ns(109_223), ns(6949)));
    assert_eq!((row.p999, row.most), (ns(1_901_338), ns(4_619_066)));
    assert_eq!(part.notes, []);
}

#[test]
fn a_command_without_a_prompt_is_understood() {
    for typed in ["sockperf ping-pong -i 192.0.2.1 -m 350", "_sockperf pp -m 350_"] {
        let text = format!("Results:\n\n{typed}\n{UDP}");
        let parsed = read(text.as_bytes()).unwrap();
        assert_eq!(parsed.parts.len(), 1, "{parsed:?}");
        let part = &parsed.parts[0];
        assert_eq!(sizes(&part.results[0]).rows[0].size, Bytes(350));
        assert_eq!((part.line, part.notes.len()), (3, 0), "{:?}", part.notes);
    }
    // Two runs in one text are two outputs.
    let typed = format!("sockperf pp -m 350\n{UDP}");
    assert_eq!(read(format!("{typed}{typed}").as_bytes()).unwrap().parts.len(), 2);
    // A line of prose is not a command.
    let prose = read(format!("sockperf says the following\n{UDP}").as_bytes()).unwrap();
    assert!(notes(&prose.parts[0], "14 bytes are sockperf's default"));
}

#[test]
fn marks_of_markdown_are_passed_over() {
    let marked = UDP
        .replace("percentile 99.000 = ", "**percentile 99.000** = **")
        .replace("sockperf: Summary:", "**sockperf: Summary:");
    assert_ne!(marked, UDP);
    let plain = part(UDP);
    let marked = part(&marked);
    assert_eq!((&marked.results, &marked.notes), (&plain.results, &plain.notes));
}

#[test]
fn a_whole_round_trip() {
    let part = part(FULL_RTT);
    let sizes = sizes(&part.results[0]);
    assert_eq!((sizes.carrier, sizes.trip), (Some(Carrier::Tcp), Trip::Whole));
    assert_eq!(sizes.rows[0].mean, ns(25_082));
    assert!(notes(&part, "14 bytes are sockperf's default"));
}

#[test]
fn newer_statistics_and_a_distribution_that_is_cut() {
    let part = part(CUT);
    assert_eq!(part.tool.version.as_deref(), Some("3.8-0.git31ee322aa82a"));
    let row = sizes(&part.results[0]).rows[0];
    assert_eq!((row.mean, row.deviation, row.most), (ns(1_892_600), ns(422_741), ns(11_541_068)));
    assert_eq!((row.samples, row.typical), (Some(105_413), None));
    assert!(notes(&part, "end is missing"));
}

#[test]
fn the_size_is_that_of_the_command() {
    for (option, size) in [("-m 350", 350), ("--msg-size=64", 64), ("--tcp", 14)] {
        let part = part(&format!("$ sockperf ping-pong {option}\n{FULL_RTT}"));
        assert_eq!(sizes(&part.results[0]).rows[0].size, Bytes(size));
        assert_eq!(part.notes, []);
    }
    let shown = part(&format!("$ cat sockperf.log\n{FULL_RTT}"));
    assert!(notes(&shown, "default"));
}

#[test]
fn percentiles_need_observations() {
    let few = part(FEW);
    let row = sizes(&few.results[0]).rows[0];
    assert_eq!((row.samples, row.p99, row.p999), (Some(13), None, None));
    assert_eq!(sizes(&few.results[0]).operation, "under-load");
    assert_eq!(row.typical, ns(682_869));
    assert!(notes(&few, "13 observations"));
    let many = part(LOADED);
    let row = sizes(&many.results[0]).rows[0];
    assert_eq!(row.samples, Some(7469));
    assert!(row.p99.is_some() && row.p999.is_some());
    assert!(!notes(&many, "left out"));
}

#[test]
fn a_log_has_its_summary_and_its_size() {
    let part = part(LOG);
    let row = sizes(&part.results[0]).rows[0];
    assert_eq!((row.size, row.mean, row.samples), (Bytes(64), ns(8634), Some(89_685)));
    assert_eq!(sizes(&part.results[0]).trip, Trip::Half);
    assert!(notes(&part, "single messages"));
}

#[test]
fn throughput_is_in_units_of_2_to_the_20th() {
    let tcp = part(TCP);
    let moved = transfer(&tcp.results[0]);
    assert_eq!(moved.goodput, Rate((5680.753 * 1_048_576.0_f64).round() as u64));
    assert_eq!((moved.size, moved.messages), (Some(Bytes(1472)), Some(505_834.0)));
    assert_eq!((moved.seconds, moved.counted), (Some(2.001), Counted::Sender));
    assert_eq!((moved.carrier, moved.streams), (Carrier::Tcp, None));
    assert!(notes(&tcp, "2^20") && notes(&tcp, "sent"));
    let giga = part(GIGA);
    let moved = transfer(&giga.results[0]);
    assert_eq!(moved.goodput, Rate((0.011 * 1024.0 * 1_048_576.0_f64).round() as u64));
    assert_eq!(moved.size, Some(Bytes(1472)));
}

#[test]
fn what_measured_nothing_is_refused() {
    assert!(why(SERVER).contains("server"));
    assert!(why(NONE).contains("no result"));
    assert!(why(&UDP[..UDP.find("====>").unwrap()]).contains("no result"));
}

#[test]
fn lost_messages_and_strange_lines_are_said() {
    let text = UDP.replace("dropped messages = 0", "dropped messages = 7");
    assert!(notes(&part(&text), "dropped messages = 7"));
    let text = UDP.replace("sockperf: Test ended", "sockperf: something new\nnoise");
    let part = part(&text);
    assert_eq!(part.notes[0].line, Some(8));
    assert!(notes(&part, "something new") && notes(&part, "noise"));
}

#[test]
fn two_runs_in_a_row_are_two_outputs() {
    let parsed = read(format!("{UDP}{FULL_RTT}").as_bytes()).unwrap();
    assert_eq!(parsed.parts.len(), 2);
    assert_eq!(parsed.notes, []);
}

#[test]
fn a_number_with_a_comma_is_not_cut() {
    let comma = UDP.replace("avg-latency=", "avg-latency=1,");
    assert!(comma != UDP);
    let row = read(comma.as_bytes()).map(|parsed| {
        let outcome = &parsed.parts[0].results[0];
        sizes(outcome).rows[0].mean
    });
    assert_eq!(row.ok().flatten(), None);
}
