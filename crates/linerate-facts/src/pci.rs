//! PCI devices and the links between them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use linerate_ceiling::pcie::line_code;
use linerate_units::{Rate, Transfers};

/// Name of the fact that has a gap if no driver of any device is known: a device without a driver may then have one.
pub const DRIVERS: &str = "facts.pci.drivers";
/// Name of the fact that has a gap if no NUMA node of any device is known.
pub const NODES: &str = "facts.pci.nodes";

/// The address of a PCI device: `0000:82:00.0`.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Address {
    /// Number of the domain, up to 32 bits.
    pub domain: u32,
    /// Number of the bus.
    pub bus: u8,
    /// Number of the device on the bus, below 32.
    pub slot: u8,
    /// Number of the function in the device, below 8.
    pub function: u8,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, slot, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{slot:02x}.{function:x}")
    }
}

/// The text is not the address of a PCI device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an address of a PCI device such as 0000:82:00.0")]
pub struct NotAnAddress;

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let parts = || {
            let (rest, function) = text.split_once('.')?;
            let mut parts = rest.split(':');
            let (domain, bus, slot) = (parts.next()?, parts.next()?, parts.next()?);
            parts.next().is_none().then_some((domain, bus, slot, function))
        };
        let hex = |text: &str| {
            let is_hex = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
            is_hex.then(|| u32::from_str_radix(text, 16).ok()).flatten()
        };
        let (domain, bus, slot, function) = parts().ok_or(NotAnAddress)?;
        let below = |text, end: u32| {
            let value = hex(text).filter(|&v| v < end);
            value.and_then(|v| u8::try_from(v).ok()).ok_or(NotAnAddress)
        };
        Ok(Self {
            domain: hex(domain).ok_or(NotAnAddress)?,
            bus: below(bus, 256)?,
            slot: below(slot, 32)?,
            function: below(function, 8)?,
        })
    }
}

/// First and last bus number behind a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buses {
    /// The bus directly behind the bridge.
    pub secondary: u8,
    /// The last bus behind the bridge.
    pub subordinate: u8,
}

/// The role of a PCI Express device in the tree of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortKind {
    /// A device at the end of a link.
    Endpoint,
    /// A port of the processor or its chip set.
    Root,
    /// A switch's port towards the root.
    Upstream,
    /// A switch's port away from the root.
    Downstream,
    /// Anything else: bridges to other buses, devices inside the root complex.
    Other,
}

impl PortKind {
    /// All roles of PCI Express devices.
    pub const ALL: [Self; 5] =
        [Self::Endpoint, Self::Root, Self::Upstream, Self::Downstream, Self::Other];

    /// The role with this code in the PCI Express capability.
    pub fn of(code: u8) -> Self {
        match code {
            0 | 1 => Self::Endpoint,
            4 => Self::Root,
            5 => Self::Upstream,
            6 => Self::Downstream,
            _ => Self::Other,
        }
    }

    /// The name of the role in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Endpoint => "endpoint",
            Self::Root => "root port",
            Self::Upstream => "upstream port",
            Self::Downstream => "downstream port",
            Self::Other => "other",
        }
    }
}

/// Sizes of packets on a link, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// Largest payload of a packet, as it is configured.
    pub now: u32,
    /// Largest payload of a packet that the device supports.
    pub max: u32,
    /// Largest read request, as it is configured.
    pub read_request: u32,
}

/// Speed and width of a link; unknown values are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// Transfers per second on each lane.
    pub speed: Option<Transfers>,
    /// Number of lanes.
    pub width: Option<u8>,
}

impl Link {
    /// Bits per second that the link carries in each direction, without the line code. Packet headers take a part of
    /// them.
    pub fn rate(self) -> Option<Rate> {
        let (speed, width) = (self.speed?, u64::from(self.width?));
        let (data, coded) = line_code(speed);
        let lane = (speed.0 / coded).saturating_mul(data);
        Some(Rate(lane.saturating_mul(width)))
    }

    /// The fastest link that can run between two ends with these best values.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self {
            speed: self.speed.zip(other.speed).map(|(a, b)| a.min(b)),
            width: self.width.zip(other.width).map(|(a, b)| a.min(b)),
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.speed, self.width) {
            (Some(speed), Some(width)) => write!(f, "{speed} x{width}"),
            (Some(speed), None) => write!(f, "{speed}"),
            (None, Some(width)) => write!(f, "x{width}"),
            (None, None) => f.write_str("no link"),
        }
    }
}

