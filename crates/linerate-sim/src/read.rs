//! Readings of the simulated hosts, in the same tables and columns as readings of real hosts.

use linerate_facts::metric::{self as m, Metric};
use linerate_plan::path::Side;
use linerate_record::{Column, Table};

use super::SimSet;
use super::flow::{SimStream, ThreadCounts, Work};
use super::path::HEADERS;

/// Tables that grow together, one row each at a time, always in the same order.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub list: Vec<Table>,
    next: usize,
}

impl Tables {
    /// Begins a new row: the next values are for the first table.
    fn begin(&mut self) {
        self.next = 0;
    }

    /// Adds one row to the next table, which is made if it does not exist yet.
    fn row(&mut self, at: u64, subject: impl FnOnce() -> String, values: &[(Metric, f64)]) {
        if self.next == self.list.len() {
            let columns = values.iter().map(|(metric, _)| Column {
                name: metric.name.into(),
                unit: metric.unit,
                kind: metric.kind,
                values: Vec::new(),
            });
            self.list.push(Table {
                source: values.first().map_or("", |(metric, _)| metric.source).into(),
                subject: subject(),
                at: Vec::new(),
                columns: columns.collect(),
            });
        }
        let table = &mut self.list[self.next];
        table.at.push(at);
        for (column, (_, value)) in table.columns.iter_mut().zip(values) {
            column.values.push(*value as i64);
        }
        self.next += 1;
    }
}

/// Ticks of /proc/stat per second.
pub(super) const USER_HZ: f64 = 100.0;

/// State of the simulation from which a host's readings are made.
pub(super) struct View<'a> {
    pub side: Side,
    /// Sets of the current step.
    pub active: &'a [(u32, &'a SimSet)],
    /// CPUs of this host, as indices into the CPUs of all hosts.
    pub cpus: std::ops::Range<usize>,
    /// CPU seconds used so far on each CPU: kernel, user.
    pub busy: &'a [(f64, f64)],
    /// Share of each CPU's time that the hypervisor steals.
    pub steal: f64,
    /// Virtual time in seconds since the simulation began.
    pub now: f64,
    /// Counters of the port: payload and packets sent and received, without pure acknowledgements.
    pub port: PortTotals,
}

/// Counters of a port's traffic.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PortTotals {
    pub sent_bytes: f64,
    pub sent_packets: f64,
    pub received_bytes: f64,
    pub received_packets: f64,
    pub up: bool,
    pub changes: f64,
}

impl View<'_> {
    /// Adds one row to every table, `at` nanoseconds after the start of the step.
    pub(super) fn read(&self, at: u64, tables: &mut Tables) {
        tables.begin();
        for (id, set) in self.active {
            for (stream, flow) in set.flows.iter().enumerate() {
                self.flow(at, tables, *id, stream, flow);
            }
            if let Some(ping) = &set.ping {
                let [near, far] = ping.work;
                let work = if self.side == Side::Near { near } else { far };
                let cpu = work.cpu - self.cpus.start;
                thread(at, tables, || format!("s{id}/tx0"), &ping.counts, cpu);
                ping_socket(at, tables, *id, ping);
            }
        }
        self.host(at, tables);
    }

    fn flow(&self, at: u64, tables: &mut Tables, id: u32, stream: usize, flow: &SimStream) {
        let sends = flow.direction.sender() == self.side;
        let (counts, work, role) =
            if sends { (&flow.sent, &flow.tx, "tx") } else { (&flow.received, &flow.rx, "rx") };
        let own = |work: &Work| work.cpu - self.cpus.start;
        thread(at, tables, || format!("s{id}/{role}{stream}"), counts, own(work));
        let subject = || format!("s{id}/{stream}");
        if sends {
            sender(at, tables, subject, flow);
        } else {
            receiver(at, tables, subject, flow);
        }
    }

    fn host(&self, at: u64, tables: &mut Tables) {
        for (number, cpu) in self.cpus.clone().enumerate() {
            let (kernel, user) = self.busy[cpu];
            let stolen = self.now * self.steal;
            let idle = (self.now - stolen - kernel - user).max(0.0);
            let values = [
                (m::CPU_USER, user * USER_HZ),
                (m::CPU_NICE, 0.0),
                (m::CPU_SYSTEM, kernel * USER_HZ),
                (m::CPU_IDLE, idle * USER_HZ),
                (m::CPU_IOWAIT, 0.0),
                (m::CPU_IRQ, 0.0),
                (m::CPU_SOFTIRQ, 0.0),
                (m::CPU_STEAL, stolen * USER_HZ),
            ];
            tables.row(at, || number.to_string(), &values);
        }
        for (number, _) in self.cpus.clone().enumerate() {
            // The first CPU processes all received packets.
            let packets = if number == 0 { self.port.received_packets } else { 0.0 };
            let values = [
                (m::SOFTNET_PROCESSED, packets),
                (m::SOFTNET_DROPPED, 0.0),
                (m::SOFTNET_SQUEEZED, 0.0),
            ];
            tables.row(at, || number.to_string(), &values);
        }
        self.port(at, tables);
    }

    fn port(&self, at: u64, tables: &mut Tables) {
        let port = self.port;
        let frame = f64::from(HEADERS) + 14.0;
        // There is one pure acknowledgement for eight segments, as with receive offload.
        let (acks_out, acks_in) = (port.received_packets / 8.0, port.sent_packets / 8.0);
        let out = port.sent_packets + acks_out;
        let into = port.received_packets + acks_in;
        let values = [
            (m::PORT_RX_BYTES, port.received_bytes + into * frame),
            (m::PORT_TX_BYTES, port.sent_bytes + out * frame),
            (m::PORT_RX_PACKETS, into),
            (m::PORT_TX_PACKETS, out),
            (m::PORT_RX_DROPPED, 0.0),
            (m::PORT_TX_DROPPED, 0.0),
            (m::PORT_RX_ERRORS, 0.0),
            (m::PORT_TX_ERRORS, 0.0),
            (m::PORT_CARRIER_CHANGES, port.changes),
            (m::PORT_UP, f64::from(u8::from(port.up))),
        ];
        tables.row(at, || "sim0".into(), &values);
        let values = [
            (m::QDISC_BYTES, port.sent_bytes + out * frame),
            (m::QDISC_PACKETS, out),
            (m::QDISC_DROPS, 0.0),
            (m::QDISC_OVERLIMITS, 0.0),
            (m::QDISC_BACKLOG, 0.0),
        ];
        tables.row(at, || "sim0 fq_codel 0:".into(), &values);
    }
}

