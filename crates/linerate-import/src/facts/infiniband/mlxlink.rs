//! Reads the output of `mlxlink`: the link of a port as the card's firmware reports it.

use linerate_facts::infiniband::{IbPort, IbRate, Layer, LinkState, PhysicalState};
use linerate_facts::nic::Counter;
use linerate_units::Rate;

use super::{Devices, lane_rate};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, decimal, option, quoted, small};

pub(crate) static MLXLINK: Format = Format {
    id: "mlxlink",
    label: "mlxlink, mstlink, text",
    versions: "MFT 4.18 to 4.30, plain and with -c and -m",
    evidence: "published: a guide to mlxlink and ConnectX-6 cards on the web (Ethernet, -m -c), \
        https://github.com/MrBr-github/lshca/issues/11 (InfiniBand, names and values)",
    unknown: "The device, unless the command has it. Error rates per lane, eyes and modules are passed over.",
    starts: |at| at.line.trim_end() == "Operational Info",
    read,
    ..Format::FACTS
};

/// Start of the names of InfiniBand speeds.
const INFINIBAND: &str = "IB-";
/// Start of the recommendation for a link without a fault.
const NO_ISSUE: &str = "No issue";

fn read(section: &Section<'_>) -> Result<Found, String> {
    let value = |names: &[&str]| section.command.and_then(|command| option(command, names));
    let device = value(&["-d", "--device"]).unwrap_or("");
    let number = value(&["-p", "--port"]).and_then(small).unwrap_or(1);
    let mut devices = Devices::new(Reading::of(section));
    // The path or address of a device is not the name of an RDMA device.
    devices.begin(if device.contains(['/', ':']) { "" } else { device });
    devices.begin_port(number);
    let mut width = 0;
    devices.read("mlxlink", |devices, line| {
        take(devices, line, &mut width);
        Some(())
    })
}

/// Reads a line. Most lines have no fact that linerate uses.
fn take(devices: &mut Devices<'_>, line: Line<'_>, width: &mut u32) {
    let Some((key, value)) = line.pair() else {
        return;
    };
    let is_issue = key == "Recommendation" && !value.starts_with(NO_ISSUE);
    if is_issue && !value.is_empty() {
        let what = format!("the card says of this link: {}", quoted(value));
        devices.reading.notes.at(line.number, what);
    }
    let Some(port) = devices.port() else { return };
    match key {
        "State" => port.state = state(value),
        "Physical state" => port.physical = physical(value, port.state),
        "Speed" => rate(port, value, *width),
        "Width" => {
            *width = value.strip_suffix('x').and_then(small).unwrap_or(0);
            if let Some(rate) = port.rate.as_mut().filter(|rate| !rate.speed.is_empty()) {
                // The rate of an InfiniBand link is that of all its lanes.
                let each = rate.rate.0 / u64::from(rate.width.max(1));
                (rate.rate, rate.width) = (Rate(each * u64::from(*width)), *width);
            }
        }
        "Symbol Errors" => count(port, "symbol_error", value),
        "Link Down Counter" => count(port, "link_downed", value),
        "Link Error Recovery Counter" => count(port, "link_error_recovery", value),
        _ => {}
    }
}

fn state(value: &str) -> Option<LinkState> {
    match value {
        "Active" => Some(LinkState::Active),
        "Disable" | "Polling" | "Down" | "Port PLL Down" => Some(LinkState::Down),
        _ => super::state(value),
    }
}

/// State of the wire. On Ethernet the firmware names a step of its state machine, which runs on while the link is up.
fn physical(value: &str, state: Option<LinkState>) -> Option<PhysicalState> {
    let is_up = value.starts_with("ETH_") && state == Some(LinkState::Active);
    let up = is_up.then_some(PhysicalState::LinkUp);
    up.or_else(|| super::physical(value))
}

/// Reads a speed such as `IB-HDR`, or of Ethernet `100G` or `25GbE`, and sets layer and rate of the port.
fn rate(port: &mut IbPort, value: &str, width: u32) {
    if let Some(name) = value.strip_prefix(INFINIBAND) {
        port.layer = Some(Layer::InfiniBand);
        port.rate = lane_rate(name, width.max(1));
    } else if let Some((digits, _)) = value.split_once('G') {
        port.layer = Some(Layer::Ethernet);
        port.rate = small(digits).map(|gigabits| IbRate {
            rate: Rate(u64::from(gigabits) * 1_000_000_000),
            width: 0,
            speed: String::new(),
        });
    }
}

fn count(port: &mut IbPort, name: &str, value: &str) {
    port.counters.extend(decimal(value).map(|value| Counter { name: name.to_owned(), value }));
}
