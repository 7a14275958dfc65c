//! Shows the oddities of a machine: their number, one line for each, then the remedies of those that cost most.

use std::collections::BTreeMap;

use linerate_facts::Inventory;
use linerate_facts::finding::Finding;
use linerate_facts::odd::{self, few};

use super::super::document::Item;
use super::super::finding::{LABELS, parts};
use super::super::{Document, Style, Tone};
use super::looked;

/// Number of lines of a terminal screen.
const SCREEN: usize = 24;
/// Largest number of listed oddities on the first screen: it also has room for the details of the first one.
const LISTED: usize = 9;
/// Largest number of lines for oddities of one id; and of oddities in one line that are shown with details.
const ALIKE: usize = 4;

/// Writes the headline, the list, and details: all of them, or as many as the first screen has room for.
pub(super) fn oddities(doc: &mut Document, inventory: &Inventory, explain: bool) {
    let found = odd::find(inventory);
    let name = &inventory.machine.name;
    let host = if name.is_empty() { String::new() } else { format!("{name}: ") };
    if found.is_empty() {
        return nothing(doc, &host, inventory);
    }
    let text = format!("{host}{}", headline(&found));
    doc.line(&[(Tone::Strong, &text)], 2);
    doc.gap();
    let lines = Line::all(&found);
    let listed = if explain { lines.len() } else { LISTED };
    // A single oddity is not listed: its details say the same.
    if found.len() > 1 {
        list(doc, &lines, listed);
    }
    if explain {
        for line in &lines {
            doc.gap();
            doc.append(details(line, name, ALIKE));
            left(doc, line);
            if !line.is_rest {
                needs(doc, line);
            }
        }
        doc.gap();
        lasting(doc, found.iter());
    } else {
        first_screen(doc, &lines, name);
    }
}

/// Writes that nothing odd was found, and what that is based on: which parts were read, and which were not.
fn nothing(doc: &mut Document, host: &str, inventory: &Inventory) {
    let (read, not_read) = (looked::read(inventory), looked::not_read(inventory));
    if read.is_empty() {
        let text = format!("{host}nothing was read, so that nothing odd was found");
        return doc.line(&[(Tone::Warning, &text)], 2);
    }
    doc.line(&[(Tone::Good, &format!("{host}nothing odd in what was read: {read}"))], 2);
    if !not_read.is_empty() {
        doc.line(&[(Tone::Dim, "Not read: "), (Tone::Plain, &not_read)], 2);
    }
}

/// The headline if something is odd: `9 oddities, read and not measured; 2 (!) limit eth2`.
fn headline(found: &[Finding]) -> String {
    // Only a run measures how much an oddity costs.
    let what = match found.len() {
        1 => "1 oddity, read and not measured".to_owned(),
        n => format!("{n} oddities, read and not measured"),
    };
    let mut ports: Vec<&str> = Vec::new();
    for port in found.iter().flat_map(|odd| &odd.limits) {
        if !ports.contains(&port.as_str()) {
            ports.push(port);
        }
    }
    let ports = few(&ports);
    let limiting = found.iter().filter(|odd| !odd.limits.is_empty()).count();
    match (limiting, found.len()) {
        (0, _) => what,
        (1, 1) => format!("{what}; it limits {ports}"),
        (1, _) => format!("{what}; 1 (!) limits {ports}"),
        (n, _) => format!("{what}; {n} (!) limit {ports}"),
    }
}

/// A line of the list: oddities with the same id and the same text.
struct Line<'a> {
    all: Vec<&'a Finding>,
    /// The text that the oddities have in common.
    what: &'a str,
    /// Whether this line only counts the oddities that have no line of their own.
    is_rest: bool,
}

impl<'a> Line<'a> {
    fn all(found: &'a [Finding]) -> Vec<Self> {
        let sorts = found.chunk_by(|a, b| a.id == b.id);
        sorts.flat_map(Self::of_sort).collect()
    }

    /// The lines for oddities of one id; if there are many different ones, the last line sums up the rest.
    fn of_sort(sort: &'a [Finding]) -> Vec<Self> {
        let mut lines: Vec<Self> = Vec::new();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for odd in sort {
            let what = odd.in_brief();
            let at = *known.entry(what).or_insert(lines.len().min(ALIKE));
            if at == lines.len() {
                let is_rest = at == ALIKE;
                let what = if is_rest { "the same sort of thing" } else { what };
                let all = Vec::new();
                lines.push(Self { all, what, is_rest });
            }
            lines[at].all.push(odd);
        }
        lines
    }

    fn subjects(&self) -> String {
        let names: Vec<&str> = self.all.iter().map(|odd| odd.subject.as_str()).collect();
        few(&names)
    }
}

