//! `linerate disk`: the rows that disk benchmarks have, each read and written in turn.

use anyhow::anyhow;
use linerate_judge::event::Sink;
use linerate_judge::model::{derive, sent_in};
use linerate_plan::path::Direction;
use linerate_plan::study::Axis;
use linerate_plan::transport::file::FILE_SIZE_DEFAULT;
use linerate_plan::transport::{FILE, Setting, file};
use linerate_plan::{Knobs, Plan};
use linerate_record::{Made, Record};
use linerate_session::link::{Link, LinkError};
use linerate_session::run::{Label, once};
use linerate_show::study::{ACCESS, ROW};
use linerate_units::{Bytes, Nanos};

use super::super::exit::{Exit, Failure, tell};
use super::super::options::{Options, RowSet};
use super::super::quantity::ProbeTime;
use super::super::resolve;
use super::super::session::{self, Stop};
use super::super::single;
use super::{Done, Parts};

/// Measuring time of a cell, if none is requested, and the least.
pub(super) const TIME: Nanos = Nanos::from_secs(3);
const LEAST: Nanos = Nanos::from_secs(1);
/// Time at the start of a cell that is not counted.
pub(super) const SETTLE: Nanos = Nanos::from_millis(300);
/// Time of sustained writes, if none is requested.
const SUSTAINED: Nanos = Nanos::from_secs(60);
/// Time of a cell of the first row, whose limit is tried.
const TRIED: Nanos = Nanos::from_secs(10);
/// The most that is written beside the file itself, if no time is requested.
const MOST: Bytes = Bytes(16 << 30);

/// A row: the size and the order of its operations, and how many are in flight.
pub(super) struct Row {
    name: &'static str,
    pub(super) size: Bytes,
    random: bool,
    depth: u64,
    threads: u32,
}

const fn row(name: &'static str, kib: u64, random: bool, depth: u64, threads: u32) -> Row {
    Row { name, size: Bytes(kib << 10), random, depth, threads }
}

pub(super) const SEQ_1M_Q8: Row = row("SEQ 1M Q8 T1", 1024, false, 8, 1);
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
        RowSet::Sustained => &[SEQ_1M_Q8],
    }
}

/// Measures all rows of a file or a disk. What cannot be written is only read.
pub(in super::super) fn run(target: &str, options: &Options) -> Result<Exit, Failure> {
    let target = &resolve::absolute(target);
    let set = options.disk.rows.unwrap_or(RowSet::Cdm9);
    let (rows, is_sustained) = (rows(set), set == RowSet::Sustained);
    let mut options = options.clone();
    let ways = ways(target, is_sustained, &options)?;
    if is_sustained {
        options.disk.time.get_or_insert(ProbeTime(SUSTAINED));
    }
    let options = &options;
    let axes = vec![
        Axis::of(ROW, rows.iter().map(|row| row.name.to_owned())),
        Axis::of(ACCESS, ways.iter().map(|way| way.access().to_owned())),
    ];
    announce(target, &ways, options);
    let mut share = Share { cells: rows.len() as u64, ..Share::default() };
    let parts = Parts::measured(axes, true, options, |at, options, stop| {
        let (row, direction) = (&rows[at[0]], ways[at[1]]);
        let is_first = at[0] == 0 && !is_sustained;
        let cell = Cell { target, row, direction, time: share.time(direction, options) };
        let done = if is_first {
            judged(&cell, share.may_try(direction), options, stop)?
        } else {
            measured(&cell, options, stop)?
        };
        share.count(direction, &done.measured.record);
        let exit = if done.measured.unsaved { Exit::NotMeasured } else { Exit::Done };
        Ok((done, exit))
    })?;
    let exit = parts.shown(Some(target), options)?;
    Ok(if parts.study(Some(target)).complete() { exit } else { exit.or(Exit::NotMeasured) })
}

/// The directions of the cells; an error if only writes are wanted, and nothing may be written.
fn ways(target: &str, is_sustained: bool, options: &Options) -> Result<Vec<Direction>, Failure> {
    let mut ways = resolve::ways(target, options);
    ways.retain(|way| !is_sustained || *way == Direction::Forward);
    if ways.is_empty() {
        let error = anyhow!("{target} is not written, so its writes cannot be sustained");
        return Err(Failure::usage(error).hint("name a folder, or give --write-to"));
    }
    Ok(ways)
}

