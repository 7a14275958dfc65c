//! Tests of loads by datagrams: where datagrams are lost, what this proves, and which rules apply to connections only.

use linerate_judge::causes::CAUSES;
use linerate_judge::model::{Datagrams, LocalEvent};
use linerate_plan::factor::TRIALS;

use super::loss::{held_by_loss, tried_with_loss};
use super::*;

/// Counts for 100,000 datagrams sent per second: the share that was lost, and the share of those that the receiver's
/// socket dropped, one by one.
fn with_loss(lost: f64, at_socket: f64) -> Datagrams {
    Datagrams {
        sent: 1e5,
        per_sec: 1e5 * (1.0 - lost),
        lost,
        at_socket: Some(at_socket),
        damaged: Some(0.0),
        joined: Some(1.0),
        reordered: 0.0,
        duplicated: 0.0,
    }
}

/// A load by datagrams of 1000 bytes. The threads of sender and receiver need these shares of their CPUs.
fn datagrams(reported: Datagrams, [sender, receiver]: [f64; 2]) -> Load {
    let goodput = reported.per_sec * 8000.0;
    Load {
        goodput: steady(goodput),
        ticks: vec![goodput; 30],
        tcp: TcpShares::default(),
        packets: Some(Packets { payload: Bytes(1000), packet: Some(Bytes(1028)), path_mtu: None }),
        transport: &UDP,
        datagrams: Some(reported),
        senders: vec![thread(sender)],
        receivers: vec![thread(receiver)],
        unread: None,
        behind: None,
        caught_up: None,
        recv_memory: Some(Bytes(64 << 10)),
        ..load()
    }
}

/// The model of a load, in which two streams sent `sent` times and carried `gain` times as much as one.
fn scaled(base: Load, sent: f64, gain: f64) -> Model {
    let mut m = model(base);
    let more = &mut m.directions[0].sweep[0];
    more.goodput = steady(more.goodput.mean * gain);
    if let Some(reported) = &mut more.datagrams {
        reported.sent *= sent;
    }
    m
}

fn named(m: &Model) -> Vec<(&'static str, Certainty)> {
    let limits = judge(m).limits;
    limits.iter().map(|l| (l.cause, l.certainty)).collect()
}

/// The outcome of every cause.
fn all_outcomes(m: &Model) -> Vec<(&'static str, &'static str)> {
    let answers = judge(m).answers;
    answers.iter().map(|a| (a.cause, a.outcome)).collect()
}

const OF_CONNECTIONS: [&str; 5] =
    ["path-reordering", "congestion-control", "receive-window", "send-buffer", "latency-nagle"];

#[test]
fn causes_of_connections_are_not_heard_of_datagrams_whatever_was_read() {
    for lost in [0.0, 0.001, 0.3, 1.0] {
        for busy in [0.1, 0.85, 0.99] {
            let m = model(datagrams(with_loss(lost, lost / 2.0), [busy, busy]));
            let outcomes = all_outcomes(&m);
            let heard = |id: &str| outcomes.iter().any(|(cause, _)| *cause == id);
            let heard_of = CAUSES.iter().filter(|c| UDP.has_all(c.needs));
            assert_eq!(outcomes.len(), heard_of.count());
            assert!(!OF_CONNECTIONS.into_iter().any(heard), "{lost} {busy}");
            let verdict = judge(&m);
            let limits = verdict.limits.iter().chain(&verdict.next);
            for limit in limits {
                assert!(!OF_CONNECTIONS.contains(&limit.cause), "{limit:?}");
            }
            assert!(verdict.unknown.iter().all(|u| !u.what.contains("tcp")), "{verdict:?}");
        }
    }
}

#[test]
fn no_trial_is_proposed_that_datagrams_do_not_have() {
    let mut base = datagrams(with_loss(0.3, 0.2), [0.99, 0.9]);
    base.knobs.pacing = Some(Rate(1_000_000_000));
    let m = model(base);
    let proposed = TRIALS.iter().filter_map(|kind| propose(kind, &m, Direction::Forward, 0));
    let kinds: Vec<String> = proposed.map(|plan| plan.kind).collect();
    assert_eq!(
        kinds,
        ["unpaced", "larger-window", "more-streams", "half-pace", "receiver-work", "sender-work"]
    );
}

