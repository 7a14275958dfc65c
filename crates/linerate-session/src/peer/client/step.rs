//! Runs one step from the near end: arms both ends, starts both, and reads both once they have ended.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use linerate_plan::path::Side;
use linerate_plan::{Pattern, StepPlan};
use linerate_record::wire::message::{Answer, Ask};
use linerate_record::wire::preamble::BEATS;
use linerate_record::{ClockPair, EndReadings, Step, Total, Trouble};
use linerate_units::Nanos;

use super::waiting::{GIVEN_UP, TOLD, for_streams, look};
use super::{Client, Joined, load};
use crate::end::{Running, is_unfinished};
use crate::link::{Ended, Link, LinkError, Live, StepControl};
use crate::peer::channel::ChannelError;

/// Time between calls of `watch`.
const LOOK: Duration = Duration::from_millis(100);
/// Time that a step may last beyond its planned end.
const OVERTIME: Duration = Duration::from_secs(20);
/// A step that ends up to this time before its planned end has not failed.
const EARLY: Duration = Duration::from_secs(1);
/// Time within which the far end must end its step, including the longest drain, and send its readings.
const READINGS: Duration = Duration::from_secs(110);
/// Time within which the far end must send its readings once the
/// user wants to stop. Otherwise only the near readings are kept.
const READINGS_STOPPED: Duration = Duration::from_secs(3);
/// Number of requests for the time of the far clock. The answer with the shortest round trip is used.
const PINGS: usize = 8;
/// Number of requests on a path with long round trips, where more requests would take time from the steps.
const PINGS_MIN: usize = 2;
const PINGS_TIME: Duration = Duration::from_millis(20);
/// Two clocks drift apart by at most a thousandth of the elapsed time: the kernel corrects the frequency of each by
/// up to 500 ppm (MAXFREQ, include/linux/timex.h).
//= https://github.com/torvalds/linux/blob/v6.12/include/linux/timex.h
const DRIFT: u64 = 1_000;
/// Divisor of the error bound: the offset is measured again once
/// drift may have increased the bound by more than a quarter of it.
const GROWTH: u64 = 4;

/// Runs a step on both ends and returns the readings of both.
pub(super) fn run(
    client: &mut Client,
    plan: &StepPlan,
    watch: &mut dyn FnMut(Live) -> StepControl,
) -> Result<Step, LinkError> {
    let clock = clock(client)?;
    let mut running = arm(client, plan)?;
    let (began, far_began) = go(client, plan, &mut running)?;
    let mut watch = Watch { ask: watch, live: running.live(), ended: Ended::default() };
    let readings = drive(client, plan, running, &mut watch);
    let mut step = Step {
        plan: watch.ended.plan(plan),
        began: began.into(),
        ends: vec![readings],
        clock: Some(clock.since(began, far_began)),
        took: Nanos(0),
        trouble: None,
    };
    let answer = far(client, &mut watch);
    step.trouble = watch.ended.stopped.then(|| trouble(Side::Near, "stopped"));
    match answer {
        Ok(readings) => step.ends.push(readings),
        // The near readings are kept. The next request will report that the far end is gone.
        Err(LinkError::Lost { what, .. } | LinkError::Refused { what, .. }) => {
            step.trouble.get_or_insert(trouble(Side::Far, &what));
        }
        Err(e @ LinkError::Interrupted) => return Err(e),
    }
    if step.trouble.is_none() {
        step.trouble = disorder(&step.ends, &client.sets);
    }
    Ok(step)
}

/// Finds the first stream that did not end in order: an end received no end mark, or received a different number of
/// bytes than the other end sent. Byte counts are compared only if the set is paired, since without pairing the ends
/// exchange no payload, or may lose some.
fn disorder(ends: &[EndReadings], sets: &HashMap<u32, Joined>) -> Option<Trouble> {
    let [near, far] = ends else {
        return None;
    };
    for (side, end) in [(Side::Near, near), (Side::Far, far)] {
        if let Some(t) = end.totals.iter().find(|t| !t.complete) {
            let what = format!("stream {} of set {} did not end in order", t.stream, t.set);
            return Some(trouble(side, &format!("{what}{}", reasons(ends))));
        }
    }
    let directed = |set| match sets.get(&set).copied() {
        Some(Joined { pattern: Pattern::Stream { direction }, paired: true, .. }) => {
            Some(direction)
        }
        _ => None,
    };
    let same = |a: &Total, b: &Total| (a.set, a.stream) == (b.set, b.stream);
    near.totals.iter().find_map(|mine| {
        let receiver = directed(mine.set)?.receiver();
        let theirs = far.totals.iter().find(|t| same(t, mine));
        let (put, got) = match receiver {
            Side::Near => (theirs.map_or(0, |t| t.sent), mine.received),
            Side::Far => (mine.sent, theirs.map_or(0, |t| t.received)),
        };
        let what = format!(
            "stream {} of set {} sent {put} bytes and received {got}",
            mine.stream, mine.set
        );
        (put != got).then(|| trouble(receiver, &what))
    })
}

