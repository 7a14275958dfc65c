//! Pre-shared keys: how they are made, written and read. A key never appears in an argument, a log or an error.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::handshake::random;

/// Environment variable that may hold the key of the far end.
pub const KEY_VARIABLE: &str = "LINERATE_KEY";

const KEY_LEN: usize = 32;
// Size of the checksum in bytes. With three bytes, one in 16 million typing errors is not detected. Key and checksum
// together are 35 bytes, which are exactly 56 letters.
const CHECKSUM_LEN: usize = 3;
const LETTERS: usize = 56;
const GROUP: usize = 8;
// Crockford's alphabet: no i, l, o, u, so that a key can be read out and typed.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Maximum size of a file or text that contains a key, in bytes.
const FILE_MAX: u64 = 4096;

/// A pre-shared key: 32 random bytes. Its text form is 7 groups of 8 letters and digits, the last
/// few of which are a checksum.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; KEY_LEN]);

/// Why a key could not be made, read or stored.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is empty.
    #[error("no key was given")]
    Empty,
    /// The text does not have the length of a key.
    #[error("the key has {got} letters and digits instead of {LETTERS}")]
    Length {
        /// Number of letters and digits in the text.
        got: usize,
    },
    /// The text contains a character that no key has.
    #[error("group {group} of the key has other characters than letters and digits")]
    Letter {
        /// Number of the group of eight characters that contains it, counted from 1.
        group: usize,
    },
    /// The checksum is wrong, so at least one letter is wrong.
    #[error("the key is mistyped: its checksum is wrong")]
    Checksum,
    /// Other users may read the file.
    #[error("{} can be read or written by others (mode {mode:03o})", path.display())]
    Exposed {
        /// Path of the file.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
    /// A file could not be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// Action that failed: `read` or `write`.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file does not contain a valid key.
    #[error("{}: {source}", path.display())]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Error that describes what is wrong with the key.
        source: Box<KeyError>,
    },
    /// The host's name cannot be used as the name of a file.
    #[error("no key file can be named after host `{host}`")]
    HostName { host: String },
    /// Neither `XDG_CONFIG_HOME` nor `HOME` is set, so the directory of keys is unknown.
    #[error("neither XDG_CONFIG_HOME nor HOME is set, so there is no directory for keys")]
    NoHome,
    /// Standard input could not be read.
    #[error("cannot read the key: {0}")]
    Input(#[source] io::Error),
}

