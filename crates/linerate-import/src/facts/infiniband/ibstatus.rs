//! Reads the output of `ibstatus`.

use linerate_facts::infiniband::{Gid, IbPort, LinkState, PhysicalState};
use linerate_facts::parse::infiniband as sysfs;

use super::{Devices, layer};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, hexadecimal, small};

pub(crate) static IBSTATUS: Format = Format {
    id: "ibstatus",
    label: "ibstatus",
    versions: "infiniband-diags 1.5 to rdma-core 60",
    evidence: "published: NVIDIA/nccl issue 1866",
    unknown: "The slot and the model of the card are not in it; the rate of a port that is down is left out.",
    starts: |at| at.line.starts_with(START),
    read,
    ..Format::FACTS
};

const START: &str = "Infiniband device '";

fn read(section: &Section<'_>) -> Result<Found, String> {
    Devices::new(Reading::of(section)).read("ibstatus", take)
}

/// Reads a line; `None` if it is not understood.
fn take(devices: &mut Devices<'_>, line: Line<'_>) -> Option<()> {
    if let Some(rest) = line.trimmed().strip_prefix(START) {
        let (name, rest) = rest.split_once("' port ")?;
        let number = small(rest.split(' ').next()?)?;
        if devices.device().is_none_or(|device| device.name != name) {
            devices.begin(name);
        }
        devices.begin_port(number);
        return Some(());
    }
    let (key, value) = line.pair()?;
    if key == "rate" {
        devices.rate_line = Some((line.number, value.to_owned()));
    }
    of_port(devices.port()?, key, value)
}

/// Reads a line about a port; `None` if it is not understood.
fn of_port(port: &mut IbPort, key: &str, value: &str) -> Option<()> {
    let whole_line = format!("{value}\n");
    let number = || sysfs::state(whole_line.as_bytes()).ok();
    match key {
        "default gid" => port.gids = gids(value),
        "base lid" => port.lid = Some(hexadecimal(value)?),
        "sm lid" => port.sm_lid = Some(hexadecimal(value)?),
        "state" => port.state = Some(LinkState::of(number()?)?),
        "phys state" => port.physical = Some(PhysicalState::of(number()?)?),
        "rate" => port.rate = Some(sysfs::rate(whole_line.as_bytes()).ok()?),
        "link_layer" => port.layer = layer(value).ok()?,
        _ => return None,
    }
    Some(())
}

/// The first GID of a port; empty if the GID is all zeros.
fn gids(value: &str) -> Vec<Gid> {
    let is_used = value.bytes().any(|b| b != b'0' && b != b':');
    let gid = Gid { index: 0, gid: value.to_owned(), kind: String::new(), netdev: String::new() };
    is_used.then_some(gid).into_iter().collect()
}
