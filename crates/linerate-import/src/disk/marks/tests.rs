//! Each difficulty of the reports of CrystalDiskMark and KDiskMark has a test here.

use linerate_record::reported::{Disk, Does, Measured};

use super::super::helper::{notes, rate};
use crate::{Parsed, read};

const CRYSTAL: &str = include_str!("../../../tests/samples/crystaldiskmark/7.0.0.txt");
const KDISK: &str = include_str!("../../../tests/samples/kdiskmark/3.0.0.txt");

fn disk(parsed: &Parsed) -> &Disk {
    match &parsed.parts[0].results[0].measured {
        Measured::Disk(disk) => disk,
        _ => panic!("no disk"),
    }
}

/// A report of KDiskMark with one row.
fn kdisk(version: &str, row: &str, profile: &str) -> Result<Parsed, String> {
    let text = format!(
        "  KDiskMark ({version}): https://github.com/JonMagon/KDiskMark\n\n{row}\n\nProfile: {profile}\n   \
         Test: 1 GiB (x5) [Measure: 5 sec / Interval: 5 sec]\n"
    );
    read(text.as_bytes()).map_err(|refused| refused.to_string())
}

const ONE: &str =
    "[Read]\nSequential   1 MiB (Q=  8, T= 1):   508.897 MB/s [    497.0 IOPS] < 13840.05 us>";

#[test]
fn kdiskmark_counts_in_1024000_bytes_since_1_5_1_and_in_mib_before() {
    let read = |version: &str, row: &str| {
        let parsed = kdisk(version, row, "Default").unwrap();
        (rate(&disk(&parsed).rows[0]), notes(&parsed))
    };
    let (new, said) = read("1.5.1", ONE);
    assert_eq!(new, 508_897 * 1024);
    assert!(said.contains("1024000 bytes"), "{said}");
    let old = ONE.replace("508.897", "497.000");
    let (old, said) = read("1.5.0", &old);
    assert_eq!(old, 497 << 20);
    assert!(said.contains("1048576 bytes"), "{said}");
}

#[test]
fn a_report_of_kdiskmark_that_divides_rightly_is_not_corrected() {
    let right = ONE.replace("508.897", "521.142");
    let parsed = kdisk("4.0.0", &right, "Default").unwrap();
    assert_eq!(rate(&disk(&parsed).rows[0]), 521_142_000);
    assert!(!notes(&parsed).contains("converted"));
    // Neither unit agrees with the operations: that of the version is used, with a note.
    let wrong = ONE.replace("508.897", "400.000");
    let parsed = kdisk("3.0.0", &wrong, "Default").unwrap();
    assert_eq!(rate(&disk(&parsed).rows[0]), 400 * 1_024_000);
    assert!(notes(&parsed).contains("does not agree"));
}

#[test]
fn rows_of_several_threads_are_left_out_before_3_3_0() {
    let row = ONE.replace("T= 1", "T= 2");
    assert!(kdisk("3.2.0", &row, "Default").unwrap_err().contains("several threads"));
    let parsed = kdisk("3.3.0", &row, "Default").unwrap();
    assert_eq!(disk(&parsed).rows[0].threads, Some(2));
}

#[test]
fn mixed_rows_of_kdiskmark_are_left_out() {
    let row = ONE.replace("[Read]", "[Mix] Read 70%/Write 30%");
    assert!(kdisk("3.3.0", &row, "Default").unwrap_err().contains("weights"));
}

#[test]
fn kdiskmark_shows_the_mean_in_its_default_profile_only() {
    let best = |profile: &str| {
        let parsed = kdisk("3.3.0", ONE, profile).unwrap();
        (disk(&parsed).best_of, notes(&parsed).contains("mean of the runs"))
    };
    assert_eq!(best("Default"), (None, true));
    assert_eq!(best("Peak Performance [+Mix]"), (Some(5), false));
}

#[test]
fn times_of_completion_alone_are_left_out() {
    let mean = |version: &str, micros: &str| {
        let row = ONE.replace("13840.05", micros);
        disk(&kdisk(version, &row, "Demo").unwrap()).rows[0].mean.is_some()
    };
    // 497 operations per second of 12.878 ms each are 6.4 in flight, 0.8 of 8.
    assert!(mean("3.2.0", "12880.00"));
    assert!(!mean("3.2.0", "12870.00"));
    assert!(mean("3.1.4", "12870.00"));
}

