//! Rules about imported results, for what the causes of the judge do not cover.
//!
//! A rule states only what the figures show. Where a figure that it needs is missing, it is silent.

mod ceiling;
mod claims;
mod compare;
mod connections;
mod counters;
mod course;
mod damaged;
mod datagrams;
mod direction;
mod disk;
mod echo;
mod fabric;
mod full;
mod hardware;
mod hops;
mod layers;
mod moved;
mod remark;
mod repeats;
mod runs;
mod sizes;
mod streams;
mod tables;
mod transfers;
mod usb;

use super::Explained;
pub(super) use direction::may_cross;
pub use remark::{Answer, Next, Remark, Run};

/// A rule about imported results.
pub struct Rule {
    /// Stable id of the rule's remarks. A remark that repeats an oddity has the oddity's id instead.
    pub id: &'static str,
    /// What the rule looks for, in one sentence.
    pub doc: &'static str,
    find: fn(&Explained<'_>) -> Vec<Remark>,
}

/// Every rule. If two rules answer the question equally well, the first one is the headline.
pub static RULES: &[Rule] = &[
    Rule {
        id: "impossible-rate",
        doc: "A rate that is more than all ports carry that the facts of a host show.",
        find: full::impossible,
    },
    Rule {
        id: "same-host",
        doc: "A transfer whose ends have one address.",
        find: course::same_host,
    },
    Rule {
        id: "nothing-arrived",
        doc: "A transfer of which nothing arrived: what was retransmitted and the congestion window tell what may hold it.",
        find: course::nothing,
    },
    Rule {
        id: "socket-drops",
        doc: "As many datagrams dropped for want of room in the receiver's socket as a transfer lost, within 10 %.",
        find: counters::dropped,
    },
    Rule {
        id: "datagrams-lost",
        doc: "Loads by UDP of one direction: loss that begins at a rate, or that is a share of any rate.",
        find: course::ladder,
    },
    Rule {
        id: "segments-lost",
        doc: "A transfer of which one segment in a thousand or more was retransmitted; from one in a hundred loss itself is named.",
        find: course::loses,
    },
    Rule {
        id: "rate-stepped-down",
        doc: "A rate that falls by a quarter or more within a run, and stays.",
        find: course::step,
    },
    Rule {
        id: "held-by-a-window",
        doc: "A sender that the receiver's window or its own buffer held for half of the time or more, by the kernel's clocks.",
        find: connections::held,
    },
    Rule {
        id: "retransmits-counted",
        doc: "Retransmissions that the kernel counts: lost, or needless by what the receiver answered.",
        find: counters::retransmits,
    },
    Rule {
        id: "one-core-of-many",
        doc: "CPU time of a whole machine that is one of its CPUs.",
        find: counters::one_core,
    },
    Rule {
        id: "one-cpu-full",
        doc: "A CPU that is busy 95 % of the time or more while all together are 80 % or less, by mpstat.",
        find: counters::full_cpu,
    },
    Rule {
        id: "queue-fills",
        doc: "Round trips that take five times as long, and 30 ms more, while the path is loaded.",
        find: echo::queue,
    },
    Rule {
        id: "held-nearby",
        doc: "Round trips of 30 ms or more without loss, the longest five times the shortest, to a host nearby.",
        find: echo::held,
    },
    Rule {
        id: "hops",
        doc: "Loss that begins at a hop and stays to the last one; loss of a hop alone is none of the path.",
        find: hops::path,
    },
    Rule {
        id: "local-drops",
        doc: "Packets that a port dropped for want of room between two readings, 0.8 to 1.5 for each one that a transfer lost.",
        find: damaged::dropped,
    },
    Rule {
        id: "port-damaged",
        doc: "Packets that the wire damaged, grown between two readings of a port beside a transfer into it that lost as many.",
        find: damaged::damaged,
    },
    Rule {
        id: "buffers-differ",
        doc: "A stream that carries 1.5 times as much with another buffer.",
        find: compare::buffers,
    },
    Rule {
        id: "window-by-ping",
        doc: "A window that fills once in each round trip, by the window and the ping of the input, where nothing is lost.",
        find: compare::window,
    },
    Rule {
        id: "ways-share",
        doc: "Both ways together that carry less than 1.3 times what one does alone.",
        find: compare::both,
    },
    Rule {
        id: "streams-held",
        doc: "Several streams that carry more than 1.3 times what one does.",
        find: compare::flows,
    },
    Rule {
        id: "ways-differ",
        doc: "A direction that carries less than two thirds of the other one.",
        find: compare::ways,
    },
    Rule {
        id: "a-round-limit",
        doc: "A flat rate without loss at a round figure that no port leaves to TCP.",
        find: full::round,
    },
    Rule {
        id: "as-small-packets",
        doc: "A transfer in packets of 9000 bytes at the rate that those of 1500 leave of a link.",
        find: full::small_packets,
    },
    Rule {
        id: "port-speed",
        doc: "A port or a slot of a host that is slower than it could be, beside results. What its facts say has their id.",
        find: ceiling::host,
    },
    Rule {
        id: "pcie-slot",
        doc: "A rate at what the slot of a card carries, where its port carries more.",
        find: fabric::slots::slot,
    },
    Rule {
        id: "adapter-on-usb-2",
        doc: "A transfer at what USB 2 carries (192 to 434 Mb/s), of a host whose network adapter hangs on it.",
        find: usb::ports,
    },
    Rule {
        id: "disk-on-usb-2",
        doc: "A disk that moves large blocks at 30 to 45 MB/s, reads and writes alike and at each depth; or one that hangs on USB 2, at \
              what that carries.",
        find: usb::disks,
    },
    Rule {
        id: "wrong-node",
        doc: "A program that its command binds to another NUMA node than that of the card, at a rate that fills no link; or runs that differ in the node or the CPU, and by more than 1.3 times in the rate.",
        find: fabric::node::node,
    },
    Rule {
        id: "unserved-port",
        doc: "A port of InfiniBand that carries nothing: it waits for a subnet manager, is held down (`ib-held-down`), or has no \
              cable (`ib-no-link`).",
        find: fabric::ports::down,
    },
    Rule {
        id: "link-errors",
        doc: "Errors of a port of InfiniBand as a share of its packets: 1e-4 of them, grown between two readings, slow a path down.",
        find: fabric::counters::errors,
    },
    Rule {
        id: "test-too-short",
        doc: "A rate of less than 10 ms of traffic, or of fewer than 100 messages.",
        find: runs::short,
    },
    Rule {
        id: "within-one-host",
        doc: "Messages between processes of one host: at the rate of a card they do not go through shared memory.",
        find: fabric::one_host,
    },
    Rule {
        id: "messages-by-sockets",
        doc: "Operations of many processes whose messages go over TCP sockets, by the log of the program.",
        find: fabric::collective::sockets,
    },
    Rule {
        id: "hosts-differ",
        doc: "Runs of the same at other hosts, of which the fastest carries more than 1.3 times the slow ones: the host that only \
              those have.",
        find: fabric::collective::hosts,
    },
    Rule {
        id: "bus-bandwidth",
        doc: "The rate of an operation of many processes beside all ports of a host, if they are known: 0.9 of them is full.",
        find: fabric::collective::bus_bandwidth,
    },
    Rule {
        id: "rdma-mtu",
        doc: "A port of RDMA whose packets are smaller than it supports, where a full link would carry 2 % more.",
        find: fabric::packets::mtu,
    },
    Rule {
        id: "ipoib-mtu",
        doc: "Sockets over InfiniBand in packets of 4092 bytes or fewer, where verbs carry twice as much.",
        find: |explained| fabric::packets::datagrams(explained).into_iter().collect(),
    },
    Rule {
        id: "software-rdma",
        doc: "Verbs over a device that is made by software.",
        find: |explained| fabric::ports::software(explained).into_iter().collect(),
    },
    Rule {
        id: "one-queue-pair",
        doc: "Several queue pairs that carry more than 1.3 times what fewer do, with messages of one size.",
        find: runs::queues,
    },
    Rule {
        id: "ways-share",
        doc: "Both ways together that carry less than 1.3 times one way alone.",
        find: runs::both,
    },
    Rule {
        id: "timer",
        doc: "Times that stand at whole multiples of one time, whatever the size: a timer sets them.",
        find: sizes::timer,
    },
    Rule {
        id: "rate-falls",
        doc: "Larger messages that move at less than 0.8 of the rate of smaller ones, and never catch up.",
        find: sizes::falls,
    },
    Rule {
        id: "second-knee",
        doc: "Larger messages at 0.8 to 0.98 of the highest rate, which smaller ones reached.",
        find: tables::knee,
    },
    Rule {
        id: "outlier",
        doc: "A size at which the order of two tables is turned, and at no other.",
        find: tables::outlier,
    },
    Rule {
        id: "datagrams-slower",
        doc: "Large datagrams of UDP that take longer than the same bytes over TCP, where small ones take less.",
        find: tables::datagrams,
    },
    Rule {
        id: "long-tail",
        doc: "A longest time of ten or more times the typical one.",
        find: sizes::tail,
    },
    Rule {
        id: "runs-differ",
        doc: "Two runs of one test of latency that differ by 1.3 times: by the delay of the card's interrupts, if it explains it.",
        find: repeats::repeats,
    },
    Rule {
        id: "half-and-whole",
        doc: "Halves of round trips beside whole ones.",
        find: sizes::halves,
    },
    Rule {
        id: "management-ping",
        doc: "A ping of the InfiniBand management path, which says nothing of the latency of data.",
        find: sizes::management,
    },
    Rule {
        id: "sockets-slower",
        doc: "Sockets that take at least twice as long as verbs between the same ends.",
        find: layers::sockets,
    },
    Rule {
        id: "direction-cleared",
        doc: "Files at the other end that move at less than half of the rate in one direction, although the network carries more \
              there.",
        find: direction::cleared,
    },
    Rule {
        id: "copy-above-row",
        doc: "The copy of a file that is faster than the sequential row of a benchmark in the same direction.",
        find: disk::copies,
    },
    Rule {
        id: "disk-page-cache",
        doc: "Bytes that a benchmark with the cache of the system counts and the disk did not move.",
        find: disk::cache,
    },
    Rule {
        id: "queue-depth",
        doc: "Fewer than 0.7 of the requested operations in flight, by Little's law.",
        find: disk::depth,
    },
    Rule {
        id: "disk-page-cache",
        doc: "Bytes that move faster than a rotating disk (300 MB/s), Serial ATA (600 MB/s) or one disk at all (15.75 GB/s), where \
              the cache was not bypassed.",
        find: disk::cache::cached,
    },
    Rule {
        id: "disk-path-failed",
        doc: "A multipath disk of which paths of the group in use, or all of the preferred group, have failed.",
        find: disk::paths::failed,
    },
    Rule {
        id: "disk-path-idle",
        doc: "A multipath disk of which each path is a group of its own with the same priority: one carries all.",
        find: disk::paths::idle,
    },
    Rule {
        id: "nfs-io-size",
        doc: "A mount with requests below 64 KiB, by its options or as the kernel counts them, beside larger operations or none.",
        find: disk::mounts::split,
    },
    Rule {
        id: "disk-sync",
        doc: "Flushes of 200 us or more that are at least half of the time of each write.",
        find: disk::cache::flushed,
    },
    Rule {
        id: "disk-submit",
        doc: "A thread that submits for 0.9 of its time or more.",
        find: disk::depth::submits,
    },
    Rule {
        id: "queue-depth",
        doc: "One operation in flight, by Little's law, where more were asked; or small ones, one after the other, of less than 2 ms.",
        find: disk::depth::depth,
    },
    Rule {
        id: "disk-latency",
        doc: "Operations of 100 ms or more at 20 or fewer in a second, or small ones, one after the other, of 2 ms or more.",
        find: disk::latency::latency,
    },
    Rule {
        id: "disk-link",
        doc: "A later run of the same benchmark that reads large blocks at less than 0.6 of the rate, and small ones as quickly.",
        find: disk::repeated::narrower,
    },
    Rule {
        id: "window-full",
        doc: "Data in flight, by the rate and the round trip, that fill the offered window or a requested buffer.",
        find: connections::window,
    },
    Rule {
        id: "loss-explains",
        doc: "Retransmissions that would leave about the rate that was reached.",
        find: connections::loss,
    },
    Rule {
        id: "more-than-proportional",
        doc: "A rate that grows by more than a tenth faster than the number of streams.",
        find: streams::jumps,
    },
    Rule {
        id: "past-the-best",
        doc: "More streams that carry less than 0.9 of what fewer do.",
        find: streams::past_best,
    },
    Rule {
        id: "streams-differ",
        doc: "Streams of one transfer of which the slowest carries less than half of the fastest.",
        find: streams::differ,
    },
    Rule {
        id: "flow-cap",
        doc: "Three or more streams that all carry the rate to which clouds limit one flow.",
        find: streams::capped,
    },
    Rule {
        id: "as-asked",
        doc: "A transfer at the rate that was asked for: the path may carry more.",
        find: datagrams::as_requested,
    },
    Rule {
        id: "sent-not-received",
        doc: "A rate that only the sender counted.",
        find: datagrams::sent,
    },
    Rule {
        id: "at-a-ceiling",
        doc: "A rate at which a standard link is full.",
        find: ceiling::at_one,
    },
    Rule {
        id: "ports-full",
        doc: "Streams of which each fills a standard link: as many ports are full.",
        find: full::each,
    },
    Rule {
        id: "hardware",
        doc: "The best rate beside the ceiling of the hardware, as a case file describes it.",
        find: hardware::reached,
    },
    Rule {
        id: "coded-twice",
        doc: "A claimed ceiling from which the line code of a slot is taken off twice.",
        find: hardware::coded_twice,
    },
    Rule {
        id: "link-unused",
        doc: "The best transfer at less than 0.9 of the slowest port that could have carried it, by the facts of the hosts.",
        find: fabric::ports::unused,
    },
    Rule {
        id: "claim-not-reached",
        doc: "A claimed rate, time or capacity, held against the figures; a claim that no figure stands beside.",
        find: claims::headline,
    },
    Rule {
        id: "slower-than-before",
        doc: "Whole round trips that take more than 1.05 times as long as those of the same kind before the change; a time of \
              another kind.",
        find: claims::before,
    },
    Rule {
        id: "transport-not-shown",
        doc: "A claim of RDMA that no figure shows: files move as fast as TCP does.",
        find: claims::transport,
    },
    Rule {
        id: "disk-open",
        doc: "Results of disks alone: what they rule out, and what would tell more.",
        find: disk::open::open,
    },
];

/// The remarks of all rules, the findings first.
pub(super) fn remarks(explained: &Explained<'_>) -> Vec<Remark> {
    let mut all = Vec::new();
    for rule in RULES {
        for mut remark in (rule.find)(explained) {
            if remark.finding.id.is_empty() {
                remark.finding.id = rule.id;
            }
            all.push(remark);
        }
    }
    all.sort_by_key(|remark| remark.finding.stands);
    all
}

/// A rate in both units that people use: `16.3 Gb/s (2.04 GB/s)`.
pub(super) fn rate(bits: f64) -> String {
    use linerate_units::Rate;
    let bytes = bits / 8.0;
    let (value, unit) = [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")]
        .into_iter()
        .find(|(scale, _)| bytes >= *scale)
        .map_or((bytes, "B/s"), |(scale, unit)| (bytes / scale, unit));
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{} ({value:.digits$} {unit})", Rate(bits.max(0.0) as u64))
}
