//! What tests compare: a transfer in one line.

use std::fmt::Write;

use linerate_core::reported::{Measured, Transfer};

use crate::{Parsed, read};

/// Reads a sample and puts each transfer and each note into a line.
pub(crate) fn of(sample: &str) -> String {
    match read(sample.as_bytes()) {
        Ok(parsed) => lines(&parsed),
        Err(why) => format!("refused: {why}\n"),
    }
}

fn lines(parsed: &Parsed) -> String {
    let mut out = String::new();
    for part in &parsed.parts {
        let version = part.tool.version.as_deref().unwrap_or("?");
        let _ = writeln!(
            out,
            "{} {} {version}, line {}",
            part.format.id, part.tool.name, part.line
        );
        for result in &part.results {
            let Measured::Transfer(transfer) = &result.measured else {
                let _ = writeln!(out, "  {} {:?}", result.title, result.measured);
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
        t.tick.map(|tick| {
            format!(
                "{} of {tick}: {:?}",
                ticks.len(),
                &ticks[..ticks.len().min(2)]
            )
        }),
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
    add(
        "rtt",
        rtt.iter().any(Option::is_some).then(|| format!("{rtt:?}")),
    );
    for (name, cpu) in [
        ("cpu sender", t.cpu.sender),
        ("cpu receiver", t.cpu.receiver),
    ] {
        add(
            name,
            cpu.map(|cpu| {
                let machine = if cpu.machine { " of the machine" } else { "" };
                let system = cpu.system.map_or("?".to_owned(), |n| format!("{n:.4}"));
                format!("{:.4} ({system}){machine}", cpu.total)
            }),
        );
    }
    add(
        "lost",
        t.datagrams
            .map(|lost| format!("{}/{} {:?}", lost.lost, lost.of, lost.jitter.map(|n| n.0))),
    );
    add("messages", t.messages.map(|n| format!("{n:.1}")));
    add("size", t.size.map(|n| n.0.to_string()));
    add("asked", t.asked.map(|n| n.0.to_string()));
    add("cc", t.congestion.clone());
    add("error", t.error.clone());
    out
}
