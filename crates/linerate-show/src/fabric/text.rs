//! An InfiniBand network as text: what is wrong and what helps, then this host's port, managers and links.

use std::collections::BTreeMap;

use linerate_fabric::finding::full;
use linerate_fabric::network::{Network, Port, PortAt};
use linerate_facts::finding::Finding;
use linerate_facts::infiniband::{LinkState, PhysicalState};

use super::super::finding::{LABELS, parts};
use super::super::{Document, Tone};
use super::Walked;

/// Number of findings that a page without `--explain` shows with details.
const DETAILED: usize = 2;
/// Number of further findings that are listed below, with one line each.
const LISTED: usize = 8;
/// Largest number of links that are listed.
const LISTED_LINKS: usize = 16;
/// Largest number of lines about requests without a useful reply, by attribute and reason.
const GAP_LINES: usize = 4;

/// The page of `linerate fabric`; `explain` shows the details of all findings.
pub fn page(walked: &Walked, explain: bool) -> Document {
    let mut doc = Document::new();
    headline(&mut doc, walked);
    findings(&mut doc, &walked.findings, explain);
    doc.gap();
    own(&mut doc, &walked.network);
    managers(&mut doc, &walked.network);
    links(&mut doc, &walked.network, explain);
    doc.gap();
    foot(&mut doc, walked);
    doc
}

/// One line for each problem, for use in scripts.
pub fn check(walked: &Walked) -> Document {
    let mut doc = Document::new();
    headline(&mut doc, walked);
    for finding in walked.findings.iter().filter(|finding| finding.is_now()) {
        line(&mut doc, finding);
    }
    for at in full(&walked.network).into_iter().take(LISTED) {
        let name = walked.network.name(at);
        doc.line(&[(Tone::Plain, &format!("{name}: a counter of errors is full"))], 2);
    }
    doc
}

fn line(doc: &mut Document, finding: &Finding) {
    let text = format!("{}: {} ({})", finding.subject, finding.what, finding.id);
    doc.line(&[(Tone::Plain, &text)], 2);
}

fn headline(doc: &mut Document, walked: &Walked) {
    let (tone, text) = answer(walked);
    doc.line(&[(tone, &text)], 2);
}

/// The state of the network in one sentence, and its tone.
pub(super) fn answer(walked: &Walked) -> (Tone, String) {
    let network = &walked.network;
    let size = size(network);
    let now = walked.findings.iter().filter(|f| f.is_now()).count();
    match (network.nodes.is_empty(), now) {
        (true, _) => (Tone::Warning, "no node answered: the network is unknown".to_owned()),
        (false, 0) if !walked.whole => (
            Tone::Warning,
            format!("no problem found so far in a network of {size}; the walk was cut short"),
        ),
        (false, 0) if !walked.knows_own_port() => {
            (Tone::Warning, "this host's port did not answer: the network is unknown".to_owned())
        }
        (false, 0) if !network.ports().any(|(_, port)| port.counters.len() > 1) => (
            Tone::Warning,
            format!("no problem found in a network of {size}; whether errors rise was not read"),
        ),
        (false, 0) if !full(network).is_empty() => (
            Tone::Warning,
            format!(
                "no problem found in a network of {size}, but counters of {} are full and show no new errors",
                count(full(network).len(), "port", "ports")
            ),
        ),
        (false, 0) if !walked.findings.is_empty() => {
            (Tone::Plain, format!("no problem goes on in a network of {size}"))
        }
        (false, 0) if !network.gaps.is_empty() => (
            Tone::Warning,
            format!("no problem found in a network of {size}, as far as it answered"),
        ),
        (false, 0) => (Tone::Good, format!("nothing is wrong with this network: {size}")),
        (false, 1) => (Tone::Strong, format!("1 problem in a network of {size}")),
        (false, n) => (Tone::Strong, format!("{n} problems in a network of {size}")),
    }
}

pub(super) fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn size(network: &Network) -> String {
    let switches = network.nodes.iter().filter(|node| node.is_switch()).count();
    let hosts = (0..network.nodes.len()).filter(|node| network.is_host(*node)).count();
    let links = network.links().count();
    format!(
        "{}, {}, {}",
        count(switches, "switch", "switches"),
        count(hosts, "host", "hosts"),
        count(links, "link", "links")
    )
}

fn findings(doc: &mut Document, all: &[Finding], explain: bool) {
    let detailed = if explain { all.len() } else { DETAILED };
    for finding in all.iter().take(detailed) {
        doc.gap();
        detail(doc, finding);
    }
    let rest = all.get(detailed..).unwrap_or_default();
    if rest.is_empty() {
        return;
    }
    doc.gap();
    for finding in rest.iter().take(LISTED) {
        line(doc, finding);
    }
    let left = rest.len().saturating_sub(LISTED);
    if left > 0 {
        doc.line(&[(Tone::Dim, &format!("and {left} more: --explain shows all"))], 2);
    }
}

fn detail(doc: &mut Document, finding: &Finding) {
    let certainty = finding.certainty.name();
    let head = format!("{} ({}) [{certainty}]", finding.id, finding.subject);
    doc.heading(&head);
    doc.entry("What", &[(Tone::Strong, &finding.what)], 2);
    parts(doc, finding, LABELS, None);
    if finding.fix.is_lost_at_boot() {
        let text = "This lasts until the next boot.";
        doc.detail(&[(Tone::Dim, text)], 0);
    }
}

