//! Tests of the trial that avoids the copy: when it is tried, and its effect on the verdict.

use linerate_plan::Handover;

use super::*;

/// A receiving thread that is full at `rate`; the send buffer is another possible cause. The idle round trip needs less
/// than half of that buffer if `roomy`.
fn full_receiver(rate: f64, sender: f64, roomy: bool) -> Model {
    let mut base = load();
    base.goodput.mean = rate;
    base.receivers = vec![thread(0.97)];
    base.senders = vec![thread(sender)];
    base.tcp.sndbuf_limited = Some(0.3);
    let micros = if roomy { 10 } else { 1_000 };
    base.tcp.min_rtt = Some(Nanos::from_micros(micros));
    model(base)
}

#[test]
fn the_copy_is_dropped_only_where_no_earlier_trial_parts_the_rivals() {
    let next = |m: &Model| next_trial(m, Direction::Forward, 0).map(|plan| plan.kind);
    assert_eq!(next(&full_receiver(2e10, 0.5, true)).as_deref(), Some("half-send-buffer"));
    assert_eq!(next(&full_receiver(2e10, 0.5, false)).as_deref(), Some("discard"));
    // The trial would show nothing if a copy takes too little time, or if the sender has no time to send more.
    for (rate, sender) in [(5e9, 0.5), (2e10, 0.99)] {
        let kind = next(&full_receiver(rate, sender, false));
        assert!(kind.is_some() && kind.as_deref() != Some("discard"), "{kind:?}");
    }
}

#[test]
fn a_copy_that_is_saved_parts_a_full_reader_from_its_rivals_but_proves_nothing_by_itself() {
    let tried_at = |rate, ratio| {
        let mut m = full_receiver(rate, 0.5, false);
        tried(&mut m, "discard", ratio);
        judge(&m)
    };
    let outcome = |verdict: &Verdict, id| {
        let answer = verdict.answers.iter().find(|a| a.cause == id);
        answer.expect("every cause answers").outcome
    };
    let gained = tried_at(2e10, 1.3);
    assert_eq!(outcome(&gained, "send-buffer"), "excluded");
    assert_eq!(outcome(&gained, "receiver-core"), "finding");
    assert_eq!(gained.limits[0].certainty, Certainty::Supported);
    let nothing = tried_at(2e10, 1.0);
    assert_eq!(outcome(&nothing, "receiver-core"), "excluded");
    assert_eq!(outcome(&nothing, "send-buffer"), "finding");
    // At a tenth of the rate, a copy may take too little time to be seen.
    assert_eq!(outcome(&tried_at(2e9, 1.0), "receiver-core"), "finding");
}

#[test]
fn a_pausing_reader_gains_no_more_from_discarding_than_the_time_it_does_not_pause() {
    let mut base = load();
    base.receivers = vec![thread(0.5)];
    base.unread = Some(512.0 * 1024.0);
    base.tcp.rwnd_limited = Some(0.6);
    let m = model(base);
    assert_eq!(outcome(&m, "receiver-app"), "enough");
    let excluded = |ratio| {
        let mut m = m.clone();
        tried(&mut m, "discard", ratio);
        let answers = judge(&m).answers;
        let found = answers.iter().find(|a| a.cause == "receiver-app");
        found.expect("every cause answers").outcome == "excluded"
    };
    assert!(!excluded(1.0));
    assert!(!excluded(1.9));
    assert!(excluded(2.2));
    assert!(excluded(0.9));
}

/// A sending thread that is full at 20 Gb/s; the receiver is busy for the share `receiver`. The receive window is
/// another possible cause.
fn full_sender(receiver: f64) -> Model {
    let mut base = load();
    base.goodput.mean = 2e10;
    base.senders = vec![thread(0.97)];
    base.receivers = vec![thread(receiver)];
    base.tcp.rwnd_limited = Some(0.3);
    base.tcp.min_rtt = Some(Nanos::from_micros(10));
    model(base)
}

/// Adds the trial without a copy: its effect on goodput, and the cost per byte with a copy over that without.
fn handed_over(m: &mut Model, ratio: f64, times: f64) {
    tried(m, "zero-copy", ratio);
    let trial = m.trials.last_mut().expect("it was just tried");
    trial.cost = [Some(times * 1e-10), Some(1e-10)];
}

#[test]
fn a_copy_is_spared_where_writes_are_large_and_are_copied() {
    let spared = |bytes, copy| {
        let mut m = full_sender(0.5);
        let base = &mut m.directions[0].base;
        base.senders[0].bytes_per_op = Some(bytes);
        base.knobs.copy = copy;
        let plan = kind("zero-copy").map(|k| propose(k, &m, Direction::Forward, 0));
        plan.expect("a known kind").map(|plan| (plan.before.copy, plan.after.copy))
    };
    let (copy, pages) = (Handover::Copy, Handover::Zerocopy);
    assert_eq!(spared(9_999.0, copy), None);
    assert_eq!(spared(10_000.0, copy), Some((copy, pages)));
    assert_eq!(spared(65_536.0, pages), None);
    assert_eq!(spared(65_536.0, Handover::Sendfile), None);
}