/// A link that carries less than a device behind it could use, as an output says that does not show the devices at both
/// ends of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limited {
    /// Speed and width at which the link runs.
    pub now: Link,
    /// Address of the device that reports the link; `None` if the limited device itself reports it.
    pub at: Option<Address>,
}

/// How an IOMMU handles a device's accesses to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Iommu {
    /// The IOMMU translates addresses, and unmaps and flushes each buffer as soon as it was used.
    Strict,
    /// The IOMMU translates addresses, and flushes unmapped buffers together after some time.
    Lazy,
    /// Works as lazy. The boot parameters request an IOMMU, and do not request that it passes accesses on.
    LazyByRequest,
    /// The IOMMU passes accesses on, without translation.
    Passed,
}

impl Iommu {
    /// The mode by the type of a device group's default domain, the release of the kernel, and the parameters that the
    /// kernel was booted with.
    pub fn of(domain: &str, kernel: &str, boot: &[String]) -> Option<Self> {
        match domain {
            "identity" => Some(Self::Passed),
            "DMA-FQ" => match Self::of_boot(boot) {
                Some(Self::LazyByRequest) => Some(Self::LazyByRequest),
                _ => Some(Self::Lazy),
            },
            // Kernels before 5.15 use the type DMA for both modes.
            //= Linux 5.15, drivers/iommu/iommu.c: IOMMU_DOMAIN_DMA_FQ
            "DMA" if is_since(kernel, (5, 15)) => Some(Self::Strict),
            "DMA" | "" => Self::of_boot(boot),
            _ => None,
        }
    }

    //= Linux, Documentation/admin-guide/kernel-parameters.txt: intel_iommu, amd_iommu, iommu, iommu.strict, iommu.passthrough
    fn of_boot(boot: &[String]) -> Option<Self> {
        let has = |name: &str, value: &str| {
            let values = boot.iter().filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            values.flat_map(|values| values.split(',')).any(|own| own == value)
        };
        let strict = has("intel_iommu", "strict")
            || has("iommu.strict", "1")
            || has("amd_iommu", "fullflush");
        match () {
            () if has("intel_iommu", "off") || has("iommu", "off") || has("amd_iommu", "off") => {
                None
            }
            () if has("iommu", "pt") || has("iommu.passthrough", "1") => Some(Self::Passed),
            () if strict => Some(Self::Strict),
            () if has("intel_iommu", "on") => Some(Self::LazyByRequest),
            () => None,
        }
    }
}

/// Whether a kernel's release is `least` or later; `false` if the release is unknown.
fn is_since(kernel: &str, least: (u32, u32)) -> bool {
    let mut numbers = kernel.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= least,
        _ => false,
    }
}

/// A PCI device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Address of the device.
    pub address: Address,
    /// The bridge above the device; `None` on a root bus.
    pub parent: Option<Address>,
    /// Vendor id of the device; 0 when unknown.
    pub vendor: u16,
    /// Device id; 0 when unknown.
    pub device: u16,
    /// Class, subclass and programming interface of the device.
    pub class: u32,
    /// Buses behind the device.
    pub buses: Option<Buses>,
    /// Name of the driver; empty when there is none.
    pub driver: String,
    /// Names that users know the device by: `eth0`, `mlx5_0`, `nvme0`.
    pub names: Vec<String>,
    /// Role of the device in the PCI tree; `None` if unknown.
    pub kind: Option<PortKind>,
    /// Speed and width at which the device's link to its parent runs.
    pub now: Option<Link>,
    /// The best speed and width that this end of the link supports.
    pub max: Option<Link>,
    /// The slower link that limits the device, if a pasted output says so. If the machine itself was read, the devices
    /// above are known instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited: Option<Limited>,
    /// Sizes of packets on the link.
    pub payload: Option<Payload>,
    /// NUMA node of the device; `None` if unknown.
    pub node: Option<u32>,
    /// Number of the IOMMU group.
    pub iommu_group: Option<u32>,
    /// How the IOMMU handles the device's accesses to memory; `None` if unknown, or without an IOMMU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iommu: Option<Iommu>,
    /// Whether the device is a virtual function of another device.
    pub is_virtual: bool,
    /// Whether the kernel marks the device as removable, while something is attached to the machine by Thunderbolt or
    /// USB4.
    pub tunneled: bool,
}

