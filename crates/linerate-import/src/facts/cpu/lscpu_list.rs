//! Reads the output of `lscpu -e`: one line for each CPU.

use std::collections::BTreeMap;

use linerate_facts::cpu::Cpu;

use super::node;
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{MOST, small};

pub(crate) static LSCPU_LIST: Format = Format {
    id: "lscpu-list",
    label: "lscpu -e",
    versions: "util-linux 2.20 to 2.41",
    evidence: "run here: lscpu 2.38.1 in a virtual machine, and on two servers' files of hwloc's tests",
    unknown: "The model of the CPUs is not in it.",
    starts: |at| {
        let is_head = at.line.contains(" CORE") && !at.line.contains(':');
        at.line.starts_with("CPU ") && is_head || at.line.starts_with("CPU NODE ")
    },
    read,
    ..Format::FACTS
};

/// Largest number of CPUs (hardware threads) of one core.
const THREADS: usize = 64;

/// Places of the columns that are read.
#[derive(Default)]
struct Columns {
    node: Option<usize>,
    socket: Option<usize>,
    core: Option<usize>,
    online: Option<usize>,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reading = Reading::of(section);
    let lines = std::mem::take(&mut reading.lines);
    let names: Vec<&str> =
        lines.first().map(|line| line.text.split_whitespace().collect()).unwrap_or_default();
    let at = |name: &str| names.iter().position(|known| *known == name);
    let columns =
        Columns { node: at("NODE"), socket: at("SOCKET"), core: at("CORE"), online: at("ONLINE") };
    let mut cores: BTreeMap<(Option<u32>, u32), Vec<u32>> = BTreeMap::new();
    for line in lines.into_iter().skip(1).take(MOST) {
        let fields: Vec<&str> = line.text.split_whitespace().collect();
        if cpu(&mut reading, &columns, &fields, &mut cores).is_none() {
            reading.strange(line);
        }
    }
    let processors = &mut reading.facts.processors;
    if processors.cpus.is_empty() {
        return Err("it ends before the first CPU".to_owned());
    }
    processors.cpus.sort_by_key(|cpu| cpu.id);
    processors.cpus.dedup_by_key(|cpu| cpu.id);
    for core in cores.values_mut() {
        core.sort_unstable();
        core.dedup();
    }
    cores.retain(|_, core| core.len() <= THREADS);
    let of: BTreeMap<u32, &Vec<u32>> =
        cores.values().flat_map(|core| core.iter().map(move |cpu| (*cpu, core))).collect();
    for cpu in &mut processors.cpus {
        cpu.siblings = of.get(&cpu.id).map(|core| (*core).clone()).unwrap_or_default();
    }
    reading.found("lscpu")
}

fn cpu(
    reading: &mut Reading<'_>,
    columns: &Columns,
    fields: &[&str],
    cores: &mut BTreeMap<(Option<u32>, u32), Vec<u32>>,
) -> Option<()> {
    let processors = &mut reading.facts.processors;
    let id = small(fields.first()?)?;
    let number = |column: Option<usize>| small(fields.get(column?)?);
    if columns.online.and_then(|at| fields.get(at)) == Some(&"no") {
        processors.offline.push(id);
        return Some(());
    }
    let package = number(columns.socket);
    if let Some(core) = number(columns.core) {
        cores.entry((package, core)).or_default().push(id);
    }
    if let Some(of) = number(columns.node) {
        node(processors, of)?.cpus.get_or_insert_default().push(id);
    }
    processors.cpus.push(Cpu { id, package, ..Cpu::default() });
    Some(())
}
