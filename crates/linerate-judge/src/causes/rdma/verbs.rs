//! Readings of the RDMA ports of a load, as several causes use them.

use crate::causes::prelude::*;
use crate::model::Verbs;
use linerate_facts::infiniband::counted::Meaning;
use linerate_facts::nic::Nic;
use linerate_facts::rdma::RdmaEnd;
use linerate_plan::transport::rdma::{Operation, QUEUE_PAIRS, Service};
use linerate_units::shell::word;

/// Minimum number of quarters of the time in which events must occur to count as throughout a load.
pub(crate) const THROUGHOUT: u8 = 3;

/// One end of a load, and the readings of its RDMA port.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) side: Side,
    pub(crate) verbs: &'a Verbs,
}

/// Least share of the time at which an effect on a load matters.
pub(crate) const MATTERS: f64 = 0.05;

/// Share of samples without payload, at which even few events matter: devices may need long to recover.
pub(crate) const STALLED: f64 = 0.5;

/// Longest time of one request, in seconds, at which a sample without payload shows a stall. Samples are 100 ms apart.
const BETWEEN: f64 = 0.05;

/// The share of samples in which nothing arrived; `None` if requests are so large that empty samples are usual.
pub(crate) fn silent(load: &Load) -> Option<f64> {
    let (silent, others): (Vec<f64>, Vec<f64>) = load.ticks.iter().partition(|rate| **rate <= 0.0);
    let rate = others.iter().sum::<f64>() / others.len().max(1) as f64;
    let request = load.made.sender.write_size as f64 * 8.0 / rate.max(1.0);
    let all = (silent.len() + others.len()).max(1);
    (request < BETWEEN || others.is_empty()).then(|| silent.len() as f64 / all as f64)
}

impl End<'_> {
    /// Name of the end and its port, for sentences: `near mlx5_0/1`.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.side.name(), self.verbs.port.id())
    }

    /// Events per second, summed over counters with these meanings. `what` names the events in a gap.
    pub(crate) fn counted(&self, meanings: &[Meaning], what: &str) -> Result<f64, NoFinding> {
        self.verbs.per_sec(meanings).ok_or_else(|| {
            let port = self.verbs.port.id();
            NoFinding::Unknown(vec![Gap {
                what: format!("{what} of {}", self.name()),
                why: "no counter of it was read".to_owned(),
                hint: format!("rdma statistic show link {}", word(&port)),
            }])
        })
    }
}

/// The network port of an RDMA port, and the ports below it: a VLAN, its bond, the members of the bond. Empty if the
/// host's route does not use this network port, so that the ports below it are unknown.
pub(crate) fn stack<'a>(model: &'a Model, side: Side, port: &RdmaEnd) -> &'a [Nic] {
    let host = model.host(side);
    let route = host.and_then(|host| host.facts.route.as_ref());
    let ports = route.map_or(&[][..], |route| &route.ports);
    let leaves = ports.first().is_some_and(|nic| nic.name == port.netdev_name());
    if leaves { ports } else { &[] }
}

/// Number of queue pairs of a load; each of them waits for itself.
pub(crate) fn queue_pairs(load: &Load) -> f64 {
    let each = load.knobs.options.number(QUEUE_PAIRS.key).unwrap_or(1);
    f64::from(load.streams.max(1)) * each.max(1) as f64
}

/// Fails for services that do not retransmit and refuse no request: what they lose is lost.
pub(crate) fn only_reliable(load: &Load) -> Result<(), NoFinding> {
    let service = Service::of(&load.knobs.options);
    if service.is_lossy() {
        return Err(clear(format!(
            "the service {} neither sends again nor waits for receive requests",
            service.name()
        )));
    }
    Ok(())
}

/// The end whose device gets the requests: the reader of reads, else the sender.
pub(crate) fn requester(load: &Load, direction: Direction) -> Side {
    match Operation::of(&load.knobs.options) {
        Operation::Read => direction.receiver(),
        _ => direction.sender(),
    }
}

/// The two ends of a load, by their roles in RDMA.
pub(crate) struct Ends<'a> {
    /// The end whose device gets the requests: the reader of reads, else the sender.
    pub(crate) requester: End<'a>,
    /// The end that is not the requester.
    pub(crate) responder: End<'a>,
}

impl<'a> Ends<'a> {
    /// The two ends of a load; unknown if the RDMA port of one end is unknown.
    pub(crate) fn of(
        model: &Model,
        load: &'a Load,
        direction: Direction,
    ) -> Result<Self, NoFinding> {
        let end = |side: Side, verbs: &'a Option<Verbs>| {
            let verbs = verbs.as_ref();
            verbs.map(|verbs| End { side, verbs }).ok_or_else(|| lacks(model, "rdma", side))
        };
        let sender = end(direction.sender(), &load.verbs.sender)?;
        let receiver = end(direction.receiver(), &load.verbs.receiver)?;
        Ok(if requester(load, direction) == receiver.side {
            Self { requester: receiver, responder: sender }
        } else {
            Self { requester: sender, responder: receiver }
        })
    }

    /// The two ends of the load, the requester first.
    pub(crate) fn both(&self) -> [End<'a>; 2] {
        [self.requester, self.responder]
    }
}
