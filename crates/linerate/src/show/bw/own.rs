//! What a step with linerate at both ends says.

use linerate_core::facts::Gap;
use linerate_core::model::{Load, Once, derive, once};
use linerate_core::plan::{Direction, Handover, Side};
use linerate_core::record::{End as Ending, Record, Step};
use linerate_core::units::Nanos;

use super::{End, FarEnd, Probe, Way, gap};
use crate::show::words;

const SECOND: Nanos = Nanos::from_secs(1);

impl Probe {
    /// Of a record with one step under load, with the far end `target` at `address`.
    pub fn own(target: &str, address: &str, record: &Record) -> Self {
        let plan = &record.start.plan;
        let step = record.steps.first();
        let ways: Vec<Way> = plan
            .directions
            .iter()
            .map(|d| way(record, step, *d))
            .collect();
        let mut gaps = refused(record);
        gaps.extend(ways.iter().flat_map(lacking));
        Self {
            target: target.to_owned(),
            far_end: FarEnd::Linerate,
            address: address.to_owned(),
            streams: plan.knobs.streams,
            time: step.map_or(plan.time, |step| step.plan.measure),
            lasted: lasted(record),
            washout: step.map_or(Nanos(0), |step| step.plan.washout),
            same_machine: Some(derive(record).same_machine),
            broken: broken(record),
            ways,
            look: None,
            gaps,
        }
    }
}

/// Why a record of one step is not complete; empty where it is.
pub(in crate::show) fn broken(record: &Record) -> String {
    let trouble = record.steps.iter().find_map(|step| step.trouble.as_ref());
    match (&record.end, trouble) {
        (Some(Ending::Complete), None) => String::new(),
        (Some(Ending::Failed { why }), _) => why.clone(),
        (Some(Ending::Interrupted), _) => "interrupted".to_owned(),
        (_, Some(trouble)) => format!("{} end: {}", trouble.side.name(), trouble.what),
        (None, None) => "it did not end".to_owned(),
    }
}

/// How much of the time that counts was measured, of a record of one step.
pub(in crate::show) fn lasted(record: &Record) -> Nanos {
    let Some(step) = record.steps.first() else {
        return Nanos(0);
    };
    let rows = step.ends.iter().flat_map(|end| &end.tables);
    let last = rows.filter_map(|table| table.at.last()).max();
    let counted = last.map_or(0, |at| at.saturating_sub(step.plan.washout.0));
    Nanos(counted).min(step.plan.measure)
}

/// What was asked for and refused, of the connections of all sets.
pub(in crate::show) fn refused(record: &Record) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::new();
    let ends = record
        .sets
        .iter()
        .flat_map(|set| set.ends.iter().zip([Side::Near, Side::Far]));
    for (end, side) in ends {
        for found in &end.gaps {
            let told = gap(
                format!("{} {}", side.name(), found.what),
                &found.why,
                &found.hint,
            );
            if !gaps.contains(&told) {
                gaps.push(told);
            }
        }
    }
    gaps
}

fn way(record: &Record, step: Option<&Step>, direction: Direction) -> Way {
    let found = step.and_then(|step| Some((step, once(record, step, direction)?)));
    let Some((step, once)) = found else {
        return Way {
            direction,
            goodput: None,
            received: None,
            steady: None,
            handed: None,
            seconds: Vec::new(),
            again: None,
            rtt: None,
            min_rtt: None,
            near: None,
            far: None,
        };
    };
    let load = &once.load;
    let end = |side| end(&once, usize::from(direction.receiver() == side));
    Way {
        direction,
        goodput: Some(load.goodput),
        received: once.moved[1],
        steady: Some(load.steady),
        handed: handed(load),
        seconds: seconds(load, step.plan.tick),
        again: once.again,
        rtt: load.tcp.rtt,
        min_rtt: load.tcp.min_rtt,
        near: end(Side::Near),
        far: end(Side::Far),
    }
}

/// `zerocopy, the kernel copied 100.0 % all the same`; nothing where payload was copied as usual.
fn handed(load: &Load) -> Option<String> {
    let way = load.knobs.copy;
    let became = words::copied(load).map_or_else(String::new, |words| format!(", {words}"));
    (way != Handover::Copy).then(|| format!("{}{became}", way.name()))
}

/// Goodput of each whole second.
fn seconds(load: &Load, tick: Nanos) -> Vec<f64> {
    let each = (SECOND.0 / tick.0.max(1)).max(1) as usize;
    let whole = load.ticks.chunks_exact(each);
    whole
        .map(|ticks| ticks.iter().sum::<f64>() / each as f64)
        .collect()
}

/// The sender (0) or the receiver (1).
fn end(once: &Once, role: usize) -> Option<End> {
    let (bytes, time) = once.moved[role]?;
    Some(End {
        bytes,
        time: Some(time),
        cpu_percent: None,
        cpu_per_byte: once.cpu_per_byte[role],
        made: once.load.made[role].clone(),
    })
}

/// What should be known of a direction, and is not.
fn lacking(way: &Way) -> Vec<Gap> {
    let name = way.direction.name();
    if way.goodput.is_none() {
        return vec![gap(format!("{name} goodput"), "nothing was counted", "")];
    }
    let mut gaps = Vec::new();
    let sides = [Side::Near, Side::Far];
    for side in sides {
        if way.end(side).is_none_or(|end| end.cpu_per_byte.is_none()) {
            let what = format!("{name} CPU time of the {} end", side.name());
            gaps.push(gap(what, "its threads' times could not be read", ""));
        }
    }
    if way.again.is_none() || way.rtt.is_none() {
        let what = format!("{name} retransmits and round trips of the sender");
        gaps.push(gap(what, "its kernel did not tell (TCP_INFO)", ""));
    }
    gaps
}
