//! The parameters of a test that a client requests.

use serde_json::{Map, Value};

use super::json::{count, object, switch, word};
use super::{Malformed, STREAMS_MAX, Width};

/// Payload of one write in bytes, where a client does not say.
//= iperf.h, DEFAULT_TCP_BLKSIZE
pub const WRITE_DEFAULT: u64 = 128 * 1024;

/// Largest payload of one write in bytes.
//= iperf.h, MAX_BLOCKSIZE
pub const WRITE_MAX: u64 = 1024 * 1024;

/// The transport protocol that carries the payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// The parameters of a test. Zero means unset, as it does for iperf3.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches of the client's command line"
)]
pub struct Params {
    /// The transport protocol that carries the payload.
    pub protocol: Protocol,
    /// Seconds at the start of the test that do not count.
    pub omit: u64,
    /// Seconds of the test that count.
    pub time: u64,
    /// Bytes of payload after which the client ends the test.
    pub num: u64,
    /// Number of writes after which the client ends the test.
    pub blocks: u64,
    /// Number of data connections.
    pub parallel: u32,
    /// Whether the server sends.
    pub reverse: bool,
    /// Whether both ends send.
    pub bidirectional: bool,
    /// Whether to set `TCP_NODELAY`.
    pub nodelay: bool,
    /// Size of each end's send buffer and receive buffer, in bytes.
    pub window: u64,
    /// Payload of one read or write, in bytes.
    pub len: u64,
    /// Maximum segment size in bytes, for `TCP_MAXSEG`.
    pub mss: u64,
    /// Pace of each stream in bits per second, kept by the program itself.
    pub bandwidth: u64,
    /// Number of writes that the sender does at once when it keeps `bandwidth`.
    pub burst: u64,
    /// Pace of each stream in bits per second, kept by the kernel.
    pub fqrate: u64,
    /// Congestion control of both ends.
    pub congestion: Option<String>,
    /// Type of service (DSCP and ECN) of the packets.
    pub tos: u64,
    /// Whether the sender is to send without copies.
    pub zerocopy: bool,
    /// Whether the receiver is to drop payload in the kernel.
    pub discard: bool,
    /// Width of the numbers in datagrams.
    pub width: Width,
    /// The CPU that the server is to be pinned to; `None` if it is not to be pinned.
    pub server_cpu: Option<u32>,
}

impl Params {
    /// Reads the parameters that a client requests.
    pub fn decode(json: &[u8]) -> Result<Self, Malformed> {
        let fields = object(json)?;
        let on = |name| switch(&fields, name);
        let n = |name| count(&fields, name);
        Ok(Self {
            protocol: match (on("udp")?, on("sctp")?) {
                (true, _) => Protocol::Udp,
                (_, true) => Protocol::Sctp,
                _ => Protocol::Tcp,
            },
            omit: n("omit")?,
            time: n("time")?,
            num: n("num")?,
            blocks: n("blockcount")?,
            parallel: parallel(&fields)?,
            reverse: on("reverse")?,
            bidirectional: on("bidirectional")?,
            nodelay: on("nodelay")?,
            window: n("window")?,
            len: n("len")?,
            mss: n("MSS")?,
            bandwidth: n("bandwidth")?,
            burst: n("burst")?,
            fqrate: n("fqrate")?,
            congestion: word(&fields, "congestion")?,
            tos: n("TOS")?,
            zerocopy: on("zerocopy")?,
            discard: on("skip_rx_copy")?,
            // Some versions check only whether the key is present, and no version writes it as off.
            width: if on("udp_counters_64bit")? { Width::Wide } else { Width::Narrow },
            server_cpu: server_cpu(&fields)?,
        })
    }

    /// Writes the parameters of a client; unset ones are left out.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Map::new();
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        };
        fields.insert(protocol.to_owned(), Value::from(true));
        // These fields are always present, as in iperf3.
        for (name, value) in [
            ("omit", self.omit),
            ("time", self.time),
            ("num", self.num),
            ("blockcount", self.blocks),
            ("parallel", u64::from(self.parallel)),
        ] {
            fields.insert(name.to_owned(), Value::from(value));
        }
        for (name, value) in [
            ("window", self.window),
            ("len", self.len),
            ("MSS", self.mss),
            ("bandwidth", self.bandwidth),
            ("burst", self.burst),
            ("fqrate", self.fqrate),
            ("TOS", self.tos),
        ] {
            if value != 0 {
                fields.insert(name.to_owned(), Value::from(value));
            }
        }
        for (name, on) in [
            ("reverse", self.reverse),
            ("bidirectional", self.bidirectional),
            ("nodelay", self.nodelay),
            ("zerocopy", self.zerocopy),
            ("skip_rx_copy", self.discard),
        ] {
            if on {
                fields.insert(name.to_owned(), Value::from(true));
            }
        }
        if self.width == Width::Wide {
            fields.insert("udp_counters_64bit".to_owned(), Value::from(1));
        }
        if let Some(name) = &self.congestion {
            fields.insert("congestion".to_owned(), Value::from(name.as_str()));
        }
        if let Some(cpu) = self.server_cpu {
            fields.insert("server_affinity".to_owned(), Value::from(cpu));
        }
        Value::Object(fields).to_string().into_bytes()
    }
}