fn list(doc: &mut Document, lines: &[Line<'_>], most: usize) {
    for line in lines.iter().take(most) {
        let limits = line.all.iter().any(|odd| !odd.limits.is_empty());
        let sign = if limits { "! " } else { "- " };
        let body = [
            (Tone::Warning, sign.to_owned()),
            (Tone::Warning, line.subjects()),
            (Tone::Plain, ": ".to_owned()),
            (Tone::Plain, line.what.to_owned()),
        ];
        let body = body.each_ref().map(|(tone, text)| (*tone, text.as_str()));
        doc.item(Item::new(&body).indent(0, 2));
    }
    let more: usize = lines.iter().skip(most).map(|line| line.all.len()).sum();
    if more > 0 {
        let text = format!("and {more} more");
        doc.item(Item::new(&[(Tone::Dim, &text)]).indent(0, 2));
    }
}

/// Writes the details that fit on the screen below the list, at least those of the first oddity.
fn first_screen(doc: &mut Document, lines: &[Line<'_>], name: &str) {
    /// Number of lines below the details, with the empty line.
    const END: usize = 3;
    let height = |doc: &Document| doc.text(Style::PLAIN).lines().count();
    let mut at = height(doc);
    let mut shown: Vec<&Finding> = Vec::new();
    for line in lines {
        let details = details(line, name, 1);
        at += height(&details) + 1;
        if !shown.is_empty() && at + END > SCREEN {
            break;
        }
        doc.gap();
        doc.append(details);
        shown.extend(line.all.iter().take(1));
    }
    doc.gap();
    lasting(doc, shown.iter().copied());
    let all: usize = lines.iter().map(|line| line.all.len()).sum();
    if shown.len() < all {
        let text = "For the others: ";
        let command = "linerate host --explain";
        doc.line(&[(Tone::Dim, text), (Tone::Plain, command)], 2);
    }
}

/// Writes how long the settings last that the shown commands change, if any command changes one.
fn lasting<'a>(doc: &mut Document, mut shown: impl Iterator<Item = &'a Finding>) {
    if shown.any(|odd| odd.fix.is_lost_at_boot()) {
        let text = "What these commands set lasts until the next boot.";
        doc.line(&[(Tone::Dim, text)], 0);
    }
}

/// Writes how many oddities of a line have no details.
fn left(doc: &mut Document, line: &Line<'_>) {
    let shown = if line.is_rest { 0 } else { ALIKE };
    let more = line.all.len().saturating_sub(shown);
    if more > 0 {
        let text = format!("{more} more like {}: see --json", line.all[0].subject);
        doc.line(&[(Tone::Dim, &text)], 2);
    }
}

/// Why the first oddities of a line matter, and their remedies; at most `most` of them.
fn details(line: &Line<'_>, name: &str, most: usize) -> Document {
    let mut doc = Document::new();
    let most = if line.is_rest { 0 } else { most };
    for odd in line.all.iter().take(most) {
        doc.gap();
        let body = [(Tone::Strong, odd.subject.as_str()), (Tone::Plain, ": ")];
        doc.line(&[&body[..], &[(Tone::Plain, &odd.what)]].concat(), 2);
        parts(&mut doc, odd, LABELS, Some(name).filter(|name| !name.is_empty()));
    }
    doc
}

/// Writes the programs and rights that the remedies need.
fn needs(doc: &mut Document, line: &Line<'_>) {
    let mut needs: Vec<String> = line.all.iter().flat_map(|odd| odd.fix.needs()).collect();
    needs.sort_unstable();
    needs.dedup();
    if !needs.is_empty() {
        doc.entry("Needs", &[(Tone::Plain, &needs.join(", "))], 2);
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::nic::Duplex;

    use super::super::sample::{half_duplex, inventory};
    use super::*;

    fn page(inventory: &Inventory, explain: bool, width: usize) -> String {
        let mut doc = Document::new();
        oddities(&mut doc, inventory, explain);
        let color = false;
        doc.text(Style { width, color })
    }

    /// A machine with `half` half-duplex ports and `damaged` ports that count damaged packets, each another number.
    fn ports(half: u32, damaged: u32) -> Inventory {
        let port = |index: u32| {
            let mut port = half_duplex(index);
            if index >= half {
                port.link.duplex = Some(Duplex::Full);
                port.errors.rx_crc = Some(u64::from(index) + 1);
            }
            port
        };
        let mut inventory = Inventory::default();
        inventory.network.nics = (0..half + damaged).map(port).collect();
        inventory
    }

    #[test]
    fn problem_command_and_host_are_on_the_first_screen() {
        let page = page(&inventory(), false, 80);
        assert!(page.lines().count() <= SCREEN, "{page}");
        for line in [
            "brook: 8 oddities, read and not measured; 3 (!) limit mlx4_0 port 1, eth2",
            "! eth2: switched off: TSO",
            "sudo systemctl start opensm",
            "                undo on brook:",
            "sudo systemctl stop opensm",
            "For the others: linerate host --explain",
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line}: {page}");
        }
    }

    #[test]
    fn there_are_as_many_details_as_a_screen_has_room_for() {
        let shown = |half, damaged| {
            let page = page(&ports(half, damaged), false, 80);
            let fixes = page.lines().filter(|line| line.starts_with("Fix")).count();
            assert!(fixes == 1 || page.lines().count() <= SCREEN, "{page}");
            (fixes, page.contains("For the others: "))
        };
        assert_eq!(shown(1, 0), (1, false));
        assert_eq!(shown(1, 1), (2, false));
        assert_eq!(shown(2, 1), (2, true), "one of two that are alike");
        assert_eq!(shown(0, 2), (2, false));
        assert_eq!(shown(0, 4), (1, true));
    }

    #[test]
    fn no_command_is_wrapped() {
        let inventory = inventory();
        let found = odd::find(&inventory);
        let steps = found.iter().flat_map(|odd| odd.fix.steps.iter().chain(&odd.fix.undo));
        let commands: Vec<&str> = steps.map(|step| step.command.as_str()).collect();
        assert!(commands.iter().any(|command| command.len() > 80));
        for width in [60, 80, 200] {
            let page = page(&inventory, true, width);
            for command in &commands {
                let is_line = page.lines().any(|line| line == *command);
                assert!(is_line, "{command} at {width}: {page}");
            }
        }
    }

    #[test]
    fn a_machine_without_oddities_is_well() {
        let mut well = Inventory::default();
        let unread = "nothing was read, so that nothing odd was found\n";
        assert_eq!(page(&well, false, 80), unread);
        well.machine.name = "brook".to_owned();
        well.network.nics = vec![linerate_facts::nic::Nic::default()];
        assert_eq!(
            page(&well, true, 80),
            "brook: nothing odd in what was read: 1 port\nNot read: CPUs, interrupts, settings, memory modules and 1 more\n"
        );
    }

    #[test]
    fn the_headline_says_how_many_limit_which_ports() {
        let first = |half, damaged| {
            let page = page(&ports(half, damaged), false, 80);
            page.lines().next().unwrap().to_owned()
        };
        assert_eq!(first(0, 1), "1 oddity, read and not measured");
        assert_eq!(first(0, 2), "2 oddities, read and not measured");
        assert_eq!(first(1, 0), "1 oddity, read and not measured; it limits eth0");
        assert_eq!(first(1, 1), "2 oddities, read and not measured; 1 (!) limits eth0");
        assert_eq!(first(2, 1), "3 oddities, read and not measured; 2 (!) limit eth0, eth1");
    }

    #[test]
    fn what_is_alike_shares_a_line_and_of_one_sort_four_lines_are_shown() {
        let page = |half, damaged| page(&ports(half, damaged), false, 80);
        assert_eq!(page(1, 0).matches("half duplex").count(), 1, "no list of one");
        assert!(page(2, 0).contains("\n! eth0, eth1: half duplex"));
        assert!(page(5, 0).contains("\n! eth0, eth1, eth2, eth3 and 1 more: half duplex"));
        assert!(!page(0, 4).contains("the same sort"));
        assert!(page(0, 5).contains(" eth4: the same sort of thing\n"));
        assert!(page(0, 7).contains(" eth4, eth5, eth6: the same sort of thing\n"));
    }

    #[test]
    fn a_list_of_more_than_nine_lines_is_cut() {
        let lines = |n: usize| {
            let odd = Finding::new("", "", "");
            let lines: Vec<Line<'_>> =
                (0..n).map(|_| Line { all: vec![&odd], what: "odd", is_rest: false }).collect();
            let mut doc = Document::new();
            list(&mut doc, &lines, LISTED);
            let page = doc.text(Style::PLAIN);
            (page.lines().count(), page.ends_with("and 1 more\n"))
        };
        assert_eq!(lines(9), (9, false));
        assert_eq!(lines(10), (10, true));
    }

    #[test]
    fn all_are_explained_where_that_is_asked_for() {
        let fixes = |half, damaged| {
            let page = page(&ports(half, damaged), true, 80);
            let fixes = page.lines().filter(|line| line.starts_with("Fix")).count();
            (fixes, page.contains("see --json"))
        };
        assert_eq!(fixes(4, 0), (4, false));
        assert_eq!(fixes(5, 0), (4, true));
        assert_eq!(fixes(2, 4), (6, false));
        assert_eq!(fixes(2, 5), (6, true));
    }
}
