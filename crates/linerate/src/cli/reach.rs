//! How the near end finds the far one, and with which key.

use anyhow::{Context, anyhow};
use linerate_engine::peer::address::{Family, Target};
use linerate_engine::peer::keys::{self, Key, KeyError};
use linerate_engine::peer::{PORT, PeerError};

use super::exit::Failure;
use super::options::Peer;

/// The far end that `text` means; its own port outranks `--port`.
pub(crate) fn target(text: &str, options: &Peer) -> Result<Target, Failure> {
    if let Some((scheme, rest)) = text.split_once("://") {
        let refuse = |why: &str, hint| {
            let error = anyhow!("`{scheme}://` of `{text}` {why}");
            Err(Failure::usage(error).hint(hint))
        };
        return match scheme {
            "ssh" => refuse(
                "starts a far end for a run: it has no key to keep",
                format!("linerate run {text}"),
            ),
            "iperf3" => refuse(
                "is no far end of linerate's",
                format!(
                    "linerate bw {text} measures throughput; for all else `linerate serve` there"
                ),
            ),
            _ => refuse(
                "is no far end of linerate's",
                format!("{rest} where `linerate serve` runs, or ssh://{rest} to start it"),
            ),
        };
    }
    Target::parse(text, port(options)).map_err(Failure::usage)
}

pub(crate) fn port(options: &Peer) -> u16 {
    options.port.map_or(PORT, |p| p.0 as u16)
}

pub(crate) fn family(options: &Peer) -> Option<Family> {
    match (options.ipv4, options.ipv6) {
        (Some(true), _) => Some(Family::V4),
        (_, Some(true)) => Some(Family::V6),
        _ => None,
    }
}

/// The key for a far end; `None` with `--open`, or when none is kept.
pub(crate) fn key(target: &Target, options: &Peer) -> Result<Option<Key>, Failure> {
    if options.open == Some(true) {
        return Ok(None);
    }
    if let Some(key) = Key::from_environment().map_err(key_failure)? {
        return Ok(Some(key));
    }
    let directory = keys::directory().map_err(key_failure)?;
    keys::client_key(&directory, &target.host).map_err(key_failure)
}

/// A failure that comes of a key: nothing was measured.
pub(crate) fn key_failure(error: KeyError) -> Failure {
    let hint = error.hint();
    Failure::not_measured(error).hint(hint)
}

/// A failure of the peer.
pub(crate) fn peer_failure(error: PeerError) -> Failure {
    let hint = error.hint();
    Failure::not_measured(error).hint(hint)
}

/// A system call of our own failed.
pub(crate) fn system<T>(result: std::io::Result<T>, what: &'static str) -> Result<T, Failure> {
    result.context(what).map_err(Failure::not_measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_was_typed_with_the_host_outranks_the_option() {
        let options = Peer {
            port: "6000".parse().ok(),
            ..Peer::default()
        };
        let port = |text| target(text, &options).ok().map(|target| target.port);
        assert_eq!(port("brook:5377"), Some(5377));
        assert_eq!(port("brook"), Some(6000));
        let usual = target("brook", &Peer::default()).ok();
        assert_eq!(usual.map(|target| target.port), Some(PORT));
    }
}