#[test]
fn a_busy_sender_binds_only_where_almost_all_that_it_sends_comes() {
    let at = |lost, at_socket| {
        let m = model(datagrams(with_loss(lost, at_socket), [0.99, 0.3]));
        outcome_in(&m, "sender-core")
    };
    assert_eq!((at(0.0, 0.0), at(0.049, 0.0)), ("finding", "finding"));
    assert_eq!((at(0.051, 0.0), at(0.051, 0.051)), ("clear", "clear"));
    let mut m = model(datagrams(with_loss(0.0, 0.0), [0.99, 0.3]));
    tried(&mut m, "sender-work", 0.8);
    assert_eq!(named(&m), [("sender-core", Certainty::Proved)]);
}

#[test]
fn a_busy_reader_binds_only_where_datagrams_are_dropped_at_its_socket() {
    let at = |lost, at_socket| {
        let m = model(datagrams(with_loss(lost, at_socket), [0.5, 0.99]));
        outcome(&m, "receiver-core")
    };
    assert_eq!((at(0.2, 0.061), at(0.2, 0.059)), ("enough", "clear"));
    assert_eq!((at(0.06, 0.051), at(0.06, 0.049)), ("enough", "clear"));
    let mut m = model(datagrams(with_loss(0.2, 0.2), [0.99, 0.99]));
    assert_eq!(named(&m), [("receiver-core", Certainty::Supported)]);
    tried(&mut m, "receiver-work", 0.8);
    assert_eq!(named(&m), [("receiver-core", Certainty::Proved)]);
}

#[test]
fn drops_at_the_socket_are_its_room_where_the_reader_has_time() {
    let at = |at_socket, busy| {
        let m = model(datagrams(with_loss(0.2, at_socket), [0.5, busy]));
        outcome(&m, "socket-drops")
    };
    assert_eq!((at(0.061, 0.4), at(0.059, 0.4)), ("enough", "clear"));
    assert_eq!((at(0.2, 0.49), at(0.2, 0.51)), ("enough", "suspect"));
    assert_eq!((at(0.2, 0.89), at(0.2, 0.91)), ("suspect", "clear"));
    let few = |at_socket| {
        let m = model(datagrams(with_loss(0.06, at_socket), [0.5, 0.4]));
        outcome(&m, "socket-drops")
    };
    assert_eq!((few(0.051), few(0.049)), ("enough", "clear"));
    let uncounted = Datagrams { joined: None, ..with_loss(0.2, 0.01) };
    let m = model(datagrams(uncounted, [0.5, 0.4]));
    assert_eq!(outcome(&m, "socket-drops"), "unknown");
    assert_eq!(outcome(&m, "path-loss"), "unknown", "it may be all of it");
    let connections = model(load());
    assert_eq!(outcome(&connections, "socket-drops"), "clear");
}

#[test]
fn what_is_discarded_for_its_checksum_neither_lacked_room_nor_was_lost_on_the_way() {
    let with = |lost, damaged| {
        let reported = Datagrams { damaged, ..with_loss(lost, 0.0) };
        scaled(datagrams(reported, [0.5, 0.3]), 1.0, 1.0)
    };
    let at = |lost, damaged| {
        let m = with(lost, damaged);
        ["bad-checksums", "socket-drops", "path-loss"].map(|id| outcome(&m, id))
    };
    assert_eq!(at(0.2, Some(0.061)), ["enough", "clear", "suspect"]);
    assert_eq!(at(0.2, Some(0.059)), ["clear", "clear", "suspect"]);
    assert_eq!(at(0.2, Some(0.099)), ["enough", "clear", "suspect"]);
    assert_eq!(at(0.2, Some(0.101)), ["enough", "clear", "clear"]);
    assert_eq!(at(0.06, Some(0.051)), ["enough", "clear", "clear"]);
    assert_eq!(at(0.06, Some(0.049)), ["clear", "clear", "clear"]);
    // An older record may count damaged datagrams among the drops; this hides no other cause.
    assert_eq!(at(0.2, None), ["unknown", "clear", "suspect"]);
    assert_eq!(at(0.0, None)[0], "clear");
    let mut m = with(0.2, Some(0.2));
    assert_eq!(named(&m), [("bad-checksums", Certainty::Supported)]);
    tried_with_loss(&mut m, "half-pace", 0.5, (0.8, 1.2));
    assert_eq!(named(&m), [("bad-checksums", Certainty::Proved)]);
}

