//! What a test with an iperf3 server says.

use std::time::Duration;

use linerate_core::iperf3::{Protocol, Results};
use linerate_core::model::{Counted, Estimate};
use linerate_core::path::Direction;
use linerate_core::record::SetEnd;
use linerate_core::transport::Options;
use linerate_core::units::{Bytes, Nanos, Rate};
use linerate_engine::iperf3::client::{ClientError, Outcome};

use super::super::flows::Look;
use super::{Datagrams, End, FarEnd, Probe, Way};

impl Probe {
    /// Of a test with `target`, and why it ended early.
    pub fn iperf3(target: &str, mut outcome: Outcome) -> (Self, Option<ClientError>) {
        let broken = outcome.broken.take();
        let complete = broken.is_none();
        let seen = outcome.seen.take();
        let look = seen.map(|seen| Look::judge(seen, complete, outcome.time, Duration::ZERO));
        let probe = Self {
            target: target.to_owned(),
            far_end: FarEnd::Iperf3,
            options: Options::default(),
            memory: None,
            address: outcome.server.to_string(),
            engine: match outcome.protocol {
                Protocol::Udp => "udp".to_owned(),
                _ => "tcp".to_owned(),
            },
            streams: outcome.streams,
            time: outcome.time,
            lasted: outcome.time,
            washout: Nanos(0),
            same_machine: None,
            broken: broken.as_ref().map(ToString::to_string).unwrap_or_default(),
            search: None,
            ways: vec![way(&outcome, look.as_ref())],
            look,
            gaps: outcome.gaps,
        };
        (probe, broken)
    }
}

fn way(outcome: &Outcome, look: Option<&Look>) -> Way {
    let goodput = outcome.goodput().map(|rate| Estimate {
        mean: rate.0 as f64,
        interval: None,
        samples: 0,
    });
    // The sender's kernel knows round trips; of a sender on the far host nothing is read.
    let sends = outcome.direction == Direction::Forward;
    let tcp = look.and_then(|look| look.flows.first()).filter(|_| sends);
    let tcp = tcp.and_then(|judged| judged.model.directions.first());
    let tcp = tcp.map(|direction| &direction.base.tcp);
    Way {
        direction: outcome.direction,
        goodput,
        received: goodput.and_then(|_| received(outcome)),
        ramp: Nanos(0),
        steady: None,
        interruptions: Vec::new(),
        handed: None,
        discarded: outcome.discarded,
        intervals: Vec::new(),
        again_share: None,
        again: match (outcome.direction, outcome.protocol) {
            // Datagrams are not sent again.
            (_, Protocol::Udp) => None,
            (Direction::Forward, _) => outcome.retransmits,
            (Direction::Reverse, _) => outcome.far.as_ref().and_then(Results::retransmits),
        },
        rtt: tcp.and_then(|tcp| tcp.rtt),
        min_rtt: tcp.and_then(|tcp| tcp.min_rtt),
        datagrams: datagrams(outcome),
        near: Some(near(outcome)),
        far: outcome.far.as_ref().map(far),
    }
}

/// What became of its datagrams, over the time of the receiver.
fn datagrams(outcome: &Outcome) -> Option<Datagrams> {
    let found = outcome.datagrams?;
    // Of a server whose figures are doubted none is told.
    outcome.goodput()?;
    let (_, time) = received(outcome)?;
    let [reordered, duplicated] = found.order.unwrap_or_default();
    let all = |each: Rate| Rate(each.0.saturating_mul(outcome.streams.into()));
    Some(Datagrams {
        size: found.size,
        asked: found.pace.map(all),
        each: found.pace,
        bursts: None,
        per_sec: found.came as f64 / time.secs(),
        counted: Counted {
            sent: found.sent,
            refused: found.refused,
            came: found.came,
            lost: found.lost,
            at_socket: found.at_socket,
            reordered,
            duplicated,
        },
        ordered: found.order.is_some(),
        jitter: found.jitter,
    })
}

/// What the receiver counted, and over which time.
fn received(outcome: &Outcome) -> Option<(Bytes, Nanos)> {
    match (outcome.direction, &outcome.far) {
        (Direction::Reverse, _) => Some((outcome.moved, outcome.time)),
        (Direction::Forward, Some(far)) => {
            let time = far.seconds().map_or(outcome.time, nanos);
            Some((Bytes(far.bytes()), time))
        }
        (Direction::Forward, None) => None,
    }
}

fn near(outcome: &Outcome) -> End {
    let percent = outcome.cpu.map(|cpu| cpu.total);
    End {
        bytes: outcome.moved,
        time: Some(outcome.time),
        cpu_percent: percent,
        cpu_per_byte: percent.and_then(|cpu| per_byte(cpu, outcome.moved, outcome.time)),
        made: outcome.set.clone(),
    }
}

fn far(far: &Results) -> End {
    let (bytes, time) = (Bytes(far.bytes()), far.seconds().map(nanos));
    let percent = far.cpu.map(|cpu| cpu.total);
    End {
        bytes,
        time,
        cpu_percent: percent,
        cpu_per_byte: percent
            .zip(time)
            .and_then(|(cpu, time)| per_byte(cpu, bytes, time)),
        made: SetEnd {
            congestion: far.congestion.clone().unwrap_or_default(),
            ..SetEnd::default()
        },
    }
}

/// Nanoseconds of CPU time for a byte, of so many percent of one CPU.
fn per_byte(percent: f64, bytes: Bytes, time: Nanos) -> Option<f64> {
    (bytes.0 > 0).then(|| percent / 100.0 * time.0 as f64 / bytes.0 as f64)
}

fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}
