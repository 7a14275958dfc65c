//! One step, steered from the near end: arm both ends, let both go, read both when both have ended.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use linerate_core::path::Side;
use linerate_core::plan::{Pattern, StepPlan};
use linerate_core::record::{ClockPair, EndReadings, Step, Total, Trouble};
use linerate_core::transport::FarEnd;
use linerate_core::wire::message::{Answer, Ask};

use super::{ANSWER, Client, load};
use crate::end::Running;
use crate::link::{Ended, Link, LinkError, Live, StepControl};
use crate::peer::channel::ChannelError;

/// Time from one call of `watch` to the next.
const LOOK: Duration = Duration::from_millis(100);
/// Time that a step may take beyond its plan.
const OVERTIME: Duration = Duration::from_secs(20);
/// So long before its time a step ends only where something failed.
const EARLY: Duration = Duration::from_secs(1);
/// Time for the far end to get its threads ready, hundreds of them at times.
const ARM: Duration = Duration::from_secs(60);
/// Time for the far end to end its step, as late as it may, and to send what it read.
const READINGS: Duration = Duration::from_secs(110);
/// The same once the user wants to stop: what was read here is kept without it.
const READINGS_STOPPED: Duration = Duration::from_secs(3);
/// Questions for the time; the one that was answered fastest counts.
const PINGS: usize = 8;
/// On a long path fewer will do: the time that they take would be missed elsewhere.
const PINGS_MIN: usize = 2;
const PINGS_TIME: Duration = Duration::from_millis(20);
/// Two clocks drift apart by a thousandth of the time at most: the kernel corrects the frequency of each by up to 500 ppm
/// (MAXFREQ, include/linux/timex.h).
//= https://github.com/torvalds/linux/blob/v6.12/include/linux/timex.h
const DRIFT: u64 = 1_000;
/// An offset is asked for again once its bound may have grown by this part of it.
const GROWTH: u64 = 4;

/// Runs a step.
pub(super) fn run(
    client: &mut Client,
    plan: &StepPlan,
    watch: &mut dyn FnMut(Live) -> StepControl,
) -> Result<Step, LinkError> {
    let clock = clock(client)?;
    let mut running = arm(client, plan)?;
    let (began, far_began) = go(client, plan, &mut running)?;
    let mut watch = Watch {
        ask: watch,
        live: running.live(),
        ended: Ended::default(),
    };
    let readings = drive(client, plan, running, &mut watch);
    let mut step = Step {
        plan: watch.ended.plan(plan),
        began: began.into(),
        ends: vec![readings],
        clock: Some(clock.since(began, far_began)),
        trouble: None,
    };
    let answer = far(client, &mut watch);
    step.trouble = watch.ended.stopped.then(|| trouble(Side::Near, "stopped"));
    match answer {
        Ok(readings) => step.ends.push(readings),
        // What was read here is kept; the next request says that the far end is gone.
        Err(LinkError::Lost { what, .. } | LinkError::Refused { what, .. }) => {
            step.trouble.get_or_insert(trouble(Side::Far, &what));
        }
        Err(e @ LinkError::Interrupted) => return Err(e),
    }
    if step.trouble.is_none() {
        let paired = client
            .end
            .info()
            .is_some_and(|t| t.far_end != FarEnd::Absent && !t.lossy);
        step.trouble = disorder(&step.ends, &client.sets, paired);
    }
    Ok(step)
}

