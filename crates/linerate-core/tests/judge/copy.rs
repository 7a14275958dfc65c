//! The trial that saves the copy: when it is run, and what it tells.

use super::*;

/// A receiving thread without slack at a rate, with the send buffer for a rival, on an unqueued round
/// trip that half of that buffer has room for, or not.
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
    assert_eq!(
        next(&full_receiver(2e10, 0.5, true)).as_deref(),
        Some("half-send-buffer")
    );
    assert_eq!(
        next(&full_receiver(2e10, 0.5, false)).as_deref(),
        Some("discard")
    );
    // Where a copy may weigh nothing, or the sender has no time for more, it would show nothing.
    for (rate, sender) in [(5e9, 0.5), (2e10, 0.99)] {
        let kind = next(&full_receiver(rate, sender, false));
        assert!(
            kind.is_some() && kind.as_deref() != Some("discard"),
            "{kind:?}"
        );
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
    // At a tenth of the rate a copy may weigh too little to be seen.
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
