//! A sweep of round trips over message sizes: its sizes, and how it divides its time among them.
//!
//! A first pass over the sizes warms the connections up and shows how long a round trip of each size takes. The rest of
//! the time is divided into rounds, in which each size has one slice. A slice is long enough for a few round trips of
//! its size. All sizes with short round trips have slices of the same length.

use linerate_units::{Bytes, Nanos};

/// Smallest and largest message of a sweep, in bytes.
const ENDS: [u64; 2] = [2, 8 << 20];

/// The message sizes of a sweep, ascending: the powers of two from 2 B to 8 MiB that the transport can carry, and the
/// largest message that it can carry, if that is below 8 MiB. `fits` tells whether the transport can carry a size.
pub fn sizes(fits: impl Fn(Bytes) -> bool) -> Vec<Bytes> {
    let powers = (0..).map(|k| Bytes(ENDS[0] << k));
    let all = powers.take_while(|size| size.0 <= ENDS[1]);
    let mut sizes: Vec<Bytes> = all.filter(|size| fits(*size)).collect();
    let Some(last) = sizes.last().copied() else {
        return sizes;
    };
    // The largest size that fits is less than twice the last power of two that fits.
    let (mut low, mut high) = (last.0, last.0 * 2);
    while low + 1 < high && last.0 < ENDS[1] {
        let middle = u64::midpoint(low, high);
        if fits(Bytes(middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if low > last.0 {
        sizes.push(Bytes(low));
    }
    sizes
}

/// Shortest slice, in nanoseconds.
const SLICE_LEAST: u64 = 40_000_000;
/// Usual slice, in nanoseconds, and the bounds of the number of rounds. More time gives more rounds, and beyond the
/// largest number longer slices.
const SLICE: u64 = 150_000_000;
const ROUNDS: [u64; 2] = [2, 8];
/// Shortest slice, as a number of round trips of its size: one is not counted, three are.
const TRIPS: u64 = 4;
/// The wash-out of a slice is the slice divided by this number.
const WASHOUT_DIVISOR: u64 = 5;
/// The first pass may take the time of the sweep, divided by this number.
const FIRST_PASS_DIVISOR: u64 = 3;
/// A size is tried only if its round trip takes at most the time of the sweep, divided by this number.
const TRIED_DIVISOR: u64 = 8;
/// Messages up to this size, in bytes, fit one packet on any path.
const PACKET: u64 = 1024;

/// Length of a size's slice in the first pass, if its round trip is `expected` to take this time at most. The first
/// round trip of a new connection takes longer.
pub fn first_slice(expected: Nanos) -> Nanos {
    let two = expected.0.saturating_add(expected.0 / 2);
    Nanos(two.clamp(SLICE_LEAST, 10 * SLICE_LEAST))
}

/// The longest time that a round trip of the size `to` may take, if one of the smaller size `from` takes `trip`. The
/// time grows with the size, but messages that fit one packet take about the same time.
pub fn longest(trip: Nanos, from: Bytes, to: Bytes) -> Nanos {
    let ratio = to.0.div_ceil(from.0.max(PACKET));
    Nanos(trip.0.saturating_mul(ratio.max(2)))
}

/// Whether a size whose round trip takes at most `longest` may be tried in a sweep that lasts `time`.
pub const fn may_try(longest: Nanos, time: Nanos) -> bool {
    longest.0 <= time.0 / TRIED_DIVISOR
}

/// The time after which the first pass must have ended, in a sweep that lasts `time`.
pub const fn first_pass(time: Nanos) -> Nanos {
    Nanos(time.0 / FIRST_PASS_DIVISOR)
}

/// The first pass tries each n-th of `sizes` sizes; this is n. Each size takes the time `each` in the first pass. On a
/// path with long round trips not all sizes fit in its time.
pub fn every(sizes: usize, each: Nanos, time: Nanos) -> usize {
    let fit = (first_pass(time).0 / each.0.max(1)).max(1);
    (sizes as u64).div_ceil(fit).max(1) as usize
}

/// The number of rounds that fit in the time `left`. `trips` are the round trips of the sizes; each slice takes
/// `beyond` more than its length. The number is even, so that both orders of the sizes are equally frequent.
pub fn rounds(left: Nanos, trips: &[Nanos], beyond: Nanos) -> u64 {
    let each = trips.iter().map(|trip| {
        let slice = trip.0.saturating_mul(TRIPS).max(SLICE);
        slice.saturating_add(trip.0).saturating_add(beyond.0)
    });
    let round = each.fold(0, u64::saturating_add);
    let rounds = left.0 / round.max(1);
    rounds.clamp(ROUNDS[0], ROUNDS[1]) / 2 * 2
}

/// The slice of each size in a round that lasts `time`. `trips` are the round trips of the sizes, ascending by size; a
/// slice takes `beyond` more than its length. `None` for sizes that do not fit: the longest are left out first.
pub fn slices(time: Nanos, trips: &[Nanos], beyond: Nanos) -> Vec<Option<Nanos>> {
    let needs: Vec<u64> = trips.iter().map(|t| t.0.saturating_mul(TRIPS)).collect();
    // A round trip that has begun at the end of a slice is completed: this takes up to one more round trip.
    let rest = |at: usize| trips[at].0.saturating_add(beyond.0);
    let mut order: Vec<usize> = (0..trips.len()).collect();
    order.sort_by_key(|at| (needs[*at], *at));
    let least = |kept: &[usize]| {
        let each = kept.iter().map(|at| needs[*at].max(SLICE_LEAST).saturating_add(rest(*at)));
        each.fold(0, u64::saturating_add)
    };
    while !order.is_empty() && least(&order) > time.0 {
        order.pop();
    }
    let rests = order.iter().map(|at| rest(*at)).fold(0, u64::saturating_add);
    let mut free = time.0.saturating_sub(rests);
    let mut slices = vec![None; trips.len()];
    // The size with the longest round trips is first. What it needs beyond an equal share is taken from the others.
    while let Some(at) = order.pop() {
        let equal = free / (order.len() as u64 + 1);
        let slice = needs[at].max(equal);
        free = free.saturating_sub(slice);
        slices[at] = Some(Nanos(slice));
    }
    slices
}

/// Divides a slice into its wash-out and the part that is counted.
pub const fn parts(slice: Nanos) -> [Nanos; 2] {
    let washout = slice.0 / WASHOUT_DIVISOR;
    [Nanos(washout), Nanos(slice.0 - washout)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn sizes_go_as_far_as_the_transport_carries() {
        let of = |low, high| sizes(move |size| (low..=high).contains(&size.0));
        let all = of(1, 16 << 20);
        assert_eq!((all.len(), all[0], all[22]), (23, Bytes(2), Bytes(8 << 20)));
        let datagrams = of(24, 65_507);
        let ends = (datagrams[0], datagrams[datagrams.len() - 1]);
        assert_eq!((datagrams.len(), ends), (12, (Bytes(32), Bytes(65_507))));
        assert_eq!(of(1, 16 << 10).last(), Some(&Bytes(16 << 10)));
        assert_eq!(of(1, (16 << 10) + 1).last(), Some(&Bytes((16 << 10) + 1)));
        assert!(of(5, 7).is_empty());
    }

    #[test]
    fn sizes_that_are_too_many_for_a_slow_path_are_thinned() {
        let of = |each_ms| every(23, Nanos(each_ms * MS), Nanos::from_secs(20));
        // The first pass has 6.67 s: 23 sizes fit if each takes 289 ms, and 22 if each takes 290 ms.
        assert_eq!([50, 289, 290, 2_000, 60_000].map(of), [1, 1, 2, 8, 23]);
        assert_eq!(every(1, Nanos(0), Nanos(0)), 1);
        assert_eq!(every(0, Nanos(0), Nanos(0)), 1);
    }

    #[test]
    fn a_size_is_tried_if_its_round_trip_takes_an_eighth_of_the_time_at_most() {
        let time = Nanos::from_secs(20);
        assert!(may_try(Nanos(2_500_000_000), time));
        assert!(!may_try(Nanos(2_500_000_001), time));
    }

    #[test]
    fn a_larger_message_takes_longer_in_proportion_and_those_of_one_packet_alike() {
        let of = |from, to| longest(Nanos(10), Bytes(from), Bytes(to)).0;
        assert_eq!([of(2, 4), of(2, 1024), of(2, 2048), of(2, 8192)], [20, 20, 20, 80]);
        assert_eq!([of(1024, 2048), of(2048, 8192), of(32_768, 65_507)], [20, 40, 20]);
        assert_eq!(longest(Nanos(u64::MAX), Bytes(0), Bytes(9)).0, u64::MAX);
    }

    #[test]
    fn short_round_trips_share_equally_and_long_ones_take_what_they_need() {
        let of = |time, trips: &[u64], beyond| {
            let trips: Vec<Nanos> = trips.iter().map(|ms| Nanos(ms * MS)).collect();
            let found = slices(Nanos(time * MS), &trips, Nanos(beyond * MS));
            found.iter().map(|s| s.map(|s| s.0 / MS)).collect::<Vec<_>>()
        };
        assert_eq!(of(300, &[0, 0, 0], 0), [Some(100); 3]);
        assert_eq!(of(330, &[0, 0, 0], 10), [Some(100); 3]);
        assert_eq!(of(750, &[0, 0, 50, 50], 0), [Some(125), Some(125), Some(200), Some(200)]);
        // The three slices need 40 ms, 40 ms and (400 + 100) ms.
        assert_eq!(of(580, &[0, 0, 100], 0), [Some(40), Some(40), Some(400)]);
        assert_eq!(of(579, &[0, 0, 100], 0), [Some(289), Some(289), None]);
        assert_eq!(of(39, &[0], 0), [None]);
        assert!(of(39, &[], 0).is_empty());
    }

    #[test]
    fn more_time_buys_rounds_up_to_eight() {
        let of = |secs, trip| {
            let trips = [Nanos(trip * MS); 20];
            rounds(Nanos::from_secs(secs), &trips, Nanos(50 * MS))
        };
        let short = |secs| of(secs, 0);
        assert_eq!([1, 15, 16, 20, 31, 32, 500].map(short), [2, 2, 4, 4, 6, 8, 8]);
        // Each size takes (400 + 100 + 50) ms in a round.
        let long = |secs| of(secs, 100);
        assert_eq!([43, 44, 87, 88].map(long), [2, 4, 6, 8]);
    }

    #[test]
    fn first_slices_are_bounded() {
        let of = |ms| first_slice(Nanos(ms * MS)).0 / MS;
        assert_eq!([0, 26, 28, 200, 300].map(of), [40, 40, 42, 300, 400]);
        assert_eq!(first_slice(Nanos(u64::MAX)).0, 400 * MS);
        assert_eq!(parts(Nanos(100)), [Nanos(20), Nanos(80)]);
    }

    proptest! {
        #[test]
        fn a_round_keeps_to_its_time(
            time in 0_u64.., beyond in 0_u64..1 << 40, trips in prop::collection::vec(0_u64.., 0..40),
        ) {
            let trips: Vec<Nanos> = trips.into_iter().map(Nanos).collect();
            let found = slices(Nanos(time), &trips, Nanos(beyond));
            let kept = found.iter().zip(&trips).filter_map(|(slice, trip)| Some((slice.as_ref()?, trip)));
            let all: u128 = kept.map(|(slice, trip)| u128::from(slice.0) + u128::from(trip.0) + u128::from(beyond)).sum();
            prop_assert!(all <= u128::from(time));
        }
    }
}
