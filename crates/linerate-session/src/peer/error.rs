//! Errors of opening a session with a far end, each with a hint for the user.

use std::io;
use std::net::SocketAddr;

use linerate_record::wire::preamble::Versions;

use super::PORT;
use super::address::Family;
use super::channel::ChannelError;
use super::client::GIVEN_UP;
use crate::link::LinkError;
use crate::net::ListenError;

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The host's name has no address.
    #[error("host `{host}` is unknown: {source}")]
    UnknownHost {
        /// The host as the user typed it.
        host: String,
        /// Error of the resolver.
        source: io::Error,
    },
    /// The host has no address of the requested family.
    #[error("host `{host}` has no {} address", family.name())]
    FamilyMismatch {
        /// The host as the user typed it.
        host: String,
        /// The requested address family.
        family: Family,
    },
    /// No server listens at the address.
    #[error("no server at {address}: connection refused")]
    NoServer {
        /// Address of the far end.
        address: SocketAddr,
    },
    /// No route leads to the host.
    #[error("no route to {address}: {source}")]
    NoRoute {
        /// Address of the far end.
        address: SocketAddr,
        /// Error of the system call.
        source: io::Error,
    },
    /// The host did not answer in time.
    #[error("{address} did not answer within {seconds} s")]
    TimedOut {
        /// Address of the far end.
        address: SocketAddr,
        /// Waiting time in seconds.
        seconds: u64,
    },
    /// A program listens at the address, but sends nothing.
    #[error("{address} accepted the connection but sent no answer within {seconds} s")]
    Silent {
        /// Address of the far end.
        address: SocketAddr,
        /// Waiting time in seconds.
        seconds: u64,
    },
    /// A program other than linerate listens at the address.
    #[error("{address} is not a linerate server{seems}")]
    NotLinerate {
        /// Address of the far end.
        address: SocketAddr,
        /// Words that say what the program there seems to be, such as ", but a web server"; empty if unknown.
        seems: &'static str,
    },
    /// The two ends have no common version of the protocol.
    #[error("the server at {address} speaks protocol {}, this linerate {}", range(*theirs), range(*ours))]
    Version {
        /// Address of the server.
        address: SocketAddr,
        /// Versions of the server.
        theirs: Versions,
        /// Versions of this build.
        ours: Versions,
    },
    /// The server requires a key, and this end has none.
    #[error("the server at {address} requires a key")]
    NeedsKey {
        /// Address of the server.
        address: SocketAddr,
        /// The host as the user typed it.
        host: String,
    },
    /// This end's key is not the key of the server.
    #[error("the server at {address} does not accept the key")]
    WrongKey {
        /// Address of the server.
        address: SocketAddr,
        /// The host as the user typed it.
        host: String,
    },
    /// A key is stored for the host, but the server is open and does not prove its identity.
    #[error(
        "the server at {address} is open, although a key is saved for {host}: it may be another server"
    )]
    UnexpectedlyOpen {
        /// Address of the server.
        address: SocketAddr,
        /// The host as the user typed it.
        host: String,
    },
    /// The server is open and does not prove its identity, and the user did not permit this.
    #[error("the server at {address} is open: it requires no key and does not prove its identity")]
    NotRequestedOpen {
        /// Address of the server.
        address: SocketAddr,
        /// The host as the user typed it.
        host: String,
    },
    /// The server does not prove that it holds the key.
    #[error("the server at {address} does not have the key")]
    Impostor {
        /// Address of the server.
        address: SocketAddr,
    },
    /// The server has reached its limit of sessions.
    #[error("the server at {address} is busy: it already serves its maximum number of clients")]
    Busy {
        /// Address of the server.
        address: SocketAddr,
    },
    /// The server refused the session.
    #[error("the server at {address} refused: {what}")]
    Refused {
        /// Address of the server.
        address: SocketAddr,
        /// Reason in the server's words.
        what: String,
        /// Command or change that helps, in the server's words.
        hint: String,
    },
    /// The connection broke before the session was open.
    #[error("the session with {address} could not be opened: {what}")]
    Broken {
        /// Address of the server.
        address: SocketAddr,
        /// Description of what failed.
        what: String,
    },
    /// A server of linerate stopped answering before the session was open.
    #[error("the session with {address} could not be opened: no answer for {seconds} s")]
    Unanswered {
        /// Address of the server.
        address: SocketAddr,
        /// Waiting time in seconds.
        seconds: u64,
    },
    /// The user stopped before the session was open.
    #[error("interrupted while connecting to the far end")]
    Interrupted,
    /// The server's port cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Address of the server.
        address: SocketAddr,
        /// Error of the system call.
        source: io::Error,
    },
    /// A system call failed on this host.
    #[error("{call} failed: {source}")]
    System {
        /// Name of the system call, and its purpose.
        call: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
}

