//! Reads the output of `Get-NetAdapterHardwareInfo`.

use linerate_facts::nic::Nic;
use linerate_facts::pci::{Address, Device, Link};
use linerate_units::Transfers;

use super::super::port;
use super::{VERSIONS, table};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{scaled, small};

pub(crate) static HARDWARE: Format = Format {
    id: "get-netadapterhardwareinfo",
    label: "Get-NetAdapterHardwareInfo, table or list",
    versions: VERSIONS,
    evidence: "published: tables in files of public repositories: a card at x16, one at x1, one whose link is unknown",
    unknown: "The best that card and slot could do is not in the table, so that nothing can be said about the slot.",
    starts: |at| {
        let begins = |columns: &[&str]| table::begins(at.text, columns);
        begins(&["Name", "Segment", "Bus"])
            || begins(&["Name", "InterfaceDescription", "PciExpressCurrentLinkSpeed"])
            || begins(&["Name", "InterfaceDescription", "PcieLinkSpeed"])
    },
    read,
    ..Format::FACTS
};

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut found =
        table::read(section, "Get-NetAdapterHardwareInfo", |reading, row| match device(row) {
            Some(device) => keep(reading, row, device),
            None => reading.notes.strange(row.line, row.text),
        })?;
    let all = &mut found.facts.pci;
    all.sort_by_key(|device| device.address);
    all.dedup_by_key(|device| device.address);
    Ok(found)
}

fn keep(reading: &mut Reading<'_>, row: &table::Row<'_>, mut device: Device) {
    let address = device.address.to_string();
    match row.name() {
        Some(name) => {
            device.names.push(name.to_owned());
            if let Some(nic) = port(&mut reading.facts.network, name) {
                *nic = Nic {
                    name: name.to_owned(),
                    device: address.clone(),
                    pci: address,
                    node: device.node,
                    ..Nic::default()
                };
            }
        }
        None => reading.notes.at(row.line, "the name of the adapter is cut: only its slot is read"),
    }
    reading.facts.pci.push(device);
}

/// The PCI device in a row. Bus numbers are decimal here. An empty cell is unknown.
fn device(row: &table::Row<'_>) -> Option<Device> {
    let number = |names: &[&str]| names.iter().find_map(|name| small(row.get(name)?));
    let byte = |names: &[&str]| number(names).and_then(|n| u8::try_from(n).ok());
    let address = Address {
        domain: number(&["Segment", "SegmentNumber"]).unwrap_or(0),
        bus: byte(&["Bus", "BusNumber"])?,
        slot: byte(&["Device", "DeviceNumber"]).filter(|slot| *slot < 32)?,
        function: byte(&["Function", "FunctionNumber"]).filter(|function| *function < 8)?,
    };
    let link = |speed: &[&str], width: &[&str]| {
        let speed = speed.iter().find_map(|name| self::speed(row.get(name)?));
        let link = Link { speed, width: byte(width).filter(|width| *width > 0) };
        (link != Link::default()).then_some(link)
    };
    Some(Device {
        address,
        node: number(&["NumaNode"]),
        now: link(
            &["PcieLinkSpeed", "PciExpressCurrentLinkSpeed"],
            &["PcieLinkWidth", "PciExpressCurrentLinkWidth"],
        ),
        max: link(&["PciExpressMaxLinkSpeed"], &["PciExpressMaxLinkWidth"]),
        ..Device::default()
    })
}

/// Reads a speed such as `8.0 GT/s`; `None` for `Unknown`.
fn speed(text: &str) -> Option<Transfers> {
    let number = text.strip_suffix("GT/s")?.trim();
    scaled(number, 1_000_000_000).map(Transfers)
}
