//! Findings about error counters: those that rise during the walk, and those that rose earlier.

use super::super::mad::counters::{COUNTERS, Counted, Counters};
use super::super::network::{Network, Port, PortAt};
use super::Finding;
use linerate_facts::advice::{Advice, Step};
use linerate_facts::finding::Stands;
use linerate_plan::path::Certainty;
use linerate_units::{Nanos, Rate};

/// Largest share of bits that a link may damage by the standard.
//= InfiniBand Architecture Specification 1.4, volume 2: a bit error ratio of at most 1e-12
const ALLOWED_BIT_ERRORS: f64 = 1e-12;

/// The first and the last reading of a port's counters, and the seconds between them.
pub(super) struct Rise<'a> {
    pub(super) first: &'a Counters,
    pub(super) last: &'a Counters,
    pub(super) seconds: f64,
}

impl<'a> Rise<'a> {
    pub(super) fn of(port: &'a Port) -> Option<Self> {
        let (began, first) = port.counters.first()?;
        let (ended, last) = port.counters.last()?;
        let seconds = Nanos(ended.0.saturating_sub(began.0)).0 as f64 / 1e9;
        (seconds > 0.0).then_some(Self { first, last, seconds })
    }

    /// The growth of a counter, at least. If its value fell, it was cleared in between and grew from zero.
    pub(super) fn by(&self, index: usize) -> u64 {
        let (first, last) = (self.first.values[index], self.last.values[index]);
        last.checked_sub(first).unwrap_or(last)
    }

    /// The growth of all counters that count `counted`.
    pub(super) fn sum(&self, counted: Counted) -> u64 {
        let of = COUNTERS.iter().enumerate().filter(|(_, c)| c.counted == counted);
        of.map(|(index, _)| self.by(index)).fold(0, u64::saturating_add)
    }
}

/// Data rate of a port's link in bits per second; `None` if its width or speed is unknown.
pub(super) fn rate(port: &Port) -> Option<f64> {
    let lanes = port.lanes()?;
    Some(f64::from(lanes.width) * lanes.speed.lane())
}

/// Most symbol errors that a link within the standard has in this time. A few more than expected occur by chance.
fn may_have(port: &Port, seconds: f64) -> f64 {
    let expected = rate(port).unwrap_or(0.0) * seconds * ALLOWED_BIT_ERRORS;
    expected + 3.0 * expected.sqrt() + 1.0
}

/// Whether the link into a port was damaged during the walk.
fn is_rising(port: &Port, rise: &Rise<'_>) -> bool {
    rise.sum(Counted::Damage) + rise.sum(Counted::Breaks) > 0
        || rise.sum(Counted::Symbols) as f64 > may_have(port, rise.seconds)
}

/// Counters of damage to a link in words, each with the count that `count` returns for its index; zeros are left out.
fn damage(last: &Counters, count: impl Fn(usize) -> u64) -> Vec<String> {
    let numbered = COUNTERS.iter().enumerate();
    let errors = numbered.filter(|(n, of)| {
        let is_damage = matches!(of.counted, Counted::Symbols | Counted::Damage | Counted::Breaks);
        is_damage && count(*n) > 0
    });
    let words = errors.map(|(n, of)| {
        let at_least = if last.is_full(n) { "at least " } else { "" };
        format!("{} {at_least}{}", of.name, count(n))
    });
    words.collect()
}

/// Findings about links that damaged packets during the walk.
pub(super) fn rising(network: &Network) -> Vec<Finding> {
    let of = |(at, port): (PortAt, &Port)| {
        let rise = Rise::of(port).filter(|rise| is_rising(port, rise))?;
        let counts = damage(rise.last, |n| rise.by(n)).join(", ");
        let what = format!("errors rise: {counts} in {:.1} s", rise.seconds);
        let mut proof = vec![format!("PortCounters of {}, read twice", network.name(at))];
        let symbols = rise.sum(Counted::Symbols) as f64;
        if symbols > 0.0 {
            let allowed = rate(port).unwrap_or(0.0) * ALLOWED_BIT_ERRORS;
            proof.push(format!(
                "{:.3} symbol errors a second; a link of this rate may have {allowed:.3}",
                symbols / rise.seconds
            ));
        }
        let mut found = bad(network, at, what, proof);
        let lost_lanes = COUNTERS.iter().position(|of| of.name == "local_link_integrity_errors");
        let is_signal = symbols > may_have(port, rise.seconds)
            || lost_lanes.is_some_and(|index| rise.by(index) > 0);
        // Otherwise the finding is only supported: packets that were malformed, or had no room, count as errors too.
        if is_signal {
            found = found.proved();
        }
        Some(if rise.sum(Counted::Damage) == 0 && symbols <= may_have(port, rise.seconds) {
            broke(found)
        } else {
            found
        })
    };
    network.ports().filter_map(of).collect()
}

/// Changes the finding for a link that only went down, without other errors: its neighbour may have booted.
fn broke(found: Finding) -> Finding {
    let fix = "see whether the other end was started again; if not, reseat both ends of the cable";
    Finding { certainty: Certainty::Supported, ..found }
        .why(
            "the node at its other end may have started again; if not, a cable or a contact is \
             loose",
        )
        .fix(Advice::new(fix))
}

