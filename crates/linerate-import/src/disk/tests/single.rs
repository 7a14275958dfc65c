//! Difficulties of the programs that have one module each: DiskSpd, dd and others.

use linerate_record::reported::{Access, Does};

use super::helper::{disks, notes, rate};
use crate::read;

const DISKSPD: &str = include_str!("../../../tests/samples/diskspd/2.0.21.txt");
const RUN: &str = "5000+0 records in\n5000+0 records out\n20480000 bytes (20 MB, 20 MiB) copied, 0.5 s, 41 MB/s\n";

fn refused(text: &str) -> String {
    read(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_command_says_which_way_dd_went() {
    let way = |command: &str| {
        let parsed = read(format!("$ {command}\n{RUN}").as_bytes()).unwrap();
        let disk = disks(&parsed)[0];
        let row = &disk.rows[0];
        (row.does, row.access, rate(row), disk.direct, notes(&parsed).contains("wait"))
    };
    let bytes = 40_960_000;
    let sequential = Access::Sequential;
    assert_eq!(
        way("dd if=/dev/zero of=f bs=4k"),
        (Does::Write, sequential, bytes, Some(false), true)
    );
    assert_eq!(
        way("dd if=/dev/zero of=f oflag=direct"),
        (Does::Write, sequential, bytes, Some(true), false)
    );
    assert_eq!(
        way("dd if=/dev/zero of=f conv=fdatasync"),
        (Does::Write, sequential, bytes, Some(false), false)
    );
    assert_eq!(
        way("dd if=f of=/dev/null iflag=direct,x"),
        (Does::Read, sequential, bytes, Some(true), false)
    );
    // `oflag` does not apply to the input, so reads went through the cache.
    assert_eq!(
        way("dd if=f of=/dev/null oflag=direct"),
        (Does::Read, sequential, bytes, Some(false), false)
    );
    assert_eq!(
        way("sudo /bin/dd if=f of=g iflag=direct oflag=direct"),
        (Does::Mix, Access::Copy, bytes, Some(true), false)
    );
    assert_eq!(way("dd if=f of=g"), (Does::Mix, Access::Copy, bytes, Some(false), false));
    let alone = read(RUN.as_bytes()).unwrap();
    let row = &disks(&alone)[0].rows[0];
    assert_eq!((row.access, row.does, rate(row)), (Access::Unknown, Does::Mix, bytes));
    assert!(notes(&alone).contains("the command is missing"));
    assert!(refused(&format!("$ dd if=/dev/zero of=/dev/null\n{RUN}")).contains("no disk"));
}

#[test]
fn flushes_of_dd_are_counted_for_each_write() {
    let flushed = |options: &str| {
        let text = format!("$ dd if=/dev/zero of=f bs=4096 {options}\n{RUN}");
        let parsed = read(text.as_bytes()).unwrap();
        let row = disks(&parsed)[0].rows[0].clone();
        assert_eq!(row.operations, Some(10_000.0));
        row.flushed
    };
    assert_eq!(flushed(""), Some(0.0));
    assert_eq!(flushed("oflag=direct,dsync"), Some(1.0));
    assert_eq!(flushed("conv=fdatasync"), Some(1.0 / 5_000.0));
}

#[test]
fn the_last_lines_of_dd_are_enough() {
    let (_, out) = RUN.split_once('\n').unwrap();
    let (_, last) = out.split_once('\n').unwrap();
    for text in [out, last] {
        let parsed = read(text.as_bytes()).unwrap();
        assert_eq!(
            (parsed.parts.len(), rate(&disks(&parsed)[0].rows[0])),
            (1, 40_960_000),
            "{text}"
        );
        assert!(notes(&parsed).contains("the command is missing"), "{text}");
    }
    let progress = "1234567 bytes (1.2 MB, 1.2 MiB) copied, 0.1 s, 12.3 MB/s\n";
    let with = format!("$ dd if=f of=/dev/null bs=4k status=progress\n{progress}{RUN}");
    let parsed = read(with.as_bytes()).unwrap();
    let row = &disks(&parsed)[0].rows[0];
    assert_eq!((parsed.parts.len(), rate(row), row.does), (1, 40_960_000, Does::Read));
    assert_eq!(read(format!("{RUN}{RUN}").as_bytes()).unwrap().parts.len(), 2);
    assert_eq!(read(format!("{last}{last}").as_bytes()).unwrap().parts.len(), 2);
}

#[test]
fn a_decimal_comma_of_dd_is_understood_and_said() {
    let text = RUN.replace("0.5 s", "0,5 s");
    let parsed = read(format!("$ dd if=f of=/dev/null\n{text}").as_bytes()).unwrap();
    assert_eq!(rate(&disks(&parsed)[0].rows[0]), 40_960_000);
    assert!(notes(&parsed).contains("decimal comma"));
    let german = RUN.replace("bytes (20 MB, 20 MiB) copied", "Bytes (20 MB, 20 MiB) kopiert");
    assert!(refused(&format!("$ dd if=f of=/dev/null\n{german}")).contains("not in English"));
}

#[test]
fn cached_reads_of_hdparm_are_no_result() {
    let cached = "/dev/sda:\n Timing cached reads:   6224 MB in  2.00 seconds = 3113.80 MB/sec\n";
    assert!(refused(cached).contains("memory"));
    let slow = "/dev/sdb:\n Timing buffered disk reads:   2 MB in  4.10 seconds = 500.50 kB/sec\n";
    let parsed = read(slow.as_bytes()).unwrap();
    assert_eq!(rate(&disks(&parsed)[0].rows[0]), 512_512);
    let other = slow.replace("kB/sec", "MB/min");
    assert!(refused(&other).contains("not understood"));
}

#[test]
fn the_ways_of_diskspd_are_told_apart() {
    let parsed = read(DISKSPD.as_bytes()).unwrap();
    let kinds: Vec<Does> = disks(&parsed)[0].rows.iter().map(|row| row.does).collect();
    assert_eq!(kinds, [Does::Mix, Does::Read, Does::Write]);
    let buffered = DISKSPD.replace("software cache disabled", "using software cache");
    assert_eq!(disks(&read(buffered.as_bytes()).unwrap())[0].direct, Some(false));
    let several = DISKSPD.replace("Results for", "timespan:   2\r\nResults for");
    assert!(refused(&several).contains("several timespans"));
    let partly = DISKSPD.replace("using random I/O", "using mixed random/sequential I/O");
    assert!(refused(&partly).contains("order of the places"));
}

#[test]
fn two_runs_of_diskspd_are_two() {
    let parsed = read(format!("{DISKSPD}\r\n{DISKSPD}").as_bytes()).unwrap();
    assert_eq!(disks(&parsed).len(), 2);
}

#[test]
fn robocopy_says_failures_and_threads() {
    let text = "   ROBOCOPY     ::     Robust File Copy for Windows\n\n  Source : C:\\a\\\n    Dest : \\\\host\\b\\\n\n\
        Options : *.* /S /MT:8 /R:1\n\n               Total    Copied   Skipped  Mismatch    FAILED    Extras\n   \
        Files :         9         8         0         0         1         0\n\n   \
        Speed :             1000000 Bytes/sec.\n   Ended : Friday\n";
    let parsed = read(text.as_bytes()).unwrap();
    let disk = disks(&parsed)[0];
    assert_eq!((disk.target.as_str(), rate(&disk.rows[0])), ("\\\\host\\b\\", 1_000_000));
    assert!(notes(&parsed).contains("1 files could not be copied"));
    assert!(notes(&parsed).contains("sums over threads"));
}

#[test]
fn a_run_of_rsync_that_moved_nearly_nothing_is_no_copy() {
    let text = |sent: &str| {
        format!("sent {sent} bytes  received 38 bytes  200.00 bytes/sec\ntotal size is 2,000  x\n")
    };
    assert!(refused(&text("161")).contains("there already"));
    let parsed = read(text("162").as_bytes()).unwrap();
    assert!(notes(&parsed).contains("less than the files have"));
    assert!(refused(&text("30.01M")).contains("rounded"));
    assert!(refused(&text("1,61")).contains("rounded"));
}

#[test]
fn a_damaged_output_does_not_hide_the_next_one() {
    let text = format!("Number of files: 1\n$ dd if=f of=/dev/null\n{RUN}");
    let parsed = read(text.as_bytes()).unwrap();
    assert_eq!((parsed.parts.len(), disks(&parsed).len()), (1, 1));
    assert!(notes(&parsed).contains("its last lines are missing"));
}