/// Says what will be written before anything is.
pub(super) fn announce(target: &str, ways: &[Direction], options: &Options) {
    if !ways.contains(&Direction::Forward) || options.global.quiet == Some(true) {
        return;
    }
    let size = options.disk.size.map_or(Bytes(FILE_SIZE_DEFAULT), |size| size.0);
    let most = match options.disk.time {
        Some(time) => format!("to it for {} in each cell", time.0),
        None => format!("up to {MOST} more to it"),
    };
    let what = if resolve::is_overwritten(options) {
        format!("overwrites {target}, and then writes {most}")
    } else {
        format!(
            "writes a file of {size} in {target}, and then {most}; it has no name, and is gone at the end"
        )
    };
    tell(&format!("{what}\n"));
}

/// How the bytes that may be written are shared by the cells of a study.
#[derive(Default)]
struct Share {
    /// Number of cells that write.
    cells: u64,
    /// Cells that have written, and their bytes.
    done: u64,
    written: u64,
    /// The fastest rate so far in bytes per second, of reads and writes.
    fastest: u64,
}

impl Share {
    /// Measuring time of a cell: shorter for writes that would take more than their share.
    fn time(&self, direction: Direction, options: &Options) -> Nanos {
        let time = options.disk.time.map_or(TIME, |time| time.0);
        if direction == Direction::Reverse || options.disk.time.is_some() {
            return time;
        }
        let left =
            MOST.0.saturating_sub(self.written) / self.cells.saturating_sub(self.done).max(1);
        let possible = left.saturating_mul(1000) / self.fastest.max(1);
        time.min(Nanos::from_millis(possible)).max(LEAST)
    }

    /// Whether a run with trials keeps within what may be written.
    fn may_try(&self, direction: Direction) -> bool {
        let needs = self.fastest.saturating_mul(TRIED.0 / Nanos::from_secs(1).0);
        direction == Direction::Reverse || needs <= MOST.0 / 2
    }

    fn count(&mut self, direction: Direction, record: &Record) {
        let load = derive(record).directions.into_iter().next().map(|one| one.base);
        let rate = load.map_or(0, |load| (load.goodput.mean / 8.0) as u64);
        self.fastest = self.fastest.max(rate);
        if direction == Direction::Forward {
            self.done += 1;
            self.written += sent_in(record, direction).0;
        }
    }
}

/// A row in one direction.
pub(super) struct Cell<'a> {
    pub(super) target: &'a str,
    pub(super) row: &'a Row,
    pub(super) direction: Direction,
    pub(super) time: Nanos,
}

impl Cell<'_> {
    fn plan(&self, options: &Options) -> Plan {
        let Self { target, row, direction, time } = self;
        let mut own = options.engine.of(&FILE);
        own.set(file::DEPTH.key, Setting::Number(row.depth));
        own.set(file::OP.key, Setting::Word(direction.access().to_owned()));
        let order = if row.random { "random" } else { "sequential" };
        own.set(file::ORDER.key, Setting::Word(order.to_owned()));
        if let Some(size) = options.disk.size {
            own.set(file::FILE_SIZE.key, Setting::Number(size.0.0));
        }
        Plan {
            engine: FILE.name.to_owned(),
            peer: Some((*target).to_owned()),
            reach: Vec::new(),
            knobs: Knobs {
                streams: row.threads,
                write_size: row.size,
                read_size: row.size,
                depth: row.depth as u32,
                options: own,
                ..Knobs::default()
            },
            directions: vec![*direction],
            time: *time,
            sweep: false,
            trials: false,
        }
    }
}

/// Measures a cell.
pub(super) fn measured(cell: &Cell<'_>, options: &Options, stop: &Stop) -> Result<Done, Failure> {
    let plan = Plan { time: Nanos(SETTLE.0 + cell.time.0), ..cell.plan(options) };
    opened(plan, Made::Bw, options, stop, |link, plan, label, sink| {
        once(link, plan, SETTLE, None, label, sink)
    })
}

/// Measures a cell, and judges what limits it: by trials, if they may be made.
fn judged(cell: &Cell<'_>, trials: bool, options: &Options, stop: &Stop) -> Result<Done, Failure> {
    let time = if trials { TRIED.max(cell.time) } else { cell.time };
    let plan = Plan { time, trials, ..cell.plan(options) };
    opened(plan, Made::Run, options, stop, linerate_session::run::run)
}

pub(super) fn opened(
    plan: Plan,
    made: Made,
    options: &Options,
    stop: &Stop,
    body: impl FnOnce(&mut dyn Link, Plan, Label, &mut dyn Sink) -> (Record, Option<LinkError>),
) -> Result<Done, Failure> {
    resolve::possible(&plan, None)?;
    let mut measured = single::open(plan, made, options, stop, body)?;
    if let Some(error) = measured.error.take() {
        tell(&session::link_failure(error).words());
    }
    Ok(Done::from(measured))
}
