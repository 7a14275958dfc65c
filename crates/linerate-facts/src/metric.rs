//! The table of metrics: the name of each reading, its unit, and how readings may be combined.
//!
//! Samplers write columns with these names and the model reads them, so a new metric needs a row here, not a field of a
//! struct. Names are stable, since records and JSON use them.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize, de};

/// How a metric's values relate to time: as a counter or as a gauge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The value only grows. The difference of two readings is what happened in between.
    Counter,
    /// The value is a state at the time of the reading.
    Gauge,
}

/// The unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Values are in bytes.
    Bytes,
    /// Values are in bits per second.
    BitsPerSecond,
    /// Values are in nanoseconds.
    Nanos,
    /// Values are in microseconds, as in `TCP_INFO`.
    Micros,
    /// Values are in clock ticks, as in /proc/stat.
    Ticks,
    /// Values are numbers of packets or segments.
    Packets,
    /// Values are numbers of anything else.
    Count,
}

/// One row of the table of metrics.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Name of the source that the metric is read from (`worker`, `tcp`, `cpu` ...). A record has a table for each
    /// source.
    pub source: &'static str,
    /// Name of the metric's column in a record.
    pub name: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether the metric is a counter or a gauge.
    pub kind: Kind,
    /// The definition of the metric, and its source.
    pub doc: &'static str,
}

/// Reads the name of a column. The name of a known metric is not copied: a record has thousands of columns.
pub fn name<'de, D: Deserializer<'de>>(from: D) -> Result<Cow<'static, str>, D::Error> {
    struct Visitor;
    impl de::Visitor<'_> for Visitor {
        type Value = Cow<'static, str>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the name of a metric")
        }
        fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
            self.visit_bytes(name.as_bytes())
        }
        fn visit_bytes<E: de::Error>(self, name: &[u8]) -> Result<Self::Value, E> {
            if let Some(known) = known(name) {
                return Ok(Cow::Borrowed(known));
            }
            let name = str::from_utf8(name).map_err(E::custom)?;
            Ok(Cow::Owned(name.to_owned()))
        }
    }
    from.deserialize_identifier(Visitor)
}

/// The known name that has these bytes; `None` if no metric has this name.
fn known(name: &[u8]) -> Option<&'static str> {
    /// Names of metrics, by length. Few names have the same length.
    static NAMES: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| {
        let mut names: Vec<Vec<&str>> = Vec::new();
        for Metric { name, .. } in ALL {
            names.resize_with(names.len().max(name.len() + 1), Vec::new);
            if !names[name.len()].contains(name) {
                names[name.len()].push(name);
            }
        }
        names
    });
    let mut alike = NAMES.get(name.len())?.iter();
    alike.find(|known| known.as_bytes() == name).copied()
}

macro_rules! metrics {
    ($($ident:ident = $source:literal $name:literal $unit:ident $kind:ident $doc:literal;)*) => {
        $(#[doc = $doc] pub const $ident: Metric = Metric {
            source: $source, name: $name, unit: Unit::$unit, kind: Kind::$kind, doc: $doc,
        };)*
        /// Every metric, in the order of the table.
        pub const ALL: &[Metric] = &[$($ident),*];
    };
}

