//! Sizes of the packets of a load: the only place that knows them, for each transport.

use super::readings::{Window, gauge, mean};
use linerate_ceiling::ethernet::{self, Ip};
use linerate_facts::metric as m;
use linerate_plan::transport::{Feature, TransportInfo};
use linerate_record::{EndReadings, SetEnd, Table};
use linerate_units::Bytes;

/// Sizes of the packets that a load sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packets {
    /// Payload of a full packet: a TCP segment, or a datagram.
    pub payload: Bytes,
    /// Bytes of a full IP packet. `None` if the sender was not read.
    pub packet: Option<Bytes>,
    /// The path MTU that the kernel knows; `None` if no connection reports it.
    pub path_mtu: Option<Bytes>,
}

/// The sending end of a set, with its readings.
pub(super) struct Sender<'a> {
    pub(super) transport: &'static TransportInfo,
    pub(super) readings: &'a EndReadings,
    pub(super) set: u32,
    pub(super) is_ipv6: bool,
}

impl<'a> Sender<'a> {
    /// The sizes of the set's packets; `None` for a transport whose packets are unknown, or if nothing was read.
    pub(super) fn packets(&self, made: &SetEnd, window: Window) -> Option<Packets> {
        if self.transport.has(Feature::Connections) {
            return self.of_connections(window);
        }
        self.transport.has(Feature::Datagrams).then(|| of_datagrams(made)).flatten()
    }

    /// Bytes of the largest packets at the end of the load.
    pub(super) fn last_packet(&self, packets: Option<Packets>) -> Option<Bytes> {
        if !self.transport.has(Feature::Connections) {
            return packets?.packet;
        }
        // Path MTU discovery may lower the packet size during the step.
        self.sockets().filter_map(|socket| last_segment(socket, self.is_ipv6)).max()
    }

    /// A full packet is as large as the path allows, or smaller if the receiver does not accept such segments. An end
    /// with an MTU of 9000 bytes sends 1500 to a receiver that accepts no more, and its kernel still reports 9000 for
    /// the path.
    fn of_connections(&self, window: Window) -> Option<Packets> {
        let bytes = |metric| {
            let values = self.sockets().flat_map(|s| gauge(s, metric, window));
            mean(values).map(whole)
        };
        let (payload, path_mtu) = (bytes(m::TCP_SND_MSS)?, bytes(m::TCP_PMTU));
        let timestamps = self.sockets().all(has_timestamps);
        let segment = payload.0.saturating_add(headers(timestamps, self.is_ipv6));
        let segment = Bytes(segment);
        Some(Packets {
            payload,
            packet: Some(path_mtu.map_or(segment, |path| path.min(segment))),
            path_mtu,
        })
    }

    fn sockets(&self) -> impl Iterator<Item = &'a Table> + use<'a> {
        let prefix = format!("s{}/", self.set);
        self.readings.about("tcp", move |subject| subject.starts_with(&prefix))
    }
}

/// The packet sizes that the receiver of a connection knows. It estimates the payload of the sender's segments; the
/// size of their headers is unknown.
pub(super) fn received(table: &Table, window: Window) -> Option<Packets> {
    let bytes = |metric| mean(gauge(table, metric, window)).map(whole);
    Some(Packets { payload: bytes(m::TCP_RCV_MSS)?, packet: None, path_mtu: bytes(m::TCP_PMTU) })
}

/// Payload of the largest segment that both ends of a set's connections accept, as they announced it. A device on the
/// path may rewrite these announcements. `None` if an end was not read, or if the sender changed its segment size
/// during the step: it is then searching for the size by itself.
pub(super) fn takes(
    [sending, receiving]: [&EndReadings; 2],
    set: u32,
    window: Window,
) -> Option<Bytes> {
    let prefix = format!("s{set}/");
    let of = |end: &EndReadings| {
        let sockets = end.about("tcp", |subject| subject.starts_with(&prefix));
        let said = sockets.flat_map(|socket| gauge(socket, m::TCP_ADVMSS, window));
        said.filter(|bytes| *bytes > 0.0).reduce(f64::min)
    };
    let changed = |socket: &Table| {
        let sizes = socket.column(m::TCP_SND_MSS).unwrap_or_default();
        sizes.windows(2).any(|pair| pair.first() != pair.last())
    };
    let mut senders = sending.about("tcp", |subject| subject.starts_with(&prefix));
    let searches = senders.any(changed);
    let least = of(sending)?.min(of(receiving)?);
    (!searches).then(|| whole(least))
}

/// The packet sizes of datagrams. Each is taken for an IPv4 packet: 20 more bytes of IPv6 are 1.3 % of a full one. The
/// packet sizes of fragmented datagrams are unknown.
fn of_datagrams(sender: &SetEnd) -> Option<Packets> {
    let in_fragments = sender.gaps.iter().any(|gap| gap.what == "set.fragments");
    let size = Some(sender.write_size).filter(|size| !in_fragments && *size > 0)?;
    let headers = Ip::V4.header() + ethernet::Transport::Udp.header();
    Some(Packets {
        payload: Bytes(size),
        packet: Some(Bytes(size.saturating_add(headers.into()))),
        path_mtu: None,
    })
}

fn last_segment(socket: &Table, is_ipv6: bool) -> Option<Bytes> {
    let last = |metric| {
        let value = *socket.column(metric)?.last()?;
        u64::try_from(value).ok().filter(|value| *value > 0)
    };
    let headers = headers(has_timestamps(socket), is_ipv6);
    let segment = last(m::TCP_SND_MSS)?.saturating_add(headers);
    Some(Bytes(last(m::TCP_PMTU).map_or(segment, |path| path.min(segment))))
}

