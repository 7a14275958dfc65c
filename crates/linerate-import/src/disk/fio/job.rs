//! The results of one job, or of a group of jobs that are reported together.

use linerate_record::reported::{Disk, DiskRow, Does};
use linerate_units::{Bytes, Nanos};

use super::document::{Job, Times, Way};
use super::options::Options;
use super::{IN_FLIGHT_SLACK, Pattern, Percentiles, Range, in_flight};
use crate::reading::{positive, time};

/// Share by which the mean payload may be below the requested size: the last operation of a file may be short.
const SHORT_SHARE: f64 = 0.01;

/// A job with its options.
pub(super) struct Context<'a> {
    pub(super) job: &'a Job,
    pub(super) options: Options<'a>,
    /// Number of entries in the document with the same name and group.
    pub(super) alike: usize,
}

/// The result of a job, and notes about it.
pub(super) fn disk(context: &Context<'_>) -> Result<(Disk, Vec<String>), String> {
    let Context { job, options, .. } = context;
    let mut said = Vec::new();
    if job.trim.as_deref().is_some_and(done) {
        said.push("trims are left out".to_owned());
    }
    let ways = ways(job);
    if ways.is_empty() {
        return Err("no operation was done".to_owned());
    }
    let Some(pattern) = options.pattern() else {
        return Err("the order of the places is not in the document".to_owned());
    };
    if options.has(&["percentage_random"]) {
        return Err("its places are partly random, partly in order".to_owned());
    }
    let own = own_options(&ways, pattern);
    if !own {
        said.push("is a group: its options are those of its last job".to_owned());
    }
    let mut rows: Vec<DiskRow> = Vec::new();
    for (does, way) in &ways {
        if !fits(*does, pattern) {
            let what = if *does == Does::Read { "reads" } else { "writes" };
            said.push(format!("{what} are left out: the order of their places is unknown"));
            continue;
        }
        let Some(mut row) = row(*does, way, pattern, options) else {
            continue;
        };
        if *does != Does::Read {
            flushes(&mut row, way, job.sync.as_deref(), options);
        }
        rows.push(row);
    }
    if own {
        flight(context, &ways, &mut rows, &mut said);
    }
    let disk = Disk {
        target: options.target().to_owned(),
        file: options.file(),
        best_of: None,
        direct: options.direct(),
        engine: options.engine().to_owned(),
        rows,
    };
    Ok((disk, said))
}

/// The kinds of operations that the job did, with their figures.
fn ways(job: &Job) -> Vec<(Does, &Way)> {
    let all = [(Does::Read, &job.read), (Does::Write, &job.write), (Does::Mix, &job.mixed)];
    let some = all.into_iter().filter_map(|(does, way)| Some((does, way.as_deref()?)));
    some.filter(|(_, way)| done(way)).collect()
}

fn done(way: &Way) -> bool {
    way.total_ios.is_some_and(|count| count > 0.0)
}

/// Whether a job with this pattern does operations of this kind.
fn fits(does: Does, pattern: Pattern) -> bool {
    match does {
        Does::Read => pattern.reads,
        Does::Write => pattern.writes,
        Does::Mix => true,
    }
}

/// Whether the options can belong to all operations: a group of jobs has only the options of its last job.
fn own_options(ways: &[(Does, &Way)], pattern: Pattern) -> bool {
    ways.iter().all(|(does, _)| fits(*does, pattern))
}

fn row(does: Does, way: &Way, pattern: Pattern, options: &Options<'_>) -> Option<DiskRow> {
    let rate = way.bw_bytes.or(way.bw.map(|kib| kib * 1024.0)).and_then(positive)?;
    let mut row = DiskRow::new(pattern.access(), does, rate);
    row.block = block(way, options);
    row.operations = way.iops.and_then(positive);
    row.seconds = way.runtime.and_then(positive).map(|ms| ms / 1e3);
    let clat = way.clat_ns.as_ref().map(|times| (times, 1.0));
    let clat = clat.or(way.clat.as_ref().map(|times| (times, 1e3)));
    let lat = way.lat_ns.as_ref().map(|times| (times, 1.0));
    let lat = lat.or(way.lat.as_ref().map(|times| (times, 1e3)));
    let measured = |(times, _): &(&Times, f64)| times.mean.is_some_and(|mean| mean > 0.0);
    let whole = lat.filter(measured).or(clat.filter(measured));
    row.mean = whole.and_then(|(times, unit)| time(times.mean?, unit));
    row.most = whole.and_then(|(times, unit)| time(times.max?, unit));
    let slat = way.slat_ns.as_ref().map(|times| (times, 1.0));
    let slat = slat.or(way.slat.as_ref().map(|times| (times, 1e3)));
    row.submit = slat.and_then(|(times, unit)| time(times.mean?, unit));
    // fio prints percentiles of whole operations (`lat`) only if the user requested them.
    let has = |(times, _): &(&Times, f64)| times.percentile.is_some();
    if let Some((times, unit)) = lat.filter(has).or(clat.filter(has)) {
        [row.typical, row.p99, row.p999] = percentiles(times, unit, way);
    }
    Some(row)
}

