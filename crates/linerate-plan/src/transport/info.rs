//! The table of transports: what is known of each transport without looking at a machine.

use super::file::FILE;
use super::knob::Knob;
use super::options::{ACCESS, BIND, DSCP, MEMORY_NODE, OptionInfo, Options, PRELOAD, RING};
use super::varied::Swept;
use super::{Feature, rdma};
use crate::path::Stage;
use crate::{Access, Knobs};

/// The kind of traffic that a load consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternKind {
    /// Payload flows in one direction, as fast as possible.
    Stream,
    /// Messages and their answers: the next message goes when the answer is in (closed loop), or when it is due (open
    /// loop).
    RoundTrips,
    /// Reads, writes and copies, which no program at another end answers.
    Operations,
}

/// What the far end of a transport is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FarEnd {
    /// A process of linerate that the user connects to. It may be on this host.
    Peer,
    /// Another process of this host, which linerate starts.
    Process,
    /// A file or a disk of this host, which the user names.
    File,
    /// The transport has no far end.
    Absent,
}

/// A row of the table of transports.
#[derive(Debug)]
pub struct TransportInfo {
    /// The name: `--engine NAME`, and the key `engine` of records and JSON.
    pub name: &'static str,
    /// Gives the name in text for these options; `None` if it is the name in capitals.
    pub words: Option<fn(&Options) -> String>,
    /// Description of the transport in a few words, for the help.
    pub doc: &'static str,
    /// The patterns of traffic that the transport can carry.
    pub patterns: &'static [PatternKind],
    /// What the far end of the transport is.
    pub far_end: FarEnd,
    /// What the transport calls one sample of its round trips.
    pub sample: &'static str,
    /// What the transport's bytes pass and what its loads have. Causes and factors that need these features apply to
    /// it.
    pub features: &'static [Feature],
    /// The stages that bytes cross on one host, from the program outwards. The last one is [`Stage::Net`] if bytes
    /// leave the host.
    pub stages: &'static [Stage],
    /// Words for the point at which payload counts as sent.
    pub taken: &'static str,
    /// Whether a message that was sent may stay without an answer, with these options.
    pub may_lose_messages: fn(&Options) -> bool,
    /// Whether the path may lose payload, with these options, so that the receiver may get less than was sent.
    pub may_lose_payload: fn(&Options) -> bool,
    /// Whether a timed operation is a round trip by itself, with these options: no program at the other end answers.
    pub returns: fn(&Options) -> bool,
    /// What operations do if the options do not request an access.
    pub access: Access,
    /// Operations that each stream keeps in flight, with these options; zero if [`Knobs::depth`] is used instead.
    pub depth: fn(&Options) -> u32,
    /// Whether threads poll, with these options; `None` if [`Knobs::busy_poll`] is used instead.
    pub polls: Option<fn(&Options) -> bool>,
    /// Whether a user may choose the transport by `--engine`.
    pub offered: bool,
    /// The knobs that the transport supports. It refuses a plan that sets another one.
    pub obeys: &'static [Knob],
    /// How the text starts that refuses a knob: `datagrams have no`.
    pub has_no: &'static str,
    /// This transport's own names of knobs in refusals, where the usual name does not fit.
    pub names: &'static [(Knob, &'static str)],
    /// The options that this transport has.
    pub options: &'static [OptionInfo],
    /// The factors that a study of this transport may vary.
    pub varies: &'static [Swept],
    /// The smallest and the largest operation of a study over sizes, in bytes.
    pub sizes: [u64; 2],
    /// The size of a timed message or operation, if none is requested, in bytes. A message fits any MTU.
    pub message: u64,
}

impl Default for &'static TransportInfo {
    fn default() -> Self {
        &OTHER
    }
}

impl PartialEq for TransportInfo {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl TransportInfo {
    /// Whether the transport can carry a pattern of traffic.
    pub fn carries(&self, pattern: PatternKind) -> bool {
        self.patterns.contains(&pattern)
    }

