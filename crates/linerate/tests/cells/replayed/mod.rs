//! Replayed cells: hardware that no lab can plant, in the record of a real run. Each has a near miss, the same record
//! with slightly too little of the effect.

mod cpu;
mod disks;
mod ports;
mod queues;
mod verbs;
mod ways;

use std::fmt::Write as _;

use linerate_judge::causes::CAUSES;
use linerate_record::Record;

use super::{CELLS, Cell, kept, simulated};

/// A cause whose hardware is planted in a kept record.
struct Replay {
    cause: &'static str,
    /// The kept record in which the hardware is planted, or [`SIMULATED`].
    on: &'static str,
    /// The planted hardware with which the cause is the limit or a disturbance.
    over: Shown,
    /// The near miss, with which the cause must not be named.
    under: Shown,
}

/// The planted hardware, and all causes that must be named, the limit first.
struct Shown {
    words: &'static str,
    show: fn(&mut Record),
    named: &'static [&'static str],
    /// All expected disturbances.
    disturbed: &'static [&'static str],
}

/// The base of causes for which a run must see the readings, because they determine its trials.
const SIMULATED: &str = "a simulated path";

fn replays() -> impl Iterator<Item = &'static Replay> {
    ports::REPLAYS
        .iter()
        .chain(cpu::REPLAYS)
        .chain(verbs::REPLAYS)
        .chain(queues::REPLAYS)
        .chain(ways::REPLAYS)
        .chain(disks::REPLAYS)
}

impl Replay {
    fn record(&self) -> Record {
        if self.on == SIMULATED { simulated::record() } else { kept::record(self.on) }
    }

    /// The cell above the cause's threshold, and the near miss below it.
    fn cells(&self) -> [Cell; 2] {
        let record = self.record();
        [(&self.over, ""), (&self.under, self.cause)].map(|(shown, not)| {
            let mut record = record.clone();
            (shown.show)(&mut record);
            let name = format!("{}, {}", self.on, shown.words);
            Cell::new(name, &record, [shown.named, shown.disturbed], not)
        })
    }
}

pub(super) fn cells() -> Vec<Cell> {
    replays().flat_map(Replay::cells).collect()
}

/// The score, as Markdown, and the cells that were judged wrongly.
fn score() -> (String, Vec<String>) {
    let mut text =
        String::from("| cause | on | over | named | under | named |\n|---|---|---|---|---|---|\n");
    let (mut right, mut wrong, mut all) = ([0, 0], Vec::new(), 0);
    let cells = &CELLS[CELLS.len() - replays().count() * 2..];
    for (replay, cells) in replays().zip(cells.chunks_exact(2)) {
        all += 1;
        let mut row = format!("| {} | {} |", replay.cause, replay.on);
        for (at, shown) in [&replay.over, &replay.under].into_iter().enumerate() {
            let reported = cells[at].named(CAUSES);
            let expected = [shown.named, shown.disturbed];
            if reported == expected {
                right[at] += 1;
            } else {
                let name = &cells[at].name;
                wrong.push(format!("{name}: {reported:?}, not {expected:?}"));
            }
            let [limits, disturbed] = reported.map(|causes| causes.join(", "));
            let beside = if disturbed.is_empty() {
                String::new()
            } else {
                format!("; disturbed by {disturbed}")
            };
            let _ = write!(row, " {} | {limits}{beside} |", shown.words);
        }
        let _ = writeln!(text, "{row}");
    }
    let [over, under] = right;
    let _ = writeln!(text, "\nRight: {over} of {all}; near misses right: {under} of {all}.");
    (text, wrong)
}

#[test]
fn what_is_replayed_is_named_and_what_nearly_is_so_is_not() {
    let (text, wrong) = score();
    println!("{text}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for replay in replays() {
        let Shown { named, disturbed, .. } = &replay.over;
        let reported = named.contains(&replay.cause) || disturbed.contains(&replay.cause);
        assert!(reported, "{}", replay.cause);
    }
}
