//! Reads the text of `ip link` and `ip addr`.

use linerate_facts::nic::{Nic, PortErrors};

use super::{Ends, OPTIONS, Shown, UNKNOWN, UP, VERSIONS, has_all, keep};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, MOST, command, decimal, small};

pub(crate) static IP: Format = Format {
    id: "ip",
    label: "ip link, ip addr, with -s and -d",
    versions: VERSIONS,
    evidence: "run here: ip of iproute2 6.1: a virtio port, veth, a bridge, vxlan, macvlan; -s, -s -s and -d",
    unknown: UNKNOWN,
    starts: |at| head(at.line).is_some(),
    read,
    ..Format::FACTS
};

/// Reads the first line of a port: `4: eth0@if5: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc mq master br0 state UP ...`.
fn head(line: &str) -> Option<Shown> {
    let (index, rest) = line.split_once(": ")?;
    let (name, rest) = rest.split_once(": <")?;
    let (flags, rest) = rest.split_once('>')?;
    let (name, lower) = name.split_once('@').unwrap_or((name, ""));
    let nic = Nic {
        index: small(index)?,
        name: name.to_owned(),
        up: has_all(flags.split(','), UP),
        mtu: after(rest, "mtu").and_then(small),
        qdisc: after(rest, "qdisc").unwrap_or_default().to_owned(),
        ..Nic::default()
    };
    let port = Shown {
        nic,
        lower: lower.to_owned(),
        is_lower_hidden: lower.starts_with("if") && small(&lower[2..]).is_some(),
        master: after(rest, "master").unwrap_or_default().to_owned(),
        ..Shown::default()
    };
    (!name.is_empty() && !name.contains(' ')).then_some(port)
}

/// The word after `key` in a text.
fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut words = text.split_whitespace();
    words.find(|word| *word == key)?;
    words.next()
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    // The flags of a port look like a prompt: `2: eth0: <BROADCAST,UP> mtu`.
    let ends = |line: &str| command(line).is_some() && head(line).is_none();
    let mut reading = Reading::until(section, ends);
    let mut all: Vec<Shown> = Vec::new();
    let mut table: Option<&str> = None;
    for line in std::mem::take(&mut reading.lines) {
        if let Some(port) = head(line.text) {
            if all.len() >= MOST {
                reading.notes.at(line.number, "further ports are left out");
                break;
            }
            table = None;
            all.push(port);
            continue;
        }
        let Some(port) = all.last_mut().filter(|_| line.is_indented()) else {
            reading.strange(line);
            continue;
        };
        let is_read = match table.take() {
            Some(names) => counts(&mut port.nic.errors, names, line.text),
            None => take(port, line, &mut table),
        };
        if !is_read {
            reading.strange(line);
        }
    }
    keep(&mut reading.facts, &all);
    reading.found("ip")
}

/// Reads a line about a port, and keeps a line with the names of counters in `table`. Returns `false` if it is not
/// understood.
fn take<'a>(port: &mut Shown, line: Line<'a>, table: &mut Option<&'a str>) -> bool {
    let text = line.trimmed();
    let first = text.split(' ').next().unwrap_or_default();
    if let Some(hardware) = first.strip_prefix("link/") {
        hardware.clone_into(&mut port.hardware);
        let address = text.split_whitespace().nth(1);
        address.unwrap_or_default().clone_into(&mut port.address);
        details(port, text);
        return true;
    }
    match first {
        "RX:" | "TX:" | "RX" | "TX" if text.contains(':') => *table = Some(text),
        "inet" | "inet6" => address(port, text),
        "bond_slave" => port.aggregator = number(text, "ad_aggregator_id"),
        "valid_lft" | "alias" | "altname" | "vf" | "prog/xdp" | "bridge_slave" | "team_slave" => {}
        _ if port.nic.kind.is_empty() && is_kind(first) => {
            first.clone_into(&mut port.nic.kind);
            of_kind(port, text);
            details(port, text);
        }
        _ => return false,
    }
    true
}

fn is_kind(word: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    !word.is_empty() && word.len() <= 16 && word.chars().all(is_word)
}

/// Reads what `-d` adds: at the end of the line about the kind, or, if there is none, of the line about the hardware.
fn details(port: &mut Shown, text: &str) {
    let most = after(text, "maxmtu").and_then(small).filter(|most| *most > 0);
    port.nic.mtu_max = port.nic.mtu_max.or(most);
    if let Some(bus) = after(text, "parentbus") {
        bus.clone_into(&mut port.bus);
    }
    if let Some(device) = after(text, "parentdev") {
        device.clone_into(&mut port.nic.device);
    }
}

fn of_kind(port: &mut Shown, text: &str) {
    let word = |key: &str| after(text, key).unwrap_or_default().to_owned();
    port.mode = word("mode");
    port.hash = word("xmit_hash_policy");
    port.active = word("active_slave");
    port.partner = word("ad_partner_mac");
    port.aggregator = number(text, "ad_aggregator");
    if port.nic.kind == "vlan" {
        port.nic.stack.vlan = number(text, "id");
    }
    let mut ends = [word("remote"), word("local")].into_iter();
    let has = |words: &[&str]| text.split_whitespace().any(|word| words.contains(&word));
    port.tunnel = Ends {
        outer: ends.find(|end| end.contains(['.', ':'])).unwrap_or_default(),
        carrier: word("dev"),
        is_external: has(&["external"]),
        has_options: port.nic.kind.starts_with("ip6") || has(&OPTIONS),
    };
}

fn number(text: &str, key: &str) -> Option<u16> {
    after(text, key).and_then(small)?.try_into().ok()
}

fn address(port: &mut Shown, text: &str) {
    let all = port.addresses.get_or_insert_default();
    let address = text.split_whitespace().nth(1);
    let address = address.filter(|_| after(text, "scope") == Some("global") && all.len() < MOST);
    all.extend(address.map(|address| address.split('/').next().unwrap_or_default().to_owned()));
}

/// Reads a line of counters; `names` is the line above it: `RX:  bytes packets errors dropped  missed   mcast`.
fn counts(errors: &mut PortErrors, names: &str, values: &str) -> bool {
    let (table, names) = names.split_once(':').unwrap_or_default();
    let mut all = true;
    for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
        let into = match (table, name) {
            ("RX", "packets") => &mut errors.rx_packets,
            ("RX", "errors") => &mut errors.rx_errors,
            ("RX", "dropped") => &mut errors.rx_dropped,
            ("RX" | "RX errors", "missed") => &mut errors.rx_missed,
            ("RX errors", "crc") => &mut errors.rx_crc,
            ("RX errors", "fifo") => &mut errors.rx_fifo,
            ("TX", "bytes") => &mut errors.tx_bytes,
            ("TX", "errors") => &mut errors.tx_errors,
            ("TX", "dropped") => &mut errors.tx_dropped,
            ("TX", "collsns") => &mut errors.collisions,
            ("TX errors", "transns") => {
                errors.carrier_changes = small(value);
                continue;
            }
            _ => continue,
        };
        // With -h, large counts are rounded (`4.7M`) and so become unknown.
        *into = decimal(value);
        all &= into.is_some();
    }
    all
}
