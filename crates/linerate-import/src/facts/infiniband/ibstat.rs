//! Reads the output of `ibstat`.

use linerate_facts::infiniband::{Guid, IbDevice, IbPort, is_manager};

use super::{Devices, gids_of, layer, physical, rate_of, state};
use crate::facts::lines::{Reading, understood};
use crate::format::{Format, Found, Section};
use crate::reading::{Line, decimal, hexadecimal, small};

pub(crate) static IBSTAT: Format = Format {
    id: "ibstat",
    label: "ibstat",
    versions: "infiniband-diags 1.5 to rdma-core 60, MLNX_OFED, and WinOF for Windows",
    evidence: "run here: ibstat of rdma-core 44.0, on networks that ibsim 0.10 simulates; published: \
        linux-rdma/rdma-core pull request 847 (two ports, one disabled), kb.advancedclustering.com (without \
        indents); the form of Windows is made up after a report in words",
    unknown: "The slot of the card, the width and speed of links with an ambiguous rate (40 is QDR or FDR10), and the \
              subnet prefix are not in it; the rate of a port that is down is no rate and is left out.",
    starts: |at| at.line.trim_start_matches([' ', '\t']).starts_with("CA '"),
    read,
    ..Format::FACTS
};

fn read(section: &Section<'_>) -> Result<Found, String> {
    Devices::new(Reading::of(section)).read("ibstat", take)
}

/// Reads a line; `None` if it is not understood.
fn take(devices: &mut Devices<'_>, line: Line<'_>) -> Option<()> {
    let text = line.trimmed();
    if let Some(rest) = text.strip_prefix("CA '") {
        let (name, rest) = rest.split_once('\'').unwrap_or((rest, ""));
        devices.begin(name);
        if let Some(number) = rest.strip_prefix(" port ").and_then(small) {
            devices.begin_port(number);
        }
        return Some(());
    }
    let (key, value) = line.pair()?;
    if let Some(number) = key.strip_prefix("Port ").filter(|_| value.is_empty()) {
        devices.begin_port(small(number)?);
        return Some(());
    }
    if key == "Rate" {
        return rate(devices, line, value);
    }
    match devices.port() {
        Some(port) => of_port(port, key, value),
        None => of_device(devices.device()?, key, value),
    }
}

/// Reads a line about a device; `None` if it is not understood.
fn of_device(device: &mut IbDevice, key: &str, value: &str) -> Option<()> {
    match key {
        "CA type" => value.clone_into(&mut device.model),
        "Firmware version" => value.clone_into(&mut device.firmware),
        "Node GUID" => device.node_guid = Some(Guid(hexadecimal(value)?)),
        "Number of ports" | "Hardware version" | "System image GUID" => {}
        _ => return None,
    }
    Some(())
}

/// Reads a line about a port; `None` if it is not understood. A value that is not understood becomes unknown.
fn of_port(port: &mut IbPort, key: &str, value: &str) -> Option<()> {
    match key {
        "State" => understood(&mut port.state, state(value)),
        "Physical state" => understood(&mut port.physical, physical(value)),
        "Base lid" => understood(&mut port.lid, decimal(value)),
        "SM lid" => understood(&mut port.sm_lid, decimal(value)),
        "Capability mask" => understood(&mut port.manages, hexadecimal(value).map(is_manager)),
        "Port GUID" => {
            port.gids = hexadecimal(value).map(|guid| gids_of(Guid(guid))).unwrap_or_default();
            (!port.gids.is_empty()).then_some(())
        }
        "Link layer" | "Transport" => {
            port.layer = port.layer.or(layer(value).ok()?);
            Some(())
        }
        "LMC" => Some(()),
        _ => None,
    }
}

fn rate(devices: &mut Devices<'_>, line: Line<'_>, value: &str) -> Option<()> {
    let number = decimal(value)?;
    let rate = rate_of(number);
    if rate.is_none() {
        let what = format!(
            "no link has a rate of {number} Gb/s (simulators write 104 for EDR, HDR and NDR alike): the rate is unknown"
        );
        devices.reading.notes.at(line.number, what);
    }
    devices.rate_line = Some((line.number, value.to_owned()));
    devices.port()?.rate = rate;
    Some(())
}