metrics! {
    WORKER_BYTES = "worker" "bytes" Bytes Counter "Payload moved by this thread since its set was made; subject `tx0`, `rx0` ... by stream.";
    WORKER_OPS = "worker" "ops" Count Counter "Operations that moved payload: one send, one receive (the available data, up to its size), one round trip.";
    THREAD_RUN = "thread" "run_ns" Nanos Counter "Time on a CPU, /proc/PID/task/TID/schedstat field 1; subject as for worker.";
    THREAD_WAIT = "thread" "wait_ns" Nanos Counter "Time runnable but not running, schedstat field 2.";
    THREAD_USER = "thread" "user_ticks" Ticks Counter "User time, /proc/PID/task/TID/stat field 14.";
    THREAD_SYSTEM = "thread" "system_ticks" Ticks Counter "System time, stat field 15; holds softirq time on kernels without IRQ time accounting.";
    THREAD_CPU = "thread" "cpu" Count Gauge "CPU the thread last ran on, stat field 39.";
    PROCESS_CPU = "process" "cpu_ns" Nanos Counter "CPU time of the whole program that moves payload: this one's from /proc/self/stat, an iperf3 server's as it reports it; no subject.";
    TCP_STATE = "tcp" "state" Count Gauge "tcpi_state.";
    TCP_CA_STATE = "tcp" "ca_state" Count Gauge "tcpi_ca_state.";
    TCP_OPTIONS = "tcp" "options" Count Gauge "The options that both ends agreed on, tcpi_options: 1 for time stamps, 2 for selective acknowledgements, 4 for window scaling, 8 for ECN.";
    TCP_RTT = "tcp" "rtt_us" Micros Gauge "Smoothed round-trip time, tcpi_rtt.";
    TCP_RTTVAR = "tcp" "rttvar_us" Micros Gauge "tcpi_rttvar.";
    TCP_MIN_RTT = "tcp" "min_rtt_us" Micros Gauge "Smallest round-trip time in the kernel's window, tcpi_min_rtt.";
    TCP_CWND = "tcp" "cwnd" Packets Gauge "tcpi_snd_cwnd.";
    TCP_SSTHRESH = "tcp" "ssthresh" Packets Gauge "tcpi_snd_ssthresh.";
    TCP_SND_MSS = "tcp" "snd_mss" Bytes Gauge "tcpi_snd_mss.";
    TCP_RCV_MSS = "tcp" "rcv_mss" Bytes Gauge "tcpi_rcv_mss.";
    TCP_ADVMSS = "tcp" "advmss" Bytes Gauge "Payload of the largest segment that this end told the other one it takes, tcpi_advmss; without the room of timestamps.";
    TCP_PMTU = "tcp" "pmtu" Bytes Gauge "tcpi_pmtu.";
    TCP_UNACKED = "tcp" "unacked" Packets Gauge "Segments in flight, tcpi_unacked.";
    TCP_LOST = "tcp" "lost" Packets Gauge "tcpi_lost.";
    TCP_RETRANS = "tcp" "total_retrans" Packets Counter "tcpi_total_retrans.";
    TCP_BYTES_SENT = "tcp" "bytes_sent" Bytes Counter "tcpi_bytes_sent, retransmissions included.";
    TCP_BYTES_RETRANS = "tcp" "bytes_retrans" Bytes Counter "tcpi_bytes_retrans.";
    TCP_BYTES_ACKED = "tcp" "bytes_acked" Bytes Counter "tcpi_bytes_acked.";
    TCP_BYTES_RECEIVED = "tcp" "bytes_received" Bytes Counter "tcpi_bytes_received.";
    TCP_SEGS_OUT = "tcp" "segs_out" Packets Counter "tcpi_segs_out.";
    TCP_SEGS_IN = "tcp" "segs_in" Packets Counter "tcpi_segs_in.";
    TCP_BUSY = "tcp" "busy_us" Micros Counter "Time with data unacknowledged, tcpi_busy_time; the sum of three clocks.";
    TCP_RWND_LIMITED = "tcp" "rwnd_limited_us" Micros Counter "Part of busy limited by the receiver's window.";
    TCP_SNDBUF_LIMITED = "tcp" "sndbuf_limited_us" Micros Counter "Part of busy limited by the send buffer.";
    TCP_NOTSENT = "tcp" "notsent_bytes" Bytes Gauge "Bytes in the send queue not sent yet.";
    TCP_DELIVERY_RATE = "tcp" "delivery_rate" BitsPerSecond Gauge "tcpi_delivery_rate, in bits per second.";
    TCP_APP_LIMITED = "tcp" "delivery_rate_app_limited" Count Gauge "1 where the last delivery rate sample was limited by the application.";
    TCP_PACING_RATE = "tcp" "pacing_rate" BitsPerSecond Gauge "tcpi_pacing_rate, in bits per second; absent when unlimited.";
    TCP_MAX_PACING_RATE = "tcp" "max_pacing_rate" BitsPerSecond Gauge "tcpi_max_pacing_rate, in bits per second; absent when unlimited.";
    TCP_SND_WND = "tcp" "snd_wnd" Bytes Gauge "Window offered by the receiver, as the sender knows it, scaled (5.4+).";
    TCP_RCV_WND = "tcp" "rcv_wnd" Bytes Gauge "Window this end offers (6.2+).";
    TCP_RCV_RTT = "tcp" "rcv_rtt_us" Micros Gauge "Round-trip time as the receiving end estimates it, tcpi_rcv_rtt; 0 until it could.";
    TCP_RCV_SPACE = "tcp" "rcv_space" Bytes Gauge "tcpi_rcv_space.";
    TCP_RCV_SSTHRESH = "tcp" "rcv_ssthresh" Bytes Gauge "tcpi_rcv_ssthresh.";
    TCP_DSACK_DUPS = "tcp" "dsack_dups" Packets Counter "tcpi_dsack_dups: segments that the receiver reports as duplicates (RFC 2883; 4.19+).";
    TCP_REORD_SEEN = "tcp" "reord_seen" Count Counter "tcpi_reord_seen.";
    TCP_DELIVERED = "tcp" "delivered" Packets Counter "tcpi_delivered.";
    TCP_DELIVERED_CE = "tcp" "delivered_ce" Packets Counter "tcpi_delivered_ce.";
    TCP_TOTAL_RTO = "tcp" "total_rto" Count Counter "tcpi_total_rto (6.7+).";
    SOCKET_SNDBUF = "socket" "sndbuf" Bytes Gauge "sk_sndbuf, SO_MEMINFO; memory (truesize), not payload.";
    SOCKET_RCVBUF = "socket" "rcvbuf" Bytes Gauge "sk_rcvbuf, SO_MEMINFO.";
    SOCKET_WMEM_QUEUED = "socket" "wmem_queued" Bytes Gauge "Memory of the send queue, SO_MEMINFO.";
    SOCKET_RMEM_ALLOC = "socket" "rmem_alloc" Bytes Gauge "Memory of the receive queue, SO_MEMINFO.";
    SOCKET_UNREAD = "socket" "unread_bytes" Bytes Gauge "Payload that waits for the application, SIOCINQ.";
    SOCKET_DROPS = "socket" "drops" Packets Counter "Drops at the socket, SO_MEMINFO.";
    SOCKET_CPU = "socket" "incoming_cpu" Count Gauge "CPU that took in the connection's last packet, SO_INCOMING_CPU; -1 before the first.";
    ZEROCOPY_SENDS = "zerocopy" "sends" Count Counter "Sends that the kernel accepted with the request not to copy (MSG_ZEROCOPY, or IORING_OP_SEND_ZC); subject as for tcp.";
    ZEROCOPY_COMPLETIONS = "zerocopy" "completions" Count Counter "Those of them that the kernel says it is through with, on the socket's error queue or the ring.";
    ZEROCOPY_COPIED = "zerocopy" "copied" Count Counter "Sends among these that it copied anyway, SO_EE_CODE_ZEROCOPY_COPIED or IORING_NOTIF_USAGE_ZC_COPIED.";
    ZEROCOPY_REFUSED = "zerocopy" "refused" Count Counter "Sends that were copied because the kernel had no room to pin pages, ENOBUFS or ENOMEM.";
    UDP_DATAGRAMS = "udp" "datagrams" Packets Counter "Datagrams of this step that were sent, or received, each counted once; subject as for tcp.";
    UDP_LOST = "udp" "lost" Packets Gauge "Datagrams of this step up to the highest number seen that have not arrived: lost, or still in flight. Of round trips: messages without an answer so far.";
    UDP_REORDERED = "udp" "reordered" Packets Counter "Datagrams that arrived for the first time after one that was sent later (RFC 4737).";
    UDP_DUPLICATED = "udp" "duplicated" Packets Counter "Datagrams that arrived again; they are no payload.";
    UDP_LATE = "udp" "late" Packets Counter "Datagrams that arrived so late that they cannot be distinguished from duplicates; no payload, and counted as lost.";
    UDP_STRAY = "udp" "stray" Packets Counter "Datagrams that arrived at the socket and do not belong to this step: another sender's, malformed, cut short, or left over.";
    UDP_DROPS = "udp" "socket_drops" Packets Counter "Datagrams that reached this host and were lost at the socket, because its buffer was full: SO_MEMINFO, the counter of SO_RXQ_OVFL. Coalesced datagrams count once.";
    UDP_MESSAGES = "udp" "messages" Packets Counter "Messages that this program read from the socket; coalesced datagrams (UDP_GRO) are one message.";
    UDP_REFUSED = "udp" "refused" Packets Counter "Datagrams that this host refused to send, because its queue was full (ENOBUFS), its port was down (ENETDOWN) or a firewall rule rejected them (EPERM); they were not sent, and not lost.";
    UDP_JITTER = "udp" "jitter_ns" Nanos Gauge "Jitter of the received datagrams, smoothed as in RFC 3550, section 6.4.1, by a receiver that speaks iperf3's protocol.";
    UDP_ERRORS = "udp" "path_errors" Count Counter "ICMP errors of the path or the other host that the socket received, such as port unreachable; each is ignored.";
    CPU_USER = "cpu" "user" Ticks Counter "/proc/stat; subject is the CPU's number.";
    CPU_NICE = "cpu" "nice" Ticks Counter "/proc/stat.";
    CPU_SYSTEM = "cpu" "system" Ticks Counter "/proc/stat.";
    CPU_IDLE = "cpu" "idle" Ticks Counter "/proc/stat.";
    CPU_IOWAIT = "cpu" "iowait" Ticks Counter "/proc/stat.";
    CPU_IRQ = "cpu" "irq" Ticks Counter "/proc/stat.";
    CPU_SOFTIRQ = "cpu" "softirq" Ticks Counter "/proc/stat.";
    CPU_STEAL = "cpu" "steal" Ticks Counter "/proc/stat.";
    CLOCK_NOW = "clock" "cycles_per_ms" Count Gauge "scaling_cur_freq of a CPU that a thread is pinned to; subject is the CPU's number.";
    SOFTNET_PROCESSED = "softnet" "processed" Packets Counter "/proc/net/softnet_stat; subject is the CPU's number.";
    SOFTNET_DROPPED = "softnet" "dropped" Packets Counter "Backlog full.";
    SOFTNET_SQUEEZED = "softnet" "squeezed" Count Counter "Budget used up with work left.";
    PORT_RX_BYTES = "port" "rx_bytes" Bytes Counter "Link statistics by netlink; subject is the port's name.";
    PORT_TX_BYTES = "port" "tx_bytes" Bytes Counter "Link statistics.";
    PORT_RX_PACKETS = "port" "rx_packets" Packets Counter "Link statistics.";
    PORT_TX_PACKETS = "port" "tx_packets" Packets Counter "Link statistics.";
    PORT_RX_DROPPED = "port" "rx_dropped" Packets Counter "Link statistics.";
    PORT_TX_DROPPED = "port" "tx_dropped" Packets Counter "Link statistics.";
    PORT_RX_ERRORS = "port" "rx_errors" Packets Counter "Link statistics.";
    PORT_TX_ERRORS = "port" "tx_errors" Packets Counter "Link statistics.";
    PORT_RX_MISSED = "port" "rx_missed" Packets Counter "Lost because the host had no buffer in the ring, rx_missed_errors.";
    PORT_RX_FIFO_ERRORS = "port" "rx_fifo_errors" Packets Counter "Lost to an overrun of the receive queue.";
    PORT_RX_CRC_ERRORS = "port" "rx_crc_errors" Packets Counter "Received with a bad checksum: cable, connector or optics.";
    PORT_COLLISIONS = "port" "collisions" Count Counter "Collisions, which a full-duplex link cannot have.";
    PORT_CARRIER_CHANGES = "port" "carrier_changes" Count Counter "Times the link went up or down, IFLA_CARRIER_CHANGES.";
    PORT_UP = "port" "up" Count Gauge "1 while the link is up and has carrier.";
    QDISC_BYTES = "qdisc" "bytes" Bytes Counter "Queueing discipline statistics; subject is `PORT KIND HANDLE`, of a class `PORT KIND CLASS`.";
    QDISC_PACKETS = "qdisc" "packets" Packets Counter "Queueing discipline statistics.";
    QDISC_DROPS = "qdisc" "drops" Packets Counter "Queueing discipline statistics.";
    QDISC_OVERLIMITS = "qdisc" "overlimits" Count Counter "Queueing discipline statistics.";
    QDISC_BACKLOG = "qdisc" "backlog_bytes" Bytes Gauge "Queueing discipline statistics.";
    QDISC_WAITING = "qdisc" "backlog_packets" Packets Gauge "Queueing discipline statistics; a group of segments that is handed on as one is one.";
    SHAPER_RATE = "shaper" "rate" BitsPerSecond Gauge "Most that a discipline or class is set to let pass in all, 0 where it sets none; subject as for qdisc.";
    SHAPER_FLOW_RATE = "shaper" "flow_rate" BitsPerSecond Gauge "Most that it lets each flow have, 0 where it sets none.";
    SHAPER_FRAME = "shaper" "frame_bytes" Bytes Gauge "Bytes that it counts for each packet in addition to the packet itself.";
    SHAPER_LOSS = "shaper" "loss_ppm" Count Gauge "Packets of a million that it loses on purpose.";
    SHAPER_DELAY = "shaper" "delay_ns" Nanos Gauge "Time by which it delays each packet on purpose.";
    SHAPER_LIMIT = "shaper" "limit_packets" Packets Gauge "The most packets that it holds, 0 if that was not read; a group of segments that is passed on as one counts as one.";
    DRIVER_COUNT = "driver" "count" Count Counter "A counter of the driver about drops, pauses or allowances of a cloud; subject is `PORT COUNTER`, with `*` for the number of a queue.";
    RDMA_COUNT = "rdma" "count" Count Counter "A counter of an RDMA port about lost packets, receive requests, congestion or its link, from `counters` and `hw_counters` of sysfs; subject is `DEVICE/PORT COUNTER`.";
    RDMA_ACTIVE = "rdma" "active" Count Gauge "1 while the RDMA port is active; subject is `DEVICE/PORT`.";
    FRAGMENTS_CREATED = "fragments" "created" Packets Counter "Fragments that this network namespace made of packets that were too large for a port: FragCreates of /proc/net/snmp and Ip6FragCreates of /proc/net/snmp6; subject is `ip`.";
    FRAGMENTS_RECEIVED = "fragments" "received" Packets Counter "Fragments received to be put together again: ReasmReqds and Ip6ReasmReqds.";
    ARRIVAL_BYTES = "arrival" "rx_bytes" Bytes Counter "Bytes that a port received, for each port that has an address in the network of this end's address, if there are several; link statistics; subject is the port's name.";
    NETSTAT_UDP_DAMAGED = "netstat" "udp_in_csum_errors" Packets Counter "Datagrams that this network namespace discarded because their checksum did not fit, of all its sockets: InCsumErrors of Udp in /proc/net/snmp and Udp6InCsumErrors of /proc/net/snmp6; subject is `all`.";
    NETSTAT_TCP_DAMAGED = "netstat" "tcp_in_csum_errors" Packets Counter "Segments discarded because their checksum did not fit, InCsumErrors of Tcp in /proc/net/snmp.";
    NETSTAT_SACKS_DISCARDED = "netstat" "sack_discard" Count Counter "Blocks of selective acknowledgements that were ignored because nothing like them had been sent, TCPSACKDiscard of /proc/net/netstat.";
    NETSTAT_PRUNED = "netstat" "prune_called" Count Counter "Times that a receive queue was cut down for want of room, PruneCalled of /proc/net/netstat.";
    NETSTAT_QUEUE_DROPS = "netstat" "rcvq_drop" Packets Counter "Segments in order that the receive queue had no memory for, TCPRcvQDrop of /proc/net/netstat (4.20+).";
    CGROUP_PERIODS = "cgroup" "nr_periods" Count Counter "cpu.stat of our own cgroup (v1 or v2), and of each one above it that has a quota; subject is the cgroup's path.";
    CGROUP_THROTTLED = "cgroup" "nr_throttled" Count Counter "cpu.stat.";
    CGROUP_THROTTLED_TIME = "cgroup" "throttled_ns" Nanos Counter "cpu.stat.";
    CONNTRACK_DROPPED = "conntrack" "drop" Packets Counter "Packets of new connections that were dropped because the table of tracked connections was full, `drop` of /proc/net/stat/nf_conntrack; subject is `nf_conntrack`.";
    SOCKET_MEMORY_USED = "socket_memory" "used" Bytes Gauge "Memory that counts against a limit of TCP's memory: memory.kmem.tcp.usage_in_bytes or memory.current of a control group, `mem` of TCP in /proc/net/sockstat for the system; subject is the path of the limit, or `net.ipv4.tcp_mem`.";
    SOCKET_MEMORY_REFUSED = "socket_memory" "refused" Count Counter "Times that the limit was reached: memory.kmem.tcp.failcnt (Linux 6.12 and later do not count it), `max` or `high` of memory.events, TCPMemoryPressures of /proc/net/netstat.";
    SOCKET_MEMORY_LIMIT = "socket_memory" "limit" Bytes Gauge "The limit: memory.kmem.tcp.limit_in_bytes, memory.max or memory.high; the second number of tcp_mem, absent where the network namespace does not show it.";
    SOCKET_MEMORY_EVER = "socket_memory" "most_used" Bytes Gauge "The most that was ever in use: memory.kmem.tcp.max_usage_in_bytes.";
    SOCKET_MEMORY_PRESSED = "socket_memory" "pressed" Count Gauge "1 while the kernel saves memory for TCP on the whole system: `press` of TCP in /proc/net/protocols, which every network namespace shows.";
    MEMORY_BYTES = "memory" "bytes" Bytes Counter "Bytes that CPUs moved to and from memory, mbm_total_bytes of resctrl; subject is the third-level cache.";
    DISK_READS = "disk" "reads" Count Counter "Reads that are complete, after merging: /sys/class/block/NAME/stat; subject is the device.";
    DISK_READ_BYTES = "disk" "read_bytes" Bytes Counter "Bytes that were read from the device, same file.";
    DISK_WRITES = "disk" "writes" Count Counter "Writes that are complete, after merging, same file.";
    DISK_WRITTEN_BYTES = "disk" "written_bytes" Bytes Counter "Bytes that were written to the device, same file.";
    DISK_IN_FLIGHT = "disk" "in_flight" Count Gauge "Requests in flight, same file.";
    DISK_BUSY = "disk" "busy_ms" Count Counter "Milliseconds in which requests were in flight, io_ticks, same file.";
    DISK_QUEUE = "disk" "queue_ms" Count Counter "Milliseconds that requests were in flight, summed over all of them, time_in_queue, same file.";
    DISK_TEMPERATURE = "disk" "temperature" Count Gauge "Thousandths of a degree Celsius: temp1_input of the disk's hwmon folder.";
    PSI_CPU_SOME = "psi" "cpu_some_us" Micros Counter "/proc/pressure/cpu, the whole machine; subject is `cpu`.";
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{ALL, known};

    #[test]
    fn names_are_unique_within_a_source() {
        let names: HashSet<_> = ALL.iter().map(|m| (m.source, m.name)).collect();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn the_name_of_every_metric_is_known_and_no_other() {
        for metric in ALL {
            assert_eq!(known(metric.name.as_bytes()), Some(metric.name));
            let longer = format!("{}_", metric.name);
            assert_eq!(known(longer.as_bytes()), None);
        }
        assert_eq!(known(b""), None);
        assert_eq!(known(b"\xff"), None);
    }
}
