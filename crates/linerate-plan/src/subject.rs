//! What a load is aimed at, as one end knows it: facts, sources and ceilings of a host are those of the subject.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Plan;
use crate::transport::{self, FarEnd};

/// The subject of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The other end of a path: bytes leave by the port of the route to it.
    Peer(Toward),
    /// A file or a disk of this host, by its path.
    File(String),
    /// This host: bytes stay in its memory.
    Host,
}

/// Addresses of a connection to the other end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Toward {
    /// Address of the other end.
    pub peer: IpAddr,
    /// Address of this end, which routing rules may depend on; `None` if the route decides.
    pub own: Option<IpAddr>,
}

impl Toward {
    /// Makes the description of the other end from both addresses of a connection.
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
    /// The subject of a plan without a peer: what the user named, or this host.
    pub fn here(plan: &Plan) -> Self {
        match (transport::of(&plan.engine).far_end, &plan.peer) {
            (FarEnd::File, Some(path)) => Self::File(path.clone()),
            _ => Self::Host,
        }
    }
}
