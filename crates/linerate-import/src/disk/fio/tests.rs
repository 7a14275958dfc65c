//! Each difficulty of fio's outputs has a test here.

use linerate_record::reported::{Access, DiskRow, Does};

use super::super::helper::{disks, notes, rate};
use crate::{Parsed, read};

const CELLS: &str = include_str!("../../../tests/samples/fio-json/cells-3.33.json");
const INTERVAL: &str = include_str!("../../../tests/samples/fio-json/interval-3.33.txt");
const RAMP: &str = include_str!("../../../tests/samples/fio-json/ramp-3.33.json");
const SINGLE: &str = include_str!("../../../tests/samples/fio-json/single-3.42.json");
const STEADY: &str = include_str!("../../../tests/samples/fio-json/steady-3.33.txt");
const TEXT: &str = include_str!("../../../tests/samples/fio-text/cells-3.33.txt");

fn parsed(text: &str) -> Parsed {
    read(text.as_bytes()).unwrap()
}

fn only_row(parsed: &Parsed) -> &DiskRow {
    let disks = disks(parsed);
    assert_eq!((disks.len(), disks[0].rows.len()), (1, 1));
    &disks[0].rows[0]
}

/// A document with one random read job.
fn document(version: &str, options: &str, read: &str) -> String {
    format!(
        r#"{{"fio version": "{version}", "global options": {{}}, "jobs": [{{"jobname": "j", "groupid": 0,
        "error": 0, "job options": {{{options}}}, "read": {{{read}}}}}]}}"#
    )
}

const WAY: &str = r#""io_bytes": 4096000, "io_kbytes": 4000, "bw_bytes": 4096000, "bw": 4000, "iops": 1000.0,
    "runtime": 1000, "total_ios": 1000, "slat_ns": {"min": 1, "max": 9, "mean": 5.0, "N": 1000},
    "lat_ns": {"min": 90, "max": 5000000, "mean": 4000000.0, "N": 1000}"#;

#[test]
fn a_rate_is_bytes_and_bw_alone_is_kib() {
    let row = |text: &str| rate(only_row(&parsed(text)));
    let options = r#""rw": "randread", "bs": "4k", "ioengine": "libaio", "iodepth": "4""#;
    let three = document("fio-3.33", options, WAY);
    assert_eq!(row(&three), 4_096_000);
    let two = three.replace(r#""bw_bytes": 4096000, "#, "");
    assert_eq!(row(&two), 4000 * 1024);
}

#[test]
fn bw_of_the_steady_state_is_no_rate_of_the_job() {
    let row = parsed(STEADY);
    assert_eq!(rate(only_row(&row)), 66_792_596);
}

#[test]
fn io_bytes_of_old_versions_are_kib() {
    let options = r#""rw": "read", "ioengine": "psync""#;
    let block =
        |way: &str| only_row(&parsed(&document("fio-2.15", options, way))).block.map(|b| b.0);
    let old =
        r#""io_bytes": 2552320, "bw": 153412, "iops": 299.6, "runtime": 16637, "total_ios": 4985"#;
    assert_eq!(block(old), Some(524_288));
    let new = r#""io_bytes": 524288, "io_kbytes": 512, "bw": 512, "iops": 1.0, "runtime": 1000, "total_ios": 1"#;
    assert_eq!(block(new), Some(524_288));
}

#[test]
fn percentiles_are_within_the_range_and_have_samples() {
    let way = |count: u32, value: u32| {
        let clat = format!(
            r#", "clat_ns": {{"min": 100, "max": 5000, "mean": 900.0, "N": {count},
            "percentile": {{"50.000000": 20, "99.000000": {value}, "99.900000": {value}}}}}"#
        );
        let text = document("fio-3.33", r#""rw": "randread""#, &format!("{WAY}{clat}"));
        let parsed = parsed(&text);
        let row = only_row(&parsed);
        [row.typical, row.p99, row.p999].map(|time| time.map(|time| time.0))
    };
    assert_eq!(way(1000, 4999), [Some(100), Some(4999), Some(4999)]);
    assert_eq!(way(1000, 5001), [Some(100), Some(5000), Some(5000)]);
    assert_eq!(way(999, 4000), [Some(100), Some(4000), None]);
    assert_eq!(way(100, 4000), [Some(100), Some(4000), None]);
    assert_eq!(way(99, 4000), [Some(100), None, None]);
}

