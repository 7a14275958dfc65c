//! Replay cells: hardware that no lab here can plant, each with a near miss: the same record with slightly too
//! little of it.

mod cpu;
mod ports;
mod queues;
mod verbs;
mod ways;

use std::fmt::Write as _;

use linerate_judge::causes::CAUSES;
use linerate_record::Record;

use super::{CELLS, Cell, kept, simulated};

/// A cause that is replayed.
struct Replay {
    cause: &'static str,
    /// The kept record that it is replayed on, or [`SIMULATED`].
    on: &'static str,
    /// What makes it bind.
    over: Shown,
    /// What almost does.
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

/// The base of what only a run that sees it could try.
const SIMULATED: &str = "a simulated path";

fn replays() -> impl Iterator<Item = &'static Replay> {
    ports::REPLAYS
        .iter()
        .chain(cpu::REPLAYS)
        .chain(verbs::REPLAYS)
        .chain(queues::REPLAYS)
        .chain(ways::REPLAYS)
}

impl Replay {
    fn record(&self) -> Record {
        if self.on == SIMULATED { simulated::record() } else { kept::record(self.on) }
    }

    /// The cell over its threshold, and that under it.
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

/// The score, as Markdown, and what is not as it should be.
fn score() -> (String, Vec<String>) {
    let mut text =
        String::from("| cause | on | over | named | under | named |\n|---|---|---|---|---|---|\n");
    let (mut right, mut wrong, mut all) = ([0, 0], Vec::new(), 0);
    let cells = &CELLS[CELLS.len() - replays().count() * 2..];
    for (replay, cells) in replays().zip(cells.chunks_exact(2)) {
        all += 1;
        let mut row = format!("| {} | {} |", replay.cause, replay.on);
        for (at, shown) in [&replay.over, &replay.under].into_iter().enumerate() {
            let told = cells[at].named(CAUSES);
            let expected = [shown.named, shown.disturbed];
            if told == expected {
                right[at] += 1;
            } else {
                let name = &cells[at].name;
                wrong.push(format!("{name}: {told:?}, not {expected:?}"));
            }
            let [limits, disturbed] = told.map(|causes| causes.join(", "));
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
        let told = named.contains(&replay.cause) || disturbed.contains(&replay.cause);
        assert!(told, "{}", replay.cause);
    }
}
