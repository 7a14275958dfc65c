//! Reads the output of `pcm-memory`.

use std::collections::BTreeMap;

use super::rate;
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, MOST, decimal, scaled};

pub(crate) static PCM_MEMORY: Format = Format {
    id: "pcm-memory",
    label: "pcm-memory",
    versions: "Intel PCM 201710 to 202604; from 202307 on it writes SKT for NODE",
    evidence: "published: a table of two sockets in files of public repositories, shortened; the units: its \
        source, pcm-memory.cpp",
    unknown: "What moved the data is not in it: writes of cards that stay in a cache do not reach memory.",
    starts: |at| {
        let (border, head) = (at.line.trim(), at.next.trim());
        let is_border = border.starts_with("|---") && border.trim_matches(['|', '-']).is_empty();
        is_border && head.starts_with("|-- ") && head.contains(" Socket ")
    },
    read,
    ..Format::FACTS
};

/// Bytes per second that a socket read from and wrote to memory, and the line of these figures.
#[derive(Default)]
struct Socket {
    line: u64,
    read: Option<u64>,
    written: Option<u64>,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reading = Reading::of(section);
    let lines = std::mem::take(&mut reading.lines);
    // The output repeats the table: the last one counts.
    let mut sockets: BTreeMap<u64, Socket> = BTreeMap::new();
    for line in lines {
        if !line.trimmed().starts_with('|') && !line.trimmed().contains("--||--") {
            reading.strange(line);
            continue;
        }
        for cell in line.text.split("--||--") {
            take(&mut sockets, line, cell);
        }
    }
    if sockets.is_empty() {
        return Err("it ends before the sums of the sockets".to_owned());
    }
    for (number, socket) in sockets {
        let words = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), rate);
        let (read, written) = (words(socket.read), words(socket.written));
        reading.notes.at(
            socket.line,
            format!("socket {number}: memory is read at {read} and written at {written}"),
        );
    }
    reading.found("pcm-memory")
}

/// Reads a cell such as `|-- NODE 0 Mem Read (MB/s) : 10399.46 --|`; newer versions write `SKT  0`.
fn take(sockets: &mut BTreeMap<u64, Socket>, line: Line<'_>, cell: &str) -> Option<()> {
    let cell = cell.trim_matches(['|', '-', ' ']);
    let rest = cell.strip_prefix("NODE").or_else(|| cell.strip_prefix("SKT"))?.trim_start();
    let (number, rest) = rest.split_once(' ')?;
    let (what, value) = rest.split_once("(MB/s)")?;
    let number = decimal(number)?;
    //= intel/pcm, src/pcm-memory.cpp: counts * 64 / 1000000.0 per second
    let value = scaled(value.trim_matches([':', ' ']), 1_000_000);
    if sockets.len() >= MOST && !sockets.contains_key(&number) {
        return None;
    }
    let socket = sockets.entry(number).or_default();
    match what.trim() {
        "Mem Read" => (socket.read, socket.line) = (value, line.number),
        "Mem Write" => socket.written = value,
        _ => {}
    }
    Some(())
}
