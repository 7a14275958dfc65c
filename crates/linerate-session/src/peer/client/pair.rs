//! Pairing: stores the key of a server once the server has accepted it.

use std::path::{Path, PathBuf};

use linerate_record::wire::message::Ask;

use super::super::PeerError;
use super::super::address::{Family, Target};
use super::super::keys::{Key, KeyError, client_file};
use super::{BYE, dial};

/// Checks a key with its server: opens a session with the key
/// and closes it. The server also proves that it has the key.
pub fn verify(target: &Target, family: Option<Family>, key: &Key) -> Result<(), PeerError> {
    let (mut channel, ..) = dial::control(target, family, Some(key), false, &|| false)?;
    if let Ok(bye) = Ask::Bye.encode() {
        let _ = channel.send_last(&bye, BYE);
    }
    Ok(())
}

/// Why a key was not stored.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The server does not accept the key, or could not be reached.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The key could not be stored.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl PairError {
    /// Returns the command or change that helps the user; empty if there is none.
    pub fn hint(&self) -> String {
        match self {
            Self::Peer(PeerError::WrongKey { .. }) => {
                "copy the whole key that `linerate serve` shows there".into()
            }
            Self::Peer(PeerError::UnexpectedlyOpen { .. }) => {
                "an open server needs no key: measure without pairing".into()
            }
            Self::Peer(e) => e.hint(),
            Self::Key(e) => e.hint(),
        }
    }
}

/// Stores the key of a far end once the server there has accepted it; returns the path of the key file.
pub fn pair(
    directory: &Path,
    target: &Target,
    family: Option<Family>,
    key: &Key,
) -> Result<PathBuf, PairError> {
    // A host name that cannot be a file name is reported before the server is contacted.
    let file = client_file(directory, &target.host)?;
    verify(target, family, key)?;
    key.store(&file)?;
    Ok(file)
}