/// Writes the state of this host's port.
fn own(doc: &mut Document, network: &Network) {
    let Some((own, port)) = network.own().and_then(|own| Some((own, network.port(own)?))) else {
        return;
    };
    let guid = port.guid.map_or_else(String::new, |guid| format!(", GUID {guid}"));
    doc.entry("This port", &[(Tone::Strong, &network.name(own)), (Tone::Plain, &guid)], 2);
    doc.detail(&[(Tone::Plain, &condition(port))], 2);
    if let Some(peer) = port.peer {
        doc.detail(&[(Tone::Plain, &format!("its cable ends in {}", network.name(peer)))], 2);
    }
}

/// State, speed and LIDs of a port: `Active, 4x FDR (54.5 Gb/s of data), LID 3, manager LID 1`.
fn condition(port: &Port) -> String {
    let Some(info) = port.info else {
        return "unknown: the port did not answer".to_owned();
    };
    let state = info.state.map_or("unknown", LinkState::name);
    let physical = info.physical.map_or("unknown", PhysicalState::name);
    let mut parts = vec![format!("{state} ({physical})")];
    parts.extend(port.lanes().map(|lanes| lanes.to_string()));
    let lid = |name: &str, lid| match lid {
        0 => format!("no {name}"),
        lid => format!("{name} {lid}"),
    };
    parts.push(lid("LID", info.lid));
    parts.push(match info.manager_lid {
        0 => "no manager".to_owned(),
        lid => format!("manager at LID {lid}"),
    });
    parts.join(", ")
}

/// Number of lanes of a port's link, in words.
pub(super) fn lanes(port: &Port) -> String {
    let lanes = port.lanes().map(|lanes| lanes.to_string());
    lanes.unwrap_or_else(|| "unknown".to_owned())
}

fn managers(doc: &mut Document, network: &Network) {
    let mut label = "Manager";
    for (node, of) in network.managers() {
        let state = of.state.name();
        let text = format!("{}: {state}, priority {}", network.nodes[node].name(), of.priority);
        doc.entry(label, &[(Tone::Plain, &text)], 2);
        label = "";
    }
    if label == "Manager" && !network.nodes.is_empty() {
        let own = network.own().and_then(|own| network.port(own)?.info);
        let text = match own.map_or(0, |info| info.manager_lid) {
            0 => "none found on this network".to_owned(),
            lid => format!("at LID {lid}; its state is unknown"),
        };
        doc.entry(label, &[(Tone::Warning, &text)], 2);
    }
}

fn links(doc: &mut Document, network: &Network, explain: bool) {
    let all: Vec<(PortAt, PortAt)> = network.links().collect();
    if all.is_empty() {
        return;
    }
    doc.gap();
    if all.len() <= LISTED_LINKS || explain {
        return each(doc, network, &all);
    }
    let mut sorts: BTreeMap<String, usize> = BTreeMap::new();
    for (at, _) in &all {
        let port = network.port(*at);
        let words = port.map_or_else(String::new, lanes);
        *sorts.entry(words).or_default() += 1;
    }
    let mut label = "Links";
    for (words, n) in sorts {
        doc.entry(label, &[(Tone::Plain, &format!("{n} at {words}"))], 2);
        label = "";
    }
    doc.detail(&[(Tone::Dim, "--explain lists them")], 0);
}

fn each(doc: &mut Document, network: &Network, all: &[(PortAt, PortAt)]) {
    let mut label = "Links";
    for (at, peer) in all {
        let port = network.port(*at);
        let speed = port.map_or_else(String::new, lanes);
        let state = port.and_then(|port| port.info?.state).map_or("unknown", LinkState::name);
        let text = format!("{} - {}: {speed}, {state}", network.name(*at), network.name(*peer));
        doc.entry(label, &[(Tone::Plain, &text)], 2);
        label = "";
    }
}

fn foot(doc: &mut Document, walked: &Walked) {
    let nodes = count(walked.network.nodes.len(), "node", "nodes");
    let text = format!(
        "asked through {}: {nodes}, {} in {}",
        walked.through,
        count(walked.requests as usize, "request", "requests"),
        walked.took
    );
    doc.line(&[(Tone::Dim, &text)], 2);
    unknown(doc, &walked.network);
    if !walked.whole {
        doc.line(
            &[(
                Tone::Warning,
                "The walk was cut short, or its file is: what is not shown is unknown.",
            )],
            2,
        );
    }
}

/// Writes the requests without a useful reply, grouped by attribute and reason.
fn unknown(doc: &mut Document, network: &Network) {
    let mut sorts: BTreeMap<(&str, String), (String, usize)> = BTreeMap::new();
    for gap in &network.gaps {
        let at = match (gap.node, gap.from) {
            (Some(node), _) => network.nodes[node].name(),
            (None, Some(from)) => format!("the node across the cable of {}", network.name(from)),
            (None, None) => "this host's port".to_owned(),
        };
        let sort = sorts.entry((gap.what, gap.why.to_string()));
        sort.or_insert((at, 0)).1 += 1;
    }
    let mut label = "Unknown";
    for ((what, why), (at, n)) in sorts.iter().take(GAP_LINES) {
        let more = match n - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!("{what} of {at}{more}: {why}");
        doc.entry(label, &[(Tone::Warning, &text)], 2);
        label = "";
    }
    let left = sorts.len().saturating_sub(GAP_LINES);
    if left > 0 {
        doc.detail(&[(Tone::Dim, &format!("and {left} more sorts: --json lists all"))], 2);
    }
}
