//! The page of one machine; its oddities come first.

use linerate_facts::cpu::{Busy, Cache, Clock, Cpu, CpuLoad, IdleState, Processors};
use linerate_facts::memory::{Memory, Module};
use linerate_facts::odd::ranges;
use linerate_facts::{Inventory, machine::Machine};
use linerate_units::{Hertz, Transfers};

use super::super::Document;
use super::super::words::count;
use super::{disks, foot, more, odd, pci, ports, put};

/// Least share of a CPU that a process must use to be shown.
const SHOWN: f64 = 0.05;

/// The page of a machine. With `explain` it shows all details of all oddities, and all unknown facts.
pub fn page(inventory: &Inventory, explain: bool) -> Document {
    let mut doc = Document::new();
    odd::oddities(&mut doc, inventory, explain);
    doc.gap();
    machine(&mut doc, &inventory.machine, &inventory.processors);
    doc.gap();
    processors(&mut doc, &inventory.processors);
    nodes(&mut doc, &inventory.processors);
    doc.gap();
    memory(&mut doc, &inventory.memory);
    doc.gap();
    pci::tree(&mut doc, &inventory.pci);
    doc.gap();
    ports::ports(&mut doc, inventory);
    doc.gap();
    ports::infiniband(&mut doc, inventory);
    doc.gap();
    disks::disks(&mut doc, inventory);
    disks::filesystems(&mut doc, &inventory.storage);
    doc.gap();
    if let Some(busy) = &inventory.busy {
        self::busy(&mut doc, "Busy now", busy);
        doc.gap();
    }
    foot::settings(&mut doc, &inventory.tunables);
    doc.gap();
    foot::unknown(&mut doc, &inventory.gaps, explain);
    doc
}

fn machine(doc: &mut Document, machine: &Machine, processors: &Processors) {
    let named = [&machine.name, &machine.vendor, &machine.product];
    let named: Vec<&str> =
        named.into_iter().map(String::as_str).filter(|t| !t.is_empty()).collect();
    put(doc, "Machine", &or_unknown(named.join(", "), "of unknown make"));
    let platform = &machine.platform;
    let by = [platform.hypervisor, platform.cloud];
    let by: Vec<&str> = by.into_iter().filter(|t| !t.is_empty()).collect();
    let by = by.join(", ");
    let stands = match (platform.guest, by.as_str()) {
        (Some(true), "") => "a virtual machine".to_owned(),
        (Some(true), by) => format!("a virtual machine ({by})"),
        (Some(false), "") => "not a virtual machine".to_owned(),
        (Some(false), by) => format!("a whole machine ({by})"),
        (None, _) => "whether it is virtual is unknown".to_owned(),
    };
    let mut parts = vec![stands];
    parts.extend(machine.container.iter().map(|c| format!("signs of a container ({c})")));
    parts.extend(machine.cpu_quota.map(|q| format!("quota of {q:.2} CPUs")));
    let allowed = &machine.cpus_allowed;
    if !allowed.is_empty() && allowed.len() < processors.cpus.len() {
        parts.push(format!("may run on CPUs {}", ranges(allowed)));
    }
    parts.extend(machine.memory_limit.map(|m| format!("memory limit {m}")));
    if !machine.kernel.is_empty() {
        parts.push(format!("Linux {}", machine.kernel));
    }
    if !machine.clock_source.is_empty() {
        parts.push(format!("time from {}", machine.clock_source));
    }
    more(doc, &parts.join(", "));
}

fn or_unknown(text: String, unknown: &str) -> String {
    if text.is_empty() { unknown.to_owned() } else { text }
}