/// Number of data connections; 1 where the client does not say.
fn parallel(fields: &Map<String, Value>) -> Result<u32, Malformed> {
    match count(fields, "parallel")? {
        0 => Ok(1),
        n if n <= u64::from(STREAMS_MAX) => Ok(n as u32),
        _ => Err(Malformed::Streams),
    }
}

/// The CPU that the server is to be pinned to. iperf3 writes -1 for none.
fn server_cpu(fields: &Map<String, Value>) -> Result<Option<u32>, Malformed> {
    const NAME: &str = "server_affinity";
    match fields.get(NAME) {
        None | Some(Value::Null) => Ok(None),
        Some(value) if value.as_i64() == Some(-1) => Ok(None),
        Some(_) => match u32::try_from(count(fields, NAME)?) {
            Ok(cpu) => Ok(Some(cpu)),
            Err(_) => Err(Malformed::Field(NAME)),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_iperf3_sends_is_read() {
        // What iperf3 3.12 sends for `iperf3 -c HOST -R -P 4 -C reno -w 1M -t 3`.
        let sent = br#"{"tcp":true,"omit":0,"time":3,"num":0,"blockcount":0,"parallel":4,
            "reverse":true,"window":1048576,"len":131072,"pacing_timer":1000,"congestion":"reno",
            "client_version":"3.12"}"#;
        let params = Params::decode(sent).unwrap();
        let wanted = Params {
            time: 3,
            parallel: 4,
            reverse: true,
            window: 1 << 20,
            len: 131_072,
            congestion: Some("reno".to_owned()),
            ..Params::default()
        };
        assert_eq!(params, wanted);
    }

    #[test]
    fn what_it_sends_of_datagrams_is_read() {
        // What iperf3 3.12 sends for `iperf3 -u -c HOST -R -b 5M/10 -l 1000 -t 1 --udp-counters-64bit`.
        let sent = br#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,
            "reverse":true,"len":1000,"bandwidth":5000000,"pacing_timer":1000,"burst":10,
            "udp_counters_64bit":1,"client_version":"3.12"}"#;
        let wanted = Params {
            protocol: Protocol::Udp,
            time: 1,
            parallel: 1,
            reverse: true,
            len: 1000,
            bandwidth: 5_000_000,
            burst: 10,
            width: Width::Wide,
            ..Params::default()
        };
        assert_eq!(Params::decode(sent), Ok(wanted));
    }

    #[test]
    fn streams_are_bounded_on_both_sides() {
        let of = |n: u32| Params::decode(format!("{{\"parallel\":{n}}}").as_bytes());
        assert_eq!(of(0).unwrap().parallel, 1);
        assert_eq!(of(STREAMS_MAX).unwrap().parallel, STREAMS_MAX);
        assert_eq!(of(STREAMS_MAX + 1), Err(Malformed::Streams));
        assert_eq!(Params::decode(br#"{"time":-1}"#), Err(Malformed::Field("time")));
        let cpu = |text: &str| Params::decode(text.as_bytes()).map(|p| p.server_cpu);
        assert_eq!(cpu(r#"{"server_affinity":-1}"#), Ok(None));
        assert_eq!(cpu(r#"{"server_affinity":3}"#), Ok(Some(3)));
        assert!(cpu(r#"{"server_affinity":-2}"#).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            time in 0..=1u64 << 53, len in 0..=1u64 << 53, window in 0..=1u64 << 53,
            parallel in 1..=STREAMS_MAX, reverse: bool, nodelay: bool, discard: bool,
            congestion in proptest::option::of("[a-z]{1,15}"), server_cpu: Option<u32>,
            protocol in 0..3usize, bandwidth in 0..=1u64 << 53, burst in 0..=1000u64, wide: bool,
        ) {
            let protocol = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp][protocol];
            let params = Params {
                protocol, time, parallel, reverse, nodelay, window, len, congestion, discard,
                server_cpu, bandwidth, burst,
                width: if wide { Width::Wide } else { Width::Narrow },
                ..Params::default()
            };
            prop_assert_eq!(Params::decode(&params.encode()), Ok(params));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>, text in "\\{.{0,200}\\}") {
            let _ = Params::decode(&bytes);
            let _ = Params::decode(text.as_bytes());
        }
    }
}