/// Adds rows with the counters of a stream's worker and thread at one end.
fn thread(
    at: u64,
    tables: &mut Tables,
    subject: impl Fn() -> String,
    counts: &ThreadCounts,
    cpu: usize,
) {
    let values = [(m::WORKER_BYTES, counts.bytes), (m::WORKER_OPS, counts.ops)];
    tables.row(at, &subject, &values);
    let values = [
        (m::THREAD_RUN, (counts.kernel + counts.user) * 1e9),
        (m::THREAD_WAIT, counts.wait * 1e9),
        (m::THREAD_USER, counts.user * USER_HZ),
        (m::THREAD_SYSTEM, counts.kernel * USER_HZ),
        (m::THREAD_CPU, cpu as f64),
    ];
    tables.row(at, &subject, &values);
}

/// Adds rows with the counters of the sender's socket.
fn sender(at: u64, tables: &mut Tables, subject: impl Fn() -> String, flow: &SimStream) {
    let tcp = &flow.tcp;
    let in_flight = flow.in_flight();
    let mut values = vec![
        (m::TCP_STATE, 1.0),
        (m::TCP_CA_STATE, 0.0),
        (m::TCP_RTT, flow.rtt * 1e6),
        (m::TCP_RTTVAR, flow.rtt * 1e5),
        (m::TCP_MIN_RTT, tcp.min_rtt * 1e6),
        (m::TCP_CWND, flow.cwnd / flow.mss),
        (m::TCP_SSTHRESH, (flow.ssthresh / flow.mss).min(2_147_483_647.0)),
        (m::TCP_SND_MSS, flow.mss),
        (m::TCP_RCV_MSS, 536.0),
        (m::TCP_PMTU, flow.mss + f64::from(HEADERS)),
        (m::TCP_UNACKED, (in_flight / flow.mss).ceil()),
        (m::TCP_LOST, 0.0),
        (m::TCP_RETRANS, tcp.retrans),
        (m::TCP_BYTES_SENT, tcp.sent + tcp.retrans * flow.mss),
        (m::TCP_BYTES_RETRANS, tcp.retrans * flow.mss),
        (m::TCP_BYTES_ACKED, tcp.acked),
        (m::TCP_BYTES_RECEIVED, 0.0),
        (m::TCP_SEGS_OUT, tcp.sent / flow.mss + tcp.retrans),
        (m::TCP_SEGS_IN, tcp.acked / flow.mss / 8.0),
        (m::TCP_BUSY, jiffies(tcp.busy)),
        (m::TCP_RWND_LIMITED, jiffies(tcp.rwnd_limited)),
        (m::TCP_SNDBUF_LIMITED, jiffies(tcp.sndbuf_limited)),
        (m::TCP_NOTSENT, flow.notsent),
        (m::TCP_DELIVERY_RATE, flow.rate * 8.0),
        (m::TCP_APP_LIMITED, f64::from(u8::from(flow.bound == super::flow::Bound::Sender))),
        (m::TCP_PACING_RATE, pacing(flow) * 8.0),
        (m::TCP_SND_WND, flow.offered()),
        (m::TCP_REORD_SEEN, 0.0),
        (m::TCP_DELIVERED, tcp.acked / flow.mss),
        (m::TCP_DELIVERED_CE, 0.0),
        (m::TCP_TOTAL_RTO, tcp.timeouts),
    ];
    if let Some(pacing) = flow.pacing {
        values.push((m::TCP_MAX_PACING_RATE, pacing * 8.0));
    }
    tables.row(at, &subject, &values);
    socket(at, tables, subject, flow, in_flight + flow.notsent, 0.0);
}