    /// Whether the transport has a feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// Whether a cause or a factor that needs these features applies to the transport.
    pub fn has_all(&self, features: &[Feature]) -> bool {
        features.iter().all(|feature| self.has(*feature))
    }

    /// Whether no program runs at a far end: this host alone moves the bytes.
    pub fn is_alone(&self) -> bool {
        matches!(self.far_end, FarEnd::File | FarEnd::Absent)
    }

    /// Whether the transport supports all `knobs` that are set. The error is the reason, as a lowercase fragment.
    pub fn check(&self, knobs: &Knobs) -> Result<(), String> {
        let mut lacks = Knob::ALL.iter().filter(|knob| !self.obeys.contains(knob));
        lacks.try_for_each(|knob| match knob.requested(knobs) {
            (true, usual) => {
                let own = self.names.iter().find(|(named, _)| named == knob);
                Err(format!("{} {}", self.has_no, own.map_or(usual, |(_, name)| name)))
            }
            (false, _) => Ok(()),
        })
    }

    /// Whether the transport can carry a load, not only round trips.
    pub fn carries_load(&self) -> bool {
        self.carries(PatternKind::Stream) || self.carries(PatternKind::Operations)
    }

    /// The usual values. Each transport's row gives only the values that differ.
    pub(super) const BASE: Self = Self {
        name: "",
        words: None,
        doc: "",
        patterns: &[],
        far_end: FarEnd::Peer,
        sample: "round trip",
        features: &[],
        stages: SOCKETS,
        taken: "done at this end",
        may_lose_messages: |_| false,
        may_lose_payload: |_| false,
        returns: |_| false,
        access: Access::Copy,
        depth: |_| 0,
        polls: None,
        offered: true,
        obeys: &[],
        has_no: "",
        names: &[],
        options: &[],
        varies: &[],
        // Below 1 KiB a call costs more than its payload. Above 4 MiB fewer calls gain nothing.
        sizes: [1 << 10, 4 << 20],
        message: 64,
    };
}

/// Stages of payload that passes sockets and a port.
const SOCKETS: &[Stage] =
    &[Stage::App, Stage::Socket, Stage::Cpu, Stage::Memory, Stage::Pcie, Stage::Port, Stage::Net];

/// Stages of payload that stays in the memory of this host.
const IN_MEMORY: &[Stage] = &[Stage::App, Stage::Cpu, Stage::Memory];

/// Words for the point at which payload of sockets counts as sent.
const BY_KERNEL: &str = "taken by this end's kernel";

/// TCP connections between two ends.
pub static TCP: TransportInfo = TransportInfo {
    name: "tcp",
    doc: "TCP connections",
    patterns: &[PatternKind::Stream, PatternKind::RoundTrips],
    features: &[Feature::Port, Feature::Card, Feature::Stack, Feature::Connections],
    taken: BY_KERNEL,
    options: &[BIND, DSCP],
    obeys: &[
        Knob::Congestion,
        Knob::Mss,
        Knob::SendBuffer,
        Knob::RecvBuffer,
        Knob::WindowClamp,
        Knob::Pacing,
        Knob::TwoWrites,
        Knob::Discard,
        Knob::Uncopied,
        Knob::OpenLoop,
        Knob::BusyPoll,
    ],
    has_no: "connections have no",
    varies: &[Swept::Copy, Swept::Size, Swept::Streams],
    ..TransportInfo::BASE
};

/// UDP datagrams between two ends.
pub static UDP: TransportInfo = TransportInfo {
    name: "udp",
    doc: "UDP datagrams",
    patterns: &[PatternKind::Stream, PatternKind::RoundTrips],
    features: &[Feature::Port, Feature::Card, Feature::Stack, Feature::Datagrams],
    taken: BY_KERNEL,
    may_lose_messages: |_| true,
    may_lose_payload: |_| true,
    options: &[BIND, DSCP],
    obeys: &[Knob::SendBuffer, Knob::RecvBuffer, Knob::Pacing, Knob::OpenLoop, Knob::BusyPoll],
    has_no: "datagrams have no",
    names: &[(Knob::Uncopied, "way into the kernel but a copy")],
    ..TransportInfo::BASE
};

/// A new TCP connection for each message.
pub static CONNECT: TransportInfo = TransportInfo {
    name: "connect",
    doc: "a new TCP connection for each message",
    patterns: &[PatternKind::RoundTrips],
    sample: "connection",
    features: &[
        Feature::Port,
        Feature::Card,
        Feature::Stack,
        Feature::Connections,
        Feature::Redial,
    ],
    taken: BY_KERNEL,
    may_lose_messages: |_| true,
    has_no: "connections opened one after another have no",
    ..TransportInfo::BASE
};

/// Shared memory of two processes on this host.
pub static SHM: TransportInfo = TransportInfo {
    name: "shm",
    doc: "shared memory of two processes on this machine",
    patterns: &[PatternKind::Stream, PatternKind::RoundTrips],
    far_end: FarEnd::Process,
    stages: IN_MEMORY,
    taken: "written to shared memory",
    options: &[RING],
    obeys: &[Knob::OpenLoop, Knob::BusyPoll],
    has_no: "shared memory has no",
    ..TransportInfo::BASE
};

/// Requests to RDMA devices, over InfiniBand or over Ethernet (RoCE).
pub static RDMA: TransportInfo = TransportInfo {
    name: "rdma",
    words: Some(rdma::words),
    doc: "RDMA verbs of InfiniBand and RoCE devices",
    patterns: &[PatternKind::Stream, PatternKind::RoundTrips],
    features: &[Feature::Port, Feature::Card, Feature::Verbs],
    stages: &[Stage::App, Stage::Cpu, Stage::Memory, Stage::Pcie, Stage::Port, Stage::Net],
    may_lose_messages: |options| rdma::Service::of(options).is_lossy(),
    may_lose_payload: |options| rdma::Service::of(options).is_lossy(),
    returns: |options| rdma::Operation::of(options).returns(),
    polls: Some(rdma::polls),
    options: rdma::OPTIONS,
    obeys: &[Knob::OpenLoop, Knob::BusyPoll],
    has_no: "RDMA has no",
    varies: &[Swept::Size, Swept::Streams, Swept::Depth, Swept::Qps],
    // The sizes are those of perftest. The smallest ones show how many operations a device carries.
    sizes: [2, 8 << 20],
    ..TransportInfo::BASE
};

/// An ordinary program at each end: a process that uses sockets and `poll`.
pub static PROGRAM: TransportInfo = TransportInfo {
    name: "program",
    words: Some(|options| {
        let is_preloaded = options.is_on(PRELOAD.key);
        if is_preloaded { "preloaded program" } else { "ordinary program" }.to_owned()
    }),
    doc: "an ordinary program with a socket and poll, at each end",
    patterns: &[PatternKind::Stream, PatternKind::RoundTrips],
    features: &[Feature::Port, Feature::Operations],
    options: &[PRELOAD],
    has_no: "an ordinary program has no",
    ..TransportInfo::BASE
};

/// The memory of this host. Each thread works on an array of its own. A round trip is a load from memory whose result
/// is the address of the next load.
pub static MEMORY: TransportInfo = TransportInfo {
    name: "memory",
    doc: "memory of this machine, without a network",
    patterns: &[PatternKind::Operations, PatternKind::RoundTrips],
    far_end: FarEnd::Absent,
    features: &[Feature::Memory],
    stages: IN_MEMORY,
    options: &[ACCESS, MEMORY_NODE],
    sample: "batch",
    has_no: "memory has no",
    varies: &[Swept::Size, Swept::Streams],
    names: &[(Knob::OpenLoop, "rate at which loads are due"), (Knob::BusyPoll, "sockets to poll")],
    ..TransportInfo::BASE
};

/// A transport that moves nothing: it shows the highest rate that linerate's own threads reach.
pub static NULL: TransportInfo = TransportInfo {
    name: "null",
    doc: "moves nothing",
    features: &[Feature::Operations],
    stages: &[Stage::App, Stage::Cpu],
    patterns: &[PatternKind::Stream],
    far_end: FarEnd::Absent,
    offered: false,
    obeys: Knob::ALL,
    ..TransportInfo::BASE
};

/// A transport that this version does not know, such as in a newer record. Only its bytes, operations and times are
/// known.
pub static OTHER: TransportInfo = TransportInfo {
    features: &[Feature::Port, Feature::Operations],
    obeys: Knob::ALL,
    offered: false,
    ..TransportInfo::BASE
};

/// The default transport.
pub static USUAL: &TransportInfo = &TCP;

/// All transports, in display order.
pub static TRANSPORTS: &[&TransportInfo] =
    &[&TCP, &UDP, &CONNECT, &SHM, &RDMA, &PROGRAM, &MEMORY, &FILE, &NULL];

/// The transport with this name.
pub fn named(name: &str) -> Option<&'static TransportInfo> {
    TRANSPORTS.iter().find(|info| info.name == name).copied()
}

