//! Reads the output of `ethtool -i eth0`: the driver and the slot of a port.

use linerate_facts::nic::{Nic, VIRTUAL_BUSES, VIRTUAL_DRIVERS};
use linerate_facts::pci::{Address, Device};

use super::{PROGRAM, VERSIONS, port};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::MOST;

pub(crate) static DRIVER: Format = Format {
    id: "ethtool-driver",
    label: "ethtool -i",
    versions: VERSIONS,
    evidence: "run here: ethtool 6.1 of a virtio port and of a veth port",
    unknown: "The name of the port is only in the command before the output: without it nothing is known of the port.",
    starts: |at| at.line.starts_with("driver: ") && at.next.starts_with("version:"),
    read,
    ..Format::FACTS
};

/// The keys of all lines of an output.
const KEYS: [&str; 10] = [
    "driver",
    "version",
    "firmware-version",
    "expansion-rom-version",
    "bus-info",
    "supports-statistics",
    "supports-test",
    "supports-eeprom-access",
    "supports-register-dump",
    "supports-priv-flags",
];

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reading = super::reading(section);
    let mut ports: Vec<Nic> = Vec::new();
    reading.each(|reading, line| match line.pair() {
        Some(("driver", value)) if reading.has_room() && ports.len() < MOST => {
            ports.push(Nic { driver: value.to_owned(), ..Nic::default() });
            Some(())
        }
        Some((key, value)) if KEYS.contains(&key) => {
            ports.last_mut().map(|nic| take(nic, key, value))
        }
        _ => None,
    });
    // One command shows one port, so its argument names this port only.
    let name = reading.argument(PROGRAM).filter(|_| ports.len() == 1);
    let name = name.unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(
            "the name of the port is missing: paste the command too, `ethtool -i PORT`".to_owned()
        );
    }
    for nic in ports {
        keep(&mut reading, &name, nic);
    }
    reading.found(PROGRAM)
}

fn take(nic: &mut Nic, key: &str, value: &str) {
    match key {
        "firmware-version" if value != "N/A" => value.clone_into(&mut nic.firmware),
        "bus-info" if value != "N/A" => {
            value.clone_into(&mut nic.device);
            if value.parse::<Address>().is_ok() {
                value.clone_into(&mut nic.pci);
            }
        }
        _ => {}
    }
}

fn keep(reading: &mut Reading<'_>, name: &str, nic: Nic) {
    let address: Option<Address> = nic.pci.parse().ok();
    if let Some(address) = address {
        // The driver of the PCI device may be another one than that of the port: mlx4_core with mlx4_en.
        reading.facts.pci.push(Device {
            address,
            names: vec![name.to_owned()],
            ..Device::default()
        });
        reading.facts.pci.sort_by_key(|device| device.address);
        reading.facts.pci.dedup_by_key(|device| device.address);
    }
    let is_software = nic.device.is_empty();
    let bus = nic.device.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_virtual = is_software
        || VIRTUAL_BUSES.contains(&bus)
        || VIRTUAL_DRIVERS.contains(&nic.driver.as_str());
    let kind = if is_software { nic.driver.clone() } else { String::new() };
    if let Some(port) = port(reading, name) {
        *port = Nic { name: name.to_owned(), is_virtual, kind, ..nic };
    }
}
