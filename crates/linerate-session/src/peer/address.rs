//! The address of the far end: parses what the user typed, and resolves it to IP addresses.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use super::{PORT, PeerError};

/// A restriction to one version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Use only IPv4 addresses.
    V4,
    /// Use only IPv6 addresses.
    V6,
}

impl Family {
    /// Returns whether an address belongs to this version of IP.
    pub fn holds(self, address: IpAddr) -> bool {
        address.is_ipv4() == (self == Self::V4)
    }

    /// Returns the name of the IP version, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// The far end as the user typed it: `host`, `host:port`, `10.0.0.1:port`, `fe80::1%eth0`, `[::1]:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Host name or address, without brackets.
    pub host: String,
    /// TCP port; the default port of the service if the user typed none.
    pub port: u16,
}

/// Error of a target that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a host (expected for example `brook`, `10.0.0.2:5377` or `[fe80::1%eth0]:5377`)"
)]
pub struct TargetError {
    /// The text that the user typed.
    pub text: String,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        Self::parse(text, PORT)
    }
}

impl Target {
    /// Parses the address of a far end. If the user typed no port, it is `usual`.
    pub fn parse(text: &str, usual: u16) -> Result<Self, TargetError> {
        let wrong = || TargetError { text: text.into() };
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(wrong)?;
                let port = match after {
                    "" => None,
                    _ => Some(after.strip_prefix(':').ok_or_else(wrong)?),
                };
                (host, port)
            }
            // More than one colon means an IPv6 address without brackets, and hence without a port.
            None => match text.split_once(':') {
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                _ => (text, None),
            },
        };
        let port = match port {
            None => usual,
            Some(digits) => digits.parse().ok().filter(|p| *p > 0).ok_or_else(wrong)?,
        };
        let plain = !host.is_empty()
            && host.len() <= 255
            && host.bytes().all(|b| b.is_ascii_graphic() && !b"/[]@".contains(&b))
            && !host.starts_with('-');
        if !plain {
            return Err(wrong());
        }
        Ok(Self { host: host.into(), port })
    }

    /// Resolves the host to all its addresses of the requested IP version, in the system's order of preference.
    pub fn resolve(&self, family: Option<Family>) -> Result<Vec<SocketAddr>, PeerError> {
        let all: Vec<SocketAddr> = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|source| PeerError::UnknownHost { host: self.host.clone(), source })?
            .collect();
        let mut kept: Vec<SocketAddr> = Vec::new();
        for address in all {
            if family.is_none_or(|f| f.holds(address.ip())) && !kept.contains(&address) {
                kept.push(address);
            }
        }
        match family {
            Some(family) if kept.is_empty() => {
                Err(PeerError::FamilyMismatch { host: self.host.clone(), family })
            }
            _ => Ok(kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(String, u16)> {
        text.parse::<Target>().ok().map(|t| (t.host, t.port))
    }

    #[test]
    fn targets_are_read_in_all_their_forms() {
        for (text, host, port) in [
            ("brook", "brook", PORT),
            ("brook.lan:80", "brook.lan", 80),
            ("10.0.0.2:5999", "10.0.0.2", 5999),
            ("::1", "::1", PORT),
            ("fe80::1%eth0", "fe80::1%eth0", PORT),
            ("[::1]", "::1", PORT),
            ("[fe80::1%eth0]:81", "fe80::1%eth0", 81),
        ] {
            assert_eq!(parsed(text), Some((host.into(), port)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_target_is_refused() {
        for text in [
            "", ":80", "a:", "a:0", "a:65536", "a:b", "[::1", "[::1]80", "[]", "a b", "-4", "a/b",
            "u@h",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn the_family_filters_and_says_so() {
        let target: Target = "127.0.0.1".parse().unwrap();
        assert_eq!(target.resolve(Some(Family::V4)).unwrap().len(), 1);
        assert!(matches!(target.resolve(Some(Family::V6)), Err(PeerError::FamilyMismatch { .. })));
    }
}
