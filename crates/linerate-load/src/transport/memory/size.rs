//! Chooses the size of the arrays.

use linerate_facts::Gap;
use linerate_facts::memory::CACHES;
use linerate_plan::{Knobs, Pattern, SetPlan};
use linerate_units::Bytes;

use super::{arrays_of, refused};
use crate::LoadError;
use linerate_host::Room;

/// Smallest array: a cache line, the unit in which a processor reads memory.
const LEAST: Bytes = Bytes(64);
/// Most memory that the threads of one CPU prepare before a step, which waits 45 s for them. An array is filled, with a
/// page fault for each page: 0.8 GB/s are fast enough. A chain for dependent loads is written line by line in random
/// order: 2 million lines per second are enough, 500 ns for each.
const PREPARED: Bytes = Bytes(32 << 30);
const CHAIN_PREPARED: Bytes = Bytes(4 << 30);
/// Size of an array if the size of the last-level cache is unknown.
const UNKNOWN: Bytes = Bytes(256 << 20);
/// Smallest array of a sweep: a page.
const SWEEP_LEAST: u64 = 4096;

/// Returns the largest array that each of `threads` threads can prepare in time on `cpus` CPUs. If the number of CPUs
/// is unknown, one is assumed.
fn in_time(pattern: Pattern, threads: u32, cpus: u32) -> Bytes {
    let most = match pattern {
        Pattern::PingPong { .. } => CHAIN_PREPARED,
        Pattern::Stream { .. } | Pattern::Operations { .. } => PREPARED,
    };
    let of_a_cpu = u64::from(threads.div_ceil(cpus.max(1)).max(1));
    Bytes(most.0 / arrays_of(pattern) / of_a_cpu)
}

/// Refuses sizes that not even a single thread can prepare in time.
pub(super) fn bounds(plan: &SetPlan) -> Result<(), String> {
    let (size, other) = (plan.knobs.write_size, plan.knobs.read_size);
    if size != other {
        return Err("an array has one size (--size)".to_owned());
    }
    let most = in_time(plan.pattern, 1, 1);
    if size == Bytes(0) || (LEAST..=most).contains(&size) {
        return Ok(());
    }
    Err(format!(
        "an array of {size}: allowed are {LEAST} to {most}, since each step waits until it is filled"
    ))
}

/// Returns how much memory is free for arrays, on `node` if one is given, and the name of the limit that determines it.
fn free(room: &Room, node: Option<u32>) -> Option<(Bytes, String)> {
    let of_node = room.nodes.iter().find(|(id, _)| Some(*id) == node);
    let of_node = of_node.and_then(|(id, free)| Some(((*free)?, format!("node {id}"))));
    let all = room.free.clone().into_iter().chain(of_node);
    all.min_by_key(|(bytes, _)| *bytes)
}

/// Returns how much of the free memory arrays may use: page tables and other programs need some memory too.
const fn takable(free: Bytes) -> u64 {
    free.0 - free.0 / 16
}

/// Returns the size of each array, with a gap if it is not the best one. A size that exceeds the free memory is refused
/// before memory is allocated.
pub(super) fn chosen(
    plan: &SetPlan,
    room: &Room,
    node: Option<u32>,
) -> Result<(Bytes, Option<Gap>), LoadError> {
    let arrays = arrays_of(plan.pattern) * u64::from(plan.knobs.streams);
    let free = free(room, node);
    let in_time = in_time(plan.pattern, plan.knobs.streams, room.cpus);
    let requested = plan.knobs.write_size;
    if requested == Bytes(0) {
        return fitting(room, free.as_ref(), arrays, in_time);
    }
    let all = Bytes(requested.0.saturating_mul(arrays));
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
                "{arrays} arrays of {requested} take {all}: {free} are free ({bound}), of which at most {most} may be used{hint}"
            );
            Err(LoadError::Unsupported { what })
        }
        _ if requested > in_time => {
            let (threads, cpus) = (plan.knobs.streams, room.cpus.max(1));
            let what = format!(
                "{threads} threads on {cpus} CPUs do not fill {all} of arrays before a step in time; --size {}MiB is possible",
                in_time.0 >> 20
            );
            Err(LoadError::Unsupported { what })
        }
        _ => Ok((requested, None)),
    }
}