/// Returns the reasons of both ends for streams that did not end in
/// order. The reason of one end may have caused that of the other.
fn reasons(ends: &[EndReadings]) -> String {
    let sides = [Side::Near, Side::Far].into_iter().zip(ends);
    let reasons: Vec<_> = sides
        .filter_map(|(side, end)| {
            let gap = end.gaps.iter().find(|gap| is_unfinished(gap))?;
            Some(format!("{}: {}", side.name(), gap.why))
        })
        .collect();
    if reasons.is_empty() {
        return String::new();
    }
    format!(" ({})", reasons.join("; "))
}

fn trouble(side: Side, what: &str) -> Trouble {
    Trouble { side, what: what.into() }
}

/// Arms the far end, then the near end.
fn arm(client: &mut Client, plan: &StepPlan) -> Result<Running, LinkError> {
    let ask = Ask::Step { plan: plan.clone() };
    let sets = client.sets.iter().filter(|(id, _)| plan.sets.contains(id));
    let streams = sets.map(|(_, joined)| joined.streams).sum();
    client.send(&ask)?;
    match client.receive(for_streams(streams))? {
        Answer::Armed => {}
        _ => return Err(client.out_of_turn()),
    }
    match client.end.arm(plan) {
        Ok(running) => Ok(running),
        Err(e) => match client.request(&Ask::Disarm)? {
            Answer::Disarmed => Err(load(&e)),
            _ => Err(client.out_of_turn()),
        },
    }
}

/// Starts both ends, the receiving end first. Returns the start time of each end on its own clock.
fn go(
    client: &mut Client,
    plan: &StepPlan,
    running: &mut Running,
) -> Result<(Duration, u64), LinkError> {
    let near_first = plan.sets.iter().all(|set| client.receives(*set));
    let mut began = client.epoch.elapsed();
    if near_first {
        running.go();
    }
    let Answer::Going { began: far_began } = client.request(&Ask::Go)? else {
        return Err(client.out_of_turn());
    };
    if !near_first {
        began = client.epoch.elapsed();
        running.go();
    }
    Ok((began, far_began))
}

/// The callback that watches a step, and whether the callback has requested the end.
struct Watch<'a> {
    ask: &'a mut dyn FnMut(Live) -> StepControl,
    /// Latest progress of the near end.
    live: Live,
    ended: Ended,
}

impl Watch<'_> {
    /// Passes the latest progress to the callback; returns true if the end of the step must be requested now.
    fn ends(&mut self) -> bool {
        self.ended.by((self.ask)(self.live), self.live)
    }

    /// Calls the callback after the step has ended, when only a
    /// stop by the user matters. Returns true at the first stop.
    fn stops(&mut self) -> bool {
        let before = self.ended.stopped;
        self.ended.stopped |= (self.ask)(self.live) == StepControl::Stop;
        self.ended.stopped && !before
    }
}

/// Runs the near end of a step until it ends, and returns its readings.
fn drive(
    client: &mut Client,
    plan: &StepPlan,
    mut running: Running,
    watch: &mut Watch<'_>,
) -> EndReadings {
    let planned = Instant::now() + plan.washout.duration() + plan.measure.duration();
    let deadline = planned + OVERTIME;
    let mut silent = Duration::ZERO;
    while !running.done(LOOK) {
        watch.live = running.live();
        if watch.ends() {
            // If this request cannot be sent, the far end is gone. Then `far` reports this.
            let _ = client.send(&Ask::Stop);
            running.stop();
        }
        if !goes_on(client) || Instant::now() >= deadline {
            running.abort();
            break;
        }
        silent = client.silent();
    }
    if client.lost.is_some() && silent >= TOLD {
        watch.ended.unanswered(watch.live, silent);
    }
    if Instant::now() + EARLY < planned && !watch.ended.is_requested() && client.lost.is_none() {
        // The step ended early at this end, and the near readings have the reason. The far end need not continue alone.
        let _ = client.send(&Ask::Stop);
    }
    running.finish()
}

