//! What a load uses, as one end sees it: the other end, a file or this host. Facts, readings and ceilings of a host
//! belong to this subject.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Plan;
use crate::transport::{self, FarEnd};

/// What a load uses, beside the program itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The other end of a path. Bytes leave through the port of the route to that end.
    Peer(Toward),
    /// A file or a disk of this host, with its path.
    File(String),
    /// The memory of this host: bytes leave it for no other place.
    Host,
}

/// Addresses of a connection to the other end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Toward {
    /// Address of the other end.
    pub peer: IpAddr,
    /// Address of this end, by which routing rules may select the route; `None` if the kernel chooses the address.
    pub own: Option<IpAddr>,
}

impl Toward {
    /// Makes the addresses of a connection, each in its canonical form: an IPv4-mapped address becomes IPv4.
    pub fn of(peer: IpAddr, own: Option<IpAddr>) -> Self {
        Self { peer: peer.to_canonical(), own: own.map(|own| own.to_canonical()) }
    }
}

impl From<IpAddr> for Toward {
    fn from(peer: IpAddr) -> Self {
        Self { peer, own: None }
    }
}

impl<T: Into<Toward>> From<T> for Subject {
    fn from(toward: T) -> Self {
        Self::Peer(toward.into())
    }
}

impl Subject {
    /// The subject of a plan without a peer: the file or disk that the user named, or this host.
    pub fn here(plan: &Plan) -> Self {
        match (transport::of(&plan.engine).far_end, &plan.peer) {
            (FarEnd::File, Some(path)) => Self::File(path.clone()),
            _ => Self::Host,
        }
    }
}
