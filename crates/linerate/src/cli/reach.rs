//! Finds the address of the far end, and the key for a session with it.

use anyhow::{Context, anyhow};
use linerate_session::peer::address::{Family, Target};
use linerate_session::peer::keys::{self, Key, KeyError};
use linerate_session::peer::{PORT, PeerError};

use super::exit::Failure;
use super::options::Peer;

/// The far end that `text` names; a port in `text` takes precedence over `--port`.
pub(crate) fn target(text: &str, options: &Peer) -> Result<Target, Failure> {
    if let Some((scheme, rest)) = text.split_once("://") {
        let refuse = |why: &str, hint| {
            let error = anyhow!("`{scheme}://` of `{text}` {why}");
            Err(Failure::usage(error).hint(hint))
        };
        return match scheme {
            "ssh" => refuse(
                "starts a far end for one run: there is no key to save",
                format!("linerate run {text}"),
            ),
            "iperf3" => refuse(
                "is not a far end for this command",
                format!(
                    "linerate bw {text} measures throughput; other commands need `linerate serve` there"
                ),
            ),
            _ => refuse(
                "is not a far end for this command",
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

/// The source of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The environment variable [`keys::KEY_VARIABLE`].
    Environment,
    /// A key that the user typed, piped in or saved with `linerate pair`.
    Own,
}

/// The key for a far end; `None` with `--open`, or if no key is saved for it.
pub(crate) fn key(target: &Target, options: &Peer) -> Result<(Option<Key>, Origin), Failure> {
    if options.open == Some(true) {
        return Ok((None, Origin::Own));
    }
    if let Some(key) = Key::from_environment().map_err(key_failure)? {
        return Ok((Some(key), Origin::Environment));
    }
    let directory = keys::directory().map_err(key_failure)?;
    let kept = keys::client_key(&directory, &target.host).map_err(key_failure)?;
    Ok((kept, Origin::Own))
}

/// The failure for a key that is missing or wrong: nothing was measured.
pub(crate) fn key_failure(error: KeyError) -> Failure {
    let hint = error.hint();
    Failure::not_measured(error).hint(hint)
}

/// The failure for an error of the session with the far end.
pub(crate) fn peer_failure(error: PeerError) -> Failure {
    let hint = error.hint();
    Failure::not_measured(error).hint(hint)
}

/// The hint if the far end rejects the key from the environment, which takes precedence over the saved key. `None` if
/// the environment is not the reason.
pub(crate) fn hint_of_key(error: &PeerError, origin: Origin) -> Option<String> {
    let name = keys::KEY_VARIABLE;
    match (origin, error) {
        (Origin::Environment, PeerError::WrongKey { .. }) => {
            Some(format!("{name} holds another key: unset it, or set it to the far end's"))
        }
        (Origin::Environment, PeerError::UnexpectedlyOpen { .. }) => {
            Some(format!("run `linerate serve` without --open there, or unset {name}"))
        }
        _ => None,
    }
}

/// The failure if a session could not be opened; `origin` is the source of its key.
pub(crate) fn session_failure(error: PeerError, origin: Origin) -> Failure {
    let hint = hint_of_key(&error, origin);
    let failure = peer_failure(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Turns an error of a system call into a failure; `what` says what was attempted.
pub(crate) fn system<T>(result: std::io::Result<T>, what: &'static str) -> Result<T, Failure> {
    result.context(what).map_err(Failure::not_measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_was_typed_with_the_host_outranks_the_option() {
        let options = Peer { port: "6000".parse().ok(), ..Peer::default() };
        let port = |text| target(text, &options).ok().map(|target| target.port);
        assert_eq!(port("brook:5377"), Some(5377));
        assert_eq!(port("brook"), Some(6000));
        let usual = target("brook", &Peer::default()).ok();
        assert_eq!(usual.map(|target| target.port), Some(PORT));
    }

    #[test]
    fn a_wrong_key_of_the_environment_is_no_matter_of_pairing() {
        let hint = |origin| {
            let error = PeerError::WrongKey {
                address: ([10, 0, 0, 1], PORT).into(),
                host: "brook".to_owned(),
            };
            session_failure(error, origin).hint
        };
        assert_eq!(hint(Origin::Own), "linerate pair brook");
        assert_eq!(
            hint(Origin::Environment),
            "LINERATE_KEY holds another key: unset it, or set it to the far end's"
        );
        let address = ([10, 0, 0, 1], PORT).into();
        let other = session_failure(PeerError::NoServer { address }, Origin::Environment);
        assert!(other.hint.contains("linerate serve"), "{}", other.hint);
    }
}
