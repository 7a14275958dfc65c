//! `iostat -x`: requests of block devices, by the kernel's counters.

use linerate_record::reported::{Access, Disk, DiskRow, Does, Measured};
use linerate_units::Bytes;

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{MILLI, Notes, command_of, figure, outcome, positive, time};

/// The format of `iostat -x`.
pub(crate) static IOSTAT: Format = Format {
    id: "iostat",
    label: "iostat -x",
    versions: "sysstat 9 to 12, with -y, -t, -c, -k and -m",
    evidence: "run here: 12.6.1; published: columns of 9, 10 and 11 by the manual of each",
    unknown: "The order of the places and what programs asked for; without the command, whether the first report is the \
              mean since the start of the system.",
    starts: |at| {
        let is_head = is_banner(at.line) || is_processors(at.line);
        let mut lines = at.text.lines().take(if is_head { HEAD + 1 } else { 1 });
        lines.any(|line| Columns::of(line).is_some())
    },
    read,
    extent: Extent::Own,
    ..Format::RESULTS
};

/// Number of bytes in the unit of each column of rates: sectors, kB and MB, which are powers of 1024.
//= sysstat 12.6.1, iostat.c: rsec/s are 512 bytes, fctr is 2 for kB and 2048 for MB
const BYTES: &[(&str, f64)] = &[("kB/s", 1024.0), ("MB/s", 1_048_576.0), ("sec/s", 512.0)];
/// Largest number of rows that are read of a device.
const MOST_ROWS: usize = 1_000;
/// Largest number of devices.
const MOST_DEVICES: usize = 256;
/// Number of lines within which the first table must begin.
const HEAD: usize = 16;

fn is_processors(line: &str) -> bool {
    line.trim_start().starts_with("avg-cpu:")
}

/// The names of the columns of a table.
struct Columns<'a>(Vec<&'a str>);

impl<'a> Columns<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let line = line.trim_start();
        if !line.starts_with("Device") || line.len() > 1_000 {
            return None;
        }
        let names: Vec<&str> = line.split_whitespace().collect();
        let has = |name: &str| names.contains(&name);
        let is_extended = has("r/s") && has("w/s") && (has("await") || has("r_await"));
        is_extended.then_some(Self(names))
    }

    /// The values of a line by the names of the columns; `None` if it is not a row.
    fn row<'b>(&'b self, line: &'b str) -> Option<Row<'b>> {
        let mut words = line.split_whitespace();
        let device = words.next()?;
        // A comma can only be a decimal comma.
        let values: Option<Vec<f64>> = words.map(|word| figure(&word.replace(',', "."))).collect();
        let values = values.filter(|values| values.len() + 1 == self.0.len())?;
        Some(Row { device, names: &self.0[1..], values })
    }
}

/// The figures of a device in a report.
struct Row<'a> {
    device: &'a str,
    names: &'a [&'a str],
    values: Vec<f64>,
}

impl Row<'_> {
    fn get(&self, name: &str) -> Option<f64> {
        let at = self.names.iter().position(|other| *other == name)?;
        self.values.get(at).copied()
    }

    /// Figures of reads or of writes, whose columns begin with `letter`; `None` if there were none.
    fn of(&self, does: Does, letter: char) -> Option<DiskRow> {
        let get = |end: &str| self.get(&format!("{letter}{end}"));
        let operations = positive(get("/s")?)?;
        let bytes = BYTES.iter().find_map(|(end, factor)| Some(get(end)? * factor))?;
        let mut row = DiskRow::new(Access::Unknown, does, positive(bytes)?);
        row.operations = Some(operations);
        row.block = Some(Bytes((bytes / operations).round() as u64)).filter(|size| size.0 > 0);
        row.mean = get("_await").or_else(|| self.get("await")).and_then(|ms| time(ms, MILLI));
        row.busy = self.get("%util").map(|share| share / 100.0);
        if does == Does::Write {
            row.flushed = self.get("f/s").map(|flushes| flushes / operations);
            row.flush = self.get("f_await").and_then(|ms| time(ms, MILLI));
        }
        Some(row)
    }
}

/// A device and its rows, each with the number of its report.
struct Device {
    name: String,
    line: u64,
    rows: Vec<(usize, DiskRow)>,
}

