//! Shows results as lines of text, which tests compare.

use std::fmt::Write;

use linerate_record::reported::{Cpu, CpuOf, Measured, Setup, Transfer};

use crate::{Parsed, read};

/// Reads a sample, and shows each transfer and each note as one line.
pub(crate) fn of(sample: &str) -> String {
    match read(sample.as_bytes()) {
        Ok(parsed) => lines(&parsed),
        Err(why) => format!("refused: {why}\n"),
    }
}

/// The results of all outputs in a sample.
pub(crate) fn results(sample: &str) -> Vec<Measured> {
    let parsed = read(sample.as_bytes()).unwrap_or_else(|why| panic!("{why}"));
    let results = parsed.parts.into_iter().flat_map(|part| part.results);
    results.map(|result| result.measured).collect()
}

/// The transfers in a sample.
pub(crate) fn transfers(sample: &str) -> Vec<Transfer> {
    let transfers = results(sample).into_iter().filter_map(|measured| match measured {
        Measured::Transfer(transfer) => Some(*transfer),
        _ => None,
    });
    transfers.collect()
}

/// The only transfer in a sample.
pub(crate) fn transfer(sample: &str) -> Transfer {
    let mut transfers = transfers(sample);
    assert_eq!(transfers.len(), 1, "{sample}");
    transfers.remove(0)
}

/// All notes about a sample, and the reason if it was refused.
pub(crate) fn notes(sample: &str) -> String {
    let kept = of(sample);
    let notes = kept.lines().filter(|line| line.contains("note ") || line.starts_with("refused"));
    notes.collect::<Vec<_>>().join("\n")
}

/// The text of a sample, by its folder and name.
#[expect(clippy::disallowed_methods, reason = "only tests read samples")]
pub(crate) fn sample(path: &str) -> String {
    let path = format!("{}/tests/samples/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// Names and texts of all samples in a folder, in order.
#[expect(clippy::disallowed_methods, reason = "only tests read samples")]
pub(crate) fn samples(folder: &str) -> Vec<(String, String)> {
    let path = format!("{}/tests/samples/{folder}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(&path).unwrap_or_else(|why| panic!("{path}: {why}"));
    let names = files.map(|file| file.map(|file| file.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<Result<_, _>>().unwrap_or_default();
    names.sort();
    names.into_iter().map(|name| (name.clone(), sample(&format!("{folder}/{name}")))).collect()
}

/// The lines for all samples in a folder.
pub(crate) fn all(folder: &str) -> String {
    let mut all = String::new();
    for (name, text) in samples(folder) {
        let _ = write!(all, "== {name}\n{}", of(&text));
    }
    all
}

/// Checks transfers. Each line of `table` has the name of a sample, the place of a transfer in it, and its expected
/// direction, counting end, goodput, retransmits and streams.
pub(crate) fn check(table: &str, text: impl Fn(&str) -> String) {
    for row in table.lines().map(str::trim) {
        let mut words = row.split(' ');
        let (name, place) = (words.next().unwrap(), words.next().unwrap());
        let got = &transfers(&text(name))[place.parse::<usize>().unwrap()];
        let (direction, counted, goodput) = (got.direction, got.counted, got.goodput.0);
        let (retransmits, streams) = (got.retransmits, got.streams);
        let found = format!(
            "{name} {place} {direction:?} {counted:?} {goodput} {retransmits:?} {streams:?}"
        );
        assert_eq!(found, row);
    }
}

fn lines(parsed: &Parsed) -> String {
    let mut out = String::new();
    for part in &parsed.parts {
        let version = part.tool.version.as_deref().unwrap_or("?");
        let _ =
            writeln!(out, "{} {} {version}, line {}", part.format.id, part.tool.name, part.line);
        for result in &part.results {
            let Measured::Transfer(transfer) = &result.measured else {
                // A set-up in which nothing is known is not shown.
                let unknown = format!(", setup: {:?}", Setup::default());
                let measured = format!("{:?}", result.measured).replace(&unknown, "");
                let _ = writeln!(out, "  {} {measured}", result.title);
                continue;
            };
            let title = &result.title;
            let _ = writeln!(out, "  {}", transfer_line(title, result.line, transfer));
        }
        for note in &part.notes {
            let _ = writeln!(out, "  note {:?}: {}", note.line, note.what);
        }
    }
    for note in &parsed.notes {
        let _ = writeln!(out, "note {:?}: {}", note.line, note.what);
    }
    out
}

fn cpu_words(cpu: Cpu) -> String {
    let of = match cpu.of {
        CpuOf::Program => "",
        CpuOf::Machine | CpuOf::AllCpus => " of the machine",
    };
    let system = cpu.system.map_or("?".to_owned(), |n| format!("{n:.4}"));
    format!("{:.4} ({system}){of}", cpu.total)
}

fn transfer_line(title: &str, line: u64, t: &Transfer) -> String {
    let mut out = format!(
        "{title}@{line} {:?} {:?} {} b/s by {:?}",
        t.carrier, t.direction, t.goodput.0, t.counted
    );
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(out, ", {name} {value}");
        }
    };
    add("both", t.both.then(|| "yes".to_owned()));
    add("streams", t.streams.map(|n| n.to_string()));
    add("s", t.seconds.map(|n| format!("{n:.3}")));
    let ticks: Vec<u64> = t.ticks.iter().map(|n| *n as u64).collect();
    add(
        "ticks",
        t.tick.map(|tick| format!("{} of {tick}: {:?}", ticks.len(), &ticks[..ticks.len().min(2)])),
    );
    let each: Vec<u64> = t.each.iter().map(|n| *n as u64).collect();
    add("each", (!each.is_empty()).then(|| format!("{each:?}")));
    add("retr", t.retransmits.map(|n| n.to_string()));
    add("mss", t.segment.map(|n| n.to_string()));
    add("window", t.window.map(|n| n.0.to_string()));
    add("offered", t.offered.map(|n| n.0.to_string()));
    add("buffer", t.buffer.map(|n| n.0.to_string()));
    let rtt = t.round_trip;
    let rtt = [rtt.least, rtt.mean, rtt.most].map(|n| n.map(|n| n.0));
    add("rtt", rtt.iter().any(Option::is_some).then(|| format!("{rtt:?}")));
    for (name, cpu) in [("cpu sender", t.cpu.sender), ("cpu receiver", t.cpu.receiver)] {
        add(name, cpu.map(cpu_words));
    }
    add(
        "lost",
        t.datagrams.map(|lost| format!("{}/{} {:?}", lost.lost, lost.of, lost.jitter.map(|n| n.0))),
    );
    add("messages", t.messages.map(|n| format!("{n:.1}")));
    add("size", t.size.map(|n| n.0.to_string()));
    add("asked", t.requested.map(|n| n.0.to_string()));
    add("cc", t.congestion.clone());
    add("error", t.error.clone());
    out
}