/// Converts seconds to microseconds, rounded down to ticks of 4 ms, as a kernel with 250 Hz reports times.
fn jiffies(seconds: f64) -> f64 {
    (seconds * 250.0).floor() * 4000.0
}

/// Returns the rate at which the kernel paces the flow, in bytes per second.
fn pacing(flow: &SimStream) -> f64 {
    let own = 1.2 * flow.cwnd / flow.rtt.max(1e-6);
    own.min(flow.pacing.unwrap_or(f64::MAX))
}

/// Adds rows with the counters of the receiver's socket.
fn receiver(at: u64, tables: &mut Tables, subject: impl Fn() -> String, flow: &SimStream) {
    let received = flow.tcp.acked;
    let values = [
        (m::TCP_STATE, 1.0),
        (m::TCP_CA_STATE, 0.0),
        (m::TCP_RTT, flow.tcp.min_rtt * 1e6),
        (m::TCP_MIN_RTT, flow.tcp.min_rtt * 1e6),
        (m::TCP_CWND, 10.0),
        (m::TCP_SND_MSS, flow.mss),
        (m::TCP_RCV_MSS, flow.mss),
        (m::TCP_UNACKED, 0.0),
        (m::TCP_BYTES_RECEIVED, received),
        (m::TCP_SEGS_IN, received / flow.mss),
        (m::TCP_SEGS_OUT, received / flow.mss / 8.0),
        (m::TCP_BUSY, 0.0),
        (m::TCP_RWND_LIMITED, 0.0),
        (m::TCP_SNDBUF_LIMITED, 0.0),
        (m::TCP_RCV_WND, flow.offered()),
        (m::TCP_RCV_SPACE, flow.receive_window),
        (m::TCP_RCV_SSTHRESH, flow.receive_window),
    ];
    tables.row(at, &subject, &values);
    socket(at, tables, subject, flow, 0.0, flow.unread);
}

/// Adds a row with the memory of a socket: the kernel counts twice the payload.
fn socket(
    at: u64,
    tables: &mut Tables,
    subject: impl Fn() -> String,
    flow: &SimStream,
    queued: f64,
    unread: f64,
) {
    let values = [
        (m::SOCKET_SNDBUF, 2.0 * flow.send_buffer),
        (m::SOCKET_RCVBUF, 2.0 * flow.receive_window),
        (m::SOCKET_WMEM_QUEUED, 2.0 * queued),
        (m::SOCKET_RMEM_ALLOC, 2.0 * unread),
        (m::SOCKET_UNREAD, unread),
        (m::SOCKET_DROPS, 0.0),
        // The first CPU processes all received packets.
        (m::SOCKET_CPU, 0.0),
    ];
    tables.row(at, &subject, &values);
}

/// Adds a row with the counters of a socket of round trips, which are the same at both ends.
fn ping_socket(at: u64, tables: &mut Tables, id: u32, ping: &super::ping::Ping) {
    let bytes = ping.counts.bytes;
    let values = [
        (m::TCP_STATE, 1.0),
        (m::TCP_RTT, ping.rtt * 1e6),
        (m::TCP_MIN_RTT, ping.min_rtt * 1e6),
        (m::TCP_RETRANS, 0.0),
        (m::TCP_BYTES_SENT, bytes),
        (m::TCP_BYTES_ACKED, bytes),
        (m::TCP_BYTES_RECEIVED, bytes),
    ];
    tables.row(at, || format!("s{id}/0"), &values);
}
