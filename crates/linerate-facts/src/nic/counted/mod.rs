//! What the counters of network drivers mean.
//!
//! Drivers name their counters as they like. One table gives the meaning of each name, by driver. A name that is not in
//! the table has no meaning here, and is never judged.

mod name;
mod pause;
mod table;

use super::Counter;

pub use name::{grouped, sounds_bad};

/// What a driver's counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    /// Packets received for which the ring had no free descriptor.
    RingFull,
    /// Packets received for which the buffer of the card had no room.
    BufferFull,
    /// Packets that the driver or the card dropped instead of sending them.
    SendDropped,
    /// Failures to get memory for received packets from the host.
    NoMemory,
    /// Packets that the wire damaged.
    Damaged,
    /// Packets that were longer or shorter than the port accepts.
    WrongSize,
    /// Packets with a wrong IP, TCP or UDP checksum.
    BadChecksum,
    /// Packets that the card or the driver could not handle for another reason.
    Failed,
    /// Packets that collided on the wire while they were sent.
    Collided,
    /// Resets of a send queue that had stopped.
    Hung,
    /// Pause frames that the port received.
    PauseReceived,
    /// Pause frames that the port sent.
    PauseSent,
    /// Microseconds during which received pause frames stopped the port.
    PausedMicros,
    /// Pause frames that stop one priority other than 0.
    PriorityPause,
    /// Packets beyond what a cloud allows the machine.
    Allowance,
    /// Packets that a filter discarded as it should.
    Filtered,
    /// Number of times that a queue was full and packets had to wait. Nothing was lost.
    Waited,
    /// A level, not a count of events.
    Gauge,
    /// An event that costs neither packets nor time.
    Benign,
}

/// Each meaning with its id, its description and its remedy. The remedy is empty where nothing needs to be done.
const MEANINGS: [(Meaning, &str, &str, &str); 19] = [
    (
        Meaning::RingFull,
        "ring-full",
        "the receive ring was full",
        "ethtool -g PORT; sudo ethtool -G PORT rx N; more queues, or more CPUs that receive packets",
    ),
    (
        Meaning::BufferFull,
        "buffer-full",
        "the buffer of the card was full",
        "compare the PCIe link with the speed of the port; a larger ring, more queues, flow control",
    ),
    (
        Meaning::SendDropped,
        "send-dropped",
        "dropped instead of sent",
        "ethtool -g PORT; sudo ethtool -G PORT tx N; dmesg | grep PORT",
    ),
    (
        Meaning::NoMemory,
        "no-memory",
        "the host had no memory for packets",
        "free -m; a higher vm.min_free_kbytes; smaller rings",
    ),
    (
        Meaning::Damaged,
        "damaged",
        "damaged on the wire",
        "another cable or transceiver: ethtool -m PORT",
    ),
    (
        Meaning::WrongSize,
        "wrong-size",
        "longer or shorter than the port accepts",
        "the same MTU at both ends of the wire: ip link show PORT",
    ),
    (
        Meaning::BadChecksum,
        "bad-checksum",
        "wrong checksum of IP, TCP or UDP",
        "find the sender, and what changes packets on the path",
    ),
    (
        Meaning::Failed,
        "failed",
        "the card or its driver could not handle it",
        "dmesg | grep PORT; newer firmware and driver",
    ),
    (
        Meaning::Collided,
        "collided",
        "collisions: half duplex",
        "full duplex at both ends: ethtool PORT",
    ),
    (Meaning::Hung, "hung", "the send queue hung and was reset", "dmesg | grep PORT"),
    (
        Meaning::PauseReceived,
        "pause-received",
        "the other end sent pause frames",
        "find what cannot keep up: the counters of the switch",
    ),
    (
        Meaning::PauseSent,
        "pause-sent",
        "this port sent pause frames",
        "find why this host cannot keep up: CPUs, ring, PCIe link",
    ),
    (
        Meaning::PausedMicros,
        "paused",
        "microseconds that the port was paused",
        "find what cannot keep up: the counters of the switch",
    ),
    (
        Meaning::PriorityPause,
        "priority-pause",
        "pauses of one priority",
        "mlnx_qos -i PORT, dcb pfc show dev PORT; the counters of the switch",
    ),
    (
        Meaning::Allowance,
        "allowance",
        "over the allowance of this type of machine",
        "a larger type of machine, or fewer bursts",
    ),
    (Meaning::Filtered, "filtered", "discarded by a filter, as intended", ""),
    (Meaning::Waited, "waited", "waited for room, nothing was lost", ""),
    (Meaning::Gauge, "gauge", "a level, not a count", ""),
    (Meaning::Benign, "benign", "costs no packets", ""),
];

