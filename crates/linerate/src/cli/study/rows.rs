//! `linerate disk`: the rows that disk benchmarks have, each read and written in turn.

use linerate_plan::path::Direction;
use linerate_plan::study::Axis;
use linerate_plan::transport::{FILE, Setting, file};
use linerate_plan::{Knobs, Plan};
use linerate_record::Made;
use linerate_session::run::once;
use linerate_show::study::{ACCESS, ROW};
use linerate_units::{Bytes, Nanos};

use super::super::exit::{Exit, Failure, tell};
use super::super::options::{Options, RowSet};
use super::super::resolve;
use super::super::session::{self, Stop};
use super::super::single::{self, WASHOUT};
use super::{Done, Parts};

/// Measuring time of a cell, if none is requested.
const TIME: Nanos = Nanos::from_secs(5);

/// A row: the size and the order of its operations, and how many are in flight.
struct Row {
    name: &'static str,
    size: Bytes,
    random: bool,
    depth: u64,
    threads: u32,
}

const fn row(name: &'static str, kib: u64, random: bool, depth: u64, threads: u32) -> Row {
    Row { name, size: Bytes(kib << 10), random, depth, threads }
}

const SEQ_1M_Q8: Row = row("SEQ 1M Q8 T1", 1024, false, 8, 1);
const SEQ_1M_Q1: Row = row("SEQ 1M Q1 T1", 1024, false, 1, 1);
const SEQ_128K_Q32: Row = row("SEQ 128K Q32 T1", 128, false, 32, 1);
const RND_4K_Q32: Row = row("RND 4K Q32 T1", 4, true, 32, 1);
const RND_4K_Q32_T16: Row = row("RND 4K Q32 T16", 4, true, 32, 16);
const RND_4K_Q8_T8: Row = row("RND 4K Q8 T8", 4, true, 8, 8);
const RND_4K_Q1: Row = row("RND 4K Q1 T1", 4, true, 1, 1);

/// The rows of a set, in the order of the versions of CrystalDiskMark that have it.
//= CrystalDiskMark 6 (2018), 8.0.0 (2020) and 9.0.1 (2025): profiles Default, NVMe SSD and Real World
const fn rows(set: RowSet) -> &'static [Row] {
    match set {
        RowSet::Cdm9 | RowSet::Cdm8 => &[SEQ_1M_Q8, SEQ_1M_Q1, RND_4K_Q32, RND_4K_Q1],
        RowSet::Cdm6 => &[SEQ_128K_Q32, RND_4K_Q8_T8, RND_4K_Q32, RND_4K_Q1],
        RowSet::Nvme => &[SEQ_1M_Q8, SEQ_128K_Q32, RND_4K_Q32_T16, RND_4K_Q1],
        RowSet::Real => &[SEQ_1M_Q1, RND_4K_Q1],
    }
}

/// Measures all rows of a file or a disk. What cannot be written is only read.
pub(in super::super) fn run(target: &str, options: &Options) -> Result<Exit, Failure> {
    let rows = rows(options.disk.rows.unwrap_or(RowSet::Cdm9));
    let ways = resolve::ways(target, options);
    let word = |way: &Direction| if *way == Direction::Forward { "write" } else { "read" };
    let axes = vec![
        Axis::of(ROW, rows.iter().map(|row| row.name.to_owned())),
        Axis::of(ACCESS, ways.iter().map(|way| word(way).to_owned())),
    ];
    let time = options.disk.time.map_or(TIME, |time| time.0);
    let parts = Parts::measured(axes, true, options, |at, options, stop| {
        let done = cell(target, &rows[at[0]], ways[at[1]], time, options, stop)?;
        let exit = if done.measured.unsaved { Exit::NotMeasured } else { Exit::Done };
        Ok((done, exit))
    })?;
    let exit = parts.shown(Some(target), options)?;
    Ok(if parts.study(Some(target)).complete() { exit } else { exit.or(Exit::NotMeasured) })
}

/// Measures one row in one direction.
fn cell(
    target: &str,
    row: &Row,
    direction: Direction,
    time: Nanos,
    options: &Options,
    stop: &Stop,
) -> Result<Done, Failure> {
    let mut own = options.engine.of(&FILE);
    own.set(file::DEPTH.key, Setting::Number(row.depth));
    let order = if row.random { "random" } else { "sequential" };
    own.set(file::ORDER.key, Setting::Word(order.to_owned()));
    if let Some(size) = options.disk.size {
        own.set(file::FILE_SIZE.key, Setting::Number(size.0.0));
    }
    let plan = Plan {
        engine: FILE.name.to_owned(),
        peer: Some(target.to_owned()),
        reach: Vec::new(),
        knobs: Knobs {
            streams: row.threads,
            write_size: row.size,
            read_size: row.size,
            options: own,
            ..Knobs::default()
        },
        directions: vec![direction],
        time: Nanos(WASHOUT.0 + time.0),
        sweep: false,
        trials: false,
    };
    resolve::possible(&plan, None)?;
    let mut measured = single::open(plan, Made::Bw, options, stop, |link, plan, label, sink| {
        once(link, plan, WASHOUT, None, label, sink)
    })?;
    if let Some(error) = measured.error.take() {
        tell(&session::link_failure(error).words());
    }
    Ok(Done::from(measured))
}