#[test]
fn a_larger_receive_buffer_tells_its_room_from_a_reader_that_is_too_slow() {
    let with = |loss: (f64, f64)| {
        let mut m = model(datagrams(with_loss(0.2, 0.2), [0.5, 0.4]));
        tried_with_loss(&mut m, "larger-window", 1.0, loss);
        named(&m)
    };
    assert_eq!(with((0.05, 0.69)), [("socket-drops", Certainty::Proved)]);
    assert_eq!(with((0.72, 1.2)), [("receiver-app", Certainty::Supported)]);
    assert_eq!(with((0.5, 0.9)), [("socket-drops", Certainty::Supported)]);
    // A buffer that holds less than a few groups of coalesced datagrams, or less than arrives in a millisecond, proves
    // nothing.
    let lost_as_many = |rate: f64, allowed: u64| {
        let mut base = datagrams(with_loss(0.2, 0.2), [0.5, 0.4]);
        base.goodput = steady(rate * 0.8);
        let mut m = model(base);
        m.hosts[1].facts.buffers.rmem_max = Some(allowed);
        tried_with_loss(&mut m, "larger-window", 1.0, (0.72, 1.2));
        named(&m)
    };
    let room = [("socket-drops", Certainty::Supported)];
    let app = [("receiver-app", Certainty::Supported)];
    assert_eq!(lost_as_many(8e8, 262_143), room);
    assert_eq!(lost_as_many(8e8, 262_144), app);
    assert_eq!(lost_as_many(8.1e9, 1_000_000), room);
    assert_eq!(lost_as_many(7.9e9, 1_000_000), app);
    // The trial requests as large a buffer as the host allows, up to 8 MiB.
    let requested = |allowed| {
        let mut m = model(datagrams(with_loss(0.2, 0.2), [0.5, 0.4]));
        m.hosts[1].facts.buffers.rmem_max = Some(allowed);
        let plan = propose(kind("larger-window")?, &m, Direction::Forward, 0)?;
        plan.after.recv_buffer.map(|bytes| bytes.0)
    };
    assert_eq!(requested(40 << 10), None, "hardly more than it has");
    assert_eq!(requested(416 << 10), Some(416 << 10));
    assert_eq!(requested(64 << 20), Some(8 << 20));
    // If the reader is rather busy, either cause is possible.
    let with = |loss| {
        let mut m = model(datagrams(with_loss(0.2, 0.2), [0.5, 0.85]));
        tried_with_loss(&mut m, "larger-window", 1.0, loss);
        [outcome_in(&m, "socket-drops"), outcome_in(&m, "receiver-core")]
    };
    assert_eq!(with((0.05, 0.69)), ["finding", "excluded"]);
    assert_eq!(with((0.72, 1.2)), ["excluded", "finding"]);
}

/// The outcome of a cause in the verdict.
fn outcome_in(m: &Model, id: &str) -> &'static str {
    let answers = judge(m).answers;
    answers.iter().find(|a| a.cause == id).map_or("", |a| a.outcome)
}

#[test]
fn half_the_pace_tells_a_rate_from_loss_at_any_pace() {
    let with = |loss| {
        let mut m = scaled(datagrams(with_loss(0.2, 0.0), [0.99, 0.3]), 1.0, 1.0);
        for id in ["path-rate", "path-loss"] {
            assert_eq!(outcome(&m, id), "suspect", "{id}");
        }
        assert_eq!(outcome(&m, "flow-rate-cap"), "clear");
        let next = next_trial(&m, Direction::Forward, 0).map(|plan| plan.kind);
        assert_eq!(next.as_deref(), Some("half-pace"));
        tried_with_loss(&mut m, "half-pace", 0.5, loss);
        named(&m)
    };
    assert_eq!(with((0.01, 0.29)), [("path-rate", Certainty::Proved)]);
    assert_eq!(with((0.6, 1.2)), [("path-loss", Certainty::Proved)]);
    assert_eq!(with((0.25, 0.6)), []);
    // More streams that carry no more may have had no time to send more.
    let mut m = scaled(datagrams(with_loss(0.2, 0.0), [0.99, 0.3]), 1.0, 1.0);
    tried(&mut m, "more-streams", 1.0);
    assert_eq!(named(&m), []);
}