/// Bit of `tcpi_options` that shows that the segments of a connection carry timestamps.
//= Linux, include/uapi/linux/tcp.h: TCPI_OPT_TIMESTAMPS
const TIMESTAMPS: u8 = 1;

/// Whether the segments of a connection carry timestamps; true if this was not read.
fn has_timestamps(socket: &Table) -> bool {
    let options = socket.column(m::TCP_OPTIONS).and_then(|all| all.last());
    options.is_none_or(|options| *options as u8 & TIMESTAMPS != 0)
}

/// Bytes of the IP and TCP headers of a segment.
fn headers(timestamps: bool, is_ipv6: bool) -> u64 {
    let ip = if is_ipv6 { Ip::V6 } else { Ip::V4 };
    u64::from(ip.header() + ethernet::Transport::Tcp { timestamps }.header())
}

fn whole(bytes: f64) -> Bytes {
    Bytes(bytes.max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, table};
    use super::*;
    use linerate_facts::Gap;
    use linerate_plan::transport::{OTHER, TCP, UDP};

    /// Readings of a sender whose connection has these segment sizes, path MTUs and options.
    fn sender(mss: [i64; 2], path: [i64; 2], options: i64) -> EndReadings {
        let rows = [(m::TCP_SND_MSS, mss), (m::TCP_PMTU, path), (m::TCP_OPTIONS, [options; 2])];
        EndReadings { tables: vec![table("s0/0", &rows)], ..EndReadings::default() }
    }

    fn of<'a>(
        transport: &'static TransportInfo,
        readings: &'a EndReadings,
        is_ipv6: bool,
    ) -> Sender<'a> {
        Sender { transport, readings, set: 0, is_ipv6 }
    }

    #[test]
    fn a_full_packet_is_no_larger_than_the_receiver_takes() {
        let at = |mss: i64, path: i64, options, is_ipv6| {
            let sender = sender([mss; 2], [path; 2], options);
            let sender = of(&TCP, &sender, is_ipv6);
            let found = sender.packets(&SetEnd::default(), WHOLE).unwrap();
            assert_eq!(found.payload.0, mss as u64);
            assert_eq!(found.path_mtu, Some(Bytes(path as u64)));
            found.packet.unwrap().0
        };
        assert_eq!(at(1448, 1500, 7, false), 1500);
        assert_eq!(at(1448, 9000, 7, false), 1500, "the receiver takes no more");
        assert_eq!(at(8948, 9000, 7, false), 9000);
        assert_eq!(at(1460, 9000, 6, false), 1500, "no timestamps");
        assert_eq!(at(1428, 9000, 7, true), 1500);
        assert_eq!(at(1448, 1480, 7, false), 1480, "never more than the path");
    }

    #[test]
    fn sizes_are_known_of_what_was_read_and_of_no_other_transport() {
        let none = EndReadings::default();
        let sender = sender([1448; 2], [1500; 2], 7);
        let made = |write_size, what: &str| SetEnd {
            write_size,
            gaps: vec![Gap { what: what.to_owned(), why: String::new(), hint: String::new() }],
            ..SetEnd::default()
        };
        let sizes = |transport, sending, made: &SetEnd| {
            let found = of(transport, sending, true).packets(made, WHOLE);
            found.map(|found| {
                let sizes = (found.packet.unwrap().0, found.path_mtu.is_some());
                (found.payload.0, sizes)
            })
        };
        let datagrams = made(1000, "set.other");
        assert_eq!(sizes(&TCP, &none, &datagrams), None);
        assert_eq!(sizes(&UDP, &none, &datagrams), Some((1000, (1028, false))));
        assert_eq!(sizes(&UDP, &none, &made(0, "")), None);
        assert_eq!(sizes(&UDP, &none, &made(9000, "set.fragments")), None);
        assert_eq!(sizes(&OTHER, &sender, &datagrams), None);
    }

    #[test]
    fn the_lesser_of_what_both_ends_take_counts_where_both_were_read() {
        let end = |mss: Option<i64>, segments: [i64; 2]| EndReadings {
            tables: mss
                .map(|mss| [(m::TCP_ADVMSS, [mss; 2]), (m::TCP_SND_MSS, segments)])
                .map(|rows| table("s0/0", &rows))
                .into_iter()
                .collect(),
            ..EndReadings::default()
        };
        let sent = |one, other, segments| {
            let ends = [&end(one, segments), &end(other, [536, 80])];
            takes(ends, 0, WHOLE).map(|bytes| bytes.0)
        };
        let of = |one, other| sent(one, other, [80; 2]);
        assert_eq!(of(Some(8948), Some(1448)), Some(1448));
        assert_eq!(of(Some(1348), Some(1448)), Some(1348));
        assert_eq!(of(Some(1448), None), None);
        assert_eq!(of(Some(0), Some(1448)), None, "not told");
        let searching = sent(Some(1448), Some(1448), [1024, 512]);
        assert_eq!(searching, None, "it looks for the size by itself");
    }

    #[test]
    fn the_packet_that_was_sent_last_counts() {
        let at = |mss, path, is_ipv6| {
            let sender = sender(mss, path, 7);
            let last = of(&TCP, &sender, is_ipv6).last_packet(None);
            last.map(|bytes| bytes.0)
        };
        let lowered = at([1398, 1348], [1450, 1400], false);
        assert_eq!(lowered, Some(1400), "path MTU discovery lowered it");
        let refused = at([1348, 1348], [1450, 1450], false);
        assert_eq!(refused, Some(1400), "the receiver takes no more");
        assert_eq!(at([1328, 1328], [9000, 9000], true), Some(1400));
        let none = EndReadings::default();
        assert_eq!(of(&TCP, &none, false).last_packet(None), None);
    }
}
