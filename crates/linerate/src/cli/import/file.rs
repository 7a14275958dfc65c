//! One file of an import: its bytes, and what the record keeps of them.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use linerate_facts::Inventory;
use linerate_import::{MOST_BYTES, Parsed, Refused, read};
use linerate_plan::path::Side;
use linerate_record::reported::{Note, Tool};
use linerate_record::{Blob, Import, Kept};
use linerate_units::shell::word;

use crate::cli::exit::{Failure, tell};

/// Longest file, in bytes, of which the record keeps all bytes; of a longer file it keeps only the results.
pub(super) const KEPT: usize = 16 << 20;

/// Folders of descriptors that are already open, such as the pipes of a shell: opening them again does not block.
const OPEN_FOLDERS: [&str; 3] = ["/dev/fd", "/proc/self/fd", "/dev/stdin"];

const PIPE: &str = "PROGRAM | linerate import -";

/// Label of a file in which no known format was found.
pub(super) const NOT_READ: &str = "not read";

/// Reads files, and returns what the record keeps of each. If some files have results, a file without any is kept as a
/// note; if none has, the reason of the first one is the error. The bool tells whether a file could not be opened,
/// which is reported to the user.
pub(super) fn imported(named: &[(Side, &PathBuf)]) -> Result<(Vec<Import>, bool), Failure> {
    let mut files = Vec::new();
    let mut refused = None;
    let mut unopened = None;
    let mut has_any = false;
    for (side, path) in named {
        let bytes = match bytes(path) {
            Ok(bytes) => bytes,
            Err(failure) => {
                unopened.get_or_insert(failure);
                continue;
            }
        };
        let kept = match read(&bytes) {
            Ok(parsed) => {
                has_any = true;
                kept(bytes, parsed)
            }
            Err(why) => {
                let kept = unread(&why);
                refused.get_or_insert((path, why));
                kept
            }
        };
        files.push(Import { name: name(path), side: *side, kept });
    }
    match (refused, unopened) {
        // If no file has results, the import is refused before anything is kept.
        (Some((path, why)), None) if !has_any => {
            let hint = hint(&why);
            Err(Failure::usage(anyhow!("{}: {why}", path.display())).hint(hint))
        }
        (_, Some(failure)) if !has_any => Err(failure),
        (_, unopened) => {
            if let Some(failure) = &unopened {
                tell(&failure.words());
            }
            Ok((files, unopened.is_some()))
        }
    }
}

fn name(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".to_owned();
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn kept(bytes: Vec<u8>, parsed: Parsed) -> Kept {
    if bytes.len() <= KEPT { Kept::Bytes(Blob(bytes)) } else { rows(parsed) }
}

/// What the record keeps of a file without results: the reason.
fn unread(why: &Refused) -> Kept {
    Kept::Rows {
        label: NOT_READ.to_owned(),
        tool: Tool::default(),
        results: Vec::new(),
        notes: vec![Note { line: None, what: why.to_string() }],
    }
}

/// The hint for a file without results.
fn hint(why: &Refused) -> &'static str {
    match why {
        Refused::Damaged { why, .. } if why.contains("onnect") => {
            "the program reached no server: start it on the other host (iperf3 -s), and let its port pass"
        }
        Refused::Empty => "some programs print results to standard error: PROGRAM > FILE 2>&1",
        Refused::TooLong => "leave out what is no result, such as intervals",
        Refused::Binary => "import reads text or JSON, as the programs print it",
        Refused::Unknown(_) => "docs/import.md lists the formats; include the head of the output",
        Refused::Damaged { .. } => {
            "docs/import.md lists the formats; import reads their output as it was printed"
        }
    }
}

/// Reads the bytes of a regular file, of an open pipe, or of standard input.
fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| {
        let what = format!("failed to read {}", path.display());
        let failure = Failure::usage(anyhow::Error::new(error).context(what));
        failure.hint(format!("ls -l {}", word(&path.to_string_lossy())))
    };
    let mut bytes = Vec::new();
    // The length of a pipe is unknown, so the read itself is limited.
    let most = MOST_BYTES as u64 + 1;
    if path == Path::new("-") {
        let mut input = io::stdin().lock().take(most);
        input.read_to_end(&mut bytes).map_err(failed)?;
        return Ok(bytes);
    }
    let found = path.metadata().map_err(failed)?;
    check(path, &found)?;
    let file = File::open(path).map_err(failed)?;
    bytes.reserve_exact(found.len() as usize);
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Refuses directories, devices, sockets, named pipes and files that are too long.
fn check(path: &Path, found: &Metadata) -> Result<(), Failure> {
    let kind = found.file_type();
    let is_device = kind.is_char_device() || kind.is_block_device();
    let is_open = OPEN_FOLDERS.iter().any(|folder| path.starts_with(folder));
    let longest = format!("it is longer than {} MiB", MOST_BYTES >> 20);
    let refusals = [
        (kind.is_dir(), "it is a directory", "name the files in it"),
        (is_device, "it is a device", PIPE),
        (kind.is_socket(), "it is a socket", PIPE),
        (kind.is_fifo() && !is_open, "it is a named pipe, which may have no writer", PIPE),
        (found.len() > MOST_BYTES as u64, &longest, hint(&Refused::TooLong)),
    ];
    let refusal = refusals.into_iter().find(|(applies, ..)| *applies);
    refusal.map_or(Ok(()), |(_, what, hint)| {
        let error = anyhow!("{what}").context(format!("failed to read {}", path.display()));
        Err(Failure::usage(error).hint(hint))
    })
}

/// The results of a long file, as the other program reported them.
fn rows(parsed: Parsed) -> Kept {
    let mut notes = parsed.notes;
    let mut results = Vec::new();
    let parts = parsed.parts.into_iter();
    let (label, tool) = parts
        .as_slice()
        .first()
        .map_or_else(Default::default, |part| (part.format.label.to_owned(), part.tool.clone()));
    let mut has_facts = false;
    for part in parts {
        has_facts |= part.facts != Inventory::default();
        results.extend(part.results);
        notes.extend(part.notes);
    }
    let facts = "; facts of hosts in it are left out: import them from a file of their own";
    notes.push(Note {
        line: None,
        what: format!(
            "the record keeps the results as reported by {}, and not the {} MiB and more of the file{}",
            tool.name,
            KEPT >> 20,
            if has_facts { facts } else { "" }
        ),
    });
    Kept::Rows { label, tool, results, notes }
}
