//! Reads the output of `ifconfig` of Linux (old and new layout), of macOS and of the BSDs.

use super::{Shown, has_all, keep};
use crate::facts::lines::{Reading, is_prompt};
use crate::format::{Format, Found, Section};
use crate::reading::{Line, MOST, decimal, small};

pub(crate) static IFCONFIG: Format = Format {
    id: "ifconfig",
    label: "ifconfig",
    versions: "net-tools 1.60 and 2.10, macOS",
    evidence: "run here: net-tools 2.10: loopback and a virtio port; the older form and that of macOS are made \
        up after their manuals",
    unknown: "Driver, speed and settings of a port are not in it; neither is its kind.",
    starts: |at| {
        (at.line.contains("flags=") || at.line.contains("Link encap:")) && head(at.line).is_some()
    },
    read,
    ..Format::FACTS
};

/// First index for ports that the output does not number: no kernel uses such indices.
const UNNUMBERED: u32 = 1 << 31;

/// Reads the first line of a port: `eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500`, or `eth0      Link
/// encap:Ethernet  HWaddr ...`.
fn head(line: &str) -> Option<Shown> {
    let name = line.split([' ', ':']).next().filter(|name| !name.is_empty())?;
    let rest = line[name.len()..].trim_start_matches(':').trim_start();
    let mut port = Shown::default();
    name.clone_into(&mut port.nic.name);
    if let Some(kind) = rest.strip_prefix("Link encap:") {
        port.hardware = hardware(kind.split("  ").next().unwrap_or(""));
        return Some(port);
    }
    let (flags, rest) = rest.strip_prefix("flags=")?.split_once('<')?.1.split_once('>')?;
    port.nic.up = has_all(flags.split(','), ["UP", "RUNNING"]);
    port.nic.mtu =
        rest.split_once("mtu ").and_then(|(_, mtu)| small(mtu.split_whitespace().next()?));
    Some(port)
}

/// The kind of hardware, by the name that `ip` uses.
fn hardware(name: &str) -> String {
    let lower = name.trim().to_ascii_lowercase();
    let known =
        [("local loopback", "loopback"), ("ethernet", "ether"), ("infiniband", "infiniband")];
    let found = known.iter().find(|(theirs, _)| lower.starts_with(theirs));
    found.map_or(String::new(), |(_, own)| (*own).to_owned())
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let ends = |line: &str| is_prompt(line) && head(line).is_none();
    let mut reading = Reading::until(section, ends);
    let mut all: Vec<Shown> = Vec::new();
    for line in std::mem::take(&mut reading.lines) {
        if let Some(mut port) = head(line.text).filter(|_| !line.is_indented()) {
            if all.len() >= MOST {
                reading.notes.at(line.number, "further ports are left out");
                break;
            }
            port.nic.index = UNNUMBERED + all.len() as u32;
            all.push(port);
        } else if !all.last_mut().is_some_and(|port| take(port, line)) {
            reading.strange(line);
        }
    }
    keep(&mut reading.facts, &all);
    reading.found("ifconfig")
}

/// Reads a line about a port; `false` if it is not indented. Most lines have no fact that linerate uses.
fn take(port: &mut Shown, line: Line<'_>) -> bool {
    let text = line.trimmed();
    let mut words = text.split_whitespace();
    match words.next().unwrap_or("") {
        "RX" | "TX" => counts(port, text),
        "inet" => address(port, words.next()),
        "loop" => "loopback".clone_into(&mut port.hardware),
        first @ ("ether" | "infiniband") => first.clone_into(&mut port.hardware),
        "status:" => port.nic.up &= words.next() == Some("active"),
        "UP" | "BROADCAST" => {
            let flags = || text.split_whitespace();
            port.nic.up = has_all(flags(), ["UP", "RUNNING"]);
            port.nic.mtu = flags().find_map(|word| small(word.strip_prefix("MTU:")?));
        }
        _ => {}
    }
    line.is_indented()
}

/// Reads an address: `inet 192.0.2.1  netmask ...`, or `inet addr:192.0.2.1  Bcast:...`.
fn address(port: &mut Shown, word: Option<&str>) {
    let word = word.map(|word| word.strip_prefix("addr:").unwrap_or(word));
    let all = port.addresses.get_or_insert_default();
    let is_own = |word: &&str| !word.starts_with("127.") && all.len() < MOST;
    if let Some(word) = word.filter(is_own) {
        all.push(word.to_owned());
    }
}

/// Reads counters: `RX errors 0  dropped 12  overruns 0  frame 0`, or `RX packets:123 errors:0 dropped:12`.
fn counts(port: &mut Shown, text: &str) {
    let spaced = text.replace(':', " ");
    let mut words = spaced.split_whitespace();
    let table = words.next().unwrap_or("");
    let words: Vec<&str> = words.collect();
    for pair in words.windows(2) {
        let (name, Some(value)) = (pair[0], decimal(pair[1])) else {
            continue;
        };
        let errors = &mut port.nic.errors;
        let into = match (table, name) {
            ("RX", "packets") => &mut errors.rx_packets,
            ("RX", "errors") => &mut errors.rx_errors,
            ("RX", "dropped") => &mut errors.rx_dropped,
            ("RX", "overruns") => &mut errors.rx_fifo,
            ("RX", "frame") => &mut errors.rx_crc,
            ("TX", "errors") => &mut errors.tx_errors,
            ("TX", "dropped") => &mut errors.tx_dropped,
            ("TX", "collisions") => &mut errors.collisions,
            _ => continue,
        };
        *into = Some(value);
    }
}