impl KeyError {
    /// Returns the command or change that helps the user; empty if there is none.
    pub fn hint(&self) -> String {
        match self {
            Self::Exposed { path, .. } => format!("chmod 600 {}", path.display()),
            Self::Empty | Self::Length { .. } | Self::Letter { .. } | Self::Checksum => {
                "copy the whole key that `linerate serve` shows".into()
            }
            Self::Content { path, .. } => format!("remove {} and pair again", path.display()),
            Self::NoHome => format!("set HOME, or {KEY_VARIABLE} to the key"),
            _ => String::new(),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Makes a new random key.
    pub fn generate() -> Self {
        Self(random())
    }

    /// Returns the key of servers that are open to anyone. It is public and protects nothing, but with it an open
    /// server uses the same protocol as any other.
    pub(crate) const fn open() -> Self {
        Self(*b"linerate open: everyone knows it")
    }

    pub(crate) const fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    fn sum(&self) -> [u8; CHECKSUM_LEN] {
        let hash =
            Sha256::new().chain_update(b"linerate key checksum").chain_update(self.0).finalize();
        [hash[0], hash[1], hash[2]]
    }

    /// Returns the text that is copied to the other host. This is not `Display`, so that no log shows it by mistake.
    pub fn text(&self) -> String {
        let bytes = [&self.0[..], &self.sum()].concat();
        let mut text = String::with_capacity(LETTERS + LETTERS / GROUP);
        let (mut bits, mut held, mut letters) = (0_u32, 0, 0);
        for byte in bytes {
            bits = bits << 8 | u32::from(byte);
            held += 8;
            while held >= 5 {
                if letters > 0 && letters % GROUP == 0 {
                    text.push('-');
                }
                held -= 5;
                text.push(char::from(ALPHABET[(bits >> held & 31) as usize]));
                letters += 1;
            }
        }
        text
    }

    /// Reads a key from `input` to its end, such as the standard input of `linerate pair`.
    pub fn read(input: impl Read) -> Result<Self, KeyError> {
        let mut text = String::new();
        input.take(FILE_MAX).read_to_string(&mut text).map_err(KeyError::Input)?;
        text.parse()
    }

    /// Reads a key from one line of `input`, and leaves the other lines unread.
    pub fn read_line(input: impl BufRead) -> Result<Self, KeyError> {
        let mut line = String::new();
        let read = input.take(FILE_MAX).read_line(&mut line);
        read.map_err(KeyError::Input)?;
        line.parse()
    }

    /// Returns the key in the environment variable [`KEY_VARIABLE`], if it is set.
    pub fn from_environment() -> Result<Option<Self>, KeyError> {
        match std::env::var(KEY_VARIABLE) {
            Ok(text) => text.parse().map(Some),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(KeyError::Letter { group: 1 }),
        }
    }

    /// Reads a key file; `None` if there is none. A file that other users may read is refused, because they may know
    /// its key.
    pub fn load(path: &Path) -> Result<Option<Self>, KeyError> {
        let wrong = |source| KeyError::File { what: "read", path: path.into(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(wrong(e)),
        };
        // The permissions of the open file are checked, not those of the path, which may lead to another file by now.
        let meta = file.metadata().map_err(wrong)?;
        if !meta.is_file() {
            return Err(wrong(io::Error::other("not a regular file")));
        }
        let mode = meta.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed { path: path.into(), mode });
        }
        let content = |source| KeyError::Content { path: path.into(), source: Box::new(source) };
        Self::read(file).map(Some).map_err(content)
    }

    /// Writes a key file that only its owner may read, and the directories above it. An existing
    /// file is replaced at once or not at all.
    pub fn store(&self, path: &Path) -> Result<(), KeyError> {
        self.store_new(path).map_err(|source| KeyError::File {
            what: "write",
            path: path.into(),
            source,
        })
    }

    fn store_new(&self, path: &Path) -> io::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let suffix = u64::from_ne_bytes(random());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = directory.join(format!(".{name}.{suffix:x}"));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| {
                writeln!(file, "{}", self.text())?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

impl FromStr for Key {
    type Err = KeyError;

    /// Parses the text form. Case, spaces and hyphens are ignored, `o` counts as `0`, and `i` and `l` count as `1`.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let letters: Vec<char> = text.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
        let mut bytes = Vec::with_capacity(KEY_LEN + CHECKSUM_LEN);
        let (mut bits, mut held) = (0_u32, 0);
        for (i, letter) in letters.iter().enumerate() {
            let value = value(*letter).ok_or(KeyError::Letter { group: i / GROUP + 1 })?;
            bits = bits << 5 | value;
            held += 5;
            if held >= 8 {
                held -= 8;
                bytes.push((bits >> held) as u8);
            }
        }
        if letters.is_empty() {
            return Err(KeyError::Empty);
        }
        if letters.len() != LETTERS {
            return Err(KeyError::Length { got: letters.len() });
        }
        let (key, sum) = bytes.split_at(KEY_LEN);
        let mut own = Self([0; KEY_LEN]);
        own.0.copy_from_slice(key);
        if own.sum() == sum { Ok(own) } else { Err(KeyError::Checksum) }
    }
}

fn value(letter: char) -> Option<u32> {
    let letter = match letter.to_ascii_lowercase() {
        'o' => '0',
        'i' | 'l' => '1',
        other => other,
    };
    let at = ALPHABET.iter().position(|a| char::from(*a) == letter)?;
    Some(at as u32)
}

/// Returns the directory of key files: `$XDG_CONFIG_HOME/linerate`, or `~/.config/linerate`.
pub fn directory() -> Result<PathBuf, KeyError> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))
        .map(|config| config.join("linerate"))
        .ok_or(KeyError::NoHome)
}

/// Returns the path of this host's own key file, which `linerate serve` uses.
pub fn server_file(directory: &Path) -> PathBuf {
    directory.join("serve.key")
}