/// Ports with an error counter at its largest value, where it stops: new errors do not show.
pub fn full(network: &Network) -> Vec<PortAt> {
    let is_judged = |counted| {
        matches!(
            counted,
            Counted::Symbols
                | Counted::Damage
                | Counted::Breaks
                | Counted::Remote
                | Counted::Discards
        )
    };
    let is_full = |(at, port): (PortAt, &Port)| {
        let (_, last) = port.counters.last()?;
        let mut numbered = COUNTERS.iter().enumerate();
        let full = numbered.any(|(n, of)| is_judged(of.counted) && last.is_full(n));
        full.then_some(at)
    };
    network.ports().filter_map(is_full).collect()
}

/// Findings about links that damaged packets earlier, but not during the walk. A link that only went down is normal:
/// the counter grows when a neighbour boots.
pub(super) fn past(network: &Network) -> Vec<Finding> {
    let of = |(at, port): (PortAt, &Port)| {
        let (_, last) = port.counters.last()?;
        if Rise::of(port).is_some_and(|rise| is_rising(port, &rise)) {
            return None;
        }
        let numbered = COUNTERS.iter().enumerate();
        let mut errors =
            numbered.filter(|(_, of)| matches!(of.counted, Counted::Symbols | Counted::Damage));
        if !errors.any(|(n, _)| last.values[n] > 0) {
            return None;
        }
        let counts = damage(last, |n| last.values[n]).join(", ");
        let what = format!("had errors since its counters were cleared: {counts}");
        let mut proof = vec![format!("PortCounters of {}", network.name(at))];
        if (0..COUNTERS.len()).any(|n| last.is_full(n)) {
            proof.push(
                "a counter stands at its largest value: it cannot show new errors".to_owned(),
            );
        }
        Some(bad(network, at, what, proof).stands(Stands::Harmless))
    };
    network.ports().filter_map(of).collect()
}

fn bad(network: &Network, at: PortAt, what: String, proof: Vec<String>) -> Finding {
    let peer = network.port(at).and_then(|port| port.peer);
    let cable = peer.map_or_else(
        || "its cable".to_owned(),
        |peer| format!("its cable to {}", network.name(peer)),
    );
    let fix = Advice::new(
        "clean and reseat both ends of the cable, then see whether the counters still rise",
    );
    Finding::new("link-errors", network.name(at), what)
        .why(format!("the signal that arrives at this port is damaged: look first at {cable}"))
        .proof(proof)
        .fix(fix)
}

/// Findings about packets that were damaged before they reached the cable, if no link is known to damage packets.
pub(super) fn remote(network: &Network) -> Vec<Finding> {
    if !rising(network).is_empty() {
        return Vec::new();
    }
    let of = |(at, port): (PortAt, &Port)| {
        let rise = Rise::of(port)?;
        let count = rise.sum(Counted::Remote);
        let fix = Advice::new("look for errors at the links on the way to this port");
        (count > 0).then(|| {
            Finding::new(
                "damaged-before",
                network.name(at),
                format!(
                    "receives packets that were damaged elsewhere: {count} in {:.1} s",
                    rise.seconds
                ),
            )
            .why("a switch on the way marked them: they were damaged on a link before it")
            .because(format!(
                "port_rcv_remote_physical_errors of {} rose by {count}",
                network.name(at)
            ))
            .fix(fix)
        })
    };
    network.ports().filter_map(of).collect()
}

/// Findings about ports that refuse packets.
pub(super) fn refused(network: &Network) -> Vec<Finding> {
    let of = |(at, port): (PortAt, &Port)| {
        let rise = Rise::of(port)?;
        let count = rise.sum(Counted::Refused);
        (count > 0).then(|| {
            Finding::new(
                "refused-packets",
                network.name(at),
                format!("refuses packets: {count} in {:.1} s", rise.seconds),
            )
            .why(
                "a host sends packets of a partition that this port may not pass on, or \
                 packets of a raw sort",
            )
            .because(format!(
                "port_rcv_constraint_errors and port_xmit_constraint_errors of {} rose by {count}",
                network.name(at)
            ))
            .fix(
                Advice::new("compare the partition keys of the hosts that talk").step(
                    Step::on(None, "sudo linerate fabric --json")
                        .about("partition_keys of each port"),
                ),
            )
        })
    };
    network.ports().filter_map(of).collect()
}

/// Findings about ports that drop packets because they cannot send them in time.
pub(super) fn discards(network: &Network) -> Vec<Finding> {
    let of = |(at, port): (PortAt, &Port)| {
        let rise = Rise::of(port)?;
        let count = rise.sum(Counted::Discards);
        let peer = network.name(port.peer?);
        let carries = rate(port).map_or_else(String::new, |r| format!(" ({})", Rate(r as u64)));
        (count > 0).then(|| {
            Finding::new(
                "drops",
                network.name(at),
                format!("drops packets: {count} in {:.1} s", rise.seconds),
            )
            .why(format!("{peer} does not take them in time, or the link{carries} was down"))
            .because(format!("port_xmit_discards of {} rose by {count}", network.name(at)))
            .fix(Advice::new(format!("look at what {peer} receives, and whether it keeps up")))
        })
    };
    network.ports().filter_map(of).collect()
}