/// Fills in how often writes were flushed, and how long that took.
fn flushes(row: &mut DiskRow, way: &Way, sync: Option<&Way>, options: &Options<'_>) {
    let times = sync.and_then(|sync| sync.lat_ns.as_ref());
    let count = times.and_then(|times| times.samples).or(sync.and_then(|sync| sync.total_ios));
    let counted = count.zip(way.total_ios).map(|(flushes, writes)| flushes / writes);
    row.flushed = counted.and_then(positive).or(options.flushed());
    row.flush = times.and_then(|times| time(times.mean?, 1.0));
}

/// Payload of an operation: bytes over operations, if that is a whole number; else the requested size, if it agrees.
fn block(way: &Way, options: &Options<'_>) -> Option<Bytes> {
    let of_several_sizes = options.of_several_sizes();
    let unit = if way.io_kbytes.is_some() { 1.0 } else { 1024.0 };
    let mean = positive(way.io_bytes? * unit / way.total_ios?)?;
    let requested = options.block();
    let near = requested
        .filter(|requested| (mean - requested.0 as f64).abs() <= requested.0 as f64 * SHORT_SHARE);
    let whole = (mean.fract() == 0.0).then_some(Bytes(mean as u64));
    near.or(whole).filter(|_| !of_several_sizes)
}

fn percentiles(times: &Times, unit: f64, way: &Way) -> [Option<Nanos>; 3] {
    let found = |wanted: f64| {
        let all = times.percentile.as_ref()?.iter();
        let mut same =
            all.filter(|(key, _)| key.parse::<f64>().is_ok_and(|key| (key - wanted).abs() < 1e-6));
        same.next().and_then(|(_, value)| value.as_f64())
    };
    let percentiles = Percentiles { typical: found(50.0), p99: found(99.0), p999: found(99.9) };
    let range = Range { least: times.min, most: times.max };
    let samples = times.samples.or(way.total_ios).unwrap_or_default();
    percentiles.of(range, samples, unit)
}

/// Fills in depth and threads of the rows, if the document shows that they are those of the job.
fn flight(
    context: &Context<'_>,
    ways: &[(Does, &Way)],
    rows: &mut [DiskRow],
    said: &mut Vec<String>,
) {
    let Context { options, alike, .. } = context;
    let requested = options.depth();
    let depth = if synchronous(options, ways) {
        if requested.is_some_and(|depth| depth > 1) {
            said.push("its engine is synchronous: depth 1, whatever was asked".to_owned());
        }
        options.known().then_some(1)
    } else {
        requested
    };
    let threads = if *alike > 1 { Some(1) } else { options.jobs() };
    let (Some(depth), Some(threads)) = (depth, threads) else {
        return;
    };
    let limit = f64::from(depth) * f64::from(threads) * IN_FLIGHT_SLACK;
    let flying = in_flight(rows);
    if flying > limit {
        said.push(format!(
            "had {flying:.0} operations in flight, more than {depth} for each of {threads} threads: \
             it is a group, and its options are those of its last job"
        ));
        return;
    }
    // Reads and writes share the operations in flight: the share of each is unknown.
    let shared = ways.iter().filter(|(does, _)| *does != Does::Mix).count() > 1;
    let ignored = requested.filter(|requested| *requested > depth);
    for row in rows {
        row.requested = ignored;
        row.threads = Some(threads);
        row.depth = (!shared || row.does == Does::Mix).then_some(depth);
    }
    if shared {
        said.push(format!("reads and writes share the depth of {depth}"));
    }
}

/// Whether each operation was submitted only after the one before had completed.
fn synchronous(options: &Options<'_>, ways: &[(Does, &Way)]) -> bool {
    // fio measures a time to submit only for asynchronous engines.
    let submits = |way: &Way| match (&way.slat_ns, &way.slat) {
        (Some(times), _) => times.samples.map_or(times.max > Some(0.0), |n| n > 0.0),
        (None, Some(times)) => times.max > Some(0.0),
        (None, None) => true,
    };
    let unknown = || ways.iter().all(|(_, way)| !submits(way));
    options.synchronous().unwrap_or_else(unknown)
}
