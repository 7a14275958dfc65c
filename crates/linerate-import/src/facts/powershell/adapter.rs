//! Reads the output of `Get-NetAdapter`.

use linerate_facts::nic::speed_of_mbps;

use super::super::port;
use super::{VERSIONS, table};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{scaled, small};

pub(crate) static ADAPTER: Format = Format {
    id: "get-netadapter",
    label: "Get-NetAdapter, table or list",
    versions: VERSIONS,
    evidence: "published: tables in files of public repositories, among them one with a cut speed (`...ps`); \
        the list is made up after its known form",
    unknown: "A name that the table cuts (`vEthernet (Microsoft H...`) cannot be matched with other outputs: use a \
              list.",
    starts: |at| {
        ["Status", "LinkSpeed(Gbps)"]
            .iter()
            .any(|last| table::begins(at.text, &["Name", "InterfaceDescription", last]))
    },
    read,
    ..Format::FACTS
};

fn read(section: &Section<'_>) -> Result<Found, String> {
    table::read(section, "Get-NetAdapter", |reading, row| match row.name() {
        None => reading.notes.at(row.line, "the name of the adapter is cut: it is left out"),
        Some(name) if take(reading, name, row).is_none() => {
            reading.notes.at(row.line, format!("the speed of {name} is not understood"));
        }
        Some(_) => {}
    })
}

/// Adds an adapter; `None` if its speed is not understood.
fn take(reading: &mut Reading<'_>, name: &str, row: &table::Row<'_>) -> Option<()> {
    let nic = port(&mut reading.facts.network, name)?;
    let status = row.get("Status").or_else(|| row.get("InterfaceOperationalStatus"));
    nic.up = status == Some("Up");
    let index = row.get("ifIndex").or_else(|| row.get("InterfaceIndex"));
    nic.index = index.and_then(small).unwrap_or(0);
    nic.is_virtual = row.get("InterfaceDescription").is_some_and(is_virtual);
    nic.mtu = row.get("MtuSize").and_then(small);
    if !nic.up {
        return Some(());
    }
    let mbps = match (row.get("LinkSpeed"), row.get("LinkSpeed(Gbps)")) {
        (Some(speed), _) => mbps(speed)?,
        (None, Some(giga)) => scaled(giga, 1_000)?,
        (None, None) => return Some(()),
    };
    nic.link.speed = speed_of_mbps(mbps);
    Some(())
}

/// Whether an adapter's description is that of a virtual one, which has no wire.
fn is_virtual(description: &str) -> bool {
    const WORDS: [&str; 7] =
        ["Hyper-V", "VMware", "VirtualBox", "Loopback", "TAP-", "WireGuard", "VirtIO"];
    WORDS.iter().any(|word| description.contains(word))
}

/// Reads a speed in Mb/s: `2.5 Gbps`, `866.7 Mbps`, `0 bps`.
fn mbps(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    match unit {
        "Gbps" => scaled(number, 1_000),
        "Mbps" => scaled(number, 1),
        "Kbps" | "bps" => Some(0),
        _ => None,
    }
}
