//! The model of transfers that another program reported, so that the causes can explain them as well.
//!
//! The client is `near`. What the program did not report is a gap, and no trial was made.

use super::ceilings::ceilings;
use super::fell::Fall;
use super::goodput::{Sample, estimate};
use super::requested::Requested;
use super::{DirectionModel, Load, Model, Packets, TcpShares, Thread};
use linerate_ceiling::ethernet::{self, Ip};
use linerate_facts::{Gap, HostFacts};
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::{Feature, TCP, TransportInfo, UDP};
use linerate_record::Host;
use linerate_record::reported::{Carrier, Cpu, CpuOf, Tool, Transfer};
use linerate_units::stats::steady_state;
use linerate_units::{Bytes, Nanos, Rate};

/// Minimum bytes in flight, as a share of a window, at which the window is full: the round trip is a mean of estimates.
const FULL_WINDOW: f64 = 0.8;

/// Share of one CPU below which each of a program's threads has spare time, if all of them use less together.
const IDLE: f64 = 0.8;

/// Transfers of one path, and the hosts at its ends as far as they are known.
#[derive(Debug, Clone, Copy)]
pub struct Reported<'a> {
    /// Each transfer, with the program that reported it.
    pub transfers: &'a [(&'a Tool, &'a Transfer)],
    /// The client's host.
    pub near: &'a HostFacts,
    /// The server's host.
    pub far: &'a HostFacts,
}

/// The model of reported transfers over TCP or UDP. The base load of a direction is the one with the fewest streams.
pub fn reported(report: Reported<'_>) -> Model {
    let hosts = vec![
        Host { side: Side::Near, facts: report.near.clone() },
        Host { side: Side::Far, facts: report.far.clone() },
    ];
    let of = |both: bool| -> Vec<DirectionModel> {
        let all = Direction::ALL.into_iter();
        all.filter_map(|direction| of_direction(report, &hosts, direction, both)).collect()
    };
    let alone = of(false);
    // A transfer that ran together with one in the other direction is judged only if there is no other.
    let directions = if alone.is_empty() { of(true) } else { alone };
    Model {
        gaps: gaps(report),
        hosts,
        same_machine: false,
        idle: None,
        directions,
        both: Vec::new(),
        trials: Vec::new(),
        complete: report.transfers.iter().all(|(_, one)| one.error.is_none()),
        watched: false,
        reported: true,
        alone: false,
        requested: Requested::path(" HOST"),
    }
}

/// The transport that causes judge for the protocol of a transfer; `None` for protocols that no cause is about.
fn transport(carrier: Carrier) -> Option<&'static TransportInfo> {
    match carrier {
        Carrier::Tcp => Some(&TCP),
        Carrier::Udp => Some(&UDP),
        Carrier::Sockets | Carrier::Sctp | Carrier::Rdma | Carrier::Messages => None,
    }
}

fn of_direction(
    report: Reported<'_>,
    hosts: &[Host],
    direction: Direction,
    both: bool,
) -> Option<DirectionModel> {
    let mut loads: Vec<Load> = report
        .transfers
        .iter()
        .filter(|(_, one)| one.direction == direction && one.both == both && one.goodput.0 > 0)
        .filter_map(|(tool, one)| load(tool, one, hosts))
        .collect();
    // Transfers over several protocols are no sweep of one of them: only those with the protocol of the first count.
    let first = loads.first()?.transport;
    loads.retain(|load| load.transport == first);
    loads.sort_by_key(|load| load.streams);
    loads.dedup_by_key(|load| load.streams);
    let mut base = loads.remove(0);
    let fall = fall(report, direction, &base);
    if let Some(fall) = &fall {
        base = fall.lasting(&base);
    }
    Some(DirectionModel {
        fell: fall.map(|fall| fall.fell),
        direction,
        ceilings: ceilings(hosts, direction, base.packets, &[], base.goodput.mean),
        base,
        sweep: loads,
    })
}

/// Largest number of bytes that the buffers of both ends hold: a sender counts them before they are sent.
const BUFFERED: Bytes = Bytes(32 << 20);

/// The fall of a transfer's rate for good, if its first intervals carried more than the buffers hold.
fn fall(report: Reported<'_>, direction: Direction, base: &Load) -> Option<Fall> {
    let mut all = report.transfers.iter().map(|(_, one)| one);
    let one = all.find(|one| one.direction == direction && one.ticks == base.ticks)?;
    let secs = one.tick?;
    let sample = |rate: &f64| Sample { step: 0, secs, rate: *rate, own: true };
    let samples: Vec<Sample> = one.ticks.iter().map(sample).collect();
    Fall::of(&samples).filter(|fall| fall.fell.bytes > BUFFERED)
}

fn load(tool: &Tool, one: &Transfer, hosts: &[Host]) -> Option<Load> {
    let transport = transport(one.carrier)?;
    let streams = one.streams.unwrap_or(1).max(1);
    let threads = |cpu: Option<Cpu>| threads(tool, cpu, streams);
    let goodput = estimate(one.goodput.0 as f64, &one.ticks);
    let mut load = Load::bare(transport, streams, goodput);
    load.knobs.pacing = one.requested.map(|rate| Rate(rate.0 / u64::from(streams)));
    load.made.sender.congestion = one.congestion.clone().unwrap_or_default();
    load.steady = steady_state(&one.ticks).is_some();
    load.ticks.clone_from(&one.ticks);
    load.tcp = shares(one, streams);
    load.packets = packets(one, transport, hosts);
    load.senders = threads(one.cpu.sender);
    load.receivers = threads(one.cpu.receiver);
    Some(load)
}

