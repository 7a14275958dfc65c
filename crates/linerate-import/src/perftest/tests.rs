use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Counted, Trip};
use linerate_units::{Bytes, Rate};

use crate::read;
use crate::sample::{bits, notes, ns, part, row, sizes, transfer, why};

const READ_LAT: &str = include_str!("../../tests/samples/perftest/read-lat-three-columns.txt");
const SEND_LAT: &str = include_str!("../../tests/samples/perftest/send-lat-three-columns.txt");
const WRITE_LAT: &str = include_str!("../../tests/samples/perftest/write-lat-three-columns.txt");
const PERCENTILES: &str = include_str!("../../tests/samples/perftest/send-lat-percentiles.txt");
const DURATION: &str = include_str!("../../tests/samples/perftest/send-lat-duration.txt");
const GBITS: &str = include_str!("../../tests/samples/perftest/write-bw-gbits.txt");
const MIB: &str = include_str!("../../tests/samples/perftest/send-bw-mib.txt");
const CLIENT: &str = include_str!("../../tests/samples/perftest/write-bw-client.txt");
const SERVER: &str = include_str!("../../tests/samples/perftest/write-bw-server.txt");
const BOTH_ENDS: &str = include_str!("../../tests/samples/perftest/write-bw-both-ends.txt");
const BARE: &str = include_str!("../../tests/samples/perftest-json/write-lat-bare.txt");
const VALID: &str = include_str!("../../tests/samples/perftest-json/write-bw-valid.json");

const NOTICE: &str = include_str!("../../tests/samples/perftest/read-lat-notice.txt");
const EVENTS: &str = include_str!("../../tests/samples/perftest/send-lat-events.txt");
const SINGLES: &str = include_str!("../../tests/samples/perftest/write-lat-single-times.txt");
const NO_CLOCK: &str = include_str!("../../tests/samples/perftest/send-lat-no-clock.txt");
const CUT: &str = include_str!("../../tests/samples/perftest/write-bw-cut.txt");
const QUEUES: &str = include_str!("../../tests/samples/perftest/write-bw-four-queues.txt");
const BOTH_WAYS: &str = include_str!("../../tests/samples/perftest/send-bw-both-ways.txt");
const BARE_RATE: &str = include_str!("../../tests/samples/perftest-json/write-bw-bare.json");

#[test]
fn the_longest_time_is_that_of_the_list_of_single_times() {
    let listed = part(SINGLES);
    let row = sizes(&listed.results[0]).rows[0];
    assert_eq!((row.least, row.most), (ns(62_460), ns(73_259_600)));
    assert!(notes(&listed, "t_max is the second longest"));
    assert!(!notes(&listed, "not understood"), "{:?}", listed.notes);
    // A list whose longest time is that of the row adds no note.
    let same = SINGLES.replace("73259.6", "18671.7");
    let same = part(&same);
    assert_eq!(sizes(&same.results[0]).rows[0].most, ns(18_671_700));
    assert!(!notes(&same, "second longest"));
}

#[test]
fn notices_are_no_part_of_the_table() {
    for (text, typical) in [(NOTICE, 140_720), (EVENTS, 3_987_220)] {
        let part = part(text);
        assert_eq!(sizes(&part.results[0]).rows[0].typical, ns(typical));
        assert_eq!(part.notes, []);
    }
}

#[test]
fn times_of_a_clock_that_failed_are_none() {
    let refused = why(NO_CLOCK);
    assert!(refused.contains("no row"), "{refused}");
    assert!(refused.contains("CPU's clock"), "{refused}");
}

#[test]
fn rates_as_run_over_soft_roce() {
    let cut = part(CUT);
    let rows = &sizes(&cut.results[0]).rows;
    assert_eq!((rows.len(), rows[19].size), (21, Bytes(1 << 20)));
    assert!(notes(&cut, "ends the table"));
    let queues = part(QUEUES);
    assert_eq!(transfer(&queues.results[0]).streams, Some(4));
    let both = part(BOTH_WAYS);
    assert!(sizes(&both.results[0]).both);
    let bare = part(BARE_RATE);
    assert_eq!(transfer(&bare.results[0]).goodput, Rate(210_000_000));
}