/// The first stream that did not end in order: an end missed its end mark, or received something
/// else than what the other end sent. Ends that are not `paired` exchange nothing, or may lose some.
fn disorder(ends: &[EndReadings], sets: &HashMap<u32, Pattern>, paired: bool) -> Option<Trouble> {
    let [near, far] = ends else {
        return None;
    };
    for (side, end) in [(Side::Near, near), (Side::Far, far)] {
        if let Some(t) = end.totals.iter().find(|t| !t.complete) {
            let what = format!("stream {} of set {} did not end in order", t.stream, t.set);
            return Some(trouble(side, &what));
        }
    }
    let directed = |set| match sets.get(&set) {
        Some(Pattern::Stream { direction }) if paired => Some(*direction),
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

fn trouble(side: Side, what: &str) -> Trouble {
    Trouble {
        side,
        what: what.into(),
    }
}

/// Arms the far end, then the near one.
fn arm(client: &mut Client, plan: &StepPlan) -> Result<Running, LinkError> {
    let ask = Ask::Step { plan: plan.clone() };
    match client.request(&ask, ARM)? {
        Answer::Armed => {}
        _ => return Err(client.out_of_turn()),
    }
    match client.end.arm(plan) {
        Ok(running) => Ok(running),
        Err(e) => match client.request(&Ask::Disarm, ANSWER)? {
            Answer::Disarmed => Err(load(&e)),
            _ => Err(client.out_of_turn()),
        },
    }
}

/// Lets both ends go, the one that receives first; when each began, on its own clock.
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
    let Answer::Going { began: far_began } = client.request(&Ask::Go, ANSWER)? else {
        return Err(client.out_of_turn());
    };
    if !near_first {
        began = client.epoch.elapsed();
        running.go();
    }
    Ok((began, far_began))
}

/// Who watches a step, and whether they want it to end.
struct Watch<'a> {
    ask: &'a mut dyn FnMut(Live) -> StepControl,
    /// What was last seen of the near end.
    live: Live,
    ended: Ended,
}

impl Watch<'_> {
    /// Shows what was last seen; true where the step is to end now.
    fn ends(&mut self) -> bool {
        self.ended.by((self.ask)(self.live), self.live)
    }

    /// The same once the step is over: only a stop matters then; true for the first one.
    fn stops(&mut self) -> bool {
        let before = self.ended.stopped;
        self.ended.stopped |= (self.ask)(self.live) == StepControl::Stop;
        self.ended.stopped && !before
    }
}

/// Runs the near end of a step to its end; what was read.
fn drive(
    client: &mut Client,
    plan: &StepPlan,
    mut running: Running,
    watch: &mut Watch<'_>,
) -> EndReadings {
    let planned = Instant::now() + plan.washout.duration() + plan.measure.duration();
    let deadline = planned + OVERTIME;
    while !running.done(LOOK) {
        watch.live = running.live();
        if watch.ends() {
            // If this cannot be sent, the far end is gone; this is reported below.
            let _ = client.send(&Ask::Stop);
            running.stop();
        }
        if !silent(client) || Instant::now() >= deadline {
            running.abort();
            break;
        }
    }
    if Instant::now() + EARLY < planned && !watch.ended.is_asked() && client.lost.is_none() {
        // What ended it early here is in the readings; the far end need not go on alone.
        let _ = client.send(&Ask::Stop);
    }
    running.finish()
}

/// The far end says nothing while a step runs, unless it ends the session.
fn silent(client: &mut Client) -> bool {
    let message = match client.channel.try_receive() {
        Ok(None) => return true,
        Ok(Some(message)) => Answer::decode(&message).map_err(|e| e.to_string()),
        Err(e) => Err(e.to_string()),
    };
    match message {
        Ok(Answer::Bye { what }) | Err(what) => drop(client.lose(&what, "")),
        Ok(_) => drop(client.out_of_turn()),
    }
    false
}

/// The far end's readings. A user who wants to stop does not wait for an end that is silent, or that sends one
/// byte at a time.
fn far(client: &mut Client, watch: &mut Watch<'_>) -> Result<EndReadings, LinkError> {
    client.send(&Ask::Read)?;
    let patience = |stopped| if stopped { READINGS_STOPPED } else { READINGS };
    let mut until = Instant::now() + patience(watch.ended.stopped);
    loop {
        let look = until.min(Instant::now() + LOOK);
        match client.receive_by(look)? {
            Some(Answer::Readings { end }) => return Ok(end),
            Some(_) => return Err(client.out_of_turn()),
            None if look == until => return Err(client.broke(&ChannelError::TimedOut)),
            None => {}
        }
        if watch.stops() {
            until = Instant::now() + patience(true);
        }
    }
}

/// The far clock against the near one, both in nanoseconds since moments of their own.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    offset: i128,
    bound: u64,
    /// When it was asked for.
    at: u64,
}