/// Returns the size at which caches matter little or, if the arrays would need more than half of the free memory, the
/// largest size that fits.
fn fitting(
    room: &Room,
    free: Option<&(Bytes, String)>,
    arrays: u64,
    in_time: Bytes,
) -> Result<(Bytes, Option<Gap>), LoadError> {
    let wanted = room.last_cache.map_or(UNKNOWN, |cache| Bytes(cache.0.saturating_mul(CACHES)));
    let fits = free.map_or(u64::MAX, |(free, _)| free.0 / 2 / arrays);
    // The size is rounded down to whole pages.
    let most = fits.min(in_time.0) / SWEEP_LEAST * SWEEP_LEAST;
    let size = Bytes(wanted.0.min(most));
    if size < LEAST {
        let (free, bound) = free.cloned().unwrap_or_default();
        let what = format!("{arrays} arrays do not fit: {free} are free ({bound})");
        return Err(LoadError::Unsupported { what });
    }
    let why = match room.last_cache {
        None => format!("chosen without knowing the last cache: {size}"),
        Some(cache) if size < wanted && in_time.0 < fits => format!(
            "{size}, since no more is filled in time before a step: the last cache of {cache} may hold a part of it"
        ),
        Some(cache) if size < wanted => format!(
            "{size}, since no more fits in half of what is free: the last cache of {cache} may hold a part of it"
        ),
        Some(_) => return Ok((size, None)),
    };
    Ok((size, Some(refused("size", &why))))
}

/// Returns the size of the arrays if `threads` threads run at the same time: the size in `knobs` or, if they leave it
/// open, the size that `fitting` chooses. The error explains why there is no room.
pub fn room_for(
    room: &Room,
    pattern: Pattern,
    knobs: &Knobs,
    threads: u32,
) -> Result<Bytes, String> {
    let knobs = Knobs { streams: threads, ..knobs.clone() };
    let plan = SetPlan { id: 0, pattern, knobs };
    let (size, _) = chosen(&plan, room, None).map_err(|error| error.to_string())?;
    Ok(size)
}

/// Returns the smallest and the largest array of a sweep with `threads` threads, each with as many arrays as `pattern`
/// needs. All sizes are allocated at the same time, so the largest needs at most a quarter of the free memory.
pub fn sizes(room: &Room, pattern: Pattern, threads: u32) -> [u64; 2] {
    let wanted = room.last_cache.map_or(UNKNOWN, |cache| Bytes(cache.0.saturating_mul(CACHES)));
    let arrays = arrays_of(pattern) * u64::from(threads.max(1));
    let fits = room.free.as_ref().map_or(u64::MAX, |(free, _)| free.0 / 4 / arrays);
    let most = fits.min(in_time(pattern, threads, room.cpus).0);
    [SWEEP_LEAST, wanted.0.min(most).max(SWEEP_LEAST)]
}

#[cfg(test)]
mod tests {
    use linerate_plan::Access;
    use proptest::prelude::*;

    use super::*;

    fn plan(access: Access, size: u64, threads: u32) -> SetPlan {
        SetPlan {
            id: 0,
            pattern: Pattern::Operations { access },
            knobs: Knobs {
                streams: threads,
                write_size: Bytes(size),
                read_size: Bytes(size),
                ..Knobs::default()
            },
        }
    }

    fn room(cache: Option<u64>, free: u64) -> Room {
        Room {
            last_cache: cache.map(Bytes),
            free: Some((Bytes(free), "the test".to_owned())),
            cpus: 2,
            nodes: Vec::new(),
        }
    }

    fn size_of(plan: &SetPlan, room: &Room) -> Result<(u64, Option<String>), String> {
        let chosen = chosen(plan, room, None).map_err(|error| error.to_string())?;
        Ok((chosen.0.0, chosen.1.map(|gap| gap.why)))
    }

    #[test]
    fn what_is_not_free_is_refused_on_both_sides_of_the_bound() {
        // Of 16000 free bytes 15000 may be used: 7500 for each of the two arrays of a copy.
        let room = room(Some(64), 16_000);
        for (access, size, threads, fits) in [
            (Access::Read, 15_000, 1, true),
            (Access::Read, 15_001, 1, false),
            (Access::Copy, 7500, 1, true),
            (Access::Copy, 7501, 1, false),
            (Access::Write, 3750, 4, true),
            (Access::Write, 3751, 4, false),
            (Access::Copy, u64::MAX, 4096, false),
        ] {
            let found = size_of(&plan(access, size, threads), &room);
            assert_eq!(found.is_ok(), fits, "{access:?} {size} {found:?}");
            if let Err(why) = found {
                assert!(why.contains("15.6 KiB are free (the test)"), "{why}");
            }
        }
    }

    #[test]
    fn a_node_that_was_asked_for_bounds_what_is_free() {
        let mut room = room(Some(64), 1 << 30);
        room.nodes = vec![(0, Some(Bytes(16_000))), (1, None)];
        let requested = plan(Access::Read, 15_001, 1);
        let why = chosen(&requested, &room, Some(0)).unwrap_err().to_string();
        assert!(why.contains("node 0"), "{why}");
        assert!(chosen(&requested, &room, Some(1)).is_ok());
        assert!(chosen(&requested, &room, None).is_ok());
    }