impl Meaning {
    fn row(self) -> (&'static str, &'static str, &'static str) {
        let row = MEANINGS.iter().find(|row| row.0 == self);
        row.map_or(("", "", ""), |row| (row.1, row.2, row.3))
    }

    /// The ids of all meanings.
    pub fn ids() -> impl Iterator<Item = &'static str> {
        MEANINGS.iter().map(|row| row.1)
    }

    /// Id of the meaning, as in documents.
    pub fn id(self) -> &'static str {
        self.row().0
    }

    /// What the counter counts, in words.
    pub fn words(self) -> &'static str {
        self.row().1
    }

    /// The remedy for the port `port`; empty if nothing needs to be done.
    pub fn fix(self, port: &str) -> String {
        self.row().2.replace("PORT", port)
    }

    /// Whether the counted event deserves a closer look, because packets were lost, damaged or delayed.
    pub fn is_trouble(self) -> bool {
        !self.row().2.is_empty()
    }
}

/// The meaning of a driver's counter, by the driver's rows or the kernel's; `None` if it is unknown.
pub fn meaning(driver: &str, name: &str) -> Option<Meaning> {
    let own = own_meaning(driver, name);
    own.or_else(|| table::of_kernel(name))
}

/// Words in names of counters, and what such a counter most likely means if the driver is unknown.
const LIKELY: [(&str, Meaning); 8] = [
    ("crc", Meaning::Damaged),
    ("fcs", Meaning::Damaged),
    ("align", Meaning::Damaged),
    ("missed", Meaning::BufferFull),
    ("no_buf", Meaning::BufferFull),
    ("out_of_buffer", Meaning::RingFull),
    ("no_dma", Meaning::RingFull),
    ("fifo", Meaning::BufferFull),
];

/// The meaning of a counter of received packets. If the driver is unknown, words in the name decide.
pub fn likely(driver: &str, name: &str) -> Option<Meaning> {
    let known = meaning(driver, name);
    if known.is_some() || !driver.is_empty() {
        return known;
    }
    let name = name.to_ascii_lowercase();
    let is_of_sending = name.contains("tx") || name.contains("bytes");
    let mut rows = LIKELY.iter().filter(|_| !is_of_sending && sounds_bad(&name));
    rows.find(|(word, _)| name.contains(word)).map(|(_, meaning)| *meaning)
}

/// The meaning of a driver's counter, as [`meaning`], but only by the driver's own rows: names that the kernel counts
/// for every port give `None`.
pub fn own_meaning(driver: &str, name: &str) -> Option<Meaning> {
    let known = table::of_driver(driver, name);
    known.or_else(|| pause::meaning(name))
}

/// Whether the kernel counts the same events for every port, in its link statistics.
pub fn is_of_kernel(name: &str) -> bool {
    table::of_kernel(name).is_some()
}

/// Whether a driver counts packets beyond what a cloud allows.
pub fn counts_allowances(driver: &str) -> bool {
    table::has(driver, Meaning::Allowance)
}

/// Whether an inventory keeps a counter: it has a meaning, or its name sounds like trouble, and it is not zero. Cloud
/// allowances and levels are kept at zero too, since a zero is informative there.
pub fn is_kept(driver: &str, counter: &Counter) -> bool {
    match meaning(driver, &counter.name) {
        Some(Meaning::Benign) => false,
        Some(Meaning::Allowance | Meaning::Gauge) => true,
        Some(_) => counter.value > 0,
        None => counter.value > 0 && sounds_bad(&counter.name),
    }
}

/// Sets of counters that together count all packets that a port received. The second set is that of lan78xx and
/// lan743x.
const RECEIVED: [&[&str]; 2] =
    [&["rx_packets"], &["RX Unicast Frames", "RX Broadcast Frames", "RX Multicast Frames"]];

/// The packets that a port received, by its driver's own counters; `None` if no set of these counters is complete.
pub fn received(counters: &[Counter]) -> Option<u64> {
    let count = |name: &&str| counters.iter().find(|c| c.name == *name).map(|c| c.value);
    RECEIVED.iter().find_map(|names| {
        let counts: Option<Vec<u64>> = names.iter().map(count).collect();
        Some(counts?.into_iter().fold(0, u64::saturating_add))
    })
}

#[cfg(test)]
mod tests;
