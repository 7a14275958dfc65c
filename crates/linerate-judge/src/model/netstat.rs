//! Packets that the kernels of the hosts discarded, of all sockets in their network namespaces.

use super::ends::end;
use super::readings::{Window, per_second};
use linerate_facts::metric as m;
use linerate_plan::path::Side;
use linerate_plan::transport::{Feature, TransportInfo};
use linerate_record::Step;

/// Counts per second of the kernel of one host; `None` for what was not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Netstat {
    /// Packets of the load's transport that arrived with a wrong checksum and were discarded.
    pub damaged: Option<f64>,
    /// Datagrams with a wrong checksum, if a tunnel carries the load's packets in datagrams; `None` without such a
    /// tunnel.
    pub damaged_tunnel: Option<f64>,
    /// Blocks of selective acknowledgements that the sender ignored because they name bytes it had not sent.
    pub sacks_discarded: Option<f64>,
    /// Number of times that a receive queue was shrunk for lack of memory.
    pub pruned: Option<f64>,
    /// Segments dropped because a receive queue had no memory for them.
    pub queue_drops: Option<f64>,
}

/// The counts of an end during a load by this transport; `tunnelled` says whether datagrams of a tunnel carry its
/// packets. Counts that were as high on the `idle` path belong to other programs, and are subtracted.
pub(super) fn netstat(
    (step, idle): (&Step, Option<&Step>),
    side: Side,
    (transport, tunnelled): (&TransportInfo, bool),
    window: Window,
) -> Netstat {
    let table = |step| end(step, side).and_then(|end| end.about("netstat", |_| true).next());
    let others = idle.and_then(|idle| Some((table(idle)?, Window::of(idle))));
    let of = |metric| {
        let others = others.and_then(|(table, window)| per_second(table, metric, window));
        let all = per_second(table(step)?, metric, window)?;
        Some((all - others.unwrap_or(0.0)).max(0.0))
    };
    Netstat {
        damaged: of(if transport.has(Feature::Datagrams) {
            m::NETSTAT_UDP_DAMAGED
        } else {
            m::NETSTAT_TCP_DAMAGED
        }),
        damaged_tunnel: (tunnelled && transport.has(Feature::Connections))
            .then(|| of(m::NETSTAT_UDP_DAMAGED))
            .flatten(),
        sacks_discarded: of(m::NETSTAT_SACKS_DISCARDED),
        pruned: of(m::NETSTAT_PRUNED),
        queue_drops: of(m::NETSTAT_QUEUE_DROPS),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, table};
    use super::*;
    use linerate_plan::transport::{TCP, UDP};
    use linerate_plan::{Purpose, StepPlan};
    use linerate_record::EndReadings;
    use linerate_units::Nanos;

    /// A step of one second in which the near host counted so many segments with a wrong checksum.
    fn second(damaged: i64) -> Step {
        Step {
            plan: StepPlan {
                index: 0,
                purpose: Purpose::IdleLatency,
                sets: Vec::new(),
                washout: Nanos(0),
                measure: Nanos::from_secs(1),
                tick: Nanos::from_secs(1),
            },
            ends: vec![EndReadings {
                tables: vec![table(
                    "all",
                    &[
                        (m::NETSTAT_TCP_DAMAGED, [7, 7 + damaged]),
                        (m::NETSTAT_UDP_DAMAGED, [7, 7 + 2 * damaged]),
                    ],
                )],
                ..EndReadings::default()
            }],
            began: Nanos(0),
            took: Nanos(0),
            clock: None,
            trouble: None,
        }
    }

    #[test]
    fn what_is_counted_on_the_idle_path_belongs_to_others() {
        let damaged = |load, idle: Option<i64>| {
            let idle = idle.map(second);
            let load = second(load);
            let kind = (&TCP, false);
            netstat((&load, idle.as_ref()), Side::Near, kind, WHOLE).damaged
        };
        assert_eq!(damaged(60, Some(0)), Some(60.0));
        assert_eq!(damaged(60, Some(50)), Some(10.0));
        assert_eq!(damaged(60, Some(70)), Some(0.0));
        assert_eq!(damaged(60, None), Some(60.0));
    }

    #[test]
    fn datagrams_count_for_connections_inside_a_tunnel() {
        let outside = |transport, tunnelled| {
            let (load, idle) = (second(60), second(10));
            let kind = (transport, tunnelled);
            netstat((&load, Some(&idle)), Side::Near, kind, WHOLE).damaged_tunnel
        };
        assert_eq!(outside(&TCP, true), Some(100.0));
        assert_eq!(outside(&TCP, false), None);
        assert_eq!(outside(&UDP, true), None, "counted already");
    }
}
