//! The text of one device in the output of `lspci`.

use linerate_facts::board;
use linerate_facts::pci::{Address, Buses, Device, Link, Payload, PortKind};
use linerate_units::Transfers;

use super::class;
use crate::reading::{after, pair, scaled, small};

/// Reads the first line of a device: `0000:01:00.0 Ethernet controller [0200]: Maker Model [8086:1521] (rev 01)`, or
/// with `-n` `01:00.0 0200: 8086:1521 (rev 01)`. `None` if the line is another one.
pub(super) fn head(line: &str) -> Option<Device> {
    let (address, rest) = line.split_once(' ')?;
    let address = self::address(address)?;
    let (class, name) = rest.split_once(':')?;
    let name = name.strip_prefix(' ')?;
    let begins = class.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_hexdigit());
    if !begins {
        return None;
    }
    let (class, of_class) = bracketed(class).unwrap_or((class, ""));
    let mut device = Device {
        address,
        class: class::code(class).unwrap_or(0),
        is_virtual: name.contains("Virtual Function"),
        ..Device::default()
    };
    let coded = if of_class.is_empty() { class } else { of_class };
    if let Some(code) = hex(coded, 4) {
        device.class = code << 8;
    }
    if let Some((vendor, model)) = ids(name) {
        (device.vendor, device.device) = (vendor, model);
        device.is_virtual |= vendor == board::MELLANOX && board::is_virtual(model);
    }
    device.class |= interface(name);
    Some(device)
}

/// The device that a command names, such as `lspci -vv -s 01:00.0`.
pub(super) fn of_command(command: &str) -> Option<Device> {
    let mut words = command.split_whitespace();
    words.find(|word| *word == "-s")?;
    Some(Device { address: address(words.next()?)?, ..Device::default() })
}

/// Whether a line belongs to a device although the blanks before it were lost when it was copied.
pub(super) fn is_known(line: &str) -> bool {
    const KEYS: [&str; 22] = [
        "Subsystem:",
        "DeviceName:",
        "Physical Slot:",
        "Control:",
        "Status:",
        "Latency:",
        "Interrupt:",
        "NUMA node:",
        "IOMMU group:",
        "Region ",
        "Expansion ROM",
        "Capabilities:",
        "Kernel ",
        "Bus:",
        "Flags:",
        "DevCap",
        "DevCtl",
        "DevSta",
        "MaxPayload ",
        "LnkCap",
        "LnkCtl",
        "LnkSta",
    ];
    KEYS.iter().any(|key| line.starts_with(key))
}

/// Reads an address with or without its domain.
fn address(text: &str) -> Option<Address> {
    let has_domain = text.matches(':').count() == 2;
    let is_short = text.len() == "00:00.0".len();
    match (has_domain, is_short) {
        (true, _) => text.parse().ok(),
        (false, true) => format!("0000:{text}").parse().ok(),
        (false, false) => None,
    }
}

/// Splits a text that ends in brackets into the text before them, and the text in them.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    text.strip_suffix(']')?.rsplit_once(" [")
}

/// Reads a number of exactly `digits` hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u32> {
    let is_hex = text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(text, 16).ok())?
}

/// The ids of vendor and device: in brackets at the end, or with `-n` at the start.
fn ids(name: &str) -> Option<(u16, u16)> {
    let pair = |text: &str| {
        let (vendor, device) = text.split_once(':')?;
        let word = |text| u16::try_from(hex(text, 4)?).ok();
        Some((word(vendor)?, word(device)?))
    };
    let inside = name.split('[').skip(1).filter_map(|part| pair(part.split(']').next()?));
    inside.last().or_else(|| pair(name.split(' ').next()?))
}

/// The programming interface in a text such as `(prog-if 02 [NVM Express])`; 0 if there is none.
fn interface(name: &str) -> u32 {
    let digits = name.split_once("(prog-if ").map(|(_, rest)| rest);
    digits.and_then(|rest| hex(rest.get(..2)?, 2)).unwrap_or(0)
}

/// The text of a device while its lines are read.
pub(super) struct Text {
    /// The facts that are known of the device.
    pub(super) device: Device,
    /// Number of the device's first line.
    pub(super) line: u64,
    /// Whether lspci marks the link as slower than the device's best.
    pub(super) is_downgraded: bool,
    /// Whether lspci was not allowed to read the device's capabilities.
    pub(super) is_denied: bool,
    /// Largest payload of a packet that the device supports, in bytes.
    most: Option<u32>,
}

