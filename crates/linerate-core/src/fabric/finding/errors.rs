//! Counters of errors: those that rise, and those that have risen before.

use super::super::mad::counters::{COUNTERS, Counted, Counters};
use super::super::network::{Network, Port, PortAt};
use super::Finding;
use crate::advice::Advice;
use crate::units::Nanos;
use crate::verdict::Certainty;

/// The first and the last reading of a port.
fn ends(port: &Port) -> Option<[&(Nanos, Counters); 2]> {
    Some([port.counters.first()?, port.counters.last()?])
}

/// Errors that are counted while linerate looks.
pub(super) fn rising(network: &Network) -> Vec<Finding> {
    let of = |(at, port): (PortAt, &Port)| {
        let [(began, first), (ended, last)] = ends(port)?;
        let seconds = ended.0.saturating_sub(began.0) as f64 / 1e9;
        let counts = errors(last, |n| last.values[n].saturating_sub(first.values[n]));
        if counts.is_empty() || seconds <= 0.0 {
            return None;
        }
        let what = format!("errors rise: {} in {seconds:.1} s", counts.join(", "));
        Some(bad(network, at, what, true))
    };
    network.ports().filter_map(of).collect()
}

/// Errors that were counted before, and none since.
pub(super) fn past(network: &Network) -> Vec<Finding> {
    let of = |(at, port): (PortAt, &Port)| {
        let [(_, first), (_, last)] = ends(port)?;
        let counts = errors(last, |n| last.values[n]);
        let rises = !errors(last, |n| last.values[n].saturating_sub(first.values[n])).is_empty();
        if counts.is_empty() || rises {
            return None;
        }
        let what = format!(
            "had errors since its counters were cleared: {}",
            counts.join(", ")
        );
        Some(bad(network, at, what, false))
    };
    network.ports().filter_map(of).collect()
}

/// Counters of errors with the count that `count` returns for their index, where it is not zero.
fn errors(last: &Counters, count: impl Fn(usize) -> u64) -> Vec<String> {
    let numbered = COUNTERS.iter().enumerate();
    let errors = numbered.filter(|(n, of)| {
        matches!(
            of.counted,
            Counted::Symbols | Counted::Damage | Counted::Breaks
        ) && count(*n) > 0
    });
    errors
        .map(|(n, of)| {
            let at_least = if last.is_full(n) { "at least " } else { "" };
            format!("{} {at_least}{}", of.name, count(n))
        })
        .collect()
}

fn bad(network: &Network, at: PortAt, what: String, now: bool) -> Finding {
    let peer = network.port(at).and_then(|port| port.peer);
    let cable = peer.map_or_else(
        || "its cable".to_owned(),
        |peer| format!("its cable to {}", network.name(peer)),
    );
    Finding {
        id: "link-errors",
        subject: network.name(at),
        what,
        why: format!("packets are damaged or dropped at this port; look first at {cable}"),
        proof: vec!["PortCounters of this port, read twice".to_owned()],
        certainty: Certainty::Proved,
        now,
        host: String::new(),
        fix: Advice::new(
            "clean and reseat both ends of the cable, then see whether the counters still rise",
        ),
    }
}
