//! Loads by datagrams: nothing that is known of connections is said of them.

use linerate_core::causes::{CAUSES, Cause, cause};
use linerate_core::model::{Datagrams, Load, TcpShares};
use linerate_core::verdict::{Verdict, judge};

use super::{load, model, thread};

/// A load on full CPUs, with every reason to name one.
fn busy(datagrams: Option<Datagrams>) -> Verdict {
    judge(&model(Load {
        senders: vec![thread(0.99)],
        receivers: vec![thread(0.99)],
        datagrams,
        ..load()
    }))
}

fn lost(share: f64, at_socket: Option<f64>) -> Datagrams {
    Datagrams {
        per_sec: 1e6,
        lost: share,
        at_socket,
        reordered: 0.0,
        duplicated: 0.0,
    }
}

#[test]
fn what_is_found_of_connections_is_unknown_of_datagrams() {
    assert!(
        !busy(None).limits.is_empty(),
        "the same load by connections"
    );
    let verdict = busy(Some(lost(0.25, Some(0.2))));
    assert!(verdict.limits.is_empty() && verdict.next.is_empty());
    for answered in &verdict.answers {
        let invalidates = cause(answered.cause).is_some_and(Cause::invalidates);
        let unknown = answered.outcome == "unknown";
        assert!(unknown || invalidates, "{}", answered.cause);
    }
    assert_eq!(verdict.answers.len(), CAUSES.len());
}

#[test]
fn missing_counters_never_clear_a_cause() {
    let base = Load {
        tcp: TcpShares::default(),
        datagrams: Some(lost(0.0, None)),
        ..load()
    };
    let verdict = judge(&model(base));
    for answered in verdict.answers.iter().filter(|a| a.outcome == "clear") {
        assert!(cause(answered.cause).is_some_and(Cause::invalidates));
    }
    assert!(!verdict.unknown.is_empty());
}

#[test]
fn the_unknown_tells_what_was_lost_and_where() {
    let told = |datagrams| {
        let verdict = busy(Some(datagrams));
        verdict
            .unknown
            .iter()
            .map(|u| u.why.clone())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let both = told(lost(0.25, Some(0.2)));
    assert!(
        both.contains("25.00 %") && both.contains("at least 20.00 % at the receiver"),
        "{both}"
    );
    let wire = told(lost(0.25, None));
    assert!(
        wire.contains("25.00 %") && !wire.contains("socket"),
        "{wire}"
    );
}