#[test]
fn tables_of_three_columns() {
    for (text, operation, trip, first) in [
        (READ_LAT, "RDMA read", Trip::Whole, [2340, 9900, 2360]),
        (SEND_LAT, "send", Trip::Half, [1320, 5740, 1340]),
        (WRITE_LAT, "RDMA write", Trip::Half, [1260, 6290, 1280]),
    ] {
        let part = part(text);
        let sizes = sizes(&part.results[0]);
        assert_eq!((sizes.operation.as_str(), sizes.trip), (operation, trip));
        assert_eq!(sizes.carrier, Some(Carrier::Rdma));
        assert_eq!(sizes.rows.len(), 23);
        let mut expected = row(2);
        expected.samples = Some(1000);
        [expected.least, expected.most, expected.typical] = first.map(ns);
        assert_eq!(sizes.rows[0], expected);
        assert_eq!(sizes.rows[22].size, Bytes(8 << 20));
        assert!(part.notes.len() == 1 && notes(&part, "ends the table"));
    }
}

#[test]
fn mean_and_percentiles() {
    let part = part(PERCENTILES);
    let sizes = sizes(&part.results[0]);
    assert_eq!((sizes.trip, sizes.rows.len()), (Trip::Half, 6));
    let row = sizes.rows[1];
    assert_eq!((row.typical, row.mean, row.deviation), (ns(15_810), ns(15_990), ns(690)));
    assert_eq!((row.p99, row.p999, row.most), (ns(20_030), ns(23_150), ns(23_150)));
    let few = PERCENTILES.replace(" 1000 ", " 99 ");
    let few = crate::sample::part(&few);
    let row = crate::sample::sizes(&few.results[0]).rows[1];
    assert_eq!((row.p99, row.p999), (None, None));
    assert_eq!(part.notes, []);
}

#[test]
fn a_deviation_of_zero_is_unknown() {
    let zero = PERCENTILES.replace("0.69", "0.00");
    let part = part(&zero);
    assert_eq!(sizes(&part.results[0]).rows[1].deviation, None);
}

#[test]
fn a_duration_has_a_mean_alone() {
    let part = part(DURATION);
    let row = sizes(&part.results[0]).rows[0];
    assert_eq!((row.mean, row.least, row.samples), (ns(3880), None, Some(1_289_984)));
    assert!(notes(&part, "clock rate"));
}

#[test]
fn one_size_in_one_direction_is_a_transfer() {
    let part = part(GBITS);
    let transfer = transfer(&part.results[0]);
    assert_eq!(transfer.goodput, Rate(480_000_000));
    assert_eq!(transfer.messages, Some(7_498_617.0));
    assert_eq!((transfer.size, transfer.streams), (Some(Bytes(8)), Some(1)));
    assert_eq!((transfer.direction, transfer.counted), (Direction::Forward, Counted::Sender));
    let read = crate::sample::part(&GBITS.replace("RDMA_Write Post List", "RDMA_Read"));
    let read = crate::sample::transfer(&read.results[0]);
    assert_eq!((read.direction, read.counted), (Direction::Reverse, Counted::Receiver));
}

#[test]
fn both_directions_are_no_transfer() {
    let part = part(&GBITS.replace("RDMA_Write Post List", "RDMA_Write Bidirectional"));
    let sizes = sizes(&part.results[0]);
    assert!(sizes.both);
    assert_eq!(sizes.rows[0].rate, bits(480_000_000));
}

#[test]
fn megabytes_are_of_1024() {
    let part = part(CLIENT);
    let new = transfer(&part.results[0]).goodput;
    assert_eq!(new, Rate((11_030.45 * 8.0 * 1_048_576.0_f64).round() as u64));
    let old = crate::sample::part(&CLIENT.replace("MiB/sec", "MB/sec"));
    assert!(notes(&old, "2^20") && !notes(&part, "2^20"));
    assert_eq!(transfer(&old.results[0]).goodput, new);
    assert_eq!(
        why(&CLIENT.replace("MiB/sec", "GB/sec")),
        "the unit of `BW average` is none of MB/sec, MiB/sec, Gb/sec"
    );
    let part = crate::sample::part(MIB);
    let sizes = sizes(&part.results[0]);
    assert_eq!((sizes.rows.len(), sizes.trip), (6, Trip::Unknown));
    assert_eq!(sizes.rows[5].messages, Some(1_140_448.0));
}

#[test]
fn a_server_is_told_from_a_client() {
    assert!(!notes(&part(CLIENT), "TX depth"));
    assert!(notes(&part(SERVER), "TX depth"));
    // The server of a test of sends starts its clock late: with few messages its rate is meaningless.
    let send = SERVER.replace("RDMA_Write", "Send");
    assert_eq!(part(&send).results.len(), 1);
    assert!(why(&send.replace(" 5000 ", " 5 ")).contains("no row"));
    assert_eq!(part(&CLIENT.replace(" 5000 ", " 5 ")).results.len(), 1);
}

