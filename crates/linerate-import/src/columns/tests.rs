use linerate_record::reported::{Access, Carrier, Does, Trip};
use linerate_units::{Bytes, Rate};

use crate::read;
use crate::sample::{bits, disk, notes, ns, part, row, sizes, transfer, why};

const SWEEP: &str = include_str!("../../tests/samples/columns/iperf3-ipoib-sweep.txt");
const GA620T: &str = include_str!("../../tests/samples/columns/ga620t-sockets.txt");
const GA620T_MPICH: &str = include_str!("../../tests/samples/columns/ga620t-mpich.txt");
const GE1000TC: &str = include_str!("../../tests/samples/columns/ge1000tc-sockets.txt");
const GE1000TC_MPICH: &str = include_str!("../../tests/samples/columns/ge1000tc-mpich.txt");
const SOCKPERF_TCP: &str = include_str!("../../tests/samples/columns/sockperf-tcp.txt");
const SOCKPERF_UDP: &str = include_str!("../../tests/samples/columns/sockperf-udp.txt");

#[test]
fn streams_and_a_rate_are_transfers() {
    let part = part(SWEEP);
    let rates: Vec<(Option<u32>, Rate)> =
        part.results.iter().map(transfer).map(|moved| (moved.streams, moved.goodput)).collect();
    assert_eq!(rates.len(), 6);
    assert_eq!(rates[0], (Some(1), Rate(3_730_000_000)));
    assert_eq!(rates[5], (Some(12), Rate(12_600_000_000)));
    assert_eq!(part.results[1].line, 3);
    assert_eq!(transfer(&part.results[0]).carrier, Carrier::Tcp);
    assert!(notes(&part, "protocol"));
}

#[test]
fn words_counts_and_seconds_are_a_ping_pong() {
    for (text, mean, rate) in [
        (GA620T, 236_169, 541_984),
        (GA620T_MPICH, 294_345, 434_864),
        (GE1000TC, 400_037, 319_968),
        (GE1000TC_MPICH, 424_069, 301_840),
    ] {
        let part = part(text);
        let table = sizes(&part.results[0]);
        assert_eq!((table.trip, table.both), (Trip::Whole, true));
        assert_eq!((table.operation.as_str(), table.rows.len()), ("ping-pong", 12));
        let mut expected = row(8);
        expected.samples = Some(2000);
        // The published time has half nanoseconds, which may be rounded either way.
        expected.mean = ns(mean);
        expected.rate = bits(rate);
        let got = table.rows[0];
        assert_eq!(
            (got.size, got.samples, got.rate),
            (expected.size, expected.samples, expected.rate)
        );
        assert!(got.mean.unwrap().0.abs_diff(mean) <= 1, "{got:?}");
        assert_eq!(table.rows[11].size, Bytes(65_535 * 8 + 8));
        assert_eq!(part.notes, []);
    }
}

#[test]
fn averages_of_sockperf_are_halves() {
    for (text, mean, deviation) in [(SOCKPERF_TCP, 10_509, 1185), (SOCKPERF_UDP, 9133, 1226)] {
        let part = part(text);
        let table = sizes(&part.results[0]);
        assert_eq!((table.trip, table.rows.len()), (Trip::Half, 7));
        let row = table.rows[0];
        assert_eq!((row.size, row.mean, row.deviation), (Bytes(16), ns(mean), ns(deviation)));
        assert_eq!(table.rows[6].size, Bytes(65_506));
        assert!(notes(&part, "sockperf"));
    }
}

#[test]
fn small_letters_are_proven_or_refused() {
    // Without a column of seconds nothing proves whether `mb` are bits or bytes.
    assert!(why("bytes,mb_per_s\n8,1.5\n").contains("`mb_per_s` does not say bits or bytes"));
    let bits_instead = GA620T.replace("0.067748", "0.541984");
    assert!(why(&bits_instead).contains("prove neither"));
    assert_eq!(sizes(&part("bytes,Mb/s\n8,1.5\n").results[0]).rows[0].rate, bits(1_500_000));
    assert_eq!(sizes(&part("bytes,MB/s\n8,1.5\n").results[0]).rows[0].rate, bits(12_000_000));
}

