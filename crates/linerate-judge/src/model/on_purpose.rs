//! Packets that a queueing discipline of a host's own port drops on purpose, at any rate and with room in its queue,
//! like a bad line.

use super::ends::end;
use super::readings::{Window, gauge, growth, mean};
use super::{Local, LocalEvent};
use linerate_facts::metric as m;
use linerate_record::{EndReadings, Step, Table};

/// Minimum share of a queueing discipline's packet limit at which it has no room left.
const FULL: f64 = 0.9;

/// Minimum share of samples without room, at which a queueing discipline may have dropped packets for lack of room.
const OFTEN: f64 = 0.1;

/// Separates packets that were dropped on purpose from those that were dropped for lack of room.
pub(super) fn part(all: &mut Vec<Local>, step: &Step, window: Window) {
    for local in all.iter_mut().filter(|l| l.what == LocalEvent::Queue) {
        let meant = end(step, local.side).and_then(|end| meant(end, &local.subject, window));
        if meant.is_some() {
            (local.what, local.meant) = (LocalEvent::Meant, meant);
        }
    }
    // The parent of a queueing discipline counts the packets that its child drops on purpose as well.
    let lost: Vec<Local> = of(all, LocalEvent::Meant).cloned().collect();
    for local in all.iter_mut().filter(|l| l.what == LocalEvent::Queue) {
        let below = lost.iter().filter(|meant| shares_port(meant, local));
        let below: f64 = below.map(|meant| meant.count).sum();
        let left = (local.count - below).max(0.0);
        local.per_sec *= left / local.count;
        local.count = left;
    }
    all.retain(|local| local.count > 0.0);
}

/// A queueing discipline dropped packets on purpose if it dropped at most `MORE` times its configured share, plus
/// `BEYOND` packets.
const MORE: f64 = 3.0;
const BEYOND: f64 = 10.0;

/// The share of packets that a queueing discipline is set to drop; `None` if it drops nothing on purpose, was full, or
/// dropped far more than that share: a burst may fill it between two samples.
fn meant(end: &EndReadings, subject: &str, window: Window) -> Option<f64> {
    let set = end.of("shaper", subject)?;
    let share = mean(gauge(set, m::SHAPER_LOSS, window))? / 1e6;
    let limit = mean(gauge(set, m::SHAPER_LIMIT, window)).filter(|limit| *limit > 0.0);
    let queue = end.of("qdisc", subject);
    let full = limit.is_some_and(|limit| is_full(queue, limit, window));
    let more = queue.is_some_and(|queue| is_exceeded(queue, share, window));
    (share > 0.0 && !full && !more).then_some(share)
}

fn is_exceeded(queue: &Table, share: f64, window: Window) -> bool {
    let grown = |metric| growth(queue, metric, window).map(|(count, _)| count);
    let counted = grown(m::QDISC_DROPS).zip(grown(m::QDISC_PACKETS));
    counted.is_some_and(|(lost, sent)| lost > MORE * share * (sent + lost) + BEYOND)
}

fn is_full(queue: Option<&Table>, limit: f64, window: Window) -> bool {
    let waiting = queue.map(|queue| gauge(queue, m::QDISC_WAITING, window));
    let share = waiting.and_then(|all| mean(all.map(|n| f64::from(u8::from(n >= limit * FULL)))));
    share.is_some_and(|share| share >= OFTEN)
}

fn of(all: &[Local], what: LocalEvent) -> impl Iterator<Item = &Local> {
    all.iter().filter(move |local| local.what == what)
}

/// Whether two queueing disciplines belong to one tree; ingress filters belong to none.
fn shares_port(one: &Local, other: &Local) -> bool {
    !other.sees_arrivals() && one.side == other.side && one.port() == other.port()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, table};
    use super::*;
    use linerate_plan::{Purpose, StepPlan};
    use linerate_units::Nanos;

    /// A queueing discipline that dropped so many packets, and held `waiting` packets in two samples.
    fn queue(subject: &str, drops: i64, waiting: [i64; 2]) -> Table {
        let drops = (m::QDISC_DROPS, [7, 7 + drops]);
        table(subject, &[drops, (m::QDISC_WAITING, waiting)])
    }

    fn netem(loss_ppm: i64) -> Table {
        let set = [(m::SHAPER_LOSS, loss_ppm), (m::SHAPER_LIMIT, 1_000)];
        table("eth0 netem 1:", &set.map(|(metric, v)| (metric, [v, v])))
    }

    /// For each counter of drops: its kind, its queueing discipline, the drops per second, and the share that is
    /// dropped on purpose.
    fn result_of(tables: Vec<Table>) -> Vec<(LocalEvent, String, f64, Option<f64>)> {
        let near = EndReadings { tables, ..EndReadings::default() };
        let step = Step {
            plan: StepPlan {
                index: 0,
                purpose: Purpose::Both,
                sets: vec![3],
                washout: Nanos(0),
                measure: Nanos::from_secs(1),
                tick: Nanos::from_secs(1),
            },
            began: Nanos(0),
            ends: vec![near, EndReadings::default()],
            clock: None,
            took: Nanos(0),
            trouble: None,
        };
        let all = super::super::local::local(&[], None, &step, WHOLE).into_iter();
        all.map(|l| (l.what, l.subject, l.per_sec, l.meant)).collect()
    }

    #[test]
    fn what_netem_is_set_to_lose_is_not_dropped_for_want_of_room() {
        let at = |loss_ppm, waiting| {
            let all = result_of(vec![queue("eth0 netem 1:", 30, waiting), netem(loss_ppm)]);
            (all[0].0, all[0].3)
        };
        let meant = (LocalEvent::Meant, Some(0.01));
        assert_eq!(at(10_000, [500, 899]), meant);
        assert_eq!(at(10_000, [500, 900]), (LocalEvent::Queue, None), "full");
        assert_eq!(at(0, [500, 500]), (LocalEvent::Queue, None), "set to lose none");
        let unset = result_of(vec![queue("eth0 netem 1:", 30, [0, 0])]);
        assert_eq!(unset[0].0, LocalEvent::Queue, "nobody read what it is set to");
    }

    #[test]
    fn far_more_than_it_is_set_to_lose_found_no_room() {
        let at = |sent: i64| {
            let mut queue = queue("eth0 netem 1:", 30, [0, 0]);
            let more = table("eth0 netem 1:", &[(m::QDISC_PACKETS, [9, 9 + sent])]);
            queue.columns.extend(more.columns);
            result_of(vec![queue, netem(10_000)])[0].0
        };
        assert_eq!((at(637), at(636)), (LocalEvent::Meant, LocalEvent::Queue));
    }

    #[test]
    fn what_it_hangs_on_counts_it_too() {
        let port = |parent: Table| {
            result_of(vec![queue("eth0 netem 1:", 30, [0, 0]), netem(10_000), parent])
        };
        assert_eq!(port(queue("eth0 htb 2:", 30, [0, 0])).len(), 1);
        let more = port(queue("eth0 htb 2:", 40, [0, 0]));
        let htb = (LocalEvent::Queue, "eth0 htb 2:".to_owned(), 10.0, None);
        assert!(more.contains(&htb), "{more:?}");
        // Ingress filters and queues of another port count only their own drops.
        for other in ["eth0 clsact ffff:", "eth0 ingress ffff:", "eth1 htb 2:"] {
            let all = port(queue(other, 30, [0, 0]));
            let all_of_it = (LocalEvent::Queue, other.to_owned(), 30.0, None);
            assert!(all.contains(&all_of_it), "{all:?}");
        }
    }
}
