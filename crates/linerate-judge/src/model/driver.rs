//! Counts of ports and their drivers: packet sizes, pauses, allowances of a cloud.

use super::ends::end;
use super::readings::{Window, growth, per_second};
use linerate_facts::metric as m;
use linerate_facts::nic::counted::{self, Meaning};
use linerate_plan::path::{ByRole, Direction, Side};
use linerate_record::{Host, Step, Table};

/// Pause frames on the link of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Paused {
    /// Pause frames received per second: requests of the other end of the wire to stop sending.
    pub received: f64,
    /// Pause frames sent per second.
    pub sent: f64,
    /// Share of time in which the port was paused; `None` if the driver does not count it.
    pub stopped: Option<f64>,
}

/// Packets that a cloud queued or dropped because a machine exceeded one of its allowances.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowance {
    /// The end whose host has the port.
    pub side: Side,
    /// The driver's counter: `bw_out_allowance_exceeded`.
    pub counter: String,
    /// Packets per second that exceeded the allowance.
    pub per_sec: f64,
    /// Packets per second that the port moved in the direction of the allowance; `None` if they were not counted.
    pub of: Option<f64>,
}

/// Mean bytes of a packet, as the sender's port sent it and as the receiver's port received it. Virtual ports count a
/// group of segments as one packet.
pub(super) fn packet_bytes(
    step: &Step,
    direction: Direction,
    window: Window,
) -> ByRole<Option<f64>> {
    let of = |side: Side, bytes, packets| {
        let port = end(step, side)?.about("port", |_| true).next()?;
        let (bytes, _) = growth(port, bytes, window)?;
        let (packets, _) = growth(port, packets, window)?;
        (packets > 0.0).then(|| bytes / packets)
    };
    ByRole {
        sender: of(direction.sender(), m::PORT_TX_BYTES, m::PORT_TX_PACKETS),
        receiver: of(direction.receiver(), m::PORT_RX_BYTES, m::PORT_RX_PACKETS),
    }
}

/// The driver's counters at an end whose meaning is known, each with its port and its meaning.
pub(super) fn counters<'a>(
    hosts: &'a [Host],
    step: &'a Step,
    side: Side,
) -> impl Iterator<Item = Counted<'a>> {
    let tables = end(step, side).into_iter();
    let tables = tables.flat_map(|end| end.about("driver", |_| true));
    tables.filter_map(move |table| {
        let (port, name) = table.subject.split_once(' ')?;
        let meaning = counted::own_meaning(driver(hosts, side, port), name)?;
        Some(Counted { table, port, name, meaning })
    })
}

/// A counter of a port's driver.
pub(super) struct Counted<'a> {
    pub(super) table: &'a Table,
    pub(super) port: &'a str,
    pub(super) name: &'a str,
    pub(super) meaning: Meaning,
}

/// The driver of a port; empty if it was not read.
fn driver<'a>(hosts: &'a [Host], side: Side, port: &str) -> &'a str {
    let host = hosts.iter().find(|host| host.side == side);
    let ports = host.and_then(|host| host.facts.route.as_ref());
    let mut ports = ports.into_iter().flat_map(|route| &route.ports);
    let nic = ports.find(|nic| nic.name == port);
    nic.map_or("", |nic| nic.driver.as_str())
}

/// Pauses at the port of the sender and of the receiver; `None` if the port does not count them. One pause may be
/// counted under several names.
pub(super) fn paused(
    hosts: &[Host],
    step: &Step,
    direction: Direction,
    window: Window,
) -> ByRole<Option<Paused>> {
    let of = |side: Side| {
        let most = |wanted| {
            let of = counters(hosts, step, side).filter(|counted| counted.meaning == wanted);
            let rates = of.filter_map(|one| per_second(one.table, m::DRIVER_COUNT, window));
            rates.reduce(f64::max)
        };
        let (received, sent) = (most(Meaning::PauseReceived), most(Meaning::PauseSent));
        received.or(sent)?;
        Some(Paused {
            received: received.unwrap_or(0.0),
            sent: sent.unwrap_or(0.0),
            stopped: most(Meaning::PausedMicros).map(|us| (us / 1e6).min(1.0)),
        })
    };
    ByRole { sender: of(direction.sender()), receiver: of(direction.receiver()) }
}

/// Counters of exceeded allowances along a direction, also those that stayed at 0.
pub(super) fn allowances(
    hosts: &[Host],
    step: &Step,
    direction: Direction,
    window: Window,
) -> Vec<Allowance> {
    let (sender, receiver) = (direction.sender(), direction.receiver());
    let of = |side: Side| {
        let metric = if side == sender { m::PORT_TX_PACKETS } else { m::PORT_RX_PACKETS };
        let port = end(step, side)?.about("port", |_| true).next()?;
        per_second(port, metric, window)
    };
    let concerns = |counter: &str, side: Side| match counter {
        "bw_in_allowance_exceeded" => side == receiver,
        "bw_out_allowance_exceeded" => side == sender,
        _ => true,
    };
    let all = [sender, receiver].into_iter().flat_map(|side| {
        let own = counters(hosts, step, side);
        own.filter(|one| one.meaning == Meaning::Allowance)
            .map(move |one| (side, one.table, one.name))
    });
    all.filter(|(side, _, counter)| concerns(counter, *side))
        .filter_map(|(side, table, counter)| {
            Some(Allowance {
                side,
                counter: counter.to_owned(),
                per_sec: per_second(table, m::DRIVER_COUNT, window)?,
                of: of(side),
            })
        })
        .collect()
}
