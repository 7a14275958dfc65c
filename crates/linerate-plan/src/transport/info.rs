//! The table of transports: what is known of each without a machine.

use super::options::{ACCESS, BIND, DSCP, MEMORY_NODE, OptionInfo, Options, PRELOAD, RING};
use super::{Transport, rdma};

/// The pattern in which bytes are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternKind {
    /// Payload in one direction, as fast as possible.
    Stream,
    /// Messages and their answers, one at a time or when they are due.
    RoundTrips,
    /// Reads, writes and copies, without an answer from a program at the other end.
    Operations,
}

/// The kind of far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FarEnd {
    /// A peer, which may be on this host.
    Peer,
    /// The far end is another process of this host.
    Process,
    /// The transport has no far end.
    Absent,
}

/// A transport, with the facts that do not depend on a machine.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent answers to independent questions")]
pub struct TransportInfo {
    /// The name: `--engine NAME`, and the key `engine` of records and JSON.
    pub name: &'static str,
    /// The class that says which causes and factors apply to the transport.
    pub class: Transport,
    /// Description of the transport in a few words, for the help.
    pub doc: &'static str,
    /// The patterns that the transport has.
    pub patterns: &'static [PatternKind],
    /// The kind of far end.
    pub far_end: FarEnd,
    /// The name of one sample of the transport's round trips.
    pub sample: &'static str,
    /// Whether a message may be sent and never answered, with any options.
    pub loses_messages: bool,
    /// Whether payload may be lost on the path with any options: the sent and the received payload may differ.
    pub lossy: bool,
    /// Whether the transport can receive without copying to the user ([`crate::Receive::Discard`]).
    pub discard: bool,
    /// Whether a user may choose the transport.
    pub offered: bool,
    /// The options that are its own.
    pub options: &'static [OptionInfo],
}

impl TransportInfo {
    /// Whether the transport has a pattern.
    pub fn has(&self, pattern: PatternKind) -> bool {
        self.patterns.contains(&pattern)
    }

    /// Whether a message may be lost, or never be answered, with these options.
    pub fn may_lose_messages(&self, options: &Options) -> bool {
        self.loses_messages || self.is_unreliable(options)
    }

    /// Whether payload may be lost on the path, with these options.
    pub fn may_lose_payload(&self, options: &Options) -> bool {
        self.lossy || self.is_unreliable(options)
    }

    /// Whether an option chose an unreliable service.
    fn is_unreliable(&self, options: &Options) -> bool {
        self.class == Transport::Rdma && rdma::Service::of(options).is_lossy()
    }

    /// Whether the transport carries a load.
    pub fn carries_load(&self) -> bool {
        self.has(PatternKind::Stream) || self.has(PatternKind::Operations)
    }

    /// The row with the usual values, from which other rows differ.
    const BASE: Self = Self {
        name: "",
        class: Transport::Other,
        doc: "",
        patterns: &[],
        far_end: FarEnd::Peer,
        sample: "round trip",
        loses_messages: false,
        lossy: false,
        discard: false,
        offered: true,
        options: &[],
    };
}

/// TCP connections.
pub static TCP: TransportInfo = TransportInfo {
    name: "tcp",
    class: Transport::Tcp,
    doc: "TCP connections",
    patterns: &[PatternKind::Stream, PatternKind::RoundTrips],
    discard: true,
    options: &[BIND, DSCP],
    ..TransportInfo::BASE
};

/// UDP datagrams.
pub static UDP: TransportInfo = TransportInfo {
    name: "udp",
    class: Transport::Udp,
    doc: "UDP datagrams",
    patterns: &[PatternKind::Stream, PatternKind::RoundTrips],
    options: &[BIND, DSCP],
    loses_messages: true,
    lossy: true,
    ..TransportInfo::BASE
};

/// A new TCP connection for each message.
pub static CONNECT: TransportInfo = TransportInfo {
    name: "connect",
    class: Transport::Tcp,
    doc: "a new TCP connection for each message",
    patterns: &[PatternKind::RoundTrips],
    sample: "connection",
    loses_messages: true,
    ..TransportInfo::BASE
};