#[test]
fn what_the_socket_did_not_drop_was_lost_on_the_way_where_it_is_most() {
    let at = |at_socket| {
        let m = scaled(datagrams(with_loss(0.2, at_socket), [0.5, 0.3]), 1.0, 1.0);
        ["path-rate", "path-loss"].map(|id| outcome(&m, id))
    };
    assert_eq!(at(0.099), ["suspect", "suspect"]);
    assert_eq!(at(0.101), ["clear", "clear"]);
}

#[test]
fn where_more_was_sent_and_no_more_came_the_path_has_a_rate() {
    let at = |sent, gain| {
        let m = scaled(datagrams(with_loss(0.2, 0.0), [0.99, 0.3]), sent, gain);
        outcome(&m, "path-rate")
    };
    assert_eq!((at(1.21, 1.0), at(1.19, 1.0)), ("enough", "suspect"));
    assert_eq!((at(2.0, 1.04), at(2.0, 1.1)), ("enough", "clear"));
    // The socket may have dropped up to 128 datagrams each time it counted one drop.
    let with = |at_socket| {
        let m = scaled(datagrams(with_loss(0.2, at_socket), [0.99, 0.3]), 2.0, 1.0);
        outcome(&m, "path-rate")
    };
    assert_eq!((with(0.0007), with(0.0009)), ("enough", "suspect"));
}

#[test]
fn a_cap_of_each_flow_gives_more_to_more_streams() {
    let at = |gain| {
        let m = scaled(datagrams(with_loss(0.5, 0.0), [0.99, 0.3]), 2.0, gain);
        ["flow-rate-cap", "path-rate"].map(|id| outcome(&m, id))
    };
    assert_eq!(at(1.52), ["suspect", "clear"]);
    assert_eq!(at(1.45), ["clear", "clear"]);
    let mut m = scaled(datagrams(with_loss(0.5, 0.0), [0.99, 0.3]), 2.0, 2.0);
    tried(&mut m, "more-streams", 2.0);
    tried_with_loss(&mut m, "half-pace", 0.5, (0.0, 0.1));
    assert_eq!(named(&m), [("flow-rate-cap", Certainty::Proved)]);
}

#[test]
fn a_small_loss_is_told_beside_what_holds_the_sender() {
    let mut m = scaled(datagrams(with_loss(0.049, 0.0), [0.99, 0.3]), 1.0, 1.0);
    tried_with_loss(&mut m, "half-pace", 0.5, (0.8, 1.2));
    assert_eq!(named(&m), [("sender-core", Certainty::Supported)]);
    let mut m = scaled(datagrams(with_loss(0.06, 0.0), [0.99, 0.3]), 1.0, 1.0);
    tried_with_loss(&mut m, "half-pace", 0.5, (0.8, 1.2));
    assert_eq!(named(&m), [("path-loss", Certainty::Proved)]);
}

#[test]
fn who_takes_the_time_of_an_end_matters_only_where_that_end_binds() {
    let at = |side: Side, lost| {
        let mut base = datagrams(with_loss(lost, lost), [0.99, 0.3]);
        let throttled =
            linerate_judge::model::Throttled { group: "/".into(), periods: 0.9, time: 0.9 };
        let of = |end| (end == side).then(|| throttled.clone());
        base.throttled = [Side::Near, Side::Far].map(of).into();
        outcome_in(&model(base), "cpu-quota")
    };
    let sender = [0.049, 0.051].map(|lost| at(Side::Near, lost));
    let reader = [0.049, 0.051].map(|lost| at(Side::Far, lost));
    assert_eq!(sender, ["finding", "clear"]);
    assert_eq!(reader, ["clear", "finding"]);
}