impl Text {
    pub(super) fn new(device: Device, line: u64) -> Self {
        Self { device, line, is_downgraded: false, is_denied: false, most: None }
    }

    /// Reads an indented line; `false` if it has a known key but cannot be read. Most lines have no fact that
    /// linerate uses.
    pub(super) fn take(&mut self, line: &str) -> bool {
        if line.starts_with("MaxPayload ") {
            return self.payload(line);
        }
        if line.starts_with("Capabilities: <access denied>") {
            self.is_denied = true;
            return true;
        }
        if let Some((_, rest)) =
            line.split_once("Express ").filter(|_| line.starts_with("Capabilities: ["))
        {
            self.device.kind = kind(rest).or(self.device.kind);
            return true;
        }
        let Some((key, value)) = pair(line) else {
            return true;
        };
        match key {
            "Bus" => self.buses(value),
            "NUMA node" => {
                self.device.node = small(value);
                self.device.node.is_some()
            }
            "Kernel driver in use" => {
                value.clone_into(&mut self.device.driver);
                true
            }
            "DevCap" => {
                self.most = after(value, "MaxPayload ").and_then(small);
                true
            }
            "LnkCap" => link(value).map(|max| self.device.max = max).is_ok(),
            "LnkSta" => {
                self.is_downgraded = value.contains("(downgraded)");
                link(value).map(|now| self.device.now = now).is_ok()
            }
            _ => true,
        }
    }

    /// Reads the buses of a bridge: `primary=00, secondary=01, subordinate=02, sec-latency=0`.
    fn buses(&mut self, value: &str) -> bool {
        let bus = |key: &str| u8::try_from(hex(after(value, key)?, 2)?).ok();
        let known = bus("secondary=").zip(bus("subordinate="));
        self.device.buses = known.map(|(secondary, subordinate)| Buses { secondary, subordinate });
        known.is_some()
    }

    /// Reads the settings in force: `MaxPayload 256 bytes, MaxReadReq 512 bytes`.
    fn payload(&mut self, line: &str) -> bool {
        let number = |key: &str| after(line, key).and_then(small);
        let (Some(now), Some(read_request)) = (number("MaxPayload "), number("MaxReadReq ")) else {
            return false;
        };
        self.device.payload = self.most.map(|max| Payload { now, max, read_request });
        true
    }
}

/// Reads the kind of a PCIe port or endpoint: `(v2) Root Port (Slot+), MSI 00`.
fn kind(text: &str) -> Option<PortKind> {
    const KINDS: [(&str, PortKind); 10] = [
        ("Root Complex", PortKind::Other),
        ("Root Port", PortKind::Root),
        ("Upstream Port", PortKind::Upstream),
        ("Downstream Port", PortKind::Downstream),
        ("Legacy Endpoint", PortKind::Endpoint),
        ("Endpoint", PortKind::Endpoint),
        ("PCI-Express to PCI", PortKind::Other),
        ("PCI/PCI-X to PCI-Express", PortKind::Other),
        ("PCI-Express", PortKind::Other),
        ("PCI/PCI-X", PortKind::Other),
    ];
    let name = text.split_once(") ").map_or(text, |(_, name)| name);
    let known = KINDS.iter().find(|(known, _)| name.starts_with(known));
    known.map(|(_, kind)| *kind)
}

/// Reads a link: `Speed 8GT/s (ok), Width x4 (downgraded)`. `None` if there is no link, as at a slot without a card;
/// an error if the words are not understood.
fn link(value: &str) -> Result<Option<Link>, ()> {
    let speed = after(value, "Speed ").ok_or(())?;
    let width = after(value, "Width x").and_then(small).ok_or(())?;
    let speed = match speed.strip_suffix("GT/s") {
        Some(number) => Some(scaled(number, 1_000_000_000).ok_or(())?),
        None if ["unknown", "<unknown>"].contains(&speed) => None,
        None => return Err(()),
    };
    let width = u8::try_from(width).map_err(|_| ())?;
    // A link without lanes has no speed either, although the register shows one.
    Ok((width > 0).then_some(Link { speed: speed.map(Transfers), width: Some(width) }))
}
