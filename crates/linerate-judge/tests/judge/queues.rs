//! Tests of RDMA loads with too few requests, reads or queue pairs, or with payload that is not inline.

use linerate_facts::rdma::RdmaEnd;
use linerate_plan::transport::Setting;

use super::rdma::{hdr100, rdma, soft, with_ceiling};
use super::*;

/// Sets options of the load at both ends, and the time of a single message.
fn with(mut m: Model, options: &[(&str, u64)], op: &str) -> Model {
    let load = &mut m.directions[0].base;
    for (key, number) in options {
        load.knobs.options.set(key, Setting::Number(*number));
    }
    load.knobs.options.set("op", Setting::Word(op.to_owned()));
    m.idle = Some(Latency {
        percentiles: vec![(50.0, Nanos::from_micros(5))],
        samples: 10_000,
        least: Nanos::from_micros(4),
    });
    m
}

/// A load of requests of 64 KiB over HDR100: each takes 5.3 us on the wire; a single message takes 5 us.
fn at(end: &RdmaEnd, gbps: f64, options: &[(&str, u64)], op: &str) -> Model {
    with(with_ceiling(end, Stage::Net, 99.3e9, gbps * 1e9), options, op)
}

fn reads(reads_out: u32) -> RdmaEnd {
    RdmaEnd { reads_out, ..hdr100() }
}

#[test]
fn a_queue_that_runs_dry_is_named_and_one_whose_requests_wait_is_not() {
    for (depth, gbps, expected) in [
        (1, 60.0, "enough"),
        (1, 57.0, "enough"),
        (1, 55.0, "suspect"),
        (1, 26.0, "suspect"),
        (1, 25.0, "clear"),
        (2, 90.0, "suspect"),
        (4, 90.0, "clear"),
        // At this goodput the wire is full.
        (2, 98.0, "clear"),
        (128, 90.0, "clear"),
    ] {
        let m = at(&hdr100(), gbps, &[("depth", depth)], "write");
        assert_eq!(outcome(&m, "rdma-depth"), expected, "{depth} {gbps}");
    }
    // Four queue pairs with one request each are enough.
    let m = at(&hdr100(), 90.0, &[("depth", 1), ("qps", 4)], "write");
    assert_eq!(outcome(&m, "rdma-depth"), "clear");
    // Threads that sleep take additional time to wake up.
    let mut m = at(&hdr100(), 60.0, &[("depth", 1)], "write");
    m.directions[0].base.knobs.options.set("events", Setting::Switch(true));
    assert_eq!(outcome(&m, "rdma-depth"), "suspect");
    m.idle = None;
    assert_eq!(outcome(&m, "rdma-depth"), "unknown");
}

#[test]
fn more_requests_prove_that_too_few_were_in_flight() {
    // The rate of a software device is unknown, so only the trial decides.
    let mut m = with(rdma(&soft(), 1e9), &[("depth", 1)], "write");
    assert_eq!(outcome(&m, "rdma-depth"), "suspect");
    let next = next_trial(&m, Direction::Forward, 0).expect("a trial");
    assert_eq!(next.kind, "more-depth");
    assert_eq!(next.after.options.number("depth"), Some(2));
    tried(&mut m, "more-depth", 1.8);
    let limit = judge(&m).limits.remove(0);
    assert_eq!((limit.cause, limit.certainty), ("rdma-depth", Certainty::Proved));
    let mut m = with(rdma(&soft(), 1e9), &[("depth", 1)], "write");
    tried(&mut m, "more-depth", 1.0);
    assert!(judge(&m).limits.iter().all(|l| l.cause != "rdma-depth"));
}