/// The transport with this name in a record. `sim`, the simulated path, moves bytes as TCP does.
pub fn of(engine: &str) -> &'static TransportInfo {
    match engine {
        "sim" => &TCP,
        name => named(name).unwrap_or(&OTHER),
    }
}

/// The options of the transport with this name; none if the name is unknown.
pub fn options_of(name: &str) -> &'static [OptionInfo] {
    named(name).map_or(&[], |info| info.options)
}

/// The transports that have the option `key`.
pub fn with_option(key: &str) -> impl Iterator<Item = &'static TransportInfo> {
    let has = move |info: &&TransportInfo| info.options.iter().any(|row| row.key == key);
    TRANSPORTS.iter().copied().filter(has)
}

#[cfg(test)]
mod tests {
    use linerate_units::Rate;

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
    fn a_path_has_a_port_where_bytes_pass_one() {
        for info in TRANSPORTS.iter().copied().chain([&OTHER]) {
            let [port, net] = [Stage::Port, Stage::Net].map(|stage| info.stages.contains(&stage));
            let has_port = info.features.contains(&Feature::Port);
            assert_eq!((port, net), (has_port, has_port), "{}", info.name);
        }
    }

    #[test]
    fn a_knob_that_is_not_obeyed_is_refused_by_name() {
        let paced = Knobs { pacing: Some(Rate(1)), ..Knobs::default() };
        let deep = Knobs { depth: 1, ..Knobs::default() };
        for info in TRANSPORTS {
            assert_eq!(info.check(&Knobs::default()), Ok(()), "{}", info.name);
            let is_paced = info.check(&paced).is_ok();
            assert_eq!(is_paced, info.obeys.contains(&Knob::Pacing), "{}", info.name);
            assert!(info.obeys == Knob::ALL || !info.has_no.is_empty(), "{}", info.name);
        }
        assert_eq!(SHM.check(&paced).unwrap_err(), "shared memory has no pace");
        assert_eq!(MEMORY.check(&deep).unwrap_err(), "memory has no depth that can be chosen");
        assert_eq!(UDP.check(&paced), Ok(()));
    }

    #[test]
    fn rdma_loses_messages_with_unreliable_services_alone() {
        let with = |service: &str| {
            let mut options = Options::default();
            options.set(rdma::SERVICE.key, Setting::Word(service.to_owned()));
            [&RDMA, &TCP, &UDP].map(|info| (info.may_lose_messages)(&options))
        };
        assert_eq!(with("rc"), [false, false, true]);
        assert_eq!(with("uc"), [true, false, true]);
        assert_eq!(with("ud"), [true, false, true]);
        assert!(!(RDMA.may_lose_payload)(&Options::default()));
    }
}