#[test]
fn words_count_and_seconds_are_known_by_any_name() {
    let rows = GE1000TC.split_once('\n').unwrap().1;
    for names in [
        "words,count,seconds,MB/s",
        "words,count,seconds,mb_per_s",
        "size,count,seconds,MB/s",
        "size,count,wall clock time,MB/s",
        "size,iterations,time,rate (MB/s)",
        "words,n,elapsed,MB/s",
    ] {
        let part = part(&format!("{names}\n{rows}"));
        let table = sizes(&part.results[0]);
        assert_eq!((table.rows[0].size, table.trip), (Bytes(8), Trip::Whole), "{names}");
        assert!(table.rows[0].mean.unwrap().0.abs_diff(400_037) <= 1, "{names}");
        assert_eq!(table.rows[0].rate, bits(319_968), "{names}");
    }
    // A rate of one direction, in bytes.
    let bytes = part("size,count,time,MB/s\n1000,10,1.0,0.01\n2000,10,1.0,0.02\n");
    assert_eq!(sizes(&bytes.results[0]).rows[1].size, Bytes(2000));
    assert!(!sizes(&bytes.results[0]).both);
    assert!(why("size,count,time,MB/s\n1000,10,1.0,0.013\n").contains("prove none"));
}

#[test]
fn units_of_rates() {
    for (name, expected) in [
        ("gbit_per_s", 2_000_000_000),
        ("Mbit/s", 2_000_000),
        ("rate (Mbps)", 2_000_000),
        ("MiB/s", 16_777_216),
        ("throughput_MB_per_s", 16_000_000),
        ("bw [Gb/s]", 2_000_000_000),
        ("GBps", 16_000_000_000),
        ("KiB/s", 16_384),
        ("bits/s", 2),
        ("Bytes/s", 16),
    ] {
        let part = part(&format!("size,{name}\n64,2\n"));
        assert_eq!(sizes(&part.results[0]).rows[0].rate, bits(expected), "{name}");
    }
}

#[test]
fn units_of_times_and_which_time_it_is() {
    let text =
        "size;min_us;avg_us;median [us];max (ms);p99_ns;p99.9 us;stdev (usec)\n64;1;2;3;4;5;6;7\n";
    let part = part(text);
    let row = sizes(&part.results[0]).rows[0];
    assert_eq!((row.least, row.mean, row.typical), (ns(1000), ns(2000), ns(3000)));
    assert_eq!((row.most, row.p99, row.p999), (ns(4_000_000), ns(5), ns(6000)));
    assert_eq!(row.deviation, ns(7000));
    assert_eq!(part.notes, []);
}

#[test]
fn a_column_without_a_unit_is_refused() {
    assert!(why("size,latency\n64,1.5\n").contains("`latency` does not say its unit of time"));
    assert!(why("size,bandwidth\n64,1.5\n").contains("`bandwidth` does not say its unit"));
    assert!(why("size,avg\n64,1.5\n").contains("`avg`"));
    assert!(why("size_KB,time_us\n64,1.5\n").contains("1000 or by 1024"));
}

#[test]
fn sizes_and_what_a_time_is() {
    for (text, size, trip) in [
        ("words,rtt_us\n2,1\n", 16, Trip::Whole),
        ("size_kib\tone way us\n2\t1\n", 2048, Trip::Half),
        ("message size (bytes),time (us)\n2,1\n", 2, Trip::Unknown),
        ("bytes  time_us\n64k  1\n", 65_536, Trip::Unknown),
        ("bytes time_us\n16   1\n", 16, Trip::Unknown),
    ] {
        let part = part(text);
        let table = sizes(&part.results[0]);
        assert_eq!((table.rows[0].size, table.trip), (Bytes(size), trip), "{text}");
    }
    assert!(notes(&part("bytes,time_us\n16,1\n"), "read as the mean"));
}

#[test]
fn a_decimal_comma_needs_semicolons() {
    let part = part("bytes;Mbit/s\r\n64;3,73\r\n128;1.234,5\r\n");
    assert_eq!(sizes(&part.results[0]).rows[0].rate, bits(3_730_000));
    assert!(notes(&part, "decimal commas"));
    assert!(notes(&part, "1.234,5"));
    assert!(why("bytes\tMbit/s\n64\t3,73\n").contains("no row"));
}

#[test]
fn operations_and_rates_are_of_a_disk() {
    let part = part("operation,MB/s\ncopy,110.5\nread,500\nrandom write,20\nerase,1\n");
    let rows = &disk(&part.results[0]).rows;
    let kinds: Vec<_> = rows.iter().map(|row| (row.access, row.does)).collect();
    assert_eq!(
        kinds,
        [
            (Access::Copy, Does::Mix),
            (Access::Sequential, Does::Read),
            (Access::Random, Does::Write)
        ]
    );
    assert!((rows[0].bytes_per_sec - 110.5e6).abs() < 1.0);
    assert!(notes(&part, "erase"));
    let part = crate::sample::part("direction;MiB/s\nread;1\n");
    assert!((disk(&part.results[0]).rows[0].bytes_per_sec - 1_048_576.0).abs() < 1.0);
}