#[test]
fn a_pace_that_was_asked_for_binds_where_what_is_sent_comes() {
    let at = |lost| {
        let mut base = datagrams(with_loss(lost, 0.0), [0.3, 0.3]);
        base.knobs.pacing = Some(Rate(800_000_000));
        model(base)
    };
    assert_eq!(outcome_in(&at(0.0), "pacing"), "finding");
    assert_eq!(outcome_in(&at(0.049), "pacing"), "finding");
    assert_eq!(outcome_in(&at(0.051), "pacing"), "clear");
    let mut m = at(0.0);
    tried(&mut m, "unpaced", 1.5);
    assert_eq!(named(&m), [("pacing", Certainty::Proved)]);
}

#[test]
fn what_a_host_drops_itself_is_not_lost_on_the_way() {
    let at = |per_sec: f64| {
        let mut base = datagrams(with_loss(0.2, 0.0), [0.5, 0.3]);
        base.local = vec![linerate_judge::model::Local {
            side: Side::Far,
            what: LocalEvent::Ring,
            subject: "eth0".into(),
            count: per_sec * 3.0,
            per_sec,
            bytes: None,
            meant: None,
        }];
        let m = model(base);
        ["local-drops", "path-loss"].map(|id| outcome(&m, id))
    };
    // Half of the 20,000 datagrams that were lost per second.
    assert_eq!(at(10_100.0), ["enough", "clear"]);
    assert_eq!(at(9_900.0), ["suspect", "suspect"], "it may be groups of them");
    // A drop may be a group of at most 65 datagrams.
    assert_eq!(at(150.0), ["clear", "suspect"]);
}

#[test]
fn what_a_senders_own_port_drops_is_a_rival_of_the_path() {
    let at = |per_sec: f64, lost: f64| {
        let mut base = datagrams(with_loss(lost, 0.0), [0.5, 0.3]);
        base.local = vec![linerate_judge::model::Local {
            side: Side::Near,
            what: LocalEvent::Queue,
            subject: "eth0 pfifo_fast 1:".into(),
            count: per_sec * 3.0,
            per_sec,
            bytes: None,
            meant: None,
        }];
        model(base)
    };
    let mut m = at(9_900.0, 0.2);
    assert_eq!(outcome(&m, "local-drops"), "suspect");
    tried_with_loss(&mut m, "half-pace", 0.5, (0.0, 0.01));
    assert_eq!(named(&m), [], "either of them");
    // What a full queue refused was sent later, so it is not lost.
    let own = |lost| outcome(&at(9_000.0, lost), "local-drops");
    assert_eq!((own(0.049), own(0.051)), ("clear", "enough"));
}

#[test]
fn a_full_table_of_connections_drops_datagrams_and_no_segment_of_a_connection_that_stands() {
    for side in Side::ALL {
        let full = |per_sec: f64| {
            vec![linerate_judge::model::Local {
                side,
                what: LocalEvent::Connection,
                subject: "nf_conntrack".into(),
                count: per_sec * 3.0,
                per_sec,
                bytes: None,
                meant: None,
            }]
        };
        let at = |per_sec| {
            let mut base = datagrams(with_loss(0.2, 0.0), [0.5, 0.3]);
            base.local = full(per_sec);
            model(base)
        };
        assert_eq!(outcome(&at(9_900.0), "local-drops"), "suspect");
        assert_eq!(outcome(&at(0.0), "local-drops"), "clear");
        let advice =
            cause("local-drops").expect("a cause").advice(&at(9_900.0), Direction::Forward);
        let step = advice[0].steps.last().expect("a command");
        let sets = "sysctl -w net.netfilter.nf_conntrack_max=";
        assert!(step.command.contains(sets), "{}", step.command);
        assert_eq!(step.host, Some(side));
        let mut m = held_by_loss(2.0);
        m.directions[0].base.local = full(9_900.0);
        assert_eq!(outcome(&m, "local-drops"), "clear");
    }
}

#[test]
fn a_sender_with_time_and_no_pace_whose_datagrams_come_is_not_understood() {
    let m = model(datagrams(with_loss(0.0, 0.0), [0.5, 0.3]));
    let verdict = judge(&m);
    assert!(verdict.limits.is_empty());
    let requested =
        |u: &&linerate_judge::verdict::Unknown| u.what.contains("program of near waited");
    assert!(verdict.unknown.iter().any(|u| requested(&u)), "{verdict:?}");
}