#[test]
fn both_ends_in_one_log_are_read_once() {
    let parsed = read(BOTH_ENDS.as_bytes()).unwrap();
    assert_eq!(parsed.parts.len(), 1);
    let sizes = sizes(&parsed.parts[0].results[0]);
    assert_eq!(sizes.rows.len(), 23);
    assert_eq!(sizes.rows[22].rate, bits((23_240.68 * 8.0 * 1_048_576.0_f64).round() as u64));
}

#[test]
fn what_was_not_measured_is_unknown() {
    let part = part(&PERCENTILES.replace("15.81 ", "inf   ").replace("0.69", "-nan"));
    let row = sizes(&part.results[0]).rows[1];
    assert_eq!((row.typical, row.deviation, row.mean), (None, None, ns(15_990)));
    assert!(why(&CLIENT.replace("11030.45", "-1.50")).contains("no row"));
    assert!(why(&CLIENT.replace("11030.45", "0.00")).contains("no row"));
    let cut = &READ_LAT[..READ_LAT.find(" #bytes").unwrap()];
    assert!(why(cut).contains("no table"));
}

#[test]
fn rates_of_each_side_are_passed_over() {
    let rule = "-".repeat(87);
    let side = "65536      5000             11000.00            11000.00             0.176000";
    let header =
        " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]";
    let text = CLIENT.replace("RDMA_Write", "RDMA_Write Bidirectional");
    let text = format!("{text}\n Local results: \n{rule}\n{header}\n{side}\n{rule}\n");
    let part = part(&text);
    assert_eq!(sizes(&part.results[0]).rows.len(), 1);
    assert!(notes(&part, "each side"));
    let twice = MIB.replace(" 4          1000 ", " 2          1000 ");
    assert!(notes(&crate::sample::part(&twice), "several rows"));
    let sides = VALID.replace("\"results\"", "\"results_local\"");
    assert!(why(&sides).contains("each side"));
}

#[test]
fn cycles_are_no_times() {
    let cycles: String = READ_LAT.split_inclusive('\n').take(8).collect();
    let cycles = cycles.replace("2.34 ", "4680.00 ").replace("9.90 ", "19800.50 ");
    let cycles = cycles.replace("95.75 ", "95000.00 ");
    assert!(why(&cycles).contains("cycles"));
    assert!(why(&format!("$ ib_read_lat -C host\n{READ_LAT}")).contains("cycles"));
    assert_eq!(part(&format!("$ ib_read_lat -a host\n{READ_LAT}")).results.len(), 1);
}

#[test]
fn a_line_that_is_not_understood_is_said() {
    let text = READ_LAT.replace(" 4096       1000", " 4096       many 1000");
    let part = part(&text);
    assert_eq!(sizes(&part.results[0]).rows.len(), 22);
    assert_eq!(part.notes[0].line, Some(18));
    assert!(part.notes[0].what.contains("not understood"));
    assert!(part.notes[0].what.contains("4096"));
}

#[test]
fn a_session_splits_at_its_commands() {
    let text = format!("$ ib_read_lat host\n{READ_LAT}user@host:~$ ib_write_bw host\n{CLIENT}");
    let parsed = read(text.as_bytes()).unwrap();
    assert_eq!(parsed.parts.len(), 2);
    assert!(!parsed.parts[0].notes.iter().any(|note| note.what.contains("not understood")));
    assert_eq!(parsed.parts[1].notes, []);
}

#[test]
fn documents_with_bare_words_and_valid_ones() {
    let bare = part(BARE);
    let latency = sizes(&bare.results[0]);
    assert_eq!((latency.operation.as_str(), latency.trip), ("RDMA write", Trip::Half));
    let row = latency.rows[0];
    assert_eq!((row.size, row.typical, row.p999), (Bytes(128), ns(2420), ns(4030)));
    let valid = part(VALID);
    let rate = transfer(&valid.results[0]).goodput;
    assert_eq!(rate, Rate((2229.27 * 8.0 * 1_048_576.0_f64).round() as u64));
}

