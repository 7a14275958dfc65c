//! The file that `linerate host --capture` writes: all readings of a machine, as text where possible, so that its owner
//! can check it before sending it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use linerate_host::{Answer, Captured, Query};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// Version of the file format; raised when a key changes its meaning or is removed.
const FORMAT: u32 = 1;
/// Largest capture that is read, in bytes.
const LARGEST: u64 = 256 << 20;

#[derive(Serialize, Deserialize)]
struct Saved {
    format: u32,
    linerate: String,
    masked: bool,
    files: BTreeMap<String, Vec<Answer<Bytes>>>,
    lists: BTreeMap<String, Vec<Answer<Vec<String>>>>,
    #[serde(default)]
    queries: Vec<(Query, Vec<Answer<Bytes>>)>,
}

/// Contents of a file or reply, as they are written in the capture.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Binary { hex: String },
}

impl Bytes {
    fn of(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Binary {
                hex: error.as_bytes().iter().fold(String::new(), |mut hex, byte| {
                    let _ = write!(hex, "{byte:02x}");
                    hex
                }),
            },
        }
    }

    fn bytes(self) -> anyhow::Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.into_bytes()),
            Self::Binary { hex } => hex
                .as_bytes()
                .chunks(2)
                .map(|pair| {
                    let text = std::str::from_utf8(pair).ok().filter(|t| t.len() == 2);
                    let byte = text.and_then(|t| u8::from_str_radix(t, 16).ok());
                    byte.context("bytes in hexadecimal are damaged")
                })
                .collect(),
        }
    }
}

/// Converts each reply with `form`; recorded failures stay as they are.
fn each<T, U>(
    answers: Vec<Answer<T>>,
    form: impl Fn(T) -> anyhow::Result<U>,
) -> anyhow::Result<Vec<Answer<U>>> {
    let one = |answer| match answer {
        Answer::Reply(reply) => Ok(Answer::Reply(form(reply)?)),
        Answer::Failed(failure) => Ok(Answer::Failed(failure)),
    };
    answers.into_iter().map(one).collect()
}

/// Writes the capture to `path`, masked by default.
pub(crate) fn save(path: &Path, mut captured: Captured, unmasked: bool) -> anyhow::Result<()> {
    if !unmasked {
        captured.mask();
    }
    let form = |bytes| Ok(Bytes::of(bytes));
    let files = captured.files.into_iter();
    let queries = captured.queries.into_iter();
    let saved = Saved {
        format: FORMAT,
        linerate: env!("CARGO_PKG_VERSION").to_owned(),
        masked: !unmasked,
        files: files
            .map(|(path, all)| Ok((path, each(all, form)?)))
            .collect::<anyhow::Result<_>>()?,
        lists: captured.lists,
        queries: queries
            .map(|(query, all)| Ok((query, each(all, form)?)))
            .collect::<anyhow::Result<_>>()?,
    };
    let text = rows(&serde_json::to_value(saved)?);
    // Only its owner may read an unmasked capture: it holds names of people and serial numbers.
    Pending::begin(path, unmasked)
        .and_then(|file| file.end(&text))
        .with_context(|| format!("failed to write {}", path.display()))
}

/// A file that replaces an older one only when all of it is written, so that a full disk destroys no older capture.
pub(crate) struct Pending {
    file: Written,
    /// Whether only its owner may read the file. Such a file never replaces another.
    private: bool,
}

enum Written {
    /// A new temporary file in the folder of the path, and the path that it replaces at the end.
    Beside(NamedTempFile, PathBuf),
    /// The file at the path itself: a device, a pipe, or a file in a folder where this user can create none.
    Itself(File),
}

impl Pending {
    /// Makes the file, readable as every new file is, or by its owner alone.
    pub(crate) fn begin(path: &Path, private: bool) -> io::Result<Self> {
        let itself = || OpenOptions::new().write(true).open(path).map(Written::Itself);
        let is_file = path.metadata().map(|found| found.is_file());
        let file = if is_file.as_ref().is_ok_and(|is_file| !is_file) {
            itself()?
        } else {
            match beside(path, private) {
                Err(e)
                    if e.kind() == io::ErrorKind::PermissionDenied
                        && !private
                        && is_file.is_ok() =>
                {
                    itself()?
                }
                beside => beside?,
            }
        };
        Ok(Self { file, private })
    }

    /// Writes the whole text, and puts the file in its place.
    pub(crate) fn end(self, text: &str) -> io::Result<()> {
        match self.file {
            Written::Itself(mut file) => {
                if file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                file.write_all(text.as_bytes())?;
            }
            Written::Beside(mut file, path) => {
                file.write_all(text.as_bytes())?;
                // An existing file keeps its permissions.
                if let Ok(old) = path.metadata() {
                    file.as_file().set_permissions(old.permissions())?;
                }
                if self.private {
                    file.persist_noclobber(path)?;
                } else {
                    file.persist(path)?;
                }
            }
        }
        Ok(())
    }
}