fn processors(doc: &mut Document, all: &Processors) {
    if all.cpus.is_empty() && all.model.is_empty() {
        put(doc, "CPUs", "unknown");
        return;
    }
    let mut parts = vec![count(all.cpus.len() as u64, "CPU")];
    parts.extend(all.cores().map(|n| count(n as u64, "core")));
    parts.extend(all.packages().map(|n| count(n as u64, "package")));
    put(
        doc,
        "CPUs",
        &format!("{}: {}", parts.join(", "), or_unknown(all.model.clone(), "model unknown")),
    );
    for kind in &all.kinds {
        more(doc, &format!("{}: CPUs {}", kind.name, ranges(&kind.cpus)));
    }
    for (clock, cpus) in all.clocks() {
        more(doc, &clock_line(&clock, &cpus, &all.cpus));
    }
    if let Some(on) = all.turbo {
        more(doc, if on { "turbo on" } else { "turbo off" });
    }
    let caches: Vec<String> = all.caches.iter().map(cache_words).collect();
    put_list(doc, "caches:", &caches);
    let idle: Vec<String> = all.idle.iter().map(idle_words).collect();
    put_list(doc, "idle states (time to wake):", &idle);
    for (what, cpus) in [("isolated", &all.isolated), ("offline", &all.offline)] {
        if !cpus.is_empty() {
            more(doc, &format!("{what}: {}", ranges(cpus)));
        }
    }
}

fn cache_words(cache: &Cache) -> String {
    let kind = match cache.kind.as_str() {
        "Data" => "d",
        "Instruction" => "i",
        _ => "",
    };
    let Cache { level, count: n, size, .. } = cache;
    let shared = count(cache.shared_by as u64, "CPU");
    format!("L{level}{kind} {n} x {size} ({shared})")
}

fn idle_words(state: &IdleState) -> String {
    let off = if state.disabled { " off" } else { "" };
    format!("{} {}{off}", state.name, state.latency)
}

fn put_list(doc: &mut Document, what: &str, parts: &[String]) {
    if !parts.is_empty() {
        more(doc, &format!("{what} {}", parts.join(", ")));
    }
}

fn clock_line(clock: &Clock, cpus: &[u32], all: &[Cpu]) -> String {
    let mut parts = Vec::new();
    parts.extend(clock.nominal.map(|c| format!("nominal {c}")));
    parts.extend(clock.max.map(|c| format!("up to {c}")));
    parts.extend(clock.limit.filter(|l| Some(*l) != clock.max).map(|c| format!("allowed {c}")));
    let now = |cpu: &Cpu| cpu.clock.now.filter(|_| cpus.contains(&cpu.id));
    let now: Vec<Hertz> = all.iter().filter_map(now).collect();
    if let (Some(low), Some(high)) = (now.iter().min(), now.iter().max()) {
        let (low, high) = (low.to_string(), high.to_string());
        parts.push(if low == high { format!("now {low}") } else { format!("now {low} to {high}") });
    }
    if !clock.governor.is_empty() {
        parts.push(format!("governor {} ({})", clock.governor, clock.driver));
    }
    if !clock.preference.is_empty() {
        parts.push(format!("preference {}", clock.preference));
    }
    format!("CPUs {}: {}", ranges(cpus), parts.join(", "))
}

fn nodes(doc: &mut Document, all: &Processors) {
    for (i, node) in all.nodes.iter().enumerate() {
        let mut parts = vec![match node.cpus.as_deref() {
            None => "CPUs unknown".to_owned(),
            Some([]) => "no CPUs".to_owned(),
            Some(cpus) => format!("CPUs {}", ranges(cpus)),
        }];
        parts.extend(node.total.map(|t| match node.free {
            Some(free) => format!("{t} of memory, {free} free"),
            None => format!("{t} of memory"),
        }));
        if node.distances.len() > 1 {
            let distances: Vec<String> = node.distances.iter().map(u32::to_string).collect();
            parts.push(format!("distances {}", distances.join(" ")));
        }
        let label = if i == 0 { "Nodes" } else { "" };
        put(doc, label, &format!("{}: {}", node.id, parts.join(", ")));
    }
}

fn memory(doc: &mut Document, memory: &Memory) {
    let mut parts = vec![memory.total.map_or("unknown".to_owned(), |t| t.to_string())];
    parts.extend(memory.available.map(|a| format!("{a} available")));
    if let (Some(pages), Some(size)) = (memory.huge_pages, memory.huge_page) {
        parts.push(format!("{} of {size}", count(pages, "huge page")));
    }
    put(doc, "Memory", &parts.join(", "));
    let Some(modules) = &memory.modules else {
        return;
    };
    let filled = modules.iter().filter(|m| m.size.is_some()).count();
    more(doc, &format!("{filled} of {} hold a module", count(modules.len() as u64, "slot")));
    let mut sorts: Vec<(String, Vec<&str>)> = Vec::new();
    for module in modules.iter().filter(|m| m.size.is_some()) {
        let words = module_words(module);
        match sorts.iter_mut().find(|(w, _)| *w == words) {
            Some((_, places)) => places.push(&module.locator),
            None => sorts.push((words, vec![&module.locator])),
        }
    }
    for (words, places) in sorts {
        more(doc, &format!("{} x {words}: {}", places.len(), places.join(", ")));
    }
}