impl Clock {
    /// From a request sent at `sent`, and its answer `at` received at `came`. The far clock was read at some
    /// time in between.
    fn of(sent: u64, at: u64, came: u64) -> Self {
        let round = came.saturating_sub(sent);
        Self {
            offset: i128::from(at) - i128::from(sent) - i128::from(round / 2),
            bound: round.div_ceil(2),
            at: came,
        }
    }

    /// By how much the bound has grown since.
    fn growth(self, now: u64) -> u64 {
        now.saturating_sub(self.at) / DRIFT
    }

    /// The same later on; `None` once it has grown too inexact.
    fn later(self, now: u64) -> Option<Self> {
        let growth = self.growth(now);
        (growth <= self.bound / GROWTH).then(|| Self {
            bound: self.bound.saturating_add(growth),
            ..self
        })
    }

    /// The same for the clocks of a step, each of which begins with it: what must be added to a
    /// time in the near readings to get the time of the same moment in the far readings.
    fn since(self, near_began: Duration, far_began: u64) -> ClockPair {
        let near_began = near_began.as_nanos() as i128;
        let offset = self.offset + near_began - i128::from(far_began);
        ClockPair {
            // A far end that lies about its clock gets a nonsensical offset, not an overflow.
            offset_ns: offset.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
            bound_ns: self.bound,
        }
    }
}

/// The far clock now. Asks for the time while the path is idle, unless the last answer is still exact enough.
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
        let Answer::Pong { at } = client.request(&Ask::Ping, ANSWER)? else {
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
    use super::*;
    use linerate_core::path::Direction;
    use proptest::prelude::*;

    fn ended(sent: u64, received: u64, complete: bool) -> EndReadings {
        let total = Total {
            set: 4,
            stream: 0,
            sent,
            received,
            complete,
        };
        EndReadings {
            totals: vec![total],
            ..EndReadings::default()
        }
    }

    #[test]
    fn a_stream_that_does_not_end_in_order_taints_the_step() {
        let sets = |direction| HashMap::from([(4, Pattern::Stream { direction })]);
        let (forward, reverse) = (sets(Direction::Forward), sets(Direction::Reverse));
        let side = |ends: [EndReadings; 2], sets, paired| {
            disorder(&ends, sets, paired).map(|trouble| trouble.side)
        };
        let (all, got) = (|ok| ended(7, 0, ok), |n, ok| ended(0, n, ok));
        assert_eq!(side([all(true), got(7, true)], &forward, true), None);
        assert_eq!(side([got(7, true), all(true)], &reverse, true), None);
        for (ends, sets, at) in [
            ([all(true), got(6, true)], &forward, Side::Far),
            ([got(6, true), all(true)], &reverse, Side::Near),
            ([all(false), got(7, true)], &forward, Side::Near),
            ([all(true), got(7, false)], &forward, Side::Far),
            ([all(true), EndReadings::default()], &forward, Side::Far),
        ] {
            assert_eq!(side(ends, sets, true), Some(at));
        }
        // Without a far end both ends only send.
        assert_eq!(side([all(true), ended(9, 0, true)], &forward, false), None);
        let pings = HashMap::from([(
            4,
            Pattern::PingPong {
                size: linerate_core::units::Bytes(1),
                interval: linerate_core::units::Nanos(0),
            },
        )]);
        assert_eq!(
            side([ended(9, 9, true), ended(8, 8, true)], &pings, true),
            None
        );
        let lost = side([ended(9, 9, true), ended(8, 8, false)], &pings, true);
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
            let asked = Clock::of(0, 0, round);
            let now = round + after;
            let later = asked.later(now);
            prop_assert_eq!(later.is_some(), after / 1_000 <= asked.bound / 4);
            if let Some(later) = later {
                // The far clock was right in the middle of the round trip, and has drifted since.
                let truth = asked.offset + i128::from(after) * i128::from(drift) / 1_000_000;
                prop_assert!((later.offset - truth).unsigned_abs() <= u128::from(later.bound));
            }
        }

        #[test]
        fn a_lying_clock_overflows_nothing(at in any::<u64>(), began in any::<u64>()) {
            let _ = Clock::of(u64::MAX, at, 0).since(Duration::MAX, began);
        }
    }
}