#[test]
fn nothing_that_arrives_is_no_limit_of_the_sender_but_may_be_a_black_hole() {
    let mut base = datagrams(with_loss(1.0, 0.0), [0.99, 0.0]);
    base.ticks = vec![0.0; 30];
    let mut m = model(base);
    assert_eq!(outcome_in(&m, "sender-core"), "clear");
    for id in ["path-rate", "path-loss", "flow-rate-cap"] {
        assert_eq!(outcome(&m, id), "clear", "{id}");
    }
    assert_eq!(named(&m), [("mtu-black-hole", Certainty::Supported)]);
    tried(&mut m, "smaller-mss", 50.0);
    assert_eq!(named(&m), [("mtu-black-hole", Certainty::Proved)]);
    let after = &m.trials[0].plan.after;
    assert_eq!((after.write_size, after.mss), (Bytes(536), None));
}

#[test]
fn round_trips_beside_datagrams_tell_of_their_queue() {
    let at = |millis: u64, busy| {
        let mut base = datagrams(with_loss(0.5, 0.0), [busy, 0.3]);
        base.latency = Some(Latency {
            percentiles: vec![(50.0, Nanos::from_millis(millis))],
            samples: 100,
            least: Nanos::from_millis(1),
        });
        outcome(&model(base), "latency-queue")
    };
    assert_eq!((at(6, 0.5), at(5, 0.5)), ("suspect", "clear"));
    assert_eq!(at(6, 0.99), "unknown", "they may wait for the CPU");
}

#[test]
fn what_disturbs_a_measurement_is_heard_of_datagrams_too() {
    let base = Load { contended: true, ..datagrams(with_loss(0.0, 0.0), [0.99, 0.3]) };
    let verdict = judge(&model(base));
    assert_eq!(verdict.disturbances[0].cause, "contended");
    assert!(cause("contended").is_some_and(|cause| cause.only_disturbs));
}

#[test]
fn more_work_that_makes_those_that_arrive_cheaper_tells_something_of_a_sender() {
    // Nothing is lost, and the sender carried as much with more work: it had time left, whatever each datagram cost.
    let mut m = scaled(datagrams(with_loss(0.0, 0.0), [0.97, 0.5]), 1.0, 1.0);
    tried(&mut m, "sender-work", 1.0);
    let trial = m.trials.last_mut().expect("it was just tried");
    let carried = m.directions[0].base.goodput.mean;
    (trial.goodput, trial.cost) = ([carried; 2], [Some(1e-10); 2]);
    let mut answers = judge(&m).answers.into_iter();
    let answer = answers.find(|a| a.cause == "sender-core");
    assert_eq!(answer.expect("it answers").outcome, "excluded");
}

#[test]
fn the_direction_in_which_a_trial_tells_more_comes_first() {
    use Direction::{Forward, Reverse};
    let paced = || {
        let mut base = datagrams(with_loss(0.0, 0.0), [0.3, 0.3]);
        base.knobs.pacing = Some(Rate(800_000_000));
        base
    };
    // Half the pace tells two causes of loss apart; to remove the pace only confirms what is known.
    let lossy = Load { knobs: paced().knobs, ..datagrams(with_loss(0.15, 0.0), [0.3, 0.3]) };
    let kinds = |[forward, reverse]: [Load; 2]| -> Vec<(Direction, String)> {
        let mut m = model(forward);
        let mut other = model(reverse).directions.remove(0);
        other.direction = Reverse;
        m.directions.push(other);
        let plans = next_trials(&m, &[Forward, Reverse], Slowness::Rate, 3);
        assert!(plans.iter().all(|p| p.id == 3));
        plans.into_iter().map(|p| (p.direction, p.kind)).collect()
    };
    let of = |direction, kind: &str| (direction, kind.to_owned());
    let expected = [of(Reverse, "half-pace"), of(Forward, "unpaced")];
    assert_eq!(kinds([paced(), lossy.clone()]), expected);
    let expected = [of(Forward, "half-pace"), of(Reverse, "unpaced")];
    assert_eq!(kinds([lossy, paced()]), expected);
    let expected = [of(Forward, "unpaced"), of(Reverse, "unpaced")];
    assert_eq!(kinds([paced(), paced()]), expected, "of equals as asked");
}