#[test]
fn a_depth_is_doubted_where_more_operations_were_in_flight() {
    let depth = |requested: u32| {
        let options =
            format!(r#""rw": "randread", "ioengine": "libaio", "iodepth": "{requested}""#);
        let text = document("fio-3.33", &options, WAY);
        let parsed = parsed(&text);
        let row = only_row(&parsed);
        (row.depth, row.threads, notes(&parsed).contains("more than"))
    };
    // 1000 operations per second of 4 ms each are 4 in flight.
    assert_eq!(depth(4), (Some(4), Some(1), false));
    assert_eq!(depth(3), (None, None, true));
}

#[test]
fn a_synchronous_engine_has_a_depth_of_one() {
    let way = WAY.replace("4000000.0", "1000000.0");
    let depth = |options: &str, way: &str| {
        let options = format!(r#""rw": "randread", "iodepth": "8"{options}"#);
        only_row(&parsed(&document("fio-3.33", &options, way))).depth
    };
    assert_eq!(depth(r#", "ioengine": "psync""#, &way), Some(1));
    assert_eq!(depth(r#", "ioengine": "io_uring""#, &way), Some(8));
    assert_eq!(depth("", &way), Some(8));
    // The output has no time to submit, so the engine is synchronous.
    assert_eq!(
        depth("", &way.replace(r#""max": 9, "mean": 5.0, "N": 1000"#, r#""max": 0, "N": 0"#)),
        Some(1)
    );
}

#[test]
fn a_missing_direct_is_unknown_before_all_options_are_listed() {
    let direct = |version: &str, options: &str| {
        let parsed = parsed(&document(version, options, WAY));
        disks(&parsed)[0].direct
    };
    assert_eq!(direct("fio-3.41", r#""rw": "randread""#), None);
    assert_eq!(direct("fio-3.42", r#""rw": "randread""#), Some(false));
    assert_eq!(direct("fio-3.42", r#""direct": """#), Some(true));
    assert_eq!(direct("fio-2.1", r#""direct": "1""#), Some(true));
    assert_eq!(direct("fio-2.1", r#""buffered": "0""#), Some(true));
    assert_eq!(direct("fio-2.1", r#""direct": "0""#), Some(false));
}

#[test]
fn bytes_at_the_disk_are_those_of_one_job_without_a_ramp() {
    assert_eq!(only_row(&parsed(SINGLE)).at_disk.map(|b| b.0), Some(433_472 * 512));
    let ramp = SINGLE.replacen(r#""runtime" : "1""#, r#""runtime" : "1", "ramp_time" : "1""#, 1);
    assert_ne!(ramp, SINGLE);
    assert_eq!(only_row(&parsed(&ramp)).at_disk, None);
    // fio before 3.36 does not report sectors.
    assert_eq!(only_row(&parsed(RAMP)).at_disk, None);
}

#[test]
fn interim_reports_are_left_out_and_another_run_is_not() {
    let one = parsed(INTERVAL);
    assert_eq!((one.parts.len(), disks(&one).len()), (1, 1));
    assert!(notes(&one).contains("2 interim reports"));
    let twice = format!("{SINGLE}\n{SINGLE}");
    assert_eq!(parsed(&twice).parts.len(), 2);
}

#[test]
fn a_document_that_is_cut_has_its_whole_jobs() {
    let whole = CELLS.find(r#""jobname" : "mix""#).unwrap();
    let cut = parsed(&CELLS[..whole]);
    assert_eq!(disks(&cut).len(), 2);
    assert!(notes(&cut).contains("the end of the document is missing"));
    let first = CELLS.find(r#""write""#).unwrap();
    let none = read(&CELLS.as_bytes()[..first]).unwrap_err().to_string();
    assert!(none.contains("the end of the document is missing"), "{none}");
}

#[test]
fn text_behind_a_document_is_read_too() {
    let both = parsed(&format!("{SINGLE}\nsome words\n{TEXT}"));
    let ids: Vec<&str> = both.parts.iter().map(|part| part.format.id).collect();
    assert_eq!(ids, ["fio-json", "fio-text"]);
    assert!(notes(&both).contains("not understood: `some words`"));
}

#[test]
fn two_runs_in_one_text_are_two() {
    let both = parsed(&format!("{TEXT}{TEXT}"));
    assert_eq!(both.parts.len(), 2);
    assert_eq!(disks(&both).len(), 6);
    assert_eq!(both.parts[1].line, 1 + TEXT.lines().count() as u64);
}

#[test]
fn a_command_says_whether_the_cache_was_bypassed() {
    let direct = |command: &str| {
        let parsed = parsed(&format!("$ {command}\n{TEXT}"));
        disks(&parsed)[0].direct
    };
    assert_eq!(direct("fio --name=a --rw=read --direct=1"), Some(true));
    assert_eq!(direct("sudo fio -name=a -rw=read"), Some(false));
    assert_eq!(direct("fio cells.fio"), None);
}

#[test]
fn text_of_fio_1_and_2_has_kib() {
    let text = "old: (g=0): rw=randwrite, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=32\nfio-2.2.10\n\
        Starting 1 process\n\nold: (groupid=0, jobs=1): err= 0: pid=560: Mon Jul  1 22:14:42 2019\n  \
        write: io=241236KB, bw=24035KB/s, iops=6008, runt= 10037msec\n    \
        slat (usec): min=2, max=1203.4K, avg=151.81, stdev=6476.99\n    \
        clat (usec): min=1, max=38109, avg= 5.93, stdev=228.12\n     \
        lat (usec): min=4, max=1203.4K, avg=157.74, stdev=6481.01\n    \
        clat percentiles (usec):\n     |  1.00th=[    1],  5.00th=[    1], 50.00th=[    2],\n     \
        | 99.00th=[    3], 99.50th=[   15], 99.90th=[  125], 99.95th=[ 1144],\n";
    let parsed = parsed(text);
    let row = only_row(&parsed);
    assert_eq!((row.access, row.does), (Access::Random, Does::Write));
    assert_eq!(rate(row), 24_035 * 1024);
    assert_eq!(row.block.map(|b| b.0), Some(4096));
    assert_eq!((row.depth, row.threads), (Some(32), Some(1)));
    assert_eq!(row.operations, Some(6008.0));
    assert_eq!(row.mean.map(|t| t.0), Some(157_740));
    assert_eq!(row.most.map(|t| t.0), Some(1_203_400_000));
    assert_eq!(row.p999.map(|t| t.0), Some(125_000));
    assert_eq!(row.seconds, Some(10.037));
}

#[test]
fn results_without_their_description_have_no_order_of_places() {
    let from = TEXT.find("seq: (groupid").unwrap();
    let cut = parsed(&TEXT[from..]);
    let row = &disks(&cut)[0].rows[0];
    assert_eq!(
        (row.access, row.does, row.block, row.depth),
        (Access::Unknown, Does::Read, None, None)
    );
    assert_eq!((rate(row), row.threads), (858 << 20, Some(1)));
    assert!(notes(&cut).contains("the line with its options is missing"));
    let banner = read(&TEXT.as_bytes()[..from]).unwrap_err().to_string();
    assert!(banner.contains("only the banner"), "{banner}");
}

#[test]
fn a_command_has_what_the_missing_description_would() {
    let from = ONE_OF_FOUR.find("  write:").unwrap();
    let with = |command: &str| {
        let all = parsed(&format!("$ {command}\n{}", &ONE_OF_FOUR[from..]));
        (disks(&all)[0].clone(), only_row(&all).clone())
    };
    let (disk, row) = with(
        "sudo fio --name=a --rw=randwrite --bs=64k --ioengine=libaio --iodepth=8 --direct=1 --filename=/dev/sdx",
    );
    assert_eq!(
        (row.access, row.block.map(|b| b.0), row.depth, row.threads),
        (Access::Random, Some(65_536), Some(8), Some(1))
    );
    assert_eq!(
        (disk.direct, disk.target.as_str(), disk.engine.as_str()),
        (Some(true), "/dev/sdx", "libaio")
    );
    assert_eq!(row.flushed, Some(0.0));
    let (_, spaced) = with("fio --name a --rw randwrite --bs 64k --fdatasync 4 --numjobs 4");
    assert_eq!((spaced.access, spaced.flushed, spaced.threads), (Access::Random, Some(0.25), None));
    let (_, file) = with("fio job.fio");
    assert_eq!((file.access, file.flushed), (Access::Unknown, None));
}

#[test]
fn times_to_submit_and_to_flush_are_read_in_both_forms() {
    let sync = r#""lat_ns": {"min": 1, "max": 9000000, "mean": 4200000.0, "N": 500}"#;
    let text = document("fio-3.33", r#""rw": "randwrite", "bs": "4k""#, "").replace(
        r#""read": {}"#,
        &format!(r#""write": {{{WAY}}}, "sync": {{"total_ios": 0, {sync}}}"#),
    );
    let json = parsed(&text);
    let row = only_row(&json);
    assert_eq!((row.submit.map(|t| t.0), row.flush.map(|t| t.0)), (Some(5), Some(4_200_000)));
    assert_eq!(row.flushed, Some(0.5));
    let cells = parsed(TEXT);
    assert_eq!(disks(&cells)[0].rows[0].submit.map(|t| t.0), Some(52_900));
}

#[test]
fn other_json_is_not_read() {
    for text in [r#"{"version": 1, "fio version": "x"}"#, "{", r#"{"jobs": []}"#] {
        assert!(
            read(text.as_bytes()).unwrap_err().to_string().contains("no output of a known program")
        );
    }
}

#[test]
fn the_command_has_the_options_of_old_versions() {
    let old = include_str!("../../../tests/samples/fio-json/single-2.2.10.json");
    let with = |command: &str| read(format!("$ {command}\n{old}").as_bytes());
    let one =
        with("fio --name=old --rw=read --direct=1 --ioengine=psync --output-format=json").unwrap();
    let row = only_row(&one);
    assert_eq!((row.access, rate(row), row.depth), (Access::Sequential, 910_222 * 1024, Some(1)));
    assert_eq!(row.block.map(|b| b.0), Some(65_536));
    assert_eq!(disks(&one)[0].direct, Some(true));
    let two = with("fio --name=old --rw=read --name=new --rw=write");
    assert!(two.unwrap_err().to_string().contains("order of the places"));
}

#[test]
fn the_sum_over_clients_of_one_job_is_read() {
    let client = |name: &str, group: u32, host: &str, options: &str| {
        format!(
            r#"{{"jobname": "{name}", "groupid": {group}, "error": 0, "hostname": "{host}", {options} "read": {{{WAY}}}}}"#
        )
    };
    let options = r#""job options": {"rw": "randread", "ioengine": "libaio", "iodepth": "4"},"#;
    let text = |group: u32| {
        let all = [
            client("j", 0, "a", options),
            client("j", group, "b", options),
            client("All clients", 0, "", "").replace("1000.0", "2000.0"),
        ];
        format!(r#"{{"fio version": "fio-3.33", "client_stats": [{}]}}"#, all.join(","))
    };
    let same = parsed(&text(0));
    let depths: Vec<_> = disks(&same).iter().map(|disk| disk.rows[0].depth).collect();
    assert_eq!(depths, [Some(4), Some(4), None]);
    assert_eq!(same.parts[0].results[1].title, "j at b");
    let others = parsed(&text(1));
    assert_eq!(disks(&others).len(), 2);
    assert!(notes(&others).contains("the sum over all clients is left out"));
}

/// Published output of fio 3.35 and 3.33, with names changed.
const CONTRADICTION: &str = "four: (g=0): rw=write, bs=(R) 16.0KiB-16.0KiB, (W) 16.0KiB-16.0KiB, (T) 16.0KiB-16.0KiB, ioengine=libaio, iodepth=64
...
fio-3.35
Starting 40 threads
four: (groupid=0, jobs=40): err= 0: pid=562556: Mon Nov  6 04:07:30 2023
  Description  : [Test profile]
  write: IOPS=29, BW=986KiB/s (1010kB/s)(76.1MiB/79037msec); 0 zone resets
     lat (msec): min=63, max=94396, avg=41197.21, stdev=21078.47
";
const ONE_OF_FOUR: &str = "reads: (g=0): rw=randwrite, bs=(R) 64.0KiB-64.0KiB, (W) 64.0KiB-64.0KiB, (T) 64.0KiB-64.0KiB, ioengine=libaio, iodepth=4
...
fio-3.33
Starting 4 processes
reads: (groupid=0, jobs=1): err= 0: pid=317066: Mon Mar  4 23:42:38 2024
  write: IOPS=188, BW=11.8MiB/s (12.4MB/s)(708MiB/60003msec); 0 zone resets
     lat (usec): min=8381, max=66714, avg=21167.86, stdev=8075.75
";

#[test]
fn operations_that_contradict_the_rate_are_left_out() {
    let all = parsed(CONTRADICTION);
    assert_eq!(only_row(&all).operations, None);
    assert!(notes(&all).contains("29 operations/s, and 62 by the rate"), "{}", notes(&all));
    assert!(!notes(&all).contains("not understood"));
    for (operations, is_kept) in [(48, false), (49, true), (61, true), (78, true), (79, false)] {
        let text = CONTRADICTION.replace("IOPS=29", &format!("IOPS={operations}"));
        let kept = only_row(&parsed(&text)).operations.is_some();
        assert_eq!(kept, is_kept, "{operations}");
    }
}

#[test]
fn jobs_without_results_are_said() {
    assert!(notes(&parsed(ONE_OF_FOUR)).contains("1 of 4 jobs is in the text"));
    let all = ONE_OF_FOUR.replace("Starting 4 processes", "Starting 1 process");
    assert!(!notes(&parsed(&all)).contains("in the text"));
    assert!(!notes(&parsed(CONTRADICTION)).contains("in the text"));
    let two = ONE_OF_FOUR.replace("4 processes", "1 thread and 2 processes");
    assert!(notes(&parsed(&two)).contains("1 of 3 jobs"));
}

#[test]
fn a_description_that_was_wrapped_or_cut_is_read() {
    let whole = parsed(ONE_OF_FOUR);
    let wrapped = ONE_OF_FOUR.replace("KiB, (T)", "KiB,\n(T)");
    let wrapped = parsed(&wrapped);
    assert_eq!(only_row(&wrapped), only_row(&whole));
    assert!(!notes(&wrapped).contains("not understood"));
    let cut = parsed(&ONE_OF_FOUR.replace(", (T) 64.0KiB-64.0KiB, ioengine=libaio, iodepth=4", ""));
    let row = only_row(&cut);
    assert_eq!((row.does, row.depth, row.block), (Does::Write, None, None));
    assert!(notes(&cut).contains("the end of the description of job `reads` is missing"));
}
