//! Reads the output of `ip -j link` and `ip -j addr`.

use std::collections::BTreeMap;

use linerate_facts::nic::{Nic, PortErrors};
use serde::Deserialize;
use serde_json::Value;

use super::{Ends, OPTIONS, Shown, UNKNOWN, UP, VERSIONS, has_all, keep};
use crate::format::{Format, Found, Section};
use crate::reading::{MOST, Notes};

pub(crate) static IP_JSON: Format = Format {
    id: "ip-json",
    label: "ip -j link, ip -j addr, with -s and -d",
    versions: VERSIONS,
    evidence: "run here: ip of iproute2 6.1, with -s and -d",
    unknown: UNKNOWN,
    starts: |at| starts(at.text),
    read,
    ..Format::FACTS
};

fn starts(text: &str) -> bool {
    let head: String = text.chars().take(80).filter(|c| !c.is_whitespace()).collect();
    head.starts_with("[{\"ifindex\":") || head.starts_with("[{},{\"ifindex\":")
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Port {
    ifindex: u32,
    ifname: String,
    flags: Vec<String>,
    mtu: Option<u32>,
    max_mtu: Option<u32>,
    qdisc: String,
    link_type: String,
    address: String,
    master: String,
    link: Option<String>,
    link_index: Option<u32>,
    parentbus: String,
    parentdev: String,
    linkinfo: Info,
    addr_info: Option<Vec<Address>>,
    stats64: Option<Stats>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Info {
    #[serde(rename = "info_kind")]
    kind: String,
    #[serde(rename = "info_data")]
    data: Data,
    #[serde(rename = "info_slave_kind")]
    slave_kind: String,
    #[serde(rename = "info_slave_data")]
    slave_data: Member,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Member {
    ad_aggregator_id: Option<u16>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Aggregation {
    aggregator: Option<u16>,
    partner_mac: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Data {
    mode: Option<String>,
    xmit_hash_policy: Option<String>,
    active_slave: Option<String>,
    id: Option<u32>,
    ad_info: Aggregation,
    /// All other fields, such as those of tunnels.
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

impl Data {
    fn text(&self, keys: &[&str]) -> String {
        let mut texts = keys.iter().filter_map(|key| self.others.get(*key)?.as_str());
        texts.next().unwrap_or_default().to_owned()
    }

    /// Whether one of these keys is set; the value of a flag is `true` or null.
    fn has(&self, keys: &[&str]) -> bool {
        let mut set = keys.iter().filter_map(|key| self.others.get(*key));
        set.any(|value| *value != Value::Bool(false))
    }

    fn ends(&self, kind: &str) -> Ends {
        Ends {
            outer: self.text(&["remote", "remote6", "local", "local6"]),
            carrier: self.text(&["link"]),
            is_external: self.has(&["external"]),
            has_options: kind.starts_with("ip6") || self.has(&OPTIONS),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Address {
    local: String,
    scope: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Stats {
    rx: Counts,
    tx: Counts,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    bytes: Option<u64>,
    packets: Option<u64>,
    errors: Option<u64>,
    dropped: Option<u64>,
    missed_errors: Option<u64>,
    crc_errors: Option<u64>,
    fifo_errors: Option<u64>,
    collisions: Option<u64>,
    carrier_changes: Option<u32>,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut documents = serde_json::Deserializer::from_str(section.text).into_iter::<Vec<Port>>();
    let ports = match documents.next() {
        Some(Ok(ports)) => ports,
        Some(Err(error)) => return Err(error.to_string()),
        None => return Err("it is empty".to_owned()),
    };
    let mut found = Found::of("ip", documents.byte_offset(), Notes::default());
    let shown: Vec<Shown> = ports.into_iter().filter(|port| port.ifindex > 0).map(shown).collect();
    if shown.len() > MOST {
        found.notes.at(section.line, format!("only the first {MOST} ports are read"));
    }
    keep(&mut found.facts, &shown[..shown.len().min(MOST)]);
    Ok(found)
}

fn shown(port: Port) -> Shown {
    let data = port.linkinfo.data;
    let is_vlan = port.linkinfo.kind == "vlan";
    let of_member = port.linkinfo.slave_data.ad_aggregator_id;
    let is_member = port.linkinfo.slave_kind == "bond";
    let global = |all: Vec<Address>| {
        let global = all.into_iter().filter(|address| address.scope == "global");
        global.map(|address| address.local).take(MOST).collect()
    };
    let mut nic = Nic {
        index: port.ifindex,
        name: port.ifname,
        up: has_all(port.flags.iter().map(String::as_str), UP),
        mtu: port.mtu,
        mtu_max: port.max_mtu.filter(|most| *most > 0),
        qdisc: port.qdisc,
        kind: port.linkinfo.kind,
        device: port.parentdev,
        errors: port.stats64.map(errors).unwrap_or_default(),
        ..Nic::default()
    };
    nic.stack.vlan = data.id.filter(|_| is_vlan).and_then(|id| u16::try_from(id).ok());
    Shown {
        tunnel: data.ends(&nic.kind),
        nic,
        aggregator: data.ad_info.aggregator.or(of_member.filter(|_| is_member)),
        partner: data.ad_info.partner_mac,
        is_lower_hidden: port.link.is_none() && port.link_index.is_some_and(|index| index > 0),
        lower: port.link.unwrap_or_default(),
        master: port.master,
        hardware: port.link_type,
        address: port.address,
        mode: data.mode.unwrap_or_default(),
        hash: data.xmit_hash_policy.unwrap_or_default(),
        active: data.active_slave.unwrap_or_default(),
        bus: port.parentbus,
        addresses: port.addr_info.map(global),
    }
}

fn errors(stats: Stats) -> PortErrors {
    let Stats { rx, tx } = stats;
    PortErrors {
        rx_packets: rx.packets,
        tx_bytes: tx.bytes,
        rx_errors: rx.errors,
        tx_errors: tx.errors,
        rx_dropped: rx.dropped,
        tx_dropped: tx.dropped,
        rx_missed: rx.missed_errors,
        rx_fifo: rx.fifo_errors,
        rx_crc: rx.crc_errors,
        collisions: tx.collisions,
        carrier_changes: tx.carrier_changes,
    }
}