    #[test]
    fn an_open_size_is_four_times_the_last_cache_or_what_fits() {
        let open = plan(Access::Copy, 0, 2);
        let of = |cache, free| size_of(&open, &room(cache, free)).unwrap();
        let cache = 1 << 20;
        // There are four arrays. Half of the free memory must have room for four times the cache in each.
        assert_eq!(of(Some(cache), 32 << 20), (4 << 20, None));
        let (size, why) = of(Some(cache), (32 << 20) - 1);
        assert!(size < 4 << 20 && size % SWEEP_LEAST == 0, "{size}");
        assert!(why.unwrap().contains("last cache of 1 MiB"));
        let (size, why) = of(None, 1 << 40);
        assert_eq!(size, UNKNOWN.0);
        assert!(why.unwrap().contains("without knowing"));
        assert!(size_of(&open, &room(Some(cache), 9)).is_err());
    }

    #[test]
    fn sizes_that_no_host_has_are_refused_on_both_sides_of_each_limit() {
        let loads = Pattern::PingPong { size: Bytes(8), interval: linerate_units::Nanos(0) };
        let [copy, read] =
            [Access::Copy, Access::Read].map(|access| Pattern::Operations { access });
        for (pattern, size, good) in [
            (copy, 0, true),
            (copy, 63, false),
            (copy, 64, true),
            (copy, 16 << 30, true),
            (copy, (16 << 30) + 1, false),
            (read, 32 << 30, true),
            (read, (32 << 30) + 1, false),
            (loads, 4 << 30, true),
            (loads, (4 << 30) + 1, false),
        ] {
            let plan = SetPlan { pattern, ..plan(Access::Copy, size, 1) };
            assert_eq!(bounds(&plan).is_ok(), good, "{pattern:?} {size}");
        }
    }

    #[test]
    fn threads_that_share_a_cpu_share_what_is_filled_in_time() {
        const GIB: u64 = 1 << 30;
        // Two CPUs, and enough memory for all sizes.
        let room = room(Some(64), 1 << 50);
        for (size, threads, fits) in [
            (32 * GIB, 2, true),
            (32 * GIB, 3, false),
            (16 * GIB, 4, true),
            (16 * GIB + 1, 4, false),
        ] {
            let found = size_of(&plan(Access::Read, size, threads), &room);
            assert_eq!(found.is_ok(), fits, "{size} {threads} {found:?}");
            if let Err(why) = found {
                let known = "on 2 CPUs do not fill";
                assert!(why.contains(known) && why.contains("--size 16384MiB"), "{why}");
            }
        }
        // An unknown number of CPUs counts as one.
        let unknown = Room { cpus: 0, ..room };
        assert!(size_of(&plan(Access::Read, 32 * GIB, 1), &unknown).is_ok());
        assert!(size_of(&plan(Access::Read, 32 * GIB, 2), &unknown).is_err());
    }

    #[test]
    fn an_open_size_is_no_larger_than_what_is_filled_in_time() {
        let open = plan(Access::Copy, 0, 2);
        let of = |cache| size_of(&open, &room(Some(cache), 1 << 50)).unwrap();
        assert_eq!(of(4 << 30), (16 << 30, None));
        let (size, why) = of((4 << 30) + 1);
        assert_eq!(size, 16 << 30);
        assert!(why.unwrap().contains("filled in time"));
    }

    proptest! {
        #[test]
        fn all_sizes_of_a_sweep_fit_at_the_same_time(
            cache in 0_u64..1 << 40, free in 1_u64 << 20..1 << 44, threads in 1_u32..4,
        ) {
            let [least, most] = sizes(&room(Some(cache), free), plan(Access::Copy, 0, 1).pattern, threads);
            let all: u64 = linerate_plan::transport::Swept::sizes(&Knobs::default(), [least, most])
                .iter()
                .map(|knobs| knobs.write_size.0 * 2 * u64::from(threads))
                .sum();
            prop_assert!(all <= free, "{all} of {free}");
        }

        #[test]
        fn nothing_overflows(size in any::<u64>(), cache in any::<u64>(), free in any::<u64>(), threads in 1_u32..5000) {
            let room = room(Some(cache), free);
            let _ = size_of(&plan(Access::Copy, size, threads), &room);
            let _ = size_of(&plan(Access::Copy, 0, threads), &room);
            let _ = sizes(&room, plan(Access::Copy, 0, 1).pattern, threads);
        }
    }
}
