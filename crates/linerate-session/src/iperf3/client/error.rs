//! Errors of a test with an iperf3 server, each with a hint how to avoid it.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use linerate_record::iperf3::{Refusal, STREAMS_MAX};

use super::talk::RESULTS;
use crate::iperf3::control::Broken;
use linerate_load::LoadError;

/// Why a test failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// More streams were requested than iperf3 supports.
    #[error("{0} streams: an iperf3 server accepts at most {STREAMS_MAX}")]
    Streams(u32),
    /// No server listens at the address.
    #[error("no iperf3 server at {0}: connection refused")]
    NoServer(SocketAddr),
    /// The address cannot be reached.
    #[error("cannot reach {address}: {source}")]
    Unreached {
        /// Address of the server.
        address: SocketAddr,
        /// Error of the system call.
        source: io::Error,
    },
    /// A server of another kind listens at the address.
    #[error("{address} does not speak iperf3's protocol: {what}")]
    NotIperf3 {
        /// Address of the server.
        address: SocketAddr,
        /// Message of the server.
        what: String,
    },
    /// The server runs another test.
    #[error("the iperf3 server at {0} is busy with another test")]
    Busy(SocketAddr),
    /// The server requires a login.
    #[error(
        "the iperf3 server at {0} requires a user name and a password, which linerate does not support"
    )]
    Login(SocketAddr),
    /// The server refuses the test.
    #[error("the iperf3 server at {address} refused: {}{}", refusal.words(), errno(*refusal))]
    Refused {
        /// Address of the server.
        address: SocketAddr,
        /// Reason of the refusal, as error numbers of iperf3.
        refusal: Refusal,
    },
    /// The server was stopped.
    #[error("the iperf3 server at {address} was stopped {stage}")]
    Terminated {
        /// Address of the server.
        address: SocketAddr,
        /// Stage of the test, in words.
        stage: &'static str,
    },
    /// The server closed the connection or sent an invalid message.
    #[error("lost the iperf3 server at {address} {stage}: {what}")]
    Lost {
        /// Address of the server.
        address: SocketAddr,
        /// Stage of the test, in words.
        stage: &'static str,
        /// Description of what failed.
        what: String,
    },
    /// Datagrams are lost on a path where connections work.
    #[error("no UDP datagram reaches {0}, although a TCP connection does")]
    NoDatagrams(SocketAddr),
    /// The requested test is impossible with iperf3.
    #[error("{0}")]
    Unsupported(String),
    /// A data connection could not be made as requested.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The user stopped the test.
    #[error("interrupted")]
    Interrupted,
    /// A system call failed on this host.
    #[error("{call} failed: {source}")]
    System {
        /// Name of the system call.
        call: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
}

/// Returns the text of the server's system error, such as
/// ` (No such file or directory)`; empty if the server sent none.
fn errno(refusal: Refusal) -> String {
    if refusal.errno <= 0 {
        return String::new();
    }
    format!(" ({})", io::Error::from_raw_os_error(refusal.errno))
}

impl ClientError {
    /// Returns a command or change that avoids the error; empty if there is none.
    pub fn hint(&self) -> String {
        match self {
            Self::Streams(_) => format!("--streams {STREAMS_MAX}"),
            Self::NoServer(address) => {
                format!("on {}: iperf3 -s, or linerate serve --iperf3", address.ip())
            }
            Self::Busy(_) => {
                "it runs one test at a time: try again when the other test has ended".to_owned()
            }
            Self::Login(_) => {
                "start it without --rsa-private-key-path, or run `linerate serve` there \
                               and `linerate run` here"
                    .to_owned()
            }
            Self::NotIperf3 { .. } => {
                "iperf3 listens on port 5201; iperf2 listens on 5001 and has another protocol"
                    .to_owned()
            }
            Self::NoDatagrams(address) => format!(
                "allow UDP to port {} of {} in its firewall, or leave out --engine udp",
                address.port(),
                address.ip()
            ),
            Self::Unreached { address, .. } => format!(
                "check that the host is up and that its firewall allows TCP port {}",
                address.port()
            ),
            Self::Lost { address, stage: RESULTS, .. } => format!(
                "check that the server still runs on {ip}, and read its output; if it runs, large \
                 packets may be lost on the path (linerate causes mtu-black-hole): then `ping -M do \
                 -s 1472 {ip}`, or the same in the other direction, gets no answer",
                ip = address.ip()
            ),
            Self::Lost { address, .. } | Self::Terminated { address, .. } => {
                format!("check that the server still runs on {}, and read its output", address.ip())
            }
            Self::Refused { refusal, .. } => refused(*refusal).to_owned(),
            Self::Load(error) => error.hint().to_owned(),
            _ => String::new(),
        }
    }

    /// Converts a failure of the control connection at this stage of a test to an error.
    pub(super) fn broken(address: SocketAddr, stage: &'static str, broken: Broken) -> Self {
        match broken {
            Broken::Stopped => Self::Interrupted,
            other => Self::Lost { address, stage, what: other.to_string() },
        }
    }

    pub(super) fn unreached(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            ErrorKind::ConnectionRefused => Self::NoServer(address),
            _ => Self::Unreached { address, source },
        }
    }

    pub(super) fn refused(address: SocketAddr, refusal: Refusal) -> Self {
        if refusal.code == Refusal::LOGIN.code {
            return Self::Login(address);
        }
        Self::Refused { address, refusal }
    }
}

/// Returns the advice for a refused test: which setting to leave out or to reduce.
fn refused(refusal: Refusal) -> &'static str {
    match refusal.code {
        code if code == Refusal::BUFFER.code => {
            "use smaller buffers, or raise net.core.rmem_max and wmem_max there"
        }
        code if code == Refusal::CONGESTION.code => "leave out --congestion",
        code if code == Refusal::RATE.code => "set a lower --pacing",
        code if code == Refusal::LIMIT_OF_TIME.code => "set a shorter --time",
        _ => "",
    }
}