#[test]
fn reads_that_the_devices_hold_back_are_named_and_proved() {
    for (allowed, depth, gbps, op, expected) in [
        (1, 128, 50.0, "read", "enough"),
        (1, 128, 40.0, "read", "suspect"),
        (1, 128, 25.0, "read", "clear"),
        (4, 128, 90.0, "read", "clear"),
        (16, 128, 60.0, "read", "clear"),
        (2, 128, 98.0, "read", "clear"),
        (1, 1, 50.0, "read", "clear"),
        (1, 128, 50.0, "write", "clear"),
        (0, 128, 50.0, "read", "unknown"),
    ] {
        let m = at(&reads(allowed), gbps, &[("depth", depth)], op);
        let got = outcome(&m, "rdma-read-depth");
        assert_eq!(got, expected, "{allowed} {depth} {gbps} {op}");
    }
    let of_16 = |reads_out| RdmaEnd { reads_out_most: 16, reads_in_most: 16, ..reads(reads_out) };
    let mut m = at(&of_16(1), 40.0, &[("reads", 1)], "read");
    let kind = kind("more-reads").expect("a kind");
    let plan = propose(kind, &m, Direction::Forward, 0).expect("a trial");
    assert_eq!(plan.after.options.number("reads"), Some(2));
    tried(&mut m, "more-reads", 1.7);
    let limit = judge(&m).limits.remove(0);
    assert_eq!((limit.cause, limit.certainty), ("rdma-read-depth", Certainty::Proved));
    // With as many reads as the devices support, or with the default, which is all of them, there is nothing to try.
    let most = |options: &[(&str, u64)]| {
        let m = at(&of_16(16), 40.0, options, "read");
        propose(kind, &m, Direction::Forward, 0).is_none()
    };
    assert!(most(&[("reads", 16)]) && most(&[]) && !most(&[("reads", 8)]));
    let unknown = at(&reads(1), 40.0, &[("reads", 1)], "read");
    assert!(propose(kind, &unknown, Direction::Forward, 0).is_none());
    // The evidence names who chose the number of reads.
    let words = |options: &[(&str, u64)]| {
        let cause = cause("rdma-read-depth").expect("a cause");
        let m = at(&of_16(1), 50.0, options, "read");
        let found = cause.check(&m, Direction::Forward).expect("a finding");
        let advice = cause.advice(&m, Direction::Forward).len();
        (found.evidence[0].clone(), advice)
    };
    let (why, advice) = words(&[("reads", 1)]);
    assert!(why.contains("--reads asked for no more") && advice == 2, "{why}");
    let (why, advice) = words(&[]);
    assert!(why.contains("the devices allow no more") && advice == 1, "{why}");
}

#[test]
fn one_queue_pair_is_only_named_by_a_trial() {
    for (pairs, gbps, expected) in
        [(1, 60.0, "suspect"), (7, 60.0, "suspect"), (8, 60.0, "clear"), (1, 98.0, "clear")]
    {
        let m = at(&hdr100(), gbps, &[("qps", pairs)], "write");
        assert_eq!(outcome(&m, "rdma-one-qp"), expected, "{pairs} {gbps}");
    }
    assert_eq!(
        outcome(&at(&hdr100(), 40.0, &[("depth", 1)], "write"), "rdma-one-qp"),
        "clear",
        "nothing waits for the device"
    );
    assert_eq!(outcome(&with(rdma(&soft(), 1e9), &[], "write"), "rdma-one-qp"), "clear");
    // If few of the posted reads may be in flight, the queue pair is not the limit.
    for (allowed, expected) in [(1, "clear"), (16, "suspect")] {
        let m = at(&reads(allowed), 50.0, &[], "read");
        assert_eq!(outcome(&m, "rdma-one-qp"), expected, "{allowed}");
    }
    let mut m = at(&hdr100(), 60.0, &[], "write");
    let named = |m: &Model| {
        let limits = judge(m).limits;
        let limit = limits.iter().find(|limit| limit.cause == "rdma-one-qp");
        limit.map(|limit| limit.certainty)
    };
    assert_ne!(named(&m), Some(Certainty::Proved));
    let kind = kind("more-queue-pairs").expect("a kind");
    let plan = propose(kind, &m, Direction::Forward, 0).expect("a trial");
    let of = |key| plan.after.options.number(key);
    assert_eq!((of("qps"), of("depth")), (Some(2), Some(64)));
    tried(&mut m, "more-queue-pairs", 1.5);
    assert_eq!(named(&m), Some(Certainty::Proved));
    let mut m = at(&hdr100(), 60.0, &[], "write");
    tried(&mut m, "more-queue-pairs", 1.0);
    assert_eq!(named(&m), None);
}

#[test]
fn payload_that_the_device_fetches_is_a_suspect_where_it_would_fit() {
    for (size, requested, granted, op, expected) in [
        (64, Some(0), 0, "write", "suspect"),
        (64, Some(63), 63, "send", "suspect"),
        (64, Some(64), 64, "write", "clear"),
        (220, Some(0), 0, "write", "suspect"),
        (221, Some(0), 0, "write", "clear"),
        (64, Some(0), 0, "read", "clear"),
        // The device does not accept a larger size of inline payload.
        (128, None, 96, "write", "clear"),
        (64, Some(64), 48, "write", "clear"),
    ] {
        let end = RdmaEnd { inline: granted, ..hdr100() };
        let requested: Vec<_> =
            requested.map(|requested| ("inline", requested)).into_iter().collect();
        let mut m = at(&end, 5.0, &requested, op);
        m.directions[0].base.made.sender.write_size = size;
        m.directions[0].base.made.receiver.write_size = size;
        assert_eq!(outcome(&m, "rdma-inline"), expected, "{size} {granted} {op}");
    }
}