#[derive(Default)]
struct Reader<'a> {
    columns: Option<Columns<'a>>,
    /// Whether the current lines are about processors.
    processors: bool,
    /// Number of tables of devices begun so far.
    reports: usize,
    /// Whether the line with the system was read: the next report is the first one.
    banner: bool,
    devices: Vec<Device>,
}

impl<'a> Reader<'a> {
    /// Reads a line; `false` if it follows the output.
    fn takes(&mut self, line: u64, text: &'a str) -> bool {
        if let Some(columns) = Columns::of(text) {
            self.columns = Some(columns);
            self.processors = false;
            self.reports += 1;
        } else if is_banner(text) {
            let is_next = self.banner || self.reports > 0;
            self.banner = true;
            return !is_next;
        } else if is_processors(text) {
            self.processors = true;
        } else {
            return self.takes_row(line, text)
                || text.is_empty()
                || self.processors && is_numbers(text)
                || is_date(text);
        }
        true
    }

    fn takes_row(&mut self, line: u64, text: &str) -> bool {
        let Some(row) = self.columns.as_ref().and_then(|columns| columns.row(text)) else {
            return false;
        };
        let rows = [row.of(Does::Read, 'r'), row.of(Does::Write, 'w')];
        let rows = rows.into_iter().flatten().map(|row| (self.reports, row));
        let known = self.devices.iter().position(|device| device.name == row.device);
        let at = known.unwrap_or(self.devices.len());
        if known.is_none() && at < MOST_DEVICES {
            self.devices.push(Device { name: row.device.to_owned(), line, rows: Vec::new() });
        }
        if let Some(device) =
            self.devices.get_mut(at).filter(|device| device.rows.len() < MOST_ROWS)
        {
            device.rows.extend(rows);
        }
        true
    }

    /// Number of the report with the mean since the system started, which is not of a load; `None` if there is none.
    fn since_start(&self, command: Option<&str>) -> Option<usize> {
        // `-y` may be written among other letters, as in `-xy`.
        let leaves_out = |command: &str| {
            let mut words = command.split_whitespace();
            words.any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('y'))
        };
        let is_first = self.banner || command.is_some();
        (is_first && !command.is_some_and(leaves_out)).then_some(1)
    }
}

fn is_banner(line: &str) -> bool {
    line.starts_with("Linux ") && line.contains(" CPU)")
}

fn is_numbers(line: &str) -> bool {
    line.split_whitespace().all(|word| figure(&word.replace(',', ".")).is_some())
}

/// Whether a line has the time of a report: `06/03/2024 10:00:01 AM`.
fn is_date(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit())
        && line.contains(':')
        && line.contains(['/', '-', '.'])
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reader = Reader::default();
    let used = section.up_to(|line, _| reader.takes(line.number, line.text.trim_end()));
    let mut found = Found::of("iostat", used, Notes::default());
    let command = command_of(section, |program| program == "iostat");
    let mut skipped = reader.since_start(command);
    if skipped.is_some() {
        let is_only = reader.reports == 1;
        found.notes.at(section.line, if is_only { ONLY } else { FIRST });
        skipped = skipped.filter(|_| !is_only);
    }
    let interval =
        command.and_then(|command| command.split_whitespace().find_map(figure)).and_then(positive);
    for device in reader.devices {
        let rows = device.rows.into_iter().filter(|(report, _)| Some(*report) != skipped);
        let rows: Vec<DiskRow> =
            rows.map(|(_, row)| DiskRow { seconds: interval, ..row }).collect();
        if !rows.is_empty() {
            let target = device.name.clone();
            let disk = Disk { target, rows, ..Disk::default() };
            found.results.push(outcome(&device.name, device.line, Measured::Disk(disk)));
        }
    }
    found.complete("no device had a request")
}

/// The notes for a first report that is left out, and for one that is the only report.
const FIRST: &str = "its first report is the mean since the start of the system, and is left out: iostat -y does so itself";
const ONLY: &str = "its only report may be the mean since the start of the system, and not of a load: iostat -x -y 1 5 shows that";

#[cfg(test)]
mod tests {
    use super::super::helper::{disks, notes, rate};
    use super::*;
    use crate::{Parsed, read};

