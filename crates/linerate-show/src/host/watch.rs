//! Shows what changed on a machine since the update before.

use linerate_facts::watch::{Change, Grown, PortChange};

use super::super::words::count;
use super::super::{Document, Tone};
use super::ports::few;
use super::{foot, more, put, text};

/// Largest number of driver counters that are shown for a port.
const SHOWN: usize = 8;

/// The text of one update: busy processes, then ports with activity.
pub fn watch(change: &Change) -> Document {
    let mut doc = Document::new();
    if let Some(busy) = &change.busy {
        text::busy(&mut doc, "Busy", busy);
    }
    let (quiet, active): (Vec<_>, Vec<_>) = change.ports.iter().partition(|p| p.is_quiet());
    for port in active {
        put(&mut doc, &port.name, &traffic(port));
        for words in [interrupts(port), counted(port)].into_iter().flatten() {
            more(&mut doc, &words);
        }
        for grown in port.grown.iter().take(SHOWN) {
            more(&mut doc, &driver_counter(port, grown));
        }
    }
    if !quiet.is_empty() {
        let words = format!("{} without traffic", count(quiet.len() as u64, "port"));
        doc.remark(&[(Tone::Plain, &words)]);
    }
    foot::unknown(&mut doc, &change.gaps, true);
    doc.gap();
    doc
}

fn traffic(port: &PortChange) -> String {
    let PortChange { rx, tx, rx_packets, tx_packets, .. } = port;
    let state = match (port.was_up, port.up) {
        (true, false) => ", the link went down",
        (false, true) => ", the link came up",
        _ => "",
    };
    format!("in {rx} ({rx_packets:.0} packets/s), out {tx} ({tx_packets:.0} packets/s){state}")
}

/// How often each CPU served the port's interrupts per second, the busiest CPU first.
fn interrupts(port: &PortChange) -> Option<String> {
    let mut served = port.interrupts.clone();
    served.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words = served.iter().map(|(cpu, n)| format!("{n:.0}/s on CPU {cpu}"));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("interrupts {}", few(&words)))
}

fn counted(port: &PortChange) -> Option<String> {
    let all = port.counted.iter().map(|(name, n)| format!("{n} {name}"));
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| format!("errors and drops: {}", all.join(", ")))
}

fn driver_counter(port: &PortChange, grown: &Grown) -> String {
    let Grown { name, by, meaning } = grown;
    match meaning {
        Some(meaning) => {
            format!("{name} grew by {by}: {}; do: {}", meaning.words(), meaning.fix(&port.name))
        }
        None => format!("{name} grew by {by}, meaning not known to linerate"),
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::cpu::{Busy, CpuLoad};
    use linerate_facts::nic::counted::Meaning;
    use linerate_units::{Nanos, Rate};

    use super::super::super::Style;
    use super::*;

    #[test]
    fn ports_that_did_something_have_lines_and_others_are_counted() {
        let load = CpuLoad { cpu: 3, busy: 0.97, interrupts: 0.6, stolen: 0.0 };
        let port = PortChange {
            name: "eth0".to_owned(),
            was_up: true,
            up: true,
            rx: Rate(9_410_000_000),
            rx_packets: 812_345.4,
            interrupts: vec![(1, 40.0), (3, 12_000.0)],
            counted: vec![("rx missed", 12)],
            grown: vec![
                Grown {
                    name: "rx_no_dma_resources".to_owned(),
                    by: 40,
                    meaning: Some(Meaning::RingFull),
                },
                Grown { name: "new_drops".to_owned(), by: 2, meaning: None },
            ],
            ..PortChange::default()
        };
        let quiet = |name: &str| PortChange { name: name.to_owned(), ..PortChange::default() };
        let change = Change {
            time: Nanos(1_000_000_000),
            busy: Some(Busy { cpus: vec![load], processes: Vec::new() }),
            ports: vec![port, quiet("eth1"), quiet("eth2")],
            gaps: Vec::new(),
        };
        insta::assert_snapshot!("host_watch", watch(&change).text(Style::PLAIN));
    }
}
