//! How large the arrays are.

use linerate_core::facts::Gap;
use linerate_core::plan::{Knobs, Pattern, SetPlan};
use linerate_core::units::Bytes;

use super::{arrays_of, refused};
use crate::host::Room;
use crate::load::LoadError;

/// Smallest array: what a processor takes from memory at once.
const LEAST: Bytes = Bytes(64);
/// Largest array, and largest chain: its links are written one by one before a step begins.
const MOST: Bytes = Bytes(1 << 40);
const CHAIN_MOST: Bytes = Bytes(8 << 30);
/// An array is so many times as large as the last cache, so that hardly any of it is found there.
const CACHES: u64 = 4;
/// Where the last cache is not known.
const UNKNOWN: Bytes = Bytes(256 << 20);
/// Smallest array of a sweep: a page.
const SWEEP_LEAST: u64 = 4096;

/// Refuses sizes that no host has room for.
pub(super) fn bounds(plan: &SetPlan) -> Result<(), String> {
    let (size, other) = (plan.knobs.write_size, plan.knobs.read_size);
    if size != other {
        return Err("an array has one size (--size)".to_owned());
    }
    let most = match plan.pattern {
        Pattern::PingPong { .. } => CHAIN_MOST,
        Pattern::Stream { .. } | Pattern::Operations { .. } => MOST,
    };
    if size == Bytes(0) || (LEAST..=most).contains(&size) {
        return Ok(());
    }
    Err(format!(
        "an array of {size}: {LEAST} to {most} are possible"
    ))
}

/// What is free for arrays, on `node` where one was asked for; and what bounds that.
fn free(room: &Room, node: Option<u32>) -> Option<(Bytes, String)> {
    let of_node = room.nodes.iter().find(|(id, _)| Some(*id) == node);
    let of_node = of_node.and_then(|(id, free)| Some(((*free)?, format!("node {id}"))));
    let all = room.free.clone().into_iter().chain(of_node);
    all.min_by_key(|(bytes, _)| *bytes)
}

/// What may be taken: tables of pages, and all else that runs, need some too.
const fn takable(free: Bytes) -> u64 {
    free.0 - free.0 / 16
}

/// The size of each array, with what is to be said of it. Memory that is not free is refused before it is touched.
pub(super) fn chosen(
    plan: &SetPlan,
    room: &Room,
    node: Option<u32>,
) -> Result<(Bytes, Option<Gap>), LoadError> {
    let arrays = arrays_of(plan.pattern) * u64::from(plan.knobs.streams);
    let free = free(room, node);
    let asked = plan.knobs.write_size;
    if asked == Bytes(0) {
        return fitting(room, free.as_ref(), arrays);
    }
    let all = Bytes(asked.0.saturating_mul(arrays));
    match free {
        Some((free, bound)) if all.0 > takable(free) => {
            let most = Bytes(takable(free));
            let fits = Bytes((most.0 / arrays) >> 20 << 20);
            let hint = if fits < LEAST {
                String::new()
            } else {
                format!("; --size {}MiB would fit", fits.0 >> 20)
            };
            let what = format!(
                "{arrays} arrays of {asked} take {all}: {free} are free ({bound}), of which {most} may be taken{hint}"
            );
            Err(LoadError::Unsupported { what })
        }
        _ => Ok((asked, None)),
    }
}

/// A size by which caches matter little, where half of what is free has room for that.
fn fitting(
    room: &Room,
    free: Option<&(Bytes, String)>,
    arrays: u64,
) -> Result<(Bytes, Option<Gap>), LoadError> {
    let wanted = room
        .last_cache
        .map_or(UNKNOWN, |cache| Bytes(cache.0.saturating_mul(CACHES)));
    let wanted = wanted.min(CHAIN_MOST);
    let fits = free.map_or(u64::MAX, |(free, _)| free.0 / 2 / arrays);
    // Whole pages.
    let size = Bytes(wanted.0.min(fits / SWEEP_LEAST * SWEEP_LEAST));
    if size < LEAST {
        let (free, bound) = free.cloned().unwrap_or_default();
        let what = format!("{arrays} arrays do not fit: {free} are free ({bound})");
        return Err(LoadError::Unsupported { what });
    }
    let why = match room.last_cache {
        None => format!("chosen without knowing the last cache: {size}"),
        Some(cache) if size < wanted => format!(
            "{size}, since no more fits in half of what is free: the last cache of {cache} may hold a part of it"
        ),
        Some(_) => return Ok((size, None)),
    };
    Ok((size, Some(refused("size", &why))))
}

/// The size of arrays of so many threads at the same time: as `knobs` ask, else what fits. Why there is no room.
pub fn room_for(
    room: &Room,
    pattern: Pattern,
    knobs: &Knobs,
    threads: u32,
) -> Result<Bytes, String> {
    let knobs = Knobs {
        streams: threads,
        ..knobs.clone()
    };
    let plan = SetPlan {
        id: 0,
        pattern,
        knobs,
    };
    let (size, _) = chosen(&plan, room, None).map_err(|error| error.to_string())?;
    Ok(size)
}

/// Smallest and largest array of a sweep with so many `threads`, of operations with as many arrays as `pattern`; all sizes are there at the same time.
pub fn sizes(room: &Room, pattern: Pattern, threads: u32) -> [u64; 2] {
    let wanted = room
        .last_cache
        .map_or(UNKNOWN, |cache| Bytes(cache.0.saturating_mul(CACHES)));
    let arrays = arrays_of(pattern) * u64::from(threads.max(1));
    let fits = room
        .free
        .as_ref()
        .map_or(u64::MAX, |(free, _)| free.0 / 4 / arrays);
    [SWEEP_LEAST, wanted.0.min(fits).max(SWEEP_LEAST)]
}
