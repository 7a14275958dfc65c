//! Options of RDMA loads, in the words of InfiniBand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PatternKind;
use super::options::{Kind, OptionInfo, Options};
use linerate_units::Nanos;

/// How packets of a port are addressed. Both ends must use the same addressing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "RdmaAddressing")]
pub enum Addressing {
    /// By the local identifiers (LIDs) of an InfiniBand subnet.
    #[default]
    Lid,
    /// By Ethernet addresses: RoCE, version 1.
    #[serde(rename = "roce-v1")]
    RoceV1,
    /// By IP addresses: RoCE, version 2.
    #[serde(rename = "roce-v2")]
    RoceV2,
}

impl Addressing {
    /// All ways to address packets.
    pub const ALL: [Self; 3] = [Self::Lid, Self::RoceV1, Self::RoceV2];

    /// Name of the addressing in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lid => "InfiniBand",
            Self::RoceV1 => "RoCE v1",
            Self::RoceV2 => "RoCE v2",
        }
    }
}

/// The RDMA operation that carries payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Operation {
    /// The sender writes into the receiver's memory. The receiving program takes no part.
    #[default]
    Write,
    /// As [`Operation::Write`], but each write uses up a receive request. Its completion reports the write to the
    /// receiver.
    WriteWithImmediate,
    /// The sender posts sends, and the receiver posts receive requests for them.
    Send,
    /// The receiver reads from the sender's memory. The sending program takes no part.
    Read,
    /// Atomic additions to eight bytes of the far end's memory.
    Atomic,
}

impl Operation {
    /// All operations, in the order of the help.
    pub const ALL: [Self; 5] =
        [Self::Write, Self::WriteWithImmediate, Self::Send, Self::Read, Self::Atomic];

    /// Name of the operation in options, text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::WriteWithImmediate => "write-imm",
            Self::Send => "send",
            Self::Read => "read",
            Self::Atomic => "atomic",
        }
    }

    /// The operation that a load's options request, or the default.
    pub fn of(options: &Options) -> Self {
        let requested = options.word(OPERATION.key);
        let named = Self::ALL.into_iter().find(|op| Some(op.name()) == requested);
        named.unwrap_or_default()
    }

    /// Whether the operation completes without the program at the other end.
    pub const fn is_one_sided(self) -> bool {
        !matches!(self, Self::Send | Self::WriteWithImmediate)
    }

    /// Whether a timed operation is a round trip by itself. If not, the other end answers with the same operation.
    pub const fn returns(self) -> bool {
        matches!(self, Self::Read | Self::Atomic)
    }
}

/// The transport service of queue pairs, as InfiniBand defines it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Service {
    /// Reliable connection: each packet is acknowledged, and retransmitted if it is lost.
    #[default]
    Rc,
    /// Unreliable connection: a message is dropped if one of its packets is lost.
    Uc,
    /// Unreliable datagrams: each message is one packet.
    Ud,
}

impl Service {
    /// All transport services.
    pub const ALL: [Self; 3] = [Self::Rc, Self::Uc, Self::Ud];

    /// Name of the service in options, text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rc => "rc",
            Self::Uc => "uc",
            Self::Ud => "ud",
        }
    }

    /// The transport service that a load's options request, or the default.
    pub fn of(options: &Options) -> Self {
        let requested = options.word(SERVICE.key);
        let named = Self::ALL.into_iter().find(|s| Some(s.name()) == requested);
        named.unwrap_or_default()
    }

    /// Whether the service may lose messages.
    pub const fn is_lossy(self) -> bool {
        !matches!(self, Self::Rc)
    }

    /// Whether the service carries an operation so that at least one end knows what was received.
    //= InfiniBand Architecture Specification 1.4, section 9.2, table of operations by service. A plain write by UC tells
    //= neither end that it arrived.
    pub const fn carries(self, op: Operation) -> bool {
        match self {
            Self::Rc => true,
            Self::Uc => matches!(op, Operation::Send | Operation::WriteWithImmediate),
            Self::Ud => matches!(op, Operation::Send),
        }
    }
}

/// Option: the RDMA operation that carries payload.
pub const OPERATION: OptionInfo = OptionInfo {
    key: "op",
    help: "RDMA operation that carries the payload [default: write]",
    kind: Kind::Word(&["write", "write-imm", "send", "read", "atomic"]),
    pattern: None,
    of_path: false,
};

/// Option: the transport service of the queue pairs.
pub const SERVICE: OptionInfo = OptionInfo {
    key: "service",
    help: "Transport service: rc (reliable), uc (unreliable; send, write-imm) or ud (datagrams; send) [default: rc]",
    kind: Kind::Word(&["rc", "uc", "ud"]),
    pattern: None,
    of_path: false,
};

