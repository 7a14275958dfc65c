//! `nfsiostat`: requests of NFS mounts, by the kernel's counters.
//!
//! A kB is 1024 bytes. The first report is the mean since the mount.
//= nfs-utils 2.6, tools/nfs-iostat/nfs-iostat.py: kilobytes are bytes / 1024; RTT is from the request to its answer

use linerate_record::reported::{Access, Disk, DiskRow, Does, Measured};
use linerate_units::Bytes;

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{Line, MILLI, Notes, figure, outcome, positive, time};

/// The entry in the table of formats.
pub(crate) static NFSIOSTAT: Format = Format {
    id: "nfsiostat",
    label: "nfsiostat",
    versions: "nfs-utils 1.3 to 2.6",
    evidence: "published: columns by the source of nfs-utils 1.3 and 2.6",
    unknown: "What programs asked for, and whether the only report is the mean since the mount.",
    starts: |at| mounted(at.line).is_some(),
    read,
    extent: Extent::Own,
    ..Format::RESULTS
};

const KIB: f64 = 1024.0;
/// Largest number of mounts.
const MOST_MOUNTS: usize = 256;
/// Longest mount point in bytes.
const MOST_NAME: usize = 4_096;

/// The mount point in a line such as `nas:/a mounted on /mnt/a:`.
fn mounted(line: &str) -> Option<&str> {
    let (from, point) = line.trim().split_once(" mounted on ")?;
    let point = point.strip_suffix(':')?;
    (from.contains(":/") && point.starts_with('/') && point.len() <= MOST_NAME).then_some(point)
}

/// Whether the head of a table is of reads or of writes.
fn kind(line: &str) -> Option<Does> {
    match line.split_whitespace().next()? {
        "read:" => Some(Does::Read),
        "write:" => Some(Does::Write),
        _ => None,
    }
}

/// Reads `14184.900 115279.276 8.127 0 (0.0%) 1.064 1.101`: operations/s, kB/s, kB per operation, retransmissions,
/// round trip in ms, whole time in ms.
fn row(does: Does, line: &str) -> Option<DiskRow> {
    let mut words = line.split_whitespace();
    let mut next = || figure(words.next()?);
    let (operations, rate, each, _) = (next()?, next()?, next()?, next()?);
    let wait = words.nth(1).and_then(figure);
    let mut row = DiskRow::new(Access::Unknown, does, positive(rate * KIB)?);
    row.operations = Some(positive(operations)?);
    row.block = positive(each * KIB).map(|bytes| Bytes(bytes.round() as u64));
    row.mean = wait.and_then(|ms| time(ms, MILLI));
    Some(row)
}

/// Whether a line belongs to a report.
fn is_part(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    first.is_empty() || first.ends_with("op/s") || first == "ops/s" || figure(first).is_some()
}

/// A mount: its line, the number of its reports, and the rows of the last one.
struct Mount<'a> {
    point: &'a str,
    line: u64,
    reports: u32,
    rows: Vec<DiskRow>,
}

fn mount<'a, 'm>(
    all: &'m mut Vec<Mount<'a>>,
    point: &'a str,
    line: u64,
) -> Option<&'m mut Mount<'a>> {
    let known = all.iter().position(|mount| mount.point == point);
    let at = known.unwrap_or(all.len());
    if known.is_none() && at < MOST_MOUNTS {
        all.push(Mount { point, line, reports: 0, rows: Vec::new() });
    }
    let found = all.get_mut(at)?;
    found.reports += 1;
    found.rows.clear();
    Some(found)
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut mounts: Vec<Mount<'_>> = Vec::new();
    let (mut now, mut does) = (None, None);
    let used = section.up_to(|Line { number, text: line, .. }, _| {
        if let Some(point) = mounted(line) {
            now = mount(&mut mounts, point, number).map(|mount| mount.point);
            does = None;
        } else if let Some(kind) = kind(line) {
            does = Some(kind);
        } else if is_part(line) {
            let found = does.take().and_then(|does| row(does, line));
            let of = mounts.iter_mut().find(|mount| Some(mount.point) == now);
            if let Some((row, mount)) = found.zip(of) {
                mount.rows.push(row);
            }
        } else {
            return false;
        }
        true
    });
    let mut found = Found::of("nfsiostat", used, Notes::default());
    for mount in mounts.into_iter().filter(|mount| !mount.rows.is_empty()) {
        if mount.reports == 1 {
            found.notes.at(mount.line, ONLY);
        }
        let disk = Disk { target: mount.point.to_owned(), rows: mount.rows, ..Disk::default() };
        found.results.push(outcome(mount.point, mount.line, Measured::Disk(disk)));
    }
    found.complete("no mount had a request")
}

/// The note for a mount with only one report.
const ONLY: &str = "its only report may be the mean since the mount, and not of a load: the second one of nfsiostat 5 2 is of 5 seconds";

#[cfg(test)]
mod tests {
    use super::super::helper::{disks, notes, rate};
    use super::*;

    /// A report with reads only: operations per second, kB of each, and milliseconds of each.
    fn report(operations: f64, each: f64, ms: f64) -> String {
        format!(
            "\nnas:/pool/a mounted on /srv/a:\n\n           ops/s       rpc bklog\n        {operations:.3}           0.000\n\nread:              \
             ops/s            kB/s           kB/op         retrans    avg RTT (ms)    avg exe (ms)\n         {operations:.3}  \
             {:.3}  {each:.3}  0 (0.0%)  {ms:.3}  {ms:.3}\nwrite:  ops/s  kB/s  kB/op  retrans  avg RTT (ms)  avg exe (ms)\n   \
             0.000  0.000  0.000  0 (0.0%)  0.000  0.000\n",
            operations * each
        )
    }

    #[test]
    fn the_last_report_of_a_mount_is_its_result() {
        let text = format!("{}{}", report(3.0, 64.0, 9.0), report(5_000.0, 16.0, 2.5));
        let all = crate::read(text.as_bytes()).unwrap();
        let disks = disks(&all);
        let [row] = disks[0].rows.as_slice() else {
            panic!("{disks:?}");
        };
        assert_eq!((disks.len(), disks[0].target.as_str()), (1, "/srv/a"));
        assert_eq!((rate(row), row.operations), (80_000 * 1024, Some(5_000.0)));
        assert_eq!((row.block, row.does), (Some(Bytes(16 << 10)), Does::Read));
        assert_eq!(row.mean.map(|time| time.0), Some(2_500_000));
        assert_eq!(notes(&all), "");
    }

    #[test]
    fn one_report_may_be_that_since_the_mount_and_idle_mounts_are_none() {
        let one = format!("{}Is that slow?\n", report(40.0, 8.0, 1.0));
        let all = crate::read(one.as_bytes()).unwrap();
        let notes = notes(&all);
        assert!(notes.contains("since the mount") && notes.contains("Is that slow?"), "{notes}");
        let idle = crate::read(report(0.0, 0.0, 0.0).as_bytes()).unwrap_err().to_string();
        assert!(idle.contains("no mount had a request"), "{idle}");
        assert!(crate::read(b"the share is mounted on /srv:\nread: 5\n").is_err());
    }
}
