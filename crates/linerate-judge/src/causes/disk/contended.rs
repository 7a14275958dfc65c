//! Other programs use the same disk at the same time.

use super::{direct, passed, requests_each};
use crate::causes::prelude::*;
use crate::causes::{Cost, disturbed};
use crate::model::DiskLoad;
use linerate_plan::transport::file::SYNC;

/// Share of the disk's work that is not ours, from which on it matters.
const FOREIGN: f64 = 0.1;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-contended",
    name: "other programs use the same disk",
    needs: &[Feature::Disk],
    stage: Stage::Device,
    only_disturbs: true,
    may_be_unread: true,
    page: include_str!("../pages/disk-contended.md"),
    check: |model, direction| disturbed(&CAUSE, model, direction, "the disk did little for others"),
    costs,
    advice: |_, _| vec![advice()],
    ..Cause::BASE
};

fn costs(model: &Model, direction: Direction) -> Vec<Cost> {
    let Ok((load, disk)) = direct(model, direction) else {
        return Vec::new();
    };
    // A RAID reads and writes by itself, and the page cache writes later what was written before.
    // With sync the file system writes its journal as well.
    let syncs = load.knobs.options.is_on(SYNC.key);
    if super::is_raid(model) || super::is_buffered(load) || syncs {
        return Vec::new();
    }
    let own = requests_each(load, disk).map(|each| (each, passed(load, disk)));
    let share = others(disk, own);
    if share < FOREIGN {
        return Vec::new();
    }
    vec![Cost {
        side: Place::Far,
        share: Some(share),
        evidence: vec![format!("{} of what the disk did was not of this run", percent(share))],
        advice: vec![advice()],
    }]
}

/// Share of the disk's bytes, or of its requests if that is larger, that are not of the load. `own`: requests for each
/// operation, and bytes for each byte of payload, both in the direction of the load.
fn others(disk: DiskLoad, own: Option<(f64, f64)>) -> f64 {
    let all = disk.own + disk.other;
    let beyond = |passed: f64, own: f64, other: f64, all: f64| {
        let extra = if passed > 1.0 { own * (1.0 - 1.0 / passed) } else { 0.0 };
        (extra + other) / all.max(1.0)
    };
    let passed = own.map_or(1.0, |(_, passed)| passed);
    let bytes = beyond(passed, disk.own.bytes, disk.other.bytes, all.bytes);
    // More requests than operations are parts of large ones, unless more bytes than the payload moved as well.
    let requests = disk.other.requests / all.requests.max(1.0);
    bytes.max(requests)
}

fn advice() -> Advice {
    Advice::new("wait until the other programs have ended, then run again (iotop shows them)")
}