/// Shared memory of two processes on this host.
pub static SHM: TransportInfo = TransportInfo {
    name: "shm",
    class: Transport::Shm,
    doc: "shared memory of two processes on this machine",
    patterns: &[PatternKind::Stream, PatternKind::RoundTrips],
    far_end: FarEnd::Process,
    options: &[RING],
    ..TransportInfo::BASE
};

/// Requests to RDMA devices: InfiniBand, or RDMA over Ethernet.
pub static RDMA: TransportInfo = TransportInfo {
    name: "rdma",
    class: Transport::Rdma,
    doc: "RDMA verbs of InfiniBand and RoCE devices",
    patterns: &[PatternKind::Stream, PatternKind::RoundTrips],
    options: rdma::OPTIONS,
    ..TransportInfo::BASE
};

/// An ordinary program at each end: a process that uses sockets and `poll`.
pub static PROGRAM: TransportInfo = TransportInfo {
    name: "program",
    doc: "an ordinary program with a socket and poll, at each end",
    patterns: &[PatternKind::Stream, PatternKind::RoundTrips],
    options: &[PRELOAD],
    ..TransportInfo::BASE
};

/// The memory of this host. Each thread works on an array of its own. A round trip is a load from memory whose result is
/// the address of the next one.
pub static MEMORY: TransportInfo = TransportInfo {
    name: "memory",
    class: Transport::Memory,
    doc: "memory of this machine, without a network",
    patterns: &[PatternKind::Operations, PatternKind::RoundTrips],
    far_end: FarEnd::Absent,
    options: &[ACCESS, MEMORY_NODE],
    sample: "batch",
    ..TransportInfo::BASE
};

/// Moves nothing: the rate that the tool itself can drive.
pub static NULL: TransportInfo = TransportInfo {
    name: "null",
    doc: "moves nothing",
    patterns: &[PatternKind::Stream],
    far_end: FarEnd::Absent,
    offered: false,
    ..TransportInfo::BASE
};

/// All transports, in display order.
pub static TRANSPORTS: &[&TransportInfo] =
    &[&TCP, &UDP, &CONNECT, &SHM, &RDMA, &PROGRAM, &MEMORY, &NULL];

/// The transport with this name.
pub fn named(name: &str) -> Option<&'static TransportInfo> {
    TRANSPORTS.iter().find(|info| info.name == name).copied()
}

/// The options of the transport with this name; none of an unknown one.
pub fn options_of(name: &str) -> &'static [OptionInfo] {
    named(name).map_or(&[], |info| info.options)
}

/// The transports that have an option.
pub fn with_option(key: &str) -> impl Iterator<Item = &'static TransportInfo> {
    let has = move |info: &&TransportInfo| info.options.iter().any(|row| row.key == key);
    TRANSPORTS.iter().copied().filter(has)
}

#[cfg(test)]
mod tests {
    use super::super::Setting;
    use super::*;

    #[test]
    fn names_and_keys_are_different() {
        for (number, info) in TRANSPORTS.iter().enumerate() {
            assert!(TRANSPORTS[..number].iter().all(|i| i.name != info.name));
            for (number, row) in info.options.iter().enumerate() {
                assert!(info.options[..number].iter().all(|o| o.key != row.key));
            }
        }
    }

    #[test]
    fn rdma_loses_messages_with_unreliable_services_alone() {
        let with = |service: &str| {
            let mut options = Options::default();
            options.set(rdma::SERVICE.key, Setting::Word(service.to_owned()));
            [&RDMA, &TCP, &UDP].map(|info| info.may_lose_messages(&options))
        };
        assert_eq!(with("rc"), [false, false, true]);
        assert_eq!(with("uc"), [true, false, true]);
        assert_eq!(with("ud"), [true, false, true]);
        assert!(!RDMA.may_lose_payload(&Options::default()));
    }

    #[test]
    fn an_option_of_several_transports_is_the_same_row() {
        let all = || TRANSPORTS.iter().flat_map(|info| info.options);
        for row in all() {
            assert!(all().filter(|o| o.key == row.key).all(|o| o == row));
        }
    }
}
