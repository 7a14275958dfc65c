//! Reads the output of `lscpu`.

use linerate_facts::cpu::Cache;
use linerate_units::Bytes;

use super::{node, numbered};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, MOST, decimal, list, lookup, scaled, small};

pub(crate) static LSCPU: Format = Format {
    id: "lscpu",
    label: "lscpu",
    versions: "util-linux 2.20 to 2.41",
    evidence: "run here: lscpu 2.38.1 in a virtual machine, and on a server's files of hwloc's tests; \
        published: OpenNebula/one issue 3256 (an old version, four nodes)",
    unknown: "Which CPUs share a core or a package is not in it: lscpu -e has that.",
    starts: |at| {
        // Often only the lines about NUMA nodes are pasted: `lscpu | grep NUMA`.
        let is_node = at.line.starts_with("NUMA node") && at.line.contains("(s):");
        at.line.starts_with("Architecture:") || is_node
    },
    read,
    ..Format::FACTS
};

/// Names of hypervisors in lscpu, each with the name that linerate uses.
//= util-linux, sys-utils/lscpu-virt.c: hv_vendors
const HYPERVISORS: [(&str, &str); 8] = [
    ("KVM", "KVM"),
    ("Microsoft", "Hyper-V"),
    ("VMware", "VMware"),
    ("Xen", "Xen"),
    ("Windows Subsystem for Linux", "Hyper-V"),
    ("oracle", "VirtualBox"),
    ("Parallels", "Parallels"),
    ("IBM", "IBM"),
];

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reading = Reading::of(section);
    // Number of CPUs that may still be assigned to nodes.
    let mut left = MOST;
    let mut count = None;
    reading.each(|reading, line| {
        if let Some(("CPU(s)", value)) = line.pair() {
            count = small(value).filter(|count| *count as usize <= MOST);
            return Some(());
        }
        take(reading, &mut left, line)
    });
    // After `lscpu | grep "CPU(s)"` only the number of CPUs may be known.
    let processors = &mut reading.facts.processors;
    if let Some(count) = count.filter(|_| processors.cpus.is_empty()) {
        processors.cpus = numbered(&(0..count).collect::<Vec<u32>>());
    }
    let count = reading.facts.processors.cpus.len();
    for cache in &mut reading.facts.processors.caches {
        cache.shared_by = count.checked_div(cache.count).unwrap_or(0);
    }
    // If a cache is shared unevenly, the number of CPUs that share it is unknown: it is left out.
    reading.facts.processors.caches.retain(|cache| cache.shared_by * cache.count == count);
    reading.found("lscpu")
}

/// Reads a line; `None` if it is not understood. Most lines have no fact that linerate uses.
fn take(reading: &mut Reading<'_>, left: &mut usize, line: Line<'_>) -> Option<()> {
    let Some((key, value)) = line.pair() else {
        // A line of flags that was wrapped.
        return line.is_indented().then_some(());
    };
    let processors = &mut reading.facts.processors;
    let numa = key.strip_prefix("NUMA node").and_then(|key| key.strip_suffix(" CPU(s)"));
    match key {
        "Model name" => value.clone_into(&mut processors.model),
        "On-line CPU(s) list" => processors.cpus = numbered(&list(value)?),
        "Off-line CPU(s) list" => processors.offline = list(value)?,
        "Frequency boost" => match value {
            "enabled" => processors.turbo = Some(true),
            "disabled" => processors.turbo = Some(false),
            _ => return None,
        },
        "Hypervisor vendor" => {
            let platform = &mut reading.facts.machine.platform;
            platform.guest = Some(true);
            platform.hypervisor = lookup(&HYPERVISORS, value).unwrap_or("");
        }
        _ if numa.is_some() => {
            let id = small(numa?)?;
            let ids = list(value).filter(|ids| ids.len() <= *left)?;
            *left -= ids.len();
            node(processors, id)?.cpus = Some(ids);
        }
        _ => {
            // lscpu before 2.34 does not print the number of instances.
            let cache = key.strip_suffix(" cache").and_then(|name| cache(name, value));
            processors.caches.extend(cache.filter(|_| processors.caches.len() < 16));
        }
    }
    Some(())
}

/// Reads the name `L1d` and the value `96 KiB (2 instances)`, which is the size of all instances together.
fn cache(name: &str, value: &str) -> Option<Cache> {
    let name = name.strip_prefix('L')?;
    let (level, kind) = name.split_at_checked(1)?;
    let kind = match kind {
        "d" => "Data",
        "i" => "Instruction",
        "" => "Unified",
        _ => return None,
    };
    let (size, count) = value.split_once(" (")?;
    let count = decimal(count.split(' ').next()?)?;
    let (number, unit) = size.split_once(' ')?;
    let unit = lookup(&[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)], unit)?;
    // Sizes of all instances may be rounded: 1.3 MiB over 40 instances is not a whole number of bytes.
    let all = scaled(number, unit)?;
    let is_exact = !number.contains('.') && all.checked_rem(count)? == 0;
    Some(Cache {
        level: small(level)?,
        kind: kind.to_owned(),
        size: Bytes(is_exact.then(|| all / count)?),
        shared_by: 0,
        count: usize::try_from(count).ok()?,
    })
}