/// Option: the RDMA device of the near end.
pub const DEVICE: OptionInfo = OptionInfo {
    key: "device",
    help: "RDMA device of this host, with or without its port, such as mlx5_0:1 [default: the one that has the path's IP address]",
    kind: Kind::Name("mlx5_0:1"),
    pattern: None,
    of_path: true,
};

/// Option: the RDMA device of the far end.
pub const FAR_DEVICE: OptionInfo = OptionInfo {
    key: "far-device",
    help: "RDMA device of the far host, as for --device",
    kind: Kind::Name("mlx5_0:1"),
    pattern: None,
    of_path: true,
};

/// Option: number of queue pairs of each stream.
pub const QUEUE_PAIRS: OptionInfo = OptionInfo {
    key: "qps",
    help: "Queue pairs of each stream, which its thread serves in turn [default: 1]",
    kind: Kind::Count { least: 1, most: 64 },
    pattern: Some(PatternKind::Stream),
    of_path: false,
};

/// Option: number of requests that one call posts to a queue pair.
pub const POST_LIST: OptionInfo = OptionInfo {
    key: "post-list",
    help: "Requests that are posted to a queue pair by one call, at most half the depth [default: 1]",
    kind: Kind::Count { least: 1, most: 64 },
    pattern: Some(PatternKind::Stream),
    of_path: false,
};

/// Option: whether received payload is compared with what was sent.
pub const VERIFY: OptionInfo = OptionInfo {
    key: "verify",
    help: "Compare received payload with what was sent. This takes time of the threads that is measured as well",
    kind: Kind::Switch,
    pattern: None,
    of_path: false,
};

/// Option: number of requests that each queue pair keeps in flight.
pub const DEPTH: OptionInfo = OptionInfo {
    key: "depth",
    help: "Requests that each queue pair keeps in flight [default: 128]",
    kind: Kind::Count { least: 1, most: 8192 },
    pattern: Some(PatternKind::Stream),
    of_path: false,
};

/// Option: number of receive requests that are posted to each queue pair.
pub const RECEIVES: OptionInfo = OptionInfo {
    key: "receives",
    help: "Receive requests posted to each queue pair, for sends and writes with immediate [default: twice the depth, 64 at least]",
    kind: Kind::Count { least: 1, most: 16_384 },
    pattern: Some(PatternKind::Stream),
    of_path: false,
};

/// Requests that each queue pair keeps in flight where [`DEPTH`] is not set.
pub const DEPTH_DEFAULT: u64 = 128;

/// Requests that each queue pair keeps in flight, with these options.
pub fn depth(options: &Options) -> u32 {
    let depth = options.number(DEPTH.key).unwrap_or(DEPTH_DEFAULT);
    u32::try_from(depth).unwrap_or(u32::MAX)
}

/// Option: number of reads and atomic operations that a queue pair's device keeps in flight.
pub const READS: OptionInfo = OptionInfo {
    key: "reads",
    help: "Reads and atomic operations that a queue pair's device keeps in flight, as far as both devices allow [default: as many as they allow]",
    kind: Kind::Count { least: 1, most: 128 },
    pattern: None,
    of_path: false,
};

/// Reads in flight that are requested where [`READS`] is not set: as many as any device supports, or more.
pub const READS_DEFAULT: u64 = 128;

/// Option: number of requests for which the device reports one completion.
pub const SIGNAL_EVERY: OptionInfo = OptionInfo {
    key: "signal-every",
    help: "Requests for which the device reports one completion [default: 1 from 8 KiB on, below as many as fit]",
    kind: Kind::Count { least: 1, most: 1024 },
    pattern: Some(PatternKind::Stream),
    of_path: false,
};

/// Option: largest payload that is copied into a request, in bytes.
pub const INLINE: OptionInfo = OptionInfo {
    key: "inline",
    help: "Payload up to this size is copied into the request, as far as the device allows [default: 220]",
    kind: Kind::Size { least: 0, most: 4096 },
    pattern: None,
    of_path: false,
};

/// Inline payload in bytes where [`INLINE`] is not set, as in perftest.
//= linux-rdma/perftest, src/perftest_parameters.h: DEF_INLINE_WRITE
pub const INLINE_DEFAULT: u64 = 220;

/// Inline payload in bytes that a load requests, with these options.
pub fn inline(options: &Options) -> u64 {
    options.number(INLINE.key).unwrap_or(INLINE_DEFAULT)
}

/// Option: largest payload of a packet, in bytes.
pub const MTU: OptionInfo = OptionInfo {
    key: "mtu",
    help: "Largest payload of a packet: 256, 512, 1024, 2048 or 4096 [default: the smaller one of both ports]",
    kind: Kind::Size { least: 256, most: 4096 },
    pattern: None,
    of_path: false,
};

