//! Reads the file `/proc/interrupts`.

use linerate_facts::irq::Irq;
use linerate_facts::parse::interrupts;

use super::numbered;
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, MOST, small};

pub(crate) static INTERRUPTS: Format = Format {
    id: "interrupts",
    label: "/proc/interrupts",
    versions: "Linux 3.0 to 6.18",
    evidence: "run here: Linux 6.18 in a virtual machine with two CPUs",
    unknown: "The CPUs that an interrupt is sent to now are not in it: only how often each CPU served it since boot.",
    starts: |at| {
        let mut words = at.line.split_whitespace().take(LOOKED_AT);
        at.line.contains("CPU") && words.all(|word| cpu(word).is_some())
    },
    read,
    ..Format::FACTS
};

/// Number of CPUs that are checked to recognise the heading: a line may have thousands.
const LOOKED_AT: usize = 32;

fn cpu(word: &str) -> Option<u32> {
    small(word.strip_prefix("CPU")?)
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reading = Reading::of(section);
    let lines = std::mem::take(&mut reading.lines);
    let Some(head) = lines.first().copied() else {
        return Err("it is empty".to_owned());
    };
    let ids: Vec<u32> = head.text.split_whitespace().filter_map(cpu).take(MOST).collect();
    reading.facts.processors.cpus = numbered(&ids);
    for line in lines.into_iter().skip(1).take(MOST) {
        match irq(head, ids.len(), line) {
            Ok(irq) => reading.facts.interrupts.irqs.extend(irq),
            Err(()) => reading.strange(line),
        }
    }
    let irqs = &mut reading.facts.interrupts.irqs;
    irqs.sort_by_key(|irq| irq.number);
    irqs.dedup_by_key(|irq| irq.number);
    reading.found("/proc/interrupts")
}

/// The interrupt in a line, or `None` if it has no number; an error if the line is not understood.
fn irq(head: Line<'_>, cpus: usize, line: Line<'_>) -> Result<Option<Irq>, ()> {
    let (label, _) = line.pair().ok_or(())?;
    if label.contains(' ') {
        return Err(());
    }
    // Interrupts of the CPUs themselves have a name instead of a number: `LOC`.
    if small(label).is_none() {
        return Ok(None);
    }
    // The count of each CPU needs at least a blank and a digit.
    if line.text.len() < cpus * 2 {
        return Err(());
    }
    let table = format!("{}\n{}\n", head.text, line.text);
    let irq = interrupts::parse(table.as_bytes()).map_err(|_| ())?.pop();
    Ok(irq.map(|irq| Irq {
        number: irq.number,
        name: irq.name,
        chip: irq.chip,
        total: Some(irq.total),
        busiest: irq.busiest,
        ..Irq::default()
    }))
}
