//! Tests from the text about a disk to the headline of its answer.

use linerate_explain::{Answered, Headline, Material, explain};
use linerate_plan::path::Side;
use linerate_record::reported::Source;

use crate::{merge, read};

/// The headline for a text, imported as an output of the near host.
fn headline(text: &str) -> Headline {
    let mut material = Material::default();
    for part in read(text.as_bytes()).unwrap().parts {
        merge(&mut material.near, part.facts);
        material.sources.push(Source {
            file: "a.txt".to_owned(),
            side: Some(Side::Near),
            tool: part.tool,
            results: part.results,
            ..Source::default()
        });
    }
    explain(&material).headline.unwrap()
}

fn limit(text: &str) -> Option<&'static str> {
    headline(text).cause
}

fn fio(command: &str, rw: &str, engine: &str, depth: u32, results: &str) -> String {
    format!(
        "[user@host ~]$ {command}\njob: (g=0): rw={rw}, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine={engine}, \
         iodepth={depth}\nfio-3.35\nStarting 1 process\n\njob: (groupid=0, jobs=1): err= 0: pid=1: Sat Nov 28 10:00:00 2026\n{results}"
    )
}

const FLUSHED: &str = "  write: IOPS=90, BW=360KiB/s (369kB/s)(21.1MiB/60010msec); 0 zone resets
    clat (usec): min=7, max=310, avg=22.10, stdev= 8.00
     lat (usec): min=7, max=311, avg=22.50, stdev= 8.10
    clat percentiles (usec):
     |  1.00th=[   10], 50.00th=[   20], 99.00th=[   40]
  fsync/fdatasync/sync_file_range:
    sync (usec): min=4100, max=90210, avg=11080.31, stdev=4100.00
    sync percentiles (msec):
     |  1.00th=[    5], 50.00th=[   11], 99.00th=[   30]
  cpu          : usr=0.02%, sys=0.10%, ctx=10810, majf=0, minf=12
     issued rwts: total=0,5401,0,5400 short=0,0,0,0 dropped=0,0,0,0
";

#[test]
fn a_flush_after_each_write_is_the_limit() {
    let text = fio("fio --name=job --rw=write --bs=4k --fsync=1", "write", "psync", 1, FLUSHED);
    let found = headline(&text);
    assert_eq!((found.stands, found.cause), (Answered::Limit, Some("disk-sync")));
    assert_eq!(
        found.evidence[0],
        "1/90 = 11.1 ms for a write: the write itself takes 22.5 us, the flush 11.1 ms"
    );
    assert!(found.evidence[1].contains("5400 turns a minute"), "{:?}", found.evidence);
    // Without the command, the counts show that each write was flushed.
    let (_, bare) = text.split_once('\n').unwrap();
    assert_eq!(limit(bare), Some("disk-sync"));
    // Without the times of the flushes, the command shows it.
    let cut = text.split("  fsync/").next().unwrap();
    assert_eq!(limit(cut), Some("disk-sync"));
    // Without command and times, nothing shows that writes were flushed.
    let (_, neither) = cut.split_once('\n').unwrap();
    assert_eq!(limit(neither), None);
}

const SLOW: &str = "  read: IOPS=90, BW=360KiB/s (369kB/s)(21.1MiB/60010msec)
    clat (msec): min=2, max=31, avg=11.05, stdev= 3.00
     lat (msec): min=2, max=31, avg=11.05, stdev= 3.00
";

#[test]
fn the_same_rate_of_slow_reads_is_the_disk() {
    let text = fio("fio --name=job --rw=randread --bs=4k --direct=1", "randread", "psync", 1, SLOW);
    assert_eq!(limit(&text), Some("disk-latency"));
    // First with the command alone, then with the results alone.
    let (command, _) = text.split_once('\n').unwrap();
    assert_eq!(limit(&format!("{command}\n{SLOW}")), Some("disk-latency"));
    assert_eq!(headline(SLOW).stands, Answered::Unknown);
}

