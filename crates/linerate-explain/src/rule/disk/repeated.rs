//! A rule that compares two runs of one disk test: the link of the disk may have become slower in between.

use super::super::super::Explained;
use super::super::{Remark, rate};
use super::rows::{At, LINK, firsts, time};
use linerate_facts::finding::Stands;
use linerate_record::reported::{Access, Does, Source};
use linerate_units::{Bytes, Nanos};

/// Share of the earlier rate below which the later run is slower.
const SLOWER: f64 = 0.6;
/// Largest ratio of the later to the earlier time at which small reads are as quick as before: runs differ a little.
const AS_QUICK: f64 = 1.15;
/// Smallest payload of an operation that the link limits, and not the latency of the disk.
const LARGE: Bytes = Bytes(128 << 10);
/// Shares of the rate that are left if a link trained to fewer lanes or an older generation: the share, in words, and
/// its reason.
//= PCI Express Base Specification 5.0: 2.5 and 5 GT/s with 8b/10b, 8, 16 and 32 GT/s with 128b/130b: about twice as
//= much with each
const STEPS: [(f64, &str, &str); 3] = [
    (0.5, "half", "half of the lanes (x4 to x2), or one generation back"),
    (
        0.25,
        "a quarter",
        "a quarter of the lanes (x4 to x1), or two generations back (4 to 2, 3 to 1)",
    ),
    (0.125, "an eighth", "three generations back (4 to 1)"),
];
/// Largest relative difference of a rate from such a share: the disk itself takes some time, too.
const NEAR: f64 = 0.15;
/// Bytes per second above which a disk is in a slot and not on SATA; then the rate above which it is not on USB.
//= Serial ATA Revision 3.5: 600 MB/s; Universal Serial Bus 3.2: 20 Gb/s
const ABOVE_SATA: f64 = 600e6;
const ABOVE_USB: f64 = 2.5e9;

/// Remarks on disks whose link seems to have been slower in the later of two runs.
pub(in crate::rule) fn narrower(explained: &Explained<'_>) -> Vec<Remark> {
    let mut runs: Vec<&Source> = Vec::new();
    for at in firsts(explained) {
        if !at.is_device() && runs.last().is_none_or(|last| !std::ptr::eq(*last, at.source)) {
            runs.push(at.source);
        }
    }
    let pairs = runs
        .windows(2)
        .filter(|pair| pair[0].tool.name == pair[1].tool.name && pair[0].side == pair[1].side);
    pairs.filter_map(|pair| compared(&rows(pair[0]), &rows(pair[1]))).collect()
}

/// Most rows of one run that are compared.
const MOST: usize = 64;

fn rows(source: &Source) -> Vec<At<'_>> {
    super::rows::of(source).filter(|at| at.row.does == Does::Read).take(MOST).collect()
}

/// Pairs of rows that measure the same before and after; only rows for which `is` holds.
fn pairs<'a>(
    before: &'a [At<'a>],
    after: &'a [At<'a>],
    is: fn(&At<'_>) -> bool,
) -> impl Iterator<Item = (&'a At<'a>, &'a At<'a>)> {
    let asks =
        |at: &At<'_>| (at.row.access, at.row.does, at.row.block, at.row.depth, at.row.threads);
    let same =
        move |one: &&'a At<'a>| Some((*one, after.iter().find(|other| asks(other) == asks(one))?));
    before.iter().filter(move |at| is(at)).filter_map(move |one| same(&one))
}

fn compared(before: &[At<'_>], after: &[At<'_>]) -> Option<Remark> {
    let is_large = |at: &At<'_>| {
        at.row.access == Access::Sequential && at.row.block.is_none_or(|block| block >= LARGE)
    };
    let is_small = |at: &At<'_>| at.row.access == Access::Random && at.is_small() && at.is_single();
    let (fast, slow) = pairs(before, after, is_large)
        .max_by(|a, b| a.0.row.bytes_per_sec.total_cmp(&b.0.row.bytes_per_sec))?;
    let answer = |at: &At<'_>| at.row.mean.map(Nanos::secs).or(at.each());
    let (quick, still) =
        pairs(before, after, is_small).find_map(|(one, other)| answer(one).zip(answer(other)))?;
    let share = slow.row.bytes_per_sec / fast.row.bytes_per_sec;
    if share > SLOWER || still > quick * AS_QUICK {
        return None;
    }
    let step = STEPS.iter().find(|(step, ..)| (share / step - 1.0).abs() <= NEAR);
    let words = step.map_or(format!("{:.0} %", share * 100.0), |(_, words, _)| (*words).to_owned());
    let what = format!(
        "the later run reads large blocks at {words} of the rate of the run before, and small ones as quickly: the link of \
         the disk is slower, not the disk"
    );
    let causes: &[&str] = match fast.row.bytes_per_sec {
        _ if step.is_none() => &[],
        rate if rate > ABOVE_USB => &["pcie-slot"],
        rate if rate > ABOVE_SATA => &["pcie-slot", "usb"],
        _ => &[],
    };
    let rates = [fast, slow].map(|at| rate(at.row.bytes_per_sec * 8.0));
    let mut remark = Remark::new(Stands::Found, what)
        .because(format!("{}: {} before, {} after", fast.words(), rates[0], rates[1]))
        .because(format!("small reads: {} before, {} after", time(quick), time(still)))
        .names(causes);
    if let Some((_, _, link)) = step {
        remark = remark.because(format!("it may be {link}"));
    }
    let (what, command) = if slow.is_windows() {
        (
            "the width and the speed of the link of the disk, in a program such as HWiNFO, beside what disk and slot can do",
            "",
        )
    } else {
        LINK
    };
    Some(slow.shows(remark.next(what, command)))
}