/// Returns whether the far end still answers. During a step it answers
/// heartbeats and sends nothing else: any other message ends the session.
fn goes_on(client: &mut Client) -> bool {
    let went = client
        .receive_by(Instant::now())
        .and_then(|answer| match answer {
            None => client.beat(),
            Some(_) => Err(client.out_of_turn()),
        })
        .and_then(|()| client.still(GIVEN_UP));
    if let Err(LinkError::Refused { .. }) = went {
        drop(client.out_of_turn());
    }
    went.is_ok()
}

/// Returns the far end's readings. Once the user wants to stop, the wait
/// is short even if the far end is silent or sends one byte at a time.
fn far(client: &mut Client, watch: &mut Watch<'_>) -> Result<EndReadings, LinkError> {
    client.send(&Ask::Read)?;
    let most = |stopped| if stopped { READINGS_STOPPED } else { READINGS };
    let mut until = Instant::now() + most(watch.ended.stopped);
    // A far end without heartbeats is silent until its step has ended.
    let patience = if client.version < BEATS { READINGS } else { GIVEN_UP };
    loop {
        match client.receive_by(look(until))? {
            Some(Answer::Readings { end }) => return Ok(end),
            Some(_) => return Err(client.out_of_turn()),
            None if Instant::now() >= until => {
                return Err(client.broke(&ChannelError::TimedOut, most(watch.ended.stopped)));
            }
            None => {
                client.beat()?;
                client.still(patience)?;
            }
        }
        if watch.stops() {
            until = Instant::now() + most(true);
        }
    }
}

/// Offset of the far clock from the near clock in nanoseconds. Each clock counts from its own epoch.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    offset: i128,
    bound: u64,
    /// Time of this measurement, on the near clock.
    at: u64,
}

impl Clock {
    /// Computes the offset from a request that was sent at `sent` and whose answer was received at `arrived`. In
    /// between, the far end read `at` from its clock.
    fn of(sent: u64, at: u64, arrived: u64) -> Self {
        let round = arrived.saturating_sub(sent);
        Self {
            offset: i128::from(at) - i128::from(sent) - i128::from(round / 2),
            bound: round.div_ceil(2),
            at: arrived,
        }
    }

    /// Returns by how many nanoseconds drift may have increased the error bound since the measurement.
    fn growth(self, now: u64) -> u64 {
        now.saturating_sub(self.at) / DRIFT
    }

    /// Returns the offset with the error bound that it has at the
    /// time `now`; `None` if drift has increased the bound too much.
    fn later(self, now: u64) -> Option<Self> {
        let growth = self.growth(now);
        (growth <= self.bound / GROWTH)
            .then(|| Self { bound: self.bound.saturating_add(growth), ..self })
    }

    /// Converts the offset to the clocks of a step, which start at zero. The result is added to a time in the near
    /// readings to get the same moment in the far readings.
    fn since(self, near_began: Duration, far_began: u64) -> ClockPair {
        let near_began = near_began.as_nanos() as i128;
        let offset = self.offset + near_began - i128::from(far_began);
        ClockPair {
            // If the far end sends a false time, the offset is nonsensical, but it does not overflow.
            offset_ns: offset.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
            bound_ns: self.bound,
        }
    }
}

/// Returns the current offset of the far clock. Measures the offset while
/// the path is idle, unless the last result is still precise enough.
fn clock(client: &mut Client) -> Result<Clock, LinkError> {
    let now = client.now().0;
    if let Some(clock) = client.clock.and_then(|clock| clock.later(now)) {
        return Ok(clock);
    }
    let mut best: Option<Clock> = None;
    let began = Instant::now();
    for n in 0..PINGS {
        if n >= PINGS_MIN && began.elapsed() >= PINGS_TIME {
            break;
        }
        let sent = client.now().0;
        let Answer::Pong { at } = client.request(&Ask::Ping)? else {
            return Err(client.out_of_turn());
        };
        let clock = Clock::of(sent, at, client.now().0);
        if best.is_none_or(|b| clock.bound < b.bound) {
            best = Some(clock);
        }
    }
    client.clock = best;
    best.ok_or_else(|| client.out_of_turn())
}