impl Device {
    /// What the device does, in words, by the class codes of the specification.
    pub fn function(&self) -> &'static str {
        match (self.class >> 16, self.class >> 8 & 0xff) {
            (0x01, 0x08) => "NVMe",
            (0x01, 0x06) => "SATA",
            (0x01, 0x04) => "RAID",
            (0x01, 0x07) => "SAS",
            (0x01, _) => "storage",
            (0x02, 0x00) => "Ethernet",
            (0x02, 0x07) | (0x0c, 0x06) => "InfiniBand",
            (0x02, _) => "network",
            (0x03, _) => "display",
            (0x06, 0x00) => "host bridge",
            (0x06, 0x04) => "bridge",
            (0x0b, 0x40) | (0x12, _) => "accelerator",
            (0x0c, 0x03) => "USB",
            _ => "device",
        }
    }

    /// Whether the device is a network card, such as for Ethernet or InfiniBand.
    pub fn is_network(&self) -> bool {
        self.class >> 16 == 0x02 || self.class >> 8 == 0x0c06
    }

    /// Whether data of a path may cross the device: network, storage, accelerator.
    pub fn carries_data(&self) -> bool {
        matches!(self.class >> 16, 0x01..=0x03 | 0x12) || matches!(self.class >> 8, 0x0b40 | 0x0c06)
    }
}

/// The device at `address`, in a list that is sorted by address.
pub fn at(all: &[Device], address: Address) -> Option<&Device> {
    let found = all.binary_search_by_key(&address, |d| d.address);
    found.ok().map(|i| &all[i])
}

/// Sets the parent of each device to the bridge above it, by the bus numbers behind each bridge. Among nested bridges
/// the innermost is the parent.
///
/// A bridge counts only for buses with a higher number than its own, so that no bus numbers make a loop.
pub fn find_parents(all: &mut [Device]) {
    let mut above: BTreeMap<(u32, u8), (u8, Address)> = BTreeMap::new();
    for bridge in all.iter() {
        let address = bridge.address;
        let Some(buses) = bridge.buses.filter(|b| b.secondary > address.bus) else {
            continue;
        };
        let this = (buses.secondary, address);
        for bus in buses.secondary..=buses.subordinate {
            let innermost = above.entry((address.domain, bus)).or_insert(this);
            if innermost.0 < this.0 {
                *innermost = this;
            }
        }
    }
    for device in all {
        let Address { domain, bus, .. } = device.address;
        device.parent = above.get(&(domain, bus)).map(|(_, address)| *address);
    }
}

/// The bridges above a device, the nearest first.
pub fn bridges_above<'a>(all: &'a [Device], device: &Device) -> Vec<&'a Device> {
    let mut found: Vec<&Device> = Vec::new();
    let mut parent = device.parent;
    while let Some(bridge) = parent.and_then(|address| at(all, address)) {
        // Only a list made by hand could contain a loop. There are at most 256 bridges above a bus.
        if found.len() > 256 {
            break;
        }
        found.push(bridge);
        parent = bridge.parent;
    }
    found
}