/// Returns the path of the key file for a far host. The file has the name that the user types for the host.
pub fn client_file(directory: &Path, host: &str) -> Result<PathBuf, KeyError> {
    let named = !host.is_empty()
        && host.len() <= 200
        && !host.starts_with('.')
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_:%".contains(&b));
    if !named {
        return Err(KeyError::HostName { host: host.into() });
    }
    let file = format!("{}.key", host.to_ascii_lowercase());
    Ok(directory.join("keys").join(file))
}

/// Returns the key with which this host serves. If there is none, a
/// key is made and stored. The second value is true if the key is new.
pub fn server_key(directory: &Path) -> Result<(Key, bool), KeyError> {
    let path = server_file(directory);
    if let Some(key) = Key::load(&path)? {
        return Ok((key, false));
    }
    let key = Key::generate();
    key.store(&path)?;
    Ok((key, true))
}

/// Returns the key that is stored for a far host; `None` if none is stored.
pub fn client_key(directory: &Path, host: &str) -> Result<Option<Key>, KeyError> {
    Key::load(&client_file(directory, host)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::PermissionsExt;

    proptest! {
        #[test]
        fn keys_round_trip(bytes in any::<[u8; KEY_LEN]>()) {
            let key = Key(bytes);
            prop_assert_eq!(key.text().parse::<Key>().unwrap(), key.clone());
            let spoken = key.text().to_uppercase().replace('-', " ").replace('0', "O");
            prop_assert_eq!(spoken.parse::<Key>().unwrap(), key);
        }

        #[test]
        fn one_wrong_letter_is_told(at in 0..LETTERS, to in 0usize..32) {
            let key = Key([7; KEY_LEN]);
            let mut letters: Vec<char> = key.text().replace('-', "").chars().collect();
            let new = char::from(ALPHABET[to]);
            prop_assume!(letters[at] != new);
            letters[at] = new;
            let text: String = letters.iter().collect();
            prop_assert!(matches!(text.parse::<Key>(), Err(KeyError::Checksum)));
        }

        #[test]
        fn any_text_is_a_key_or_an_error(text in any::<String>()) {
            let _ = text.parse::<Key>();
        }
    }

    #[test]
    fn the_text_is_grouped_and_its_faults_are_told_apart() {
        let text = Key([0xA5; KEY_LEN]).text();
        assert_eq!(text.split('-').map(str::len).collect::<Vec<_>>(), [8; 7]);
        let cut = &text[..text.len() - 1];
        assert!(matches!(cut.parse::<Key>(), Err(KeyError::Length { got: 55 })));
        let bent = text.replacen(&text[9..10], "u", 1);
        assert!(matches!(bent.parse::<Key>(), Err(KeyError::Letter { .. })));
    }

    #[test]
    fn keys_do_not_show_in_debug_output() {
        assert_eq!(format!("{:?}", Key::generate()), "Key(..)");
    }

    #[test]
    fn a_stored_key_is_private_and_comes_back() {
        let home = tempfile::tempdir().unwrap();
        let (key, new) = server_key(home.path()).unwrap();
        assert!(new);
        let path = server_file(home.path());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(server_key(home.path()).unwrap(), (key, false));
        let names: Vec<_> = fs::read_dir(home.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "a temporary file was left");
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = client_file(home.path(), "Brook").unwrap();
        Key::generate().store(&path).unwrap();
        assert!(path.ends_with("keys/brook.key"));
        assert!(Key::load(&path).unwrap().is_some());
        for mode in [0o640, 0o604, 0o620, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = Key::load(&path).unwrap_err();
            assert!(matches!(error, KeyError::Exposed { .. }), "{mode:o}");
            assert!(error.hint().starts_with("chmod 600 "));
        }
    }

    #[test]
    fn hosts_cannot_name_files_elsewhere() {
        let home = Path::new("/c");
        for host in ["", "..", "../x", "a/b", ".hidden", "a\0b", "ä"] {
            assert!(client_file(home, host).is_err(), "{host}");
        }
        for host in ["brook", "10.0.0.1", "fe80::1%eth0", "my_host-2.lan"] {
            assert!(client_file(home, host).is_ok(), "{host}");
        }
    }

    #[test]
    fn a_missing_or_broken_file_is_told_apart() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.key");
        assert!(Key::load(&path).unwrap().is_none());
        Key::generate().store(&path).unwrap();
        fs::write(&path, "nonsense").unwrap();
        assert!(matches!(Key::load(&path), Err(KeyError::Content { .. })));
    }
}