#[test]
fn a_depth_that_the_engine_ignores_is_the_limit_and_one_that_is_used_is_not() {
    let quick = SLOW.replace("IOPS=90", "IOPS=9000").replace("BW=360KiB/s", "BW=35.2MiB/s");
    let quick = quick.replace("(msec)", "(usec)").replace("avg=11.05", "avg=110.50");
    let with = |engine: &str, depth: u32, results: &str| {
        let command = format!(
            "fio --name=job --rw=randread --bs=4k --direct=1 --ioengine={engine} --iodepth={depth}"
        );
        headline(&fio(&command, "randread", engine, depth, results))
    };
    for engine in ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"] {
        let found = with(engine, 32, &quick);
        assert_eq!(found.cause, Some("queue-depth"), "{engine}");
        let next = found.next.unwrap();
        assert!(
            next.command
                .as_deref()
                .unwrap_or_default()
                .contains("--ioengine=io_uring --iodepth=64"),
            "{next:?}"
        );
    }
    let used = quick.replace("avg=110.50", "avg=3540.00");
    let found = with("libaio", 32, &used);
    assert_eq!((found.stands, found.cause), (Answered::Unknown, None));
    assert!(found.ruled_out.contains(&"queue-depth"));
}

#[test]
fn submissions_that_take_all_of_the_time_are_the_limit() {
    let results = "  write: IOPS=5200, BW=20.3MiB/s (21.3MB/s)(609MiB/30001msec); 0 zone resets
    slat (usec): min=90, max=9000, avg=188.00, stdev=40.00
    clat (usec): min=2000, max=20000, avg=5900.00, stdev=400.00
     lat (usec): min=2100, max=21000, avg=6088.00, stdev=410.00
";
    let text = fio(
        "fio --name=job --rw=randwrite --bs=4k --ioengine=libaio --iodepth=32",
        "randwrite",
        "libaio",
        32,
        results,
    );
    assert_eq!(limit(&text), Some("disk-submit"));
    assert_ne!(limit(&text.replace("avg=188.00", "avg=4.00")), Some("disk-submit"));
}

#[test]
fn two_runs_of_fio_without_heads_are_two() {
    let text = format!(
        "with the old kernel:\n{SLOW}and with the new one:\n{}",
        SLOW.replace("IOPS=90", "IOPS=91")
    );
    let parsed = read(text.as_bytes()).unwrap();
    let results: usize = parsed.parts.iter().map(|part| part.results.len()).sum();
    assert_eq!(results, 2);
}

#[test]
fn the_sums_of_fio_alone_are_results() {
    let sums = "\nRun status group 0 (all jobs):\n   READ: bw=1501MiB/s (1574MB/s), 1501MiB/s-1501MiB/s (1574MB/s-1574MB/s), io=44.0GiB \
        (47.2GB), run=30001-30002msec\n  WRITE: bw=50.1MiB/s (52.5MB/s), 50.1MiB/s-50.1MiB/s (52.5MB/s-52.5MB/s), io=1503MiB (1576MB), \
        run=30001-30002msec\n\nDisk stats (read/write):\n  nvme0n1: ios=11534336/384768, merge=0/0, ticks=1/2, in_queue=3, util=99.80%\n";
    let parsed = read(sums.as_bytes()).unwrap();
    let disks = super::helper::disks(&parsed);
    let rows = &disks[0].rows;
    assert_eq!((disks.len(), rows.len()), (1, 2));
    assert_eq!((super::helper::rate(&rows[0]), rows[0].seconds), (1501 << 20, Some(30.002)));
    assert!(super::helper::notes(&parsed).contains("only the sums"));
    let old = "Run status group 0 (all jobs):\n  WRITE: io=241236KB, aggrb=24035KB/s, minb=24035KB/s, maxb=24035KB/s, mint=10037msec, \
        maxt=10037msec\n";
    let parsed = read(old.as_bytes()).unwrap();
    let row = &super::helper::disks(&parsed)[0].rows[0];
    assert_eq!((super::helper::rate(row), row.seconds), (24_035 * 1024, Some(10.037)));
}

const LSBLK: &str = "$ lsblk -d -o NAME,ROTA,MODEL\nNAME ROTA MODEL\nsdb     1 MAKER HD4000\n";