fn module_words(module: &Module) -> String {
    let mut parts: Vec<String> = module.size.iter().map(ToString::to_string).collect();
    if !module.kind.is_empty() {
        parts.push(module.kind.to_owned());
    }
    parts.extend(module.now.or(module.rated).map(Transfers::mega));
    let slower = module.rated.filter(|r| module.now.is_some_and(|now| now != *r));
    parts.extend(slower.map(|r| format!("(rated {})", r.mega())));
    parts.extend(module.width_bits.map(|w| format!("{w} bits")));
    if module.ecc == Some(true) {
        parts.push("ECC".to_owned());
    }
    parts.extend(module.ranks.map(|r| count(u64::from(r), "rank")));
    parts.join(" ")
}

pub(super) fn busy(doc: &mut Document, label: &str, busy: &Busy) {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mean = busy.cpus.iter().map(|l| l.busy).sum::<f64>() / busy.cpus.len().max(1) as f64;
    let most: Option<&CpuLoad> = busy.cpus.iter().max_by(|a, b| a.busy.total_cmp(&b.busy));
    let mut parts = vec![format!("CPUs {} on average", percent(mean))];
    parts.extend(most.map(|l| {
        format!("most: CPU {} {} ({} in interrupts)", l.cpu, percent(l.busy), percent(l.interrupts))
    }));
    put(doc, label, &parts.join(", "));
    for process in busy.processes.iter().filter(|p| p.cpus >= SHOWN) {
        let text = format!(
            "{} ({}) {} of a CPU, last on CPU {}",
            process.name,
            process.pid,
            percent(process.cpus),
            process.last_cpu
        );
        more(doc, &text);
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::nic::Nic;

    use super::super::super::Style;
    use super::super::sample::{half_duplex, inventory};
    use super::*;

    fn text(inventory: &Inventory, style: Style) -> String {
        page(inventory, false).text(style)
    }

    #[test]
    fn what_is_odd_comes_first() {
        let plain = text(&inventory(), Style::PLAIN);
        assert!(
            plain.starts_with("brook: 8 oddities, read and not measured; 3 (!) limit"),
            "{plain}"
        );
        insta::assert_snapshot!("host_page", plain);
        for width in [40, 60, 200] {
            let style = Style { width, color: false };
            insta::assert_snapshot!(format!("host_page_{width}"), text(&inventory(), style));
        }
        insta::assert_snapshot!("host_page_markdown", page(&inventory(), false).markdown());
        let explained = page(&inventory(), true).text(Style::PLAIN);
        insta::assert_snapshot!("host_page_explained", explained);
    }

    #[test]
    fn many_ports_that_are_alike_stay_readable() {
        let card = |index: u32| Nic {
            driver: "iavf".to_owned(),
            pci: format!("0000:03:{:02x}.0", index % 32),
            node: Some(0),
            ..half_duplex(index)
        };
        let page = |ports: u32| {
            let mut inventory = Inventory::default();
            inventory.network.nics = (0..ports).map(card).collect();
            text(&inventory, Style::PLAIN)
        };
        let few = page(4);
        assert!(few.contains("eth3: iavf"), "{few}");
        assert!(few.contains("\n! eth0, eth1, eth2, eth3: half duplex"), "{few}");
        let many = page(600);
        assert!(many.contains("and 596 more: half duplex"), "{many}");
        let words: Vec<&str> = many.split_whitespace().collect();
        let line = "eth3 and 596 more: iavf, 1 Gb/s, half duplex, up, node 0";
        assert!(words.join(" ").contains(line), "{many}");
        assert!(many.lines().count() < 40, "{many}");
    }

    #[test]
    fn of_a_machine_that_tells_nothing_nothing_is_said() {
        insta::assert_snapshot!("host_page_empty", text(&Inventory::default(), Style::PLAIN));
    }
}
