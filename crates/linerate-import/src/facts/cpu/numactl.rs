//! Reads the output of `numactl --hardware`.

use linerate_units::Bytes;

use super::node;
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, decimal, small};

pub(crate) static NUMACTL: Format = Format {
    id: "numactl",
    label: "numactl -H",
    versions: "numactl 2.0",
    evidence: "run here: numactl 2.0.16 in a virtual machine with one node; published: \
        egandro/proxmox-cpu-affinity issue 58 (two nodes)",
    unknown: "Which CPUs share a core, and what devices belong to a node, are not in it.",
    starts: |at| at.line.starts_with("available: ") && at.line.contains(" nodes ("),
    read,
    ..Format::FACTS
};

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reading = Reading::of(section);
    // Number of columns in the table of distances.
    let mut columns = 0;
    reading.each(|reading, line| {
        if line.number == section.line { Some(()) } else { take(reading, line, &mut columns) }
    });
    if reading.facts.processors.nodes.is_empty() {
        return Err("it ends before the first node".to_owned());
    }
    reading.found("numactl")
}

fn take(reading: &mut Reading<'_>, line: Line<'_>, columns: &mut usize) -> Option<()> {
    let processors = &mut reading.facts.processors;
    if line.text.starts_with("node distances:") {
        return Some(());
    }
    let Some((key, value)) = line.pair() else {
        // The heading of the table of distances: `node   0   1`.
        let numbers = line.trimmed().strip_prefix("node ")?;
        *columns = numbers.split_whitespace().count();
        return Some(());
    };
    let mut words = key.split_whitespace();
    match (words.next()?, words.next(), words.next()) {
        ("node", Some(id), Some(what)) => {
            let node = node(processors, small(id)?)?;
            match what {
                "cpus" => node.cpus = Some(numbers(value)?),
                "size" => node.total = Some(megabytes(value)?),
                "free" => node.free = Some(megabytes(value)?),
                _ => return None,
            }
        }
        (id, None, None) => {
            let distances = numbers(value)?;
            // A truncated row does not show which nodes are missing.
            let is_whole = distances.len() == *columns;
            node(processors, small(id)?)?.distances = is_whole.then_some(distances)?;
        }
        _ => return None,
    }
    Some(())
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split_whitespace().map(small).collect()
}

/// Bytes in a text such as `773271 MB`, where MB are 2^20 bytes.
//= numactl, numactl.c: print_node_cpus and hardware, sizes shifted by 20
fn megabytes(text: &str) -> Option<Bytes> {
    let number = decimal(text.strip_suffix(" MB")?)?;
    number.checked_mul(1 << 20).map(Bytes)
}