#[test]
fn the_unit_of_a_document_is_proven_or_refused() {
    // The rate is 2229.27 MiB/s, which is 18.70 Gb/s.
    let gbits = VALID.replace("2229.27", "18.70");
    assert_eq!(transfer(&part(&gbits).results[0]).goodput, Rate(18_700_000_000));
    let unproven = VALID.replace("0.035668", "0.000000");
    assert!(why(&unproven).contains("names no unit"));
    let named = format!("$ ib_write_bw --out_json host\n{unproven}");
    assert_eq!(transfer(&part(&named).results[0]).goodput, Rate(18_700_472_156));
    let named = format!("$ ib_write_bw --report_gbits --out_json host\n{unproven}");
    assert_eq!(transfer(&part(&named).results[0]).goodput, Rate(2_229_270_000_000));
    let shown = format!("$ cat ib_write_bw.json\n{unproven}");
    assert!(why(&shown).contains("names no unit"));
    let cycles = BARE
        .replace("2.37", "5000")
        .replace("5.39", "9000")
        .replace("2.47", "5100")
        .replace("4.03", "8000.5");
    assert!(why(&cycles).contains("cycles"));
}

#[test]
fn a_document_of_a_duration_proves_its_unit() {
    let mean = "{\n\"test_info\": {\n\"test\": \"Send_Latency_Test\"\n},\n\"results\": {\n\"MsgSize\": 2,\n\"n_iterations\": 1289984,\n\"t_avg\": 3.88,\n\"tps_average\": 128993.46\n}\n}\n";
    assert_eq!(sizes(&part(mean).results[0]).rows[0].mean, ns(3880));
    assert!(why(&mean.replace("128993.46", "1.00")).contains("names no unit"));
    let whole = mean.replace("Send", "Atomic_FETCH_AND_ADD").replace("128993.46", "257986.92");
    assert_eq!(sizes(&part(&whole).results[0]).trip, Trip::Whole);
}

#[test]
fn the_table_behind_a_document_that_is_refused_is_read() {
    let text = format!("{}\n{CLIENT}", VALID.replace("0.035668", "0.000000"));
    let parsed = read(text.as_bytes()).unwrap();
    assert_eq!(parsed.parts.len(), 1);
    assert_eq!(parsed.parts[0].format.id, "perftest");
    assert!(parsed.notes[0].what.contains("names no unit"));
}

#[test]
fn a_clock_that_was_not_measured_is_said() {
    let start = &CLIENT[..CLIENT.find(" 65536 ").unwrap()];
    let text = format!("{start} Can't produce a report\n");
    assert!(why(&text).contains("clock rate"));
}

#[test]
fn a_document_that_is_cut_off_is_refused() {
    assert!(why(&BARE[..BARE.len() - 4]).contains("cut off"));
    assert!(why(&VALID.replace("MsgSize", "Size")).contains("MsgSize"));
    assert!(why(&VALID.replace("2229.27", "inf")).contains("names no unit"));
}

/// A table of times, and one of rates, without their titles.
const TIMES: &str = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n 2       1000          1.26           6.29         1.28     \t       1.31\n";
const RATES: &str = "#bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n1024       1000             0.00               **5544.28**\t\t   5.677340\n";

#[test]
fn a_title_needs_no_line_of_dashes() {
    let whole = part(GBITS);
    let (_, titled) = GBITS.split_once('\n').unwrap();
    assert_eq!(part(titled).results[0].measured, whole.results[0].measured);
    let no_dashes: Vec<&str> = GBITS.lines().filter(|l| !l.starts_with("---")).collect();
    let no_dashes = part(&no_dashes.join("\n"));
    assert_eq!(no_dashes.results[0].measured, whole.results[0].measured);
    assert!(notes(&no_dashes, "ends the table"));
    for title in ["RDMA_Read Latency Test", "Send Latency Test"] {
        let part = part(&format!("                    {title}\n{TIMES}"));
        assert_eq!(part.results[0].title, title);
        assert_ne!(sizes(&part.results[0]).trip, Trip::Unknown);
    }
    // A heading in prose is not a title.
    let prose = read(format!("Send BW Test\nsee below\n{}{GBITS}", "\n".repeat(50)).as_bytes());
    assert_eq!(prose.unwrap().parts.len(), 1);
}

#[test]
fn a_table_without_a_title_has_no_operation() {
    for text in [TIMES.to_owned(), TIMES.replace('#', ""), TIMES.replace(" #", "")] {
        let part = part(&text);
        let sizes = sizes(&part.results[0]);
        assert_eq!((sizes.operation.as_str(), sizes.trip), ("", Trip::Unknown));
        assert_eq!(sizes.rows[0].typical, ns(1280));
        assert!(notes(&part, "round trip or its half"));
    }
    let both = format!("Case1:\n{RATES}\nCase2:\n{RATES}\nWhat is the cause?\n");
    let parsed = read(both.as_bytes()).unwrap();
    assert_eq!(parsed.parts.len(), 2);
    for part in &parsed.parts {
        let row = sizes(&part.results[0]).rows[0];
        let rate = (5_544.28 * 8.0 * 1_048_576.0_f64).round() as u64;
        assert_eq!((row.rate, row.messages), (bits(rate), Some(5_677_340.0)));
        assert!(notes(part, "without its title") && !notes(part, "not understood"));
    }
    let other = TIMES.replace("#iterations", "#repetitions");
    assert!(read(other.as_bytes()).is_err());
}