#[test]
fn a_read_faster_than_a_rotating_disk_was_in_memory() {
    let end = "4000+0 records in\n4000+0 records out\n4194304000 bytes (4.2 GB, 3.9 GiB) copied, 1.05 s, 4.0 GB/s\n";
    let found = headline(&format!("{LSBLK}# dd if=/srv/f of=/dev/null bs=1M\n{end}"));
    assert_eq!(found.cause, Some("disk-page-cache"));
    assert!(found.next.unwrap().command.unwrap_or_default().contains("iflag=direct"));
    let writes = headline(&format!("{LSBLK}# dd if=/dev/zero of=/srv/f bs=1M count=4000\n{end}"));
    assert!(writes.next.unwrap().command.unwrap_or_default().contains("oflag=direct"));
    assert_eq!(writes.cause, Some("disk-page-cache"));
    // Without the command it is unknown whether it read or wrote; the rate is too high for either.
    let (_, last) = end.split_once("records out\n").unwrap();
    for bare in [format!("{end}{LSBLK}"), format!("{last}{LSBLK}")] {
        assert_eq!(limit(&bare), Some("disk-page-cache"), "{bare}");
    }
    let solid = LSBLK.replace("     1 ", "     0 ");
    let found =
        headline(&format!("{solid}$ dd if=/dev/sdb of=/dev/null bs=1M iflag=direct\n{end}"));
    assert_eq!((found.stands, found.cause), (Answered::Unknown, None));
    assert_eq!(found.ruled_out, ["disk-page-cache"]);
    let cached = headline(&format!("{solid}$ dd if=/dev/sdb of=/dev/null bs=1M\n{end}"));
    assert!(cached.next.unwrap().command.unwrap_or_default().contains("iflag=direct"));
}

#[test]
fn synchronous_writes_of_dd_wait_for_the_disk() {
    let end = "1000+0 records in\n1000+0 records out\n512000 bytes (512 kB, 500 KiB) copied, 16.7 s, 30.7 kB/s\n";
    let with = |options: &str| {
        limit(&format!("$ dd if=/dev/zero of=f bs=512 count=1000 {options}\n{end}"))
    };
    assert_eq!(with("oflag=dsync"), Some("disk-sync"));
    assert_eq!(with("oflag=direct,sync"), Some("disk-sync"));
    assert_ne!(with("conv=fdatasync"), Some("disk-sync"));
}

#[test]
fn a_lost_path_and_small_requests_are_answers_without_any_result() {
    let paths = include_str!("../../../tests/samples/multipath/failed.txt");
    assert_eq!(limit(paths), Some("disk-path-failed"));
    let mounts = include_str!("../../../tests/samples/mounts/nfsstat.txt");
    let found = headline(mounts);
    assert_eq!(found.cause, Some("nfs-io-size"));
    assert!(
        found.what.starts_with("/mnt/old (client): requests of 8 KiB (rsize)"),
        "{}",
        found.what
    );
}

#[test]
fn a_later_run_without_its_title_is_compared() {
    let head = "CrystalDiskMark 8.0.4 x64 (C) 2007-2021 hiyohiyo\n\n";
    let run = |rate: f64, micros: f64| {
        format!(
            "[Read]\n  SEQ    1MiB (Q=  8, T= 1):  {rate:.3} MB/s [ {:.1} IOPS] < 1000.00 us>\n  RND    4KiB (Q=  1, T= 1):    80.000 MB/s \
             [ 19531.3 IOPS] <    {micros:.2} us>\n",
            rate * 1e6 / 1_048_576.0
        )
    };
    let (fast, slow) = (run(7_012.0, 48.0), run(1_760.0, 49.0));
    for text in [
        format!("Yesterday:\n{head}{fast}\nNow, in the other slot:\n{slow}"),
        format!("{fast}{slow}"),
        format!("{head}{fast}{head}{slow}"),
    ] {
        assert_eq!(limit(&text), Some("pcie-slot"), "{text}");
    }
    let one = format!("{head}{fast}{}", slow.replace("[Read]", "[Write]"));
    assert_eq!(limit(&one), None);
    let spelled = |text: &str| {
        text.replace("SEQ    1MiB", "Sequential 1 MiB").replace("RND    4KiB", "Random 4 KiB")
    };
    let kdisk = format!(
        "KDiskMark (4.0.0): https://example.org\n\n{}and then\n{}",
        spelled(&fast),
        spelled(&slow)
    );
    assert_eq!(read(kdisk.as_bytes()).unwrap().parts.len(), 2);
}