/// Option: index of the port's address in its table of GIDs.
pub const GID_INDEX: OptionInfo = OptionInfo {
    key: "gid-index",
    help: "Use this entry of both ports' tables of GIDs [default: chosen by the path's IP addresses]",
    kind: Kind::Count { least: 0, most: 255 },
    pattern: None,
    of_path: true,
};

/// Option: the service level of InfiniBand packets, or the priority of RoCE packets.
pub const SERVICE_LEVEL: OptionInfo = OptionInfo {
    key: "service-level",
    help: "Service level of InfiniBand packets, priority of RoCE packets [default: 0]",
    kind: Kind::Count { least: 0, most: 15 },
    pattern: None,
    of_path: true,
};

/// Option: the traffic class of routed packets.
pub const TRAFFIC_CLASS: OptionInfo = OptionInfo {
    key: "traffic-class",
    help: "Traffic class of routed packets; RoCE's DSCP is a quarter of it [default: 0]",
    kind: Kind::Count { least: 0, most: 255 },
    pattern: None,
    of_path: true,
};

/// Option: whether threads sleep until a completion, instead of polling.
pub const EVENTS: OptionInfo = OptionInfo {
    key: "events",
    help: "Sleep until the device reports a completion, instead of polling for it",
    kind: Kind::Switch,
    pattern: None,
    of_path: false,
};

/// Option: whether requests are posted by `ibv_post_send`, even where the driver has the newer functions `ibv_wr_*`.
pub const POST_SEND: OptionInfo = OptionInfo {
    key: "post-send",
    help: "Post requests by ibv_post_send, also where the driver has the functions ibv_wr_*",
    kind: Kind::Switch,
    pattern: None,
    of_path: false,
};

/// Code of the time without an acknowledgement after which a packet is retransmitted.
pub const ACK_TIMEOUT: u8 = 14;

/// The time that [`ACK_TIMEOUT`] encodes: 67 ms. A device may take up to four times as long.
//= InfiniBand Architecture Specification 1.4, section 9.7.6.1.3: 4.096 us x 2^number
pub const ACK_WAIT: Nanos = Nanos(4_096 << ACK_TIMEOUT);

/// Code of the time that a sender waits before it tries again, when the other end had no receive request.
pub const RNR_TIMER: u8 = 12;

/// The time that [`RNR_TIMER`] encodes: the sender waits at least this long.
//= InfiniBand Architecture Specification 1.4, section 9.7.5.2.8, table of RNR NAK timer encodings: 12 is 0.64 ms
pub const RNR_WAIT: Nanos = Nanos::from_micros(640);

/// Whether threads poll for completions, with these options. Polling threads are busy at any load.
pub fn polls(options: &Options) -> bool {
    !options.is_on(EVENTS.key)
}

/// The name of a load with these options in text, such as `RDMA send by UD`.
pub(super) fn words(options: &Options) -> String {
    let op = Operation::of(options).name();
    match Service::of(options) {
        Service::Rc => format!("RDMA {op}"),
        service => format!("RDMA {op} by {}", service.name().to_uppercase()),
    }
}

/// All options of the RDMA transport.
pub const OPTIONS: &[OptionInfo] = &[
    OPERATION,
    SERVICE,
    DEVICE,
    FAR_DEVICE,
    QUEUE_PAIRS,
    DEPTH,
    RECEIVES,
    POST_LIST,
    SIGNAL_EVERY,
    READS,
    INLINE,
    MTU,
    GID_INDEX,
    SERVICE_LEVEL,
    TRAFFIC_CLASS,
    EVENTS,
    POST_SEND,
    VERIFY,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Setting;

    #[test]
    fn the_words_of_operations_are_those_of_the_option() {
        let Kind::Word(words) = OPERATION.kind else { panic!("{:?}", OPERATION.kind) };
        assert_eq!(words, Operation::ALL.map(Operation::name));
        for op in Operation::ALL {
            let mut options = Options::default();
            options.set(OPERATION.key, Setting::Word(op.name().to_owned()));
            assert_eq!(Operation::of(&options), op);
        }
        assert_eq!(Operation::of(&Options::default()), Operation::Write);
    }

    #[test]
    fn the_words_of_services_are_those_of_the_option() {
        let Kind::Word(words) = SERVICE.kind else { panic!("{:?}", SERVICE.kind) };
        assert_eq!(words, Service::ALL.map(Service::name));
        assert_eq!(Service::of(&Options::default()), Service::Rc);
        for (service, carried) in [
            (Service::Rc, &Operation::ALL[..]),
            (Service::Uc, &[Operation::WriteWithImmediate, Operation::Send]),
            (Service::Ud, &[Operation::Send]),
        ] {
            let all = Operation::ALL.into_iter();
            let carries: Vec<_> = all.filter(|op| service.carries(*op)).collect();
            assert_eq!(carries, carried, "{service:?}");
        }
    }
}
