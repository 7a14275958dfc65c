//! A control group of the host limits what its programs may do on the disk.

use super::{NO_GAIN, counted, facts};
use crate::causes::prelude::*;
use crate::model::allowed;
use linerate_facts::block::IoLimit;
use linerate_units::Bytes;

/// Share of a limit, from which on it counts as reached.
const REACHED: f64 = 0.9;
/// Largest share of a limit that a measurement of it shows: the kernel lets a burst pass.
const BEYOND: f64 = 1.2;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-throttled",
    name: "a control group limits the disk for its programs",
    needs: &[Feature::Disk],
    stage: Stage::App,
    decided_by: &[Factor::MoreDepth],
    proves_itself: true,
    explains: &["disk-depth-held", "disk-capped", "queue-depth"],
    page: include_str!("../pages/disk-throttled.md"),
    check,
    predict: |model, trial| match trial.factor()? {
        Factor::MoreDepth => Some(NO_GAIN),
        Factor::MoreStreams => None,
        _ => crate::causes::predict::bystander(model, trial),
    },
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let limits = facts(model).map(|facts| facts.io_limits.as_slice()).unwrap_or_default();
    if limits.is_empty() {
        base(model, direction)?;
        return Err(clear("no control group limits the disk"));
    }
    let (_, disk) = counted(model, direction)?;
    let [bytes, requests] = [disk.own.bytes, disk.own.requests];
    let shares = |limit: &IoLimit| {
        let [most_bytes, most] = allowed(limit, direction);
        let share =
            |done: f64, most: Option<u64>| Some(done / most.filter(|most| *most > 0)? as f64);
        [(share(bytes, most_bytes), true), (share(requests, most), false)]
            .into_iter()
            .filter_map(|(share, of_bytes)| Some((share?, of_bytes)))
            .collect::<Vec<_>>()
    };
    let all =
        limits.iter().flat_map(|limit| shares(limit).into_iter().map(move |one| (limit, one)));
    let Some((limit, (share, of_bytes))) = all.max_by(|a, b| a.1.0.total_cmp(&b.1.0)) else {
        return Err(clear("no limit of a control group is on this direction"));
    };
    let [most_bytes, most] = allowed(limit, direction).map(Option::unwrap_or_default);
    let most = if of_bytes {
        format!("{} in a second", Bytes(most_bytes))
    } else {
        format!("{most} operations in a second")
    };
    let words = format!(
        "io.max of the group {} allows {most}; {} of it was used",
        limit.group,
        percent(share)
    );
    if share < REACHED {
        return Err(clear(words));
    }
    let reached = share <= BEYOND;
    Ok(Finding::at(Place::Near, share.min(1.0), vec![words]).enough(reached).reached(reached))
}

fn advice(model: &Model, _: Direction) -> Vec<Advice> {
    let limits = facts(model).map(|facts| facts.io_limits.as_slice()).unwrap_or_default();
    let one = limits.first();
    one.map(|limit| {
        Advice::new(format!(
            "raise the limit of the group {} on the device {}: a unit's IOReadBandwidthMax, IOReadIOPSMax and their \
             like, or the limits of the container",
            limit.group, limit.number
        ))
    })
    .into_iter()
    .collect()
}
