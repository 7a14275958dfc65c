//! Requests to generic netlink families. The kernel returns the number of a family for its name.

use std::collections::BTreeMap;
use std::io;

use linerate_facts::parse::genetlink;
use rustix::io::Errno;
use rustix::net::netlink::GENERIC;
use serde::{Deserialize, Serialize};

use super::netlink::{DUMP, REQUEST, Request, Socket, attribute};
use super::{Query, invalid};

/// Queries to the netlink family `ethtool` about a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ethtool {
    /// The speed and duplex of a port, and the link modes of both ends.
    LinkModes,
    /// The link state of a port, and why there is no link.
    LinkState,
    /// The offloads of a port.
    Features,
    /// The descriptor rings of a port.
    Rings,
    Channels,
    /// The interrupt coalescing of a port.
    Coalesce,
    /// The flow control of a port, with its counters.
    Pause,
    /// The forward error correction of a port, with its counters.
    Fec,
    /// The distribution of received packets over queues.
    Rss,
}

impl Ethtool {
    /// Returns the number of the netlink command: `ETHTOOL_MSG_*_GET` of linux/ethtool_netlink.h.
    fn command(self) -> u8 {
        match self {
            Self::LinkModes => 4,
            Self::LinkState => 6,
            Self::Features => 11,
            Self::Rings => 15,
            Self::Channels => 17,
            Self::Coalesce => 19,
            Self::Pause => 21,
            Self::Fec => 29,
            Self::Rss => 38,
        }
    }

    /// Returns the flag `ETHTOOL_FLAG_STATS` for queries whose reply has counters.
    fn flags(self) -> u32 {
        match self {
            Self::Pause | Self::Fec => 4,
            _ => 0,
        }
    }
}

/// A generic netlink socket, and the numbers of the families that were queried so far. They stay valid if the socket is
/// reopened.
#[derive(Debug, Default)]
pub(super) struct Generic {
    socket: Option<Socket>,
    families: BTreeMap<&'static str, u16>,
}

impl Generic {
    /// Sends a query and returns the raw reply.
    pub(super) fn ask(&mut self, query: &Query) -> io::Result<Vec<u8>> {
        let (family, flags, body) = match *query {
            Query::Ethtool(what, index) => ("ethtool", REQUEST, ethtool(what, index)),
            Query::Queues(index) => ("netdev", REQUEST | DUMP, netdev(10, 2, index)),
            Query::Napis(index) => ("netdev", REQUEST | DUMP, netdev(11, 1, index)),
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        let kind = self.family(family)?;
        self.exchange(&Request { kind, flags, body })
    }

    /// Returns the number of the family `name`, by `CTRL_CMD_GETFAMILY` with `CTRL_ATTR_FAMILY_NAME`.
    fn family(&mut self, name: &'static str) -> io::Result<u16> {
        const CONTROL: u16 = 16;
        if let Some(number) = self.families.get(name) {
            return Ok(*number);
        }
        let text = [name.as_bytes(), &[0]].concat();
        let body = [head(3).to_vec(), attribute(2, &text)].concat();
        let reply = self.exchange(&Request { kind: CONTROL, flags: REQUEST, body });
        let reply = reply.map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => {
                let why = format!("this kernel has no netlink family `{name}`");
                io::Error::new(io::ErrorKind::Unsupported, why)
            }
            _ => error,
        })?;
        let number = genetlink::family(&reply).map_err(invalid)?;
        self.families.insert(name, number);
        Ok(number)
    }

    fn exchange(&mut self, request: &Request) -> io::Result<Vec<u8>> {
        let socket = match &mut self.socket {
            Some(socket) => socket,
            empty => empty.insert(Socket::open(Some(GENERIC))?),
        };
        let reply = socket.exchange(request);
        if reply.is_err() {
            // The rest of a failed reply must not be mistaken for the next reply.
            self.socket = None;
        }
        reply
    }
}

/// Encodes `struct genlmsghdr` with `command` and version 1.
fn head(command: u8) -> [u8; 4] {
    [command, 1, 0, 0]
}

/// Encodes an ethtool request: its header attribute contains the port's index and the flags.
fn ethtool(what: Ethtool, index: u32) -> Vec<u8> {
    const NESTED: u16 = 0x8000;
    let header = [attribute(1, &index.to_ne_bytes()), attribute(3, &what.flags().to_ne_bytes())];
    [head(what.command()).to_vec(), attribute(NESTED | 1, &header.concat())].concat()
}

/// Encodes the request for a dump of the family `netdev` (linux/netdev.h) for one port. The attribute `kind` holds the
/// port's index.
fn netdev(command: u8, kind: u16, index: u32) -> Vec<u8> {
    [head(command).to_vec(), attribute(kind, &index.to_ne_bytes())].concat()
}

#[cfg(test)]
mod tests {
    use linerate_facts::parse::{ethtool, netdev};
    use rustix::io::Errno;

    use super::{Ethtool, Generic};
    use crate::Query;

    /// Loopback has offloads that are on, on every kernel that has the family `ethtool`.
    #[test]
    fn loopback_tells_its_offloads_and_has_no_rings() {
        let mut generic = Generic::default();
        let reply = generic.ask(&Query::Ethtool(Ethtool::Features, 1)).unwrap();
        let features = ethtool::features(&reply).unwrap();
        assert!(features.on.iter().any(|f| f == "tx-scatter-gather"), "{features:?}");
        let refused = generic.ask(&Query::Ethtool(Ethtool::Rings, 1)).unwrap_err();
        assert_eq!(Errno::from_io_error(&refused), Some(Errno::OPNOTSUPP));
        assert!(generic.ask(&Query::Ethtool(Ethtool::Features, 1)).is_ok(), "it goes on");
    }

    #[test]
    fn a_port_that_is_not_there_and_a_family_that_is_not_are_told_apart() {
        let mut generic = Generic::default();
        let gone = generic.ask(&Query::Ethtool(Ethtool::Features, 0x7fff_fff0));
        assert_eq!(Errno::from_io_error(&gone.unwrap_err()), Some(Errno::NODEV));
        let unknown = generic.family("no-such-family").unwrap_err();
        assert!(unknown.to_string().contains("no-such-family"), "{unknown}");
        assert_eq!(Errno::from_io_error(&unknown), None);
    }

    #[test]
    fn the_pollers_of_loopback_are_none_where_the_kernel_tells_them() {
        let mut generic = Generic::default();
        // Kernels before 6.8 do not have this query.
        if let Ok(reply) = generic.ask(&Query::Napis(1)) {
            assert_eq!(netdev::napis(&reply), Ok(vec![]));
            let queues = generic.ask(&Query::Queues(1)).unwrap();
            assert!(netdev::queues(&queues).unwrap().iter().all(|q| q.napi.is_none()));
        }
    }
}