    const HEAD: &str = "Linux 6.1.0 (host) \t11/28/26 \t_x86_64_\t(4 CPU)\n\n";
    const NEW: &str = "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     \
        dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util\n";

    fn new(device: &str, writes: u32, await_ms: u32) -> String {
        format!(
            "{NEW}{device} 0.00 0.00 0.00 0.00 0.00 0.00 {writes}.00 {}.00 0.00 0.00 {await_ms}.00 8.00 0.00 0.00 0.00 0.00 0.00 0.00 \
             2.00 4.00 2.70 100.00\n\n",
            writes * 8
        )
    }

    fn parsed(text: &str) -> Parsed {
        read(text.as_bytes()).unwrap()
    }

    fn waits(parsed: &Parsed) -> Vec<u64> {
        let rows = disks(parsed).into_iter().flat_map(|disk| &disk.rows);
        rows.filter_map(|row| row.mean).map(|time| time.0 / 1_000_000).collect()
    }

    #[test]
    fn requests_of_each_interval_are_rows_of_their_device() {
        let all = parsed(&format!(
            "$ iostat -x -y 5 2\n{HEAD}{}{}",
            new("sdc", 3, 900),
            new("sdc", 2, 1200)
        ));
        let disks = disks(&all);
        assert_eq!((disks.len(), disks[0].target.as_str()), (1, "sdc"));
        let row = &disks[0].rows[0];
        assert_eq!((rate(row), row.operations, row.seconds), (24 * 1024, Some(3.0), Some(5.0)));
        assert_eq!((row.block, row.busy), (Some(Bytes(8192)), Some(1.0)));
        assert_eq!(row.flush.map(|time| time.0), Some(4_000_000));
        assert_eq!(waits(&all), [900, 1200]);
        assert_eq!(notes(&all), "");
    }

    #[test]
    fn the_report_since_the_start_is_left_out_where_others_are() {
        let two = format!("{}{}", new("sda", 3, 5), new("sda", 2, 7));
        for (before, kept) in [
            ("$ iostat -x 1 2\n", vec![7]),
            ("$ sudo iostat -xy 1 2\n", vec![5, 7]),
            ("$ iostat -yx\n", vec![5, 7]),
            ("", vec![7]),
        ] {
            assert_eq!(waits(&parsed(&format!("{before}{HEAD}{two}"))), kept, "{before}");
        }
        // Without a line before the tables it is unknown which report is the first.
        assert_eq!(waits(&parsed(&two)), [5, 7]);
        let one = parsed(&format!("{HEAD}{}", new("sda", 3, 5)));
        assert_eq!(waits(&one), [5]);
        assert!(notes(&one).contains("may be the mean since"));
    }

    #[test]
    fn columns_of_old_versions_have_one_wait() {
        let old = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           0,50    0,00    0,50   12,00    0,00   87,00\n\n\
            Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util\n\
            sda               0,00     0,00   10,00    5,00    80,00    80,00    10,67     0,10    6,50   2,00   3,00\n";
        let all = parsed(old);
        let rows = &disks(&all)[0].rows;
        assert_eq!((rate(&rows[0]), rate(&rows[1])), (40_960, 40_960));
        assert_eq!(waits(&all), [6, 6]);
        let ten = old.replace("rsec/s   wsec/s", "rMB/s    wMB/s");
        assert_eq!(rate(&disks(&parsed(&ten))[0].rows[0]), 80 << 20);
    }

    #[test]
    fn idle_devices_and_other_tables_are_no_results() {
        let idle = read(new("sda", 0, 0).as_bytes()).unwrap_err().to_string();
        assert!(idle.contains("no device had a request"), "{idle}");
        let plain =
            format!("{HEAD}Device             tps    kB_read/s    kB_wrtn/s\nsda 1.00 2.00 3.00\n");
        assert!(!parsed_ids(&plain).contains(&"iostat"));
        let prose = parsed(&format!("{}Is that bad?\n", new("sda", 3, 5)));
        assert!(notes(&prose).contains("not understood: `Is that bad?`"));
    }

    fn parsed_ids(text: &str) -> Vec<&'static str> {
        let parsed = read(text.as_bytes());
        parsed.map_or(Vec::new(), |all| all.parts.iter().map(|part| part.format.id).collect())
    }
}