#[test]
fn the_command_says_the_operation_of_a_table() {
    let read = part(&format!("$ ib_read_lat host\n{TIMES}"));
    let read = sizes(&read.results[0]);
    assert_eq!((read.operation.as_str(), read.trip), ("RDMA read", Trip::Whole));
    let sent = part(&format!("$ ib_send_bw host\n{RATES}"));
    assert_eq!(transfer(&sent.results[0]).direction, Direction::Forward);
    // The command belongs to another test than the table.
    let other = part(&format!("$ ib_send_bw host\n{TIMES}"));
    assert_eq!(sizes(&other.results[0]).operation, "");
}

#[test]
fn settings_of_new_versions_are_known() {
    let lines = " PCIe relax order: ON\n ibv_wr* API     : ON\n Using Enhanced Reorder      : OFF\n GID index: 3\n";
    let text = GBITS.replace(" TX depth", &format!("{lines} TX depth"));
    assert_eq!(part(&text).notes, part(GBITS).notes);
    let text = GBITS.replace(" TX depth", " Tea depth: 3\n TX depth");
    assert!(notes(&part(&text), "not understood: `Tea depth: 3`"));
}

#[test]
fn prose_behind_the_table_is_no_part_of_it() {
    let text = format!("{GBITS}```\nMy question is : why?\nIt is slow.\n");
    let parsed = read(text.as_bytes()).unwrap();
    assert_eq!(parsed.parts[0].notes, part(GBITS).notes);
    assert_eq!(parsed.notes.len(), 2);
}

#[test]
fn tables_without_heads_belong_to_the_commands_before_them() {
    let rule = "-".repeat(87);
    let head = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]";
    let row = |messages: u64, rate: &str, many: &str| {
        format!(" 8192       {messages}           0.00               {rate}              {many}")
    };
    let table = |row: &str| format!("{rule}\n{head}\n{row}\n{rule}\n");
    let (short, long) = (row(300, "18.10", "0.276184"), row(700_000, "96.60", "1.474000"));
    for wrapper in ["", "taskset -c 3 ", "sudo numactl -N 0 ", "env A=b /usr/bin/"] {
        let command =
            format!("# {wrapper}ib_write_bw -d mlx5_9 -s 8192 -q 2 --report_gbits 192.0.2.1");
        for text in [
            format!("{command}\n{}\n{command}\n{}", table(&short), table(&long)),
            format!("{command} | tail -2\n{short}\n{rule}\n{command} | tail -2\n{long}\n{rule}\n"),
        ] {
            let parsed = read(text.as_bytes()).unwrap();
            assert_eq!(parsed.parts.len(), 2, "{text}");
            for (part, (messages, rate)) in
                parsed.parts.iter().zip([(300, 18_100_000_000), (700_000, 96_600_000_000)])
            {
                let one = transfer(&part.results[0]);
                assert_eq!(part.results[0].title, "ib_write_bw", "{text}");
                assert_eq!((one.goodput, one.direction), (Rate(rate), Direction::Forward));
                assert_eq!((one.streams, one.setup.messages), (Some(2), Some(messages)));
                assert!(
                    !notes(part, "direction are unknown") && !notes(part, "not understood"),
                    "{:?}",
                    part.notes
                );
            }
        }
    }
    // A test of both directions gives a table, whose rate is the sum. Without a command the kind of test is unknown.
    let both = part(&format!("$ ib_write_bw -b host\n{}", table(&long)));
    assert!(sizes(&both.results[0]).both);
    assert!(notes(&part(&format!("{long}\n")), "direction are unknown"));
    // A line whose figures do not agree is not a row.
    assert!(read(long.replace("96.60", "95.60").as_bytes()).is_err());
}

#[test]
fn settings_of_the_test_are_kept() {
    let one = part(GBITS);
    let setup = &transfer(&one.results[0]).setup;
    assert!(setup.mtu.is_some() && setup.layer.is_some(), "{setup:?}");
    assert_eq!(setup.queues, Some(1));
}