fn beside(path: &Path, private: bool) -> io::Result<Written> {
    // If the path is a symbolic link, its target is replaced, not the link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    // The kernel removes the bits of the umask from this mode.
    let mode = Permissions::from_mode(if private { 0o600 } else { 0o666 });
    let file = tempfile::Builder::new().permissions(mode).tempfile_in(folder)?;
    Ok(Written::Beside(file, path))
}

/// The capture as JSON with one line for each file or query, so that people and tools can read, search and compare it.
fn rows(saved: &Value) -> String {
    let mut groups = Vec::new();
    for (key, value) in saved.as_object().into_iter().flatten() {
        let text = match value {
            Value::Object(answers) => {
                let row = |(path, all): (&String, &Value)| format!("{}: {all}", json!(path));
                let rows: Vec<String> = answers.iter().map(row).collect();
                format!("{{\n{}\n}}", rows.join(",\n"))
            }
            value => value.to_string(),
        };
        groups.push(format!("{}: {text}", json!(key)));
    }
    format!("{{\n{}\n}}\n", groups.join(",\n"))
}

/// Reads what [`save`] wrote.
pub(crate) fn load(path: &Path) -> anyhow::Result<Captured> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut text))
        .with_context(|| format!("failed to read {}", path.display()))?;
    anyhow::ensure!(
        text.len() as u64 <= LARGEST,
        "{} is larger than {LARGEST} bytes",
        path.display()
    );
    parse(&text).with_context(|| format!("{} is not a capture of a machine", path.display()))
}

fn parse(text: &[u8]) -> anyhow::Result<Captured> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let Head { format } = serde_json::from_slice(text)?;
    anyhow::ensure!(
        format == FORMAT,
        "it has format {format}, and this linerate reads format {FORMAT}"
    );
    let saved: Saved = serde_json::from_slice(text)?;
    let files = saved.files.into_iter();
    let queries = saved.queries.into_iter();
    Ok(Captured {
        files: files
            .map(|(path, all)| Ok((path, each(all, Bytes::bytes)?)))
            .collect::<anyhow::Result<_>>()?,
        lists: saved.lists,
        queries: queries
            .map(|(query, all)| Ok((query, each(all, Bytes::bytes)?)))
            .collect::<anyhow::Result<_>>()?,
        ..Captured::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unmasked_is_for_its_owner_and_replaces_nothing() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("capture");
        save(&path, Captured::default(), true).unwrap();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = save(&path, Captured::default(), true).unwrap_err();
        assert!(second.to_string().contains("failed to write"), "{second}");
        save(&path, Captured::default(), false).unwrap();
        // A file that was begun and never ended leaves the older file as it is, and no temporary file beside it.
        let before = std::fs::read(&path).unwrap();
        drop(Pending::begin(&path, false).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
        // In a folder where no file can be created the file itself is rewritten, and nothing of its older text stays.
        let itself = || {
            let file = File::options().write(true).open(&path).unwrap();
            Pending { file: Written::Itself(file), private: false }
        };
        drop(itself());
        assert_eq!(std::fs::read(&path).unwrap(), before);
        itself().end("{}").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"{}");
        save(Path::new("/dev/null"), Captured::default(), false).unwrap();
    }

    #[test]
    fn text_stays_text_and_every_byte_comes_back() {
        let mut captured = Captured::default();
        for (path, bytes) in [("/a", &b"plain\n"[..]), ("/b", &[0xff, 0, 7])] {
            let answers = vec![Answer::Reply(bytes.to_vec())];
            captured.files.insert(path.to_owned(), answers);
        }
        let lists = vec![Answer::Reply(vec!["x".to_owned()])];
        captured.lists.insert("/c".to_owned(), lists);
        let query = (Query::TicksPerSec, vec![Answer::Reply(b"100\n".to_vec())]);
        captured.queries.push(query);
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("capture.json");
        save(&path, captured.clone(), false).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("plain\\n"));
        assert_eq!(load(&path).unwrap(), captured);
    }

    #[test]
    fn what_is_no_capture_is_refused_in_words() {
        for (text, want) in [
            ("", "EOF"),
            ("{}", "format"),
            ("{\"format\": 2}", "format 2"),
            ("{\"format\": 1}", "linerate"),
            (
                "{\"format\":1,\"linerate\":\"\",\"masked\":true,\"lists\":{},\
                 \"files\":{\"/a\":[{\"reply\":{\"hex\":\"f\"}}]}}",
                "damaged",
            ),
        ] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