#[test]
fn counts_and_messages() {
    let part = part("bytes,iterations,latency_us,msg/s\n64,1000,2,500000\n");
    let row = sizes(&part.results[0]).rows[0];
    assert_eq!((row.samples, row.mean, row.messages), (Some(1000), ns(2000), Some(500_000.0)));
    let part = crate::sample::part("bytes,count,total_s\n64,1000,2\n");
    assert_eq!(sizes(&part.results[0]).rows[0].mean, ns(2_000_000));
}

#[test]
fn rows_that_do_not_fit_are_said() {
    let part = part("bytes,time_us,color\n64,1,red\n128,2\n256,x,red\n512,4,red\n");
    assert_eq!(sizes(&part.results[0]).rows.len(), 2);
    assert!(notes(&part, "`color` is passed over"));
    assert_eq!(part.notes.iter().filter(|note| note.what.contains("not understood")).count(), 2);
}

#[test]
fn prose_and_other_tables_are_no_table() {
    for text in [
        "The size, and the time\n1, 2\n",
        "bytes,time_us\n",
        "bytes,time_us\nx,y\n",
        "name,time_us\n1,2\n",
        "total time in us\n1 2 3 4\n",
        "packet, txTime(sec), rxTime(sec)\n0, 1, 2\n",
    ] {
        assert!(read(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn the_number_of_rows_is_bounded() {
    let rows = "64,1.5\n".repeat(100_001);
    let part = part(&format!("bytes,time_us\n{rows}"));
    assert_eq!(sizes(&part.results[0]).rows.len(), 100_000);
    assert!(notes(&part, "left out"));
}

/// A table of round trips of 2 kB and 4 kB: seconds of 1000 of them, and a rate that counts both directions.
fn pingpong(header: &str, scale: f64) -> String {
    let row = |bytes: f64, seconds: f64| {
        let rate = bytes * 1000.0 * 2.0 / seconds / 1e6;
        format!("{bytes},1000,{},{rate:.4}\n", seconds * scale)
    };
    format!("{header}\n{}{}", row(2048.0, 0.1), row(4096.0, 0.16))
}

#[test]
fn the_rate_and_the_count_have_many_names() {
    for header in [
        "bytes,count,seconds,MB/s",
        "bytes,count,seconds,MB_s",
        "bytes,repeats,seconds,MB_s",
        "bytes,round_trips,s,MB_sec",
        "bytes,loops,elapsed_s,MBps",
        "bytes,number,seconds,MB/s",
    ] {
        let part = part(&pingpong(header, 1.0));
        let row = sizes(&part.results[0]).rows[0];
        assert_eq!((row.mean, row.rate), (ns(100_000), bits(327_680_000)), "{header}");
    }
}

#[test]
fn a_time_of_many_messages_is_not_that_of_one() {
    // The times are in milliseconds, and a column with the count proves it.
    let part_of = |text: &str| part(text);
    let one = part_of(&pingpong("bytes,count,ms,MB/s", 1e3));
    assert_eq!(sizes(&one.results[0]).rows[1].mean, ns(160_000));
    assert!(notes(&one, "prove it"));
    // The column with the count has an unknown name.
    let none = part_of(&pingpong("bytes,zzz,seconds,MB/s", 1.0));
    assert_eq!(sizes(&none.results[0]).rows[0].mean, None);
    assert!(notes(&none, "times are left out"));
    // The rate follows from the time of one message.
    let each = part_of("bytes,count,us,MB/s\n2048,1000,100,20.48\n4096,1000,160,25.6\n");
    assert_eq!(sizes(&each.results[0]).rows[0].mean, ns(100_000));
}

#[test]
fn each_of_several_times_is_a_table() {
    let part = part("size,read_us,write_us\n2,2.3,1.2\n4,2.4,1.3\n");
    let tables: Vec<_> = part.results.iter().map(sizes).collect();
    let means: Vec<_> = tables.iter().map(|table| table.rows[1].mean).collect();
    assert_eq!(means, [ns(2_400), ns(1_300)]);
    assert_eq!(
        (tables[0].operation.as_str(), tables[1].operation.as_str()),
        ("read_us", "write_us")
    );
    // A mean and a maximum belong to one table.
    let one = crate::sample::part("size,avg_us,max_us\n2,2.3,9.2\n4,2.4,9.3\n");
    assert_eq!(one.results.len(), 1);
}
