//! Reads the output of `Get-NetAdapterAdvancedProperty`.

use linerate_facts::nic::{Nic, Pause, Rings};

use super::super::port;
use super::{VERSIONS, table};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{lookup, small};

pub(crate) static ADVANCED: Format = Format {
    id: "get-netadapteradvancedproperty",
    label: "Get-NetAdapterAdvancedProperty, table or list",
    versions: VERSIONS,
    evidence: "published: a table of *JumboPacket in files of public repositories, with rows of further \
        keywords made up",
    unknown: "These are settings, which the adapter may not have taken; the largest values are not in it.",
    starts: |at| table::begins(at.text, &["Name", "DisplayName", "RegistryKeyword"]),
    read,
    ..Format::FACTS
};

/// Keywords of offloads and features, with their names. Without them packets cost more CPU time.
//= learn.microsoft.com: standardized INF keywords for network devices
const SWITCHES: [(&str, &str); 10] = [
    ("*LsoV2IPv4", "LSO for IPv4"),
    ("*LsoV2IPv6", "LSO for IPv6"),
    ("*RscIPv4", "RSC for IPv4"),
    ("*RscIPv6", "RSC for IPv6"),
    ("*RSS", "RSS"),
    ("*TCPChecksumOffloadIPv4", "checksums of TCP over IPv4"),
    ("*TCPChecksumOffloadIPv6", "checksums of TCP over IPv6"),
    ("*UDPChecksumOffloadIPv4", "checksums of UDP over IPv4"),
    ("*InterruptModeration", "interrupt moderation"),
    ("*NetworkDirect", "RDMA (NetworkDirect)"),
];

/// Number of bytes of an Ethernet header, which *JumboPacket includes.
//= learn.microsoft.com, *JumboPacket: the default of 1514 stands for an MTU of 1500
const HEADER: u32 = 14;

fn read(section: &Section<'_>) -> Result<Found, String> {
    table::read(section, "Get-NetAdapterAdvancedProperty", |reading, row| {
        let (Some(name), Some(keyword)) = (row.name(), row.get("RegistryKeyword")) else {
            return reading.notes.at(row.line, "a name is cut or missing: the row is left out");
        };
        let value = row.get("RegistryValue").unwrap_or("");
        let value = small(value.trim_start_matches('{').trim_end_matches('}'));
        if let Some(value) = value {
            take(reading, row.line, name, (keyword, value));
        }
    })
}

fn take(reading: &mut Reading<'_>, line: u64, name: &str, (keyword, value): (&str, u32)) {
    if let Some(what) = lookup(&SWITCHES, keyword).filter(|_| value == 0) {
        return reading.notes.at(line, format!("{name}: {what} is switched off"));
    }
    if let Some(nic) = port(&mut reading.facts.network, name) {
        set(nic, keyword, value);
    }
}

fn set(nic: &mut Nic, keyword: &str, value: u32) {
    let mut rings = nic.rings.unwrap_or_default();
    match keyword {
        "*JumboPacket" => nic.mtu = value.checked_sub(HEADER),
        "*ReceiveBuffers" => rings.rx.now = Some(value),
        "*TransmitBuffers" => rings.tx.now = Some(value),
        // The value is 0 for none, 1 for sending, 2 for receiving, 3 for both, 4 for negotiated.
        "*FlowControl" if value <= 3 => {
            nic.pause = Some(Pause {
                tx: Some(value & 1 != 0),
                rx: Some(value & 2 != 0),
                ..Pause::default()
            });
        }
        "*FlowControl" => {
            nic.pause = Some(Pause { autoneg: Some(true), ..Pause::default() });
        }
        _ => {}
    }
    nic.rings = (rings != Rings::default()).then_some(rings);
}
