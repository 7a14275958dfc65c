//! The table of transports: what is known of each without a machine.

use super::knob::Knob;
use super::options::{ACCESS, BIND, DSCP, MEMORY_NODE, OptionInfo, Options, PRELOAD, RING};
use super::varied::Swept;
use super::{Feature, rdma};
use crate::path::Stage;
use crate::{Access, Knobs};

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
    /// A file or a disk of this host, which the user names.
    File,
    /// The transport has no far end.
    Absent,
}

/// A transport, with the facts that do not depend on a machine.
#[derive(Debug)]
pub struct TransportInfo {
    /// The name: `--engine NAME`, and the key `engine` of records and JSON.
    pub name: &'static str,
    /// The name in text with these options, where it is not the name in capitals.
    pub words: Option<fn(&Options) -> String>,
    /// Description of the transport in a few words, for the help.
    pub doc: &'static str,
    /// The patterns that the transport has.
    pub patterns: &'static [PatternKind],
    /// The kind of far end.
    pub far_end: FarEnd,
    /// The name of one sample of the transport's round trips.
    pub sample: &'static str,
    /// What its bytes pass and what its loads have: the causes and factors that need it apply to the transport.
    pub features: &'static [Feature],
    /// The stages that bytes cross on one host, from the program outwards. The last one is [`Stage::Net`] where they leave
    /// the host.
    pub stages: &'static [Stage],
    /// Phrase for the place where payload counts as sent.
    pub taken: &'static str,
    /// Whether a message may be sent and never answered, with these options.
    pub may_lose_messages: fn(&Options) -> bool,
    /// Whether payload may be lost on the path, with these options: the sent and the received payload may differ.
    pub may_lose_payload: fn(&Options) -> bool,
    /// Whether a timed operation is a round trip by itself, which no other end answers, with these options.
    pub returns: fn(&Options) -> bool,
    /// The access of operations whose options name none.
    pub access: Access,
    /// Operations that each stream keeps in flight, with these options; zero if [`Knobs::depth`] says it.
    pub depth: fn(&Options) -> u32,
    /// Whether threads poll, with these options; `None` if [`Knobs::busy_poll`] says it.
    pub polls: Option<fn(&Options) -> bool>,
    /// Whether a user may choose the transport.
    pub offered: bool,
    /// The knobs that the transport obeys. It refuses a plan that sets another one.
    pub obeys: &'static [Knob],
    /// The beginning of such a refusal: `datagrams have no`.
    pub has_no: &'static str,
    /// Its own names of knobs in refusals, where the usual ones do not fit.
    pub names: &'static [(Knob, &'static str)],
    /// The options that are its own.
    pub options: &'static [OptionInfo],
    /// The factors of its load that a study varies.
    pub varies: &'static [Swept],
    /// The smallest and the largest operation of a study of sizes.
    pub sizes: [u64; 2],
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
    /// Whether the transport has a pattern.
    pub fn carries(&self, pattern: PatternKind) -> bool {
        self.patterns.contains(&pattern)
    }

    /// Whether its bytes pass, or its loads have, a feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// Whether a cause or a factor that needs these features applies.
    pub fn has_all(&self, features: &[Feature]) -> bool {
        features.iter().all(|feature| self.has(*feature))
    }

    /// Whether no program is at a far end: this host alone moves the bytes.
    pub fn is_alone(&self) -> bool {
        matches!(self.far_end, FarEnd::File | FarEnd::Absent)
    }

    /// Whether the transport obeys all `knobs` that are set; if not, the reason as a lowercase fragment.
    pub fn check(&self, knobs: &Knobs) -> Result<(), String> {
        let mut lacks = Knob::ALL.iter().filter(|knob| !self.obeys.contains(knob));
        lacks.try_for_each(|knob| match knob.asked(knobs) {
            (true, usual) => {
                let own = self.names.iter().find(|(named, _)| named == knob);
                Err(format!("{} {}", self.has_no, own.map_or(usual, |(_, name)| name)))
            }
            (false, _) => Ok(()),
        })
    }

    /// Whether the transport carries a load.
    pub fn carries_load(&self) -> bool {
        self.carries(PatternKind::Stream) || self.carries(PatternKind::Operations)
    }

    /// The row with the usual values, from which other rows differ.
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
        // Below, a call costs more than its payload; above, nothing is gained by fewer.
        sizes: [1 << 10, 4 << 20],
    };
}

/// Payload that goes through sockets and a port.
const SOCKETS: &[Stage] =
    &[Stage::App, Stage::Socket, Stage::Cpu, Stage::Memory, Stage::Pcie, Stage::Port, Stage::Net];

/// Payload that stays in the memory of this host.
const IN_MEMORY: &[Stage] = &[Stage::App, Stage::Cpu, Stage::Memory];

/// What counts as sent by sockets.
const BY_KERNEL: &str = "taken by this end's kernel";

/// TCP connections.
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

/// UDP datagrams.
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

/// Requests to RDMA devices: InfiniBand, or RDMA over Ethernet.
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
    // As in the tables of perftest: the smallest show how many a device carries.
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

/// The memory of this host. Each thread works on an array of its own. A round trip is a load from memory whose result is
/// the address of the next one.
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

/// Moves nothing: the rate that the tool itself can drive.
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

/// A transport that this version does not know: only bytes, operations and their times are known of its loads.
pub static OTHER: TransportInfo = TransportInfo {
    features: &[Feature::Port, Feature::Operations],
    obeys: Knob::ALL,
    offered: false,
    ..TransportInfo::BASE
};

/// The transport that is used where none is chosen.
pub static USUAL: &TransportInfo = &TCP;

/// All transports, in display order.
pub static TRANSPORTS: &[&TransportInfo] =
    &[&TCP, &UDP, &CONNECT, &SHM, &RDMA, &PROGRAM, &MEMORY, &NULL];

/// The transport with this name.
pub fn named(name: &str) -> Option<&'static TransportInfo> {
    TRANSPORTS.iter().find(|info| info.name == name).copied()
}

/// The transport of an engine, by its name in records. The simulated path moves bytes as TCP does.
pub fn of(engine: &str) -> &'static TransportInfo {
    match engine {
        "sim" => &TCP,
        name => named(name).unwrap_or(&OTHER),
    }
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
