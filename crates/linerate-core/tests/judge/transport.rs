//! Which causes and factors apply to which transport.

use std::fmt::Write;

use linerate_core::causes::CAUSES;
use linerate_core::transport::Transport;
use linerate_core::trial::TRIALS;

use super::*;

/// A load of another transport, whose counters the core does not know.
fn other() -> Load {
    Load {
        transport: Transport::Other,
        tcp: TcpShares::default(),
        unread: None,
        behind: None,
        caught_up: None,
        recv_memory: None,
        ..load()
    }
}

#[test]
fn golden_of_causes_by_transport() {
    let mut table = String::new();
    for cause in CAUSES {
        let scope = cause.info().scope;
        let applies = Transport::ALL.map(|transport| scope.includes(transport));
        let out: Vec<String> = Transport::ALL
            .into_iter()
            .zip(applies)
            .filter(|(_, applies)| !applies)
            .map(|(transport, _)| transport.to_string())
            .collect();
        let words = if out.is_empty() {
            "all".to_owned()
        } else {
            format!("not {}: {}", out.join(", "), scope.reason())
        };
        writeln!(table, "{:<20} {words}", cause.id()).expect("a string");
    }
    insta::assert_snapshot!("causes_by_transport", table);
}

#[test]
fn each_cause_that_applies_is_heard_and_no_other() {
    for transport in Transport::ALL {
        let base = Load {
            transport,
            ..load()
        };
        let answers = judge(&model(base)).answers;
        for cause in CAUSES {
            let heard = answers.iter().any(|answer| answer.cause == cause.id());
            let applies = cause.info().scope.includes(transport);
            assert_eq!(heard, applies, "{} of {transport}", cause.id());
        }
    }
}

#[test]
fn trials_change_only_what_a_transport_has() {
    let m = model(other());
    for kind in TRIALS {
        let proposed = kind.propose(&m, Direction::Forward, 0).is_some();
        let applies = kind.factor.scope().includes(Transport::Other);
        assert!(!proposed || applies, "{}", kind.id);
    }
}

#[test]
fn of_an_unknown_transport_nothing_is_named_that_is_of_sockets() {
    let verdict = judge(&model(other()));
    assert!(verdict.limits.is_empty(), "{:?}", verdict.limits);
    let words = format!("{:?}", verdict.unknown);
    assert!(!words.contains("tcp"), "{words}");
}