#[cfg(test)]
mod tests {
    use linerate_facts::Gap;

    use super::*;
    use linerate_plan::path::Direction;
    use proptest::prelude::*;

    fn ended(sent: u64, received: u64, complete: bool) -> EndReadings {
        let total = Total { set: 4, stream: 0, sent, received, complete };
        EndReadings { totals: vec![total], ..EndReadings::default() }
    }

    #[test]
    fn a_stream_that_does_not_end_in_order_taints_the_step() {
        let of = |pattern, paired| {
            let streams = 1;
            let joined = Joined { pattern, paired, streams };
            HashMap::from([(4, joined)])
        };
        let sets = |direction| of(Pattern::Stream { direction }, true);
        let (forward, reverse) = (sets(Direction::Forward), sets(Direction::Reverse));
        let side = |ends: [EndReadings; 2], sets| disorder(&ends, sets).map(|trouble| trouble.side);
        let (all, got) = (|ok| ended(7, 0, ok), |n, ok| ended(0, n, ok));
        assert_eq!(side([all(true), got(7, true)], &forward), None);
        assert_eq!(side([got(7, true), all(true)], &reverse), None);
        let mut gone = got(7, false);
        gone.gaps.push(Gap {
            what: "worker s4/0".to_owned(),
            why: "its thread failed".to_owned(),
            hint: String::new(),
        });
        let what = disorder(&[all(true), gone], &forward).unwrap().what;
        assert_eq!(what, "stream 0 of set 4 did not end in order (far: its thread failed)");
        for (ends, sets, at) in [
            ([all(true), got(6, true)], &forward, Side::Far),
            ([got(6, true), all(true)], &reverse, Side::Near),
            ([all(false), got(7, true)], &forward, Side::Near),
            ([all(true), got(7, false)], &forward, Side::Far),
            ([all(true), EndReadings::default()], &forward, Side::Far),
        ] {
            assert_eq!(side(ends, sets), Some(at));
        }
        // Without a far end, both ends only send, so their counts differ.
        let stream = Pattern::Stream { direction: Direction::Forward };
        let unpaired = of(stream, false);
        assert_eq!(side([all(true), ended(9, 0, true)], &unpaired), None);
        let trips = Pattern::PingPong { size: linerate_units::Bytes(1), interval: Nanos(0) };
        let trips = of(trips, true);
        assert_eq!(side([ended(9, 9, true), ended(8, 8, true)], &trips), None);
        let lost = side([ended(9, 9, true), ended(8, 8, false)], &trips);
        assert_eq!(lost, Some(Side::Far));
    }

    proptest! {
        #[test]
        fn the_truth_lies_within_the_bound(
            near in 0u64..1 << 50, far in 0u64..1 << 50, there in 0u64..1 << 30, back in 0u64..1 << 30,
            near_began in 0u64..1 << 50, far_began in 0u64..1 << 50,
        ) {
            let clock = Clock::of(near, far + there, near + there + back);
            let truth = i128::from(far) - i128::from(near);
            prop_assert!((clock.offset - truth).unsigned_abs() <= u128::from(clock.bound));

            let pair = clock.since(Duration::from_nanos(near_began), far_began);
            let on_steps = (i128::from(far) - i128::from(far_began))
                - (i128::from(near) - i128::from(near_began));
            let error = i128::from(pair.offset_ns) - on_steps;
            prop_assert!(error.unsigned_abs() <= u128::from(pair.bound_ns));
        }

        #[test]
        fn the_bound_grows_with_the_drift_until_it_is_asked_for_again(
            round in 8_000u64..1 << 30, after in 0u64..1 << 36, drift in -1_000i64..=1_000,
        ) {
            let requested = Clock::of(0, 0, round);
            let now = round + after;
            let later = requested.later(now);
            prop_assert_eq!(later.is_some(), after / 1_000 <= requested.bound / 4);
            if let Some(later) = later {
                // The far clock was right in the middle of the round trip, and has drifted since then.
                let truth = requested.offset + i128::from(after) * i128::from(drift) / 1_000_000;
                prop_assert!((later.offset - truth).unsigned_abs() <= u128::from(later.bound));
            }
        }

        #[test]
        fn a_lying_clock_overflows_nothing(at in any::<u64>(), began in any::<u64>()) {
            let _ = Clock::of(u64::MAX, at, 0).since(Duration::MAX, began);
        }
    }
}