/// The threads of an end. Programs report the CPU time of all their threads together: that of one thread is known if
/// there is only one, and bounded if all of them used little.
fn threads(tool: &Tool, cpu: Option<Cpu>, streams: u32) -> Vec<Thread> {
    let Some(cpu) = cpu.filter(|cpu| cpu.of == CpuOf::Program) else {
        return Vec::new();
    };
    if streams > 1 && !is_single_threaded(tool) && cpu.total >= IDLE {
        return Vec::new();
    }
    let user =
        cpu.system.map(|system| 1.0 - (system / cpu.total.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0));
    vec![Thread { busy: Some(cpu.total.clamp(0.0, 1.0)), user, ..Thread::default() }]
}

/// The first version of iperf3 that uses a thread for each stream.
//= iperf3 release notes, 3.16
const THREADS_SINCE: (u32, u32) = (3, 16);

/// Whether a program uses one thread for all streams.
fn is_single_threaded(tool: &Tool) -> bool {
    let Some((major, minor)) = tool.version.as_deref().and_then(|v| v.split_once('.')) else {
        return false;
    };
    let digits = |text: &str| -> Option<u32> {
        let end = text.find(|c: char| !c.is_ascii_digit());
        text[..end.unwrap_or(text.len())].parse().ok()
    };
    tool.name == "iperf3"
        && digits(major).zip(digits(minor)).is_some_and(|version| version < THREADS_SINCE)
}

/// The TCP counts that a program reports for its connections.
fn shares(one: &Transfer, streams: u32) -> TcpShares {
    if one.carrier != Carrier::Tcp {
        return TcpShares::default();
    }
    let each = one.goodput.0 as f64 / 8.0 / f64::from(streams);
    let flight = one.round_trip.mean.map(|rtt| each * rtt.secs());
    let full = |window: Option<Bytes>| Some(flight? >= window?.0 as f64 * FULL_WINDOW);
    let sent = one.seconds.map(|secs| one.goodput.0 as f64 / 8.0 * secs);
    let segments = sent.zip(one.segment).map(|(bytes, segment)| bytes / f64::from(segment.max(1)));
    let repeated = one.retransmits.map(|n| n as f64);
    TcpShares {
        rwnd_limited: one.held.window.or(full(one.offered).map(f64::from)),
        sndbuf_limited: one.held.buffer,
        in_flight: flight.map(|bytes| Bytes(bytes as u64)),
        window: one.offered,
        cwnd: one.window,
        rtt: one.round_trip.mean,
        min_rtt: one.round_trip.least.filter(|rtt| *rtt > Nanos(0)),
        retransmitted: repeated
            .zip(segments)
            .map(|(repeated, segments)| repeated / segments.max(1.0)),
        segments: segments.zip(one.seconds).map(|(n, secs)| n / secs),
        repeated: repeated.zip(one.seconds).map(|(n, secs)| n / secs),
        ..TcpShares::default()
    }
}

/// Sizes of full packets: from the segment size that the program reports, else from the ports' MTU. It is then unknown
/// whether segments carry timestamps, and a ceiling must not be too low.
fn packets(one: &Transfer, transport: &TransportInfo, hosts: &[Host]) -> Option<Packets> {
    let bytes = |n: u32| Bytes(n.into());
    let ports = hosts.iter().filter_map(|host| host.facts.port.as_ref()?.mtu);
    let mtu = ports.min();
    let ip = Ip::V4.header();
    if !transport.has(Feature::Connections) {
        return datagram(one, mtu, ip);
    }
    let least = ip + ethernet::Transport::Tcp { timestamps: false }.header();
    let most = ip + ethernet::Transport::Tcp { timestamps: true }.header();
    let segment = one.segment.or(mtu.map(|mtu| mtu.saturating_sub(least)))?;
    let usual = [1500, 9000, 9001];
    let packet = usual
        .into_iter()
        .chain(mtu)
        .find(|packet| (segment + least..=segment + most).contains(packet));
    Some(Packets {
        payload: bytes(segment),
        packet: Some(bytes(packet.unwrap_or(segment + least))),
        path_mtu: mtu.map(bytes),
    })
}

/// The sizes of a datagram; `None` if it is larger than a packet, and thus sent in fragments.
fn datagram(one: &Transfer, mtu: Option<u32>, ip: u32) -> Option<Packets> {
    let header = ip + ethernet::Transport::Udp.header();
    let size = u32::try_from(one.size?.0).ok()?;
    let whole = size.checked_add(header)?;
    (whole <= mtu.unwrap_or(9001)).then(|| Packets {
        payload: Bytes(size.into()),
        packet: Some(Bytes(whole.into())),
        path_mtu: mtu.map(|mtu| Bytes(mtu.into())),
    })
}

/// Readings that programs do not report, by the names of the sources that causes look for.
const MISSING: [(&str, &str); 3] = [
    ("tcp", "the clocks of the connections"),
    ("socket", "the socket buffers"),
    ("thread", "the threads' shares of their CPUs"),
];

fn gaps(report: Reported<'_>) -> Vec<(Side, Gap)> {
    let named = report.transfers.iter().map(|(tool, _)| tool.name.as_str());
    let tool = named.into_iter().find(|name| !name.is_empty());
    let tool = tool.unwrap_or("the output");
    let gap = |side: Side, (source, what): (&str, &str)| Gap {
        what: format!("{source}: {what} of the {} end", side.name()),
        why: format!("{tool} does not report them"),
        hint: "linerate run HOST".to_owned(),
    };
    let sides = [Side::Near, Side::Far];
    sides.into_iter().flat_map(|side| MISSING.map(|missing| (side, gap(side, missing)))).collect()
}