#[test]
fn a_full_sender_is_excluded_where_much_was_spared_and_nothing_gained() {
    let excluded = |receiver, ratio, times| {
        let mut m = full_sender(receiver);
        handed_over(&mut m, ratio, times);
        let answers = judge(&m).answers;
        let of = |id| answers.iter().find(|a| a.cause == id);
        of("sender-core").expect("it answers").outcome == "excluded"
    };
    assert!(excluded(0.5, 1.0, 1.3));
    assert!(!excluded(0.5, 1.25, 1.3));
    // The sender cannot gain more than the copy cost.
    assert!(excluded(0.5, 1.6, 1.3));
    assert!(!excluded(0.5, 1.45, 1.3));
    // No gain shows nothing if the copy cost little, or if the receiver has no time left.
    assert!(excluded(0.5, 1.0, 1.11) && !excluded(0.5, 1.0, 1.09));
    assert!(excluded(0.9, 1.0, 1.3) && !excluded(0.92, 1.0, 1.3));
    // Pages may cost more than copies: the thread is slower, and this shows nothing, too.
    assert!(!excluded(0.5, 0.8, 0.8));
}

#[test]
fn work_that_makes_the_rest_cheaper_says_nothing_of_a_full_sender() {
    let tried_at = |busy, ratio, times: Option<f64>| {
        let mut m = full_sender(0.5);
        m.directions[0].base.senders = vec![thread(busy)];
        tried(&mut m, "sender-work", ratio);
        let trial = m.trials.last_mut().expect("it was just tried");
        trial.goodput = [2e10, 2e10 * ratio];
        trial.cost = [Some(1e-10), times.map(|times| times * 1e-10)];
        judge(&m)
    };
    let answer = |verdict: &Verdict| {
        let mut answers = verdict.answers.iter();
        answers.find(|a| a.cause == "sender-core").cloned()
    };
    let excluded = |busy, ratio, times| {
        let answer = answer(&tried_at(busy, ratio, times)).expect("it answers");
        answer.outcome == "excluded"
    };
    // With a quarter more work, the effect predicted is at most 0.9 for a full thread; then each byte costs 1.11 times
    // as much.
    assert!(!excluded(0.97, 1.1, Some(1.10)) && excluded(0.97, 1.1, Some(1.12)));
    assert!(!excluded(0.91, 1.1, Some(0.91)) && excluded(0.89, 1.1, Some(0.91)));
    assert!(excluded(0.97, 1.1, None), "nobody counted");
    let verdict = tried_at(0.97, 1.1, Some(0.91));
    let limit = &verdict.limits[0];
    assert_eq!((limit.cause, limit.certainty), ("sender-core", Certainty::Supported));
    let reported = "with more work each byte took 0.091 ns of CPU time in place of 0.100: the rest became cheaper by it";
    assert_eq!(limit.evidence.last().map(String::as_str), Some(reported));
    let slower = tried_at(0.97, 0.8, Some(1.25));
    let slower = &slower.limits[0];
    assert!(slower.cause == "sender-core" && !slower.evidence.iter().any(|e| e == reported));
}

#[test]
fn a_copy_that_is_spared_parts_a_full_sender_from_its_rivals_but_proves_nothing_by_itself() {
    let judged = |ratio, times| {
        let mut m = full_sender(0.5);
        handed_over(&mut m, ratio, times);
        judge(&m)
    };
    let outcome = |verdict: &Verdict, id| {
        let answer = verdict.answers.iter().find(|a| a.cause == id);
        answer.expect("every cause answers").outcome
    };
    let gained = judged(1.25, 1.3);
    assert_eq!(outcome(&gained, "receive-window"), "excluded");
    let limit = &gained.limits[0];
    assert_eq!((limit.cause, limit.certainty), ("sender-core", Certainty::Supported));
    let price = "without the copy each byte took 0.100 ns of CPU time in place of 0.130";
    assert!(limit.evidence.iter().any(|e| e == price), "{limit:?}");
    let gains: Vec<_> = limit.advice.iter().filter_map(|a| a.gain).collect();
    assert_eq!(gains, [1.25]);
    // If there is no gain, or a loss (which keeping pages may cause for a thread with time left), the other causes stay
    // possible.
    for ratio in [1.0, 0.7] {
        let lost = judged(ratio, 1.0 / ratio);
        assert_ne!(outcome(&lost, "receive-window"), "excluded", "{ratio}");
        let mut advice = lost.limits.iter().flat_map(|l| &l.advice);
        assert!(advice.all(|a| a.gain.is_none()), "{ratio}");
    }
}