/// The port at the other end of the link above `device`; `None` if the bus above is inside a switch, where there is no
/// link.
pub fn other_end<'a>(all: &'a [Device], device: &Device) -> Option<&'a Device> {
    let above = bridges_above(all, device);
    let parent = *above.first()?;
    let faces_down = match parent.kind {
        Some(kind) => matches!(kind, PortKind::Root | PortKind::Downstream),
        // Going down, ports are: root port, upper side of a switch, lower side, upper side of the next switch ...
        None => above.len() % 2 == 1,
    };
    (faces_down && device.now.is_some()).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(address: &str, buses: Option<(u8, u8)>) -> Device {
        Device {
            address: address.parse().unwrap(),
            buses: buses.map(|(secondary, subordinate)| Buses { secondary, subordinate }),
            now: Some(Link::default()),
            ..Device::default()
        }
    }

    fn tree(devices: &[(&str, Option<(u8, u8)>)]) -> Vec<Device> {
        let mut all: Vec<_> = devices.iter().map(|(a, b)| device(a, *b)).collect();
        find_parents(&mut all);
        all
    }

    fn parents(all: &[Device]) -> Vec<String> {
        let name = |a: Address| a.to_string();
        all.iter().map(|d| d.parent.map_or(String::new(), name)).collect()
    }

    #[test]
    fn an_iommu_is_strict_by_its_domain_or_by_what_was_asked_for_at_boot() {
        let of = |domain: &str, kernel: &str, boot: &str| {
            let boot: Vec<String> = boot.split(' ').map(str::to_owned).collect();
            Iommu::of(domain, kernel, &boot)
        };
        let (strict, lazy) = (Some(Iommu::Strict), Some(Iommu::Lazy));
        let (requested, passed) = (Some(Iommu::LazyByRequest), Some(Iommu::Passed));
        for (domain, kernel, boot, want) in [
            ("DMA", "5.15.0-1", "", strict),
            ("DMA", "5.14.21", "", None),
            ("DMA", "5.14.21", "intel_iommu=on", requested),
            ("DMA", "5.14.21", "intel_iommu=on,strict", strict),
            ("DMA", "", "", None),
            ("DMA-FQ", "6.1.0", "", lazy),
            ("identity", "6.1.0", "intel_iommu=on iommu=pt", passed),
            ("blocked", "6.1.0", "", None),
            ("", "6.1.0", "quiet intel_iommu=on", requested),
            ("DMA-FQ", "6.1.0", "intel_iommu=on", requested),
            ("", "6.1.0", "intel_iommu=on iommu.strict=1", strict),
            ("", "6.1.0", "intel_iommu=on iommu=pt", passed),
            ("", "6.1.0", "amd_iommu=fullflush", strict),
            ("", "6.1.0", "intel_iommu=off iommu.strict=1", None),
            ("", "6.1.0", "quiet", None),
        ] {
            assert_eq!(of(domain, kernel, boot), want, "{domain} {kernel} {boot}");
        }
    }

    #[test]
    fn addresses_read_back_and_others_are_refused() {
        for text in ["0000:82:00.0", "10000:e1:1f.7", "ffffffff:00:00.0"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "82:00.0",
            "0000:82:00",
            "0000:82:20.0",
            "0000:82:00.8",
            "0000:182:00.0",
            "100000000:00:00.0",
            "0000:82:+0.0",
            "0000:00:00.0:1",
            "0000:0:0:0.0",
        ] {
            assert!(bad.parse::<Address>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_innermost_bridge_of_the_same_domain_is_the_parent() {
        let all = tree(&[
            ("0000:00:01.0", Some((1, 3))),
            ("0000:01:00.0", Some((2, 3))),
            ("0000:02:00.0", Some((3, 3))),
            ("0000:03:00.0", None),
            ("10000:03:00.0", None),
        ]);
        assert_eq!(parents(&all), ["", "0000:00:01.0", "0000:01:00.0", "0000:02:00.0", ""]);
        // The devices are root port, switch, switch, card. There is no link inside the switch.
        let ends: Vec<_> = all.iter().map(|d| other_end(&all, d).map(|e| e.address)).collect();
        let at = |i: usize| Some(all[i].address);
        assert_eq!(ends, [None, at(0), None, at(2), None]);
    }

    #[test]
    fn bridges_without_sense_make_no_circle() {
        let all = tree(&[
            ("0000:00:01.0", Some((0, 255))),
            ("0000:01:00.0", Some((1, 1))),
            ("0000:02:00.0", Some((1, 9))),
        ]);
        assert_eq!(parents(&all), ["", "", ""]);
    }

    #[test]
    fn rates_of_links() {
        let rate = |giga: f64, width| {
            let speed = Some(Transfers((giga * 1e9) as u64));
            let width = Some(width);
            Link { speed, width }.rate().unwrap().0 as f64 / 1e9
        };
        for (giga, width, want) in
            [(2.5, 1, 2.0), (5.0, 4, 16.0), (8.0, 8, 63.02), (16.0, 16, 252.06), (64.0, 1, 60.5)]
        {
            assert!((rate(giga, width) - want).abs() < 0.01, "{giga} x{width}");
        }
        assert_eq!(Link::default().rate(), None);
        let most = Link { speed: Some(Transfers(u64::MAX)), width: Some(u8::MAX) };
        assert_eq!(most.rate(), Some(Rate(u64::MAX)), "no overflow");
    }
}