#[test]
fn both_programs_agree_on_a_report_but_for_the_unit() {
    let crystal = read(CRYSTAL.as_bytes()).unwrap();
    let row = &disk(&crystal).rows[0];
    assert_eq!((row.does, rate(row)), (Does::Read, 101_514_000));
    assert_eq!(disk(&crystal).best_of, Some(5));
    let kdisk = read(KDISK.as_bytes()).unwrap();
    let row = &disk(&kdisk).rows[0];
    let by_operations = 497.0 * 1_048_576.0;
    assert!((row.bytes_per_sec / by_operations - 1.0).abs() < 1e-4);
}

#[test]
fn half_a_report_has_the_rows_that_are_there() {
    let half = &CRYSTAL[..CRYSTAL.find("[Write]").unwrap()];
    let parsed = read(half.as_bytes()).unwrap();
    assert_eq!(disk(&parsed).rows.len(), 4);
    assert!(notes(&parsed).contains("the end of the report is missing"));
    let head = &CRYSTAL[..CRYSTAL.find("[Read]").unwrap()];
    assert!(read(head.as_bytes()).unwrap_err().to_string().contains("no row"));
}

#[test]
fn rows_that_were_not_run_are_left_out() {
    let text =
        CRYSTAL.replace("   101.514 MB/s [     96.8 IOPS]", "     0.000 MB/s [      0.0 IOPS]");
    let parsed = read(text.as_bytes()).unwrap();
    assert_eq!(disk(&parsed).rows.len(), 7);
    assert!(notes(&parsed).contains("1 rows of 0 MB/s"));
}

#[test]
fn a_mention_of_the_program_is_no_report() {
    for text in [
        "CrystalDiskMark 8.0.4 is a fine program\n",
        "KDiskMark (GUI): see above\n",
        "-------\nCrystalDiskMark\n",
    ] {
        let refused = read(text.as_bytes()).unwrap_err().to_string();
        assert!(refused.contains("no output of a known program"), "{refused}");
    }
}

#[test]
fn a_row_that_is_not_understood_becomes_a_note() {
    let text = CRYSTAL.replacen("96.677 MB/s", "96,677 MB/s", 1);
    let parsed = read(text.as_bytes()).unwrap();
    assert_eq!(disk(&parsed).rows.len(), 7);
    assert!(notes(&parsed).contains("not understood: `Sequential 1MiB (Q=  1, T= 1):"));
}

/// The start of a report in the README of KDiskMark, from 2020.
const README: &str = "                             KDiskMark: https://github.com/JonMagon/KDiskMark
-----------------------------------------------------------------------------
* MB/s = 1,000,000 bytes/s [SATA/600 = 600,000,000 bytes/s]
* KB = 1000 bytes, KiB = 1024 bytes

[Read]
Sequential 1 MiB (Q= 8, T= 1):   528.053 MB/s [    528.1 IOPS] < 14449.94 us>
    Random 4 KiB (Q=32, T=16):    25.059 MB/s [   6415.0 IOPS] <  4977.93 us>

Profile: Default
   Test: 32 MiB (x5) [Interval: 5 sec]
";

#[test]
fn a_report_of_kdiskmark_without_a_version_needs_operations_to_prove_its_unit() {
    let parsed = read(README.as_bytes()).unwrap();
    assert_eq!(parsed.parts[0].tool.version, None);
    // A version that may be older than 3.3.0 counts only some of the threads.
    assert_eq!(disk(&parsed).rows.len(), 1);
    assert_eq!(rate(&disk(&parsed).rows[0]), (528.053 * 1_048_576.0_f64).round() as u64);
    let said = notes(&parsed);
    assert!(said.contains("no version") && said.contains("1048576 bytes"), "{said}");
    for (iops, mb) in [("515.7", 1_024_000.0_f64), ("503.6", 1e6)] {
        let parsed = read(README.replace("528.1 IOPS", &format!("{iops} IOPS")).as_bytes());
        let of_row = rate(&disk(&parsed.unwrap()).rows[0]);
        assert_eq!(of_row, (528.053 * mb).round() as u64, "{iops}");
    }
    for row in ["[    600.0 IOPS] <", "<"] {
        let unproven = README.replace("[    528.1 IOPS] <", row);
        let why = read(unproven.as_bytes()).unwrap_err().to_string();
        assert!(why.contains("prove the unit"), "{why}");
    }
    let link = "KDiskMark: https://github.com/JonMagon/KDiskMark is nice\n";
    assert!(read(link.as_bytes()).is_err());
}