/// Hint if a server stopped answering although the kernel of its host keeps the connection open.
pub(super) const SUSPENDED: &str =
    "check whether `linerate serve` there, or its host, is suspended";

fn range(versions: Versions) -> String {
    if versions.low == versions.high {
        format!("version {}", versions.low)
    } else {
        format!("versions {} to {}", versions.low, versions.high)
    }
}

/// Returns the command that stores the key of a server on this host.
fn pair(host: &str, address: SocketAddr) -> String {
    format!("linerate pair {host}{}", port(address))
}

/// Returns the option that sets the server's TCP port; empty for the default port.
fn port(address: SocketAddr) -> String {
    let other = (address.port() != PORT).then(|| format!(" --port {}", address.port()));
    other.unwrap_or_default()
}

impl From<ListenError> for PeerError {
    fn from(ListenError { address, source }: ListenError) -> Self {
        Self::Listen { address, source }
    }
}

impl PeerError {
    /// Returns the command or change that helps the user; empty if there is none.
    pub fn hint(&self) -> String {
        match self {
            Self::NoServer { address } => {
                format!("run `linerate serve{}` on {}", port(*address), address.ip())
            }
            Self::TimedOut { address, .. } => format!(
                "check that the host is up and that its firewall allows TCP port {}",
                address.port()
            ),
            // A server of linerate that rejects a client also breaks the connection, so the hint names both.
            Self::NotLinerate { address, seems } if seems.starts_with(", it ") => format!(
                "check the port: {} belongs to another service there, or to a server whose --allow \
                 excludes this host",
                address.port()
            ),
            Self::Silent { address, .. } => format!(
                "check the port: {} belongs to another service there, or `linerate serve` there, or its \
                 host, is suspended",
                address.port()
            ),
            Self::NotLinerate { address, .. } => format!(
                "check the port: {} belongs to another service there",
                address.port()
            ),
            Self::Unanswered { .. } => SUSPENDED.into(),
            Self::Version { theirs, ours, .. } if theirs.low > ours.high => {
                "update linerate on this host".into()
            }
            Self::Version { .. } => "update linerate on the far host".into(),
            Self::NeedsKey { host, address } | Self::WrongKey { host, address } => {
                pair(host, *address)
            }
            Self::UnexpectedlyOpen { host, .. } => format!(
                "run `linerate serve` without --open there, or remove the saved key of {host}"
            ),
            Self::NotRequestedOpen { host, address } => format!(
                "`{}` with a server that has a key, or --open to trust this one",
                pair(host, *address)
            ),
            Self::FamilyMismatch { family, .. } => match family {
                Family::V4 => "leave out -4".into(),
                Family::V6 => "leave out -6".into(),
            },
            Self::Busy { .. } => {
                "try again when other measurements have ended (its log says whether all places, or those of this address, are taken), or raise `linerate serve --max-clients` there".into()
            }
            Self::Refused { hint, .. } => hint.clone(),
            Self::UnknownHost { .. } => "check the spelling, or type the address".into(),
            Self::Listen { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "another server uses this port: stop it, or choose another port".into()
                }
                io::ErrorKind::AddrNotAvailable => "choose an address of this host".into(),
                io::ErrorKind::PermissionDenied => "choose a port from 1024 on".into(),
                _ => String::new(),
            },
            Self::NoRoute { .. }
            | Self::Impostor { .. }
            | Self::Broken { .. }
            | Self::Interrupted
            | Self::System { .. } => String::new(),
        }
    }

    pub(crate) fn broken(address: SocketAddr, error: &ChannelError) -> Self {
        match error {
            ChannelError::TimedOut => Self::Unanswered { address, seconds: GIVEN_UP.as_secs() },
            error => Self::Broken { address, what: error.to_string() },
        }
    }

    /// Returns how informative this error is. If several addresses
    /// of a host failed, the most informative error is shown.
    pub(crate) fn weight(&self) -> u8 {
        match self {
            Self::NoRoute { .. } | Self::System { .. } => 0,
            Self::TimedOut { .. } => 1,
            Self::NoServer { .. } => 2,
            Self::Silent { .. } => 3,
            Self::NotLinerate { .. } => 4,
            _ => 5,
        }
    }
}

impl From<PeerError> for LinkError {
    fn from(error: PeerError) -> Self {
        if matches!(error, PeerError::Interrupted) {
            return Self::Interrupted;
        }
        Self::Lost { what: error.to_string(), hint: error.hint() }
    }
}
