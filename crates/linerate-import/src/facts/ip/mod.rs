//! Reads the output of `ip link` and `ip addr`, as text and as JSON.

mod ifconfig;
mod json;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use ifconfig::IFCONFIG;
pub(crate) use json::IP_JSON;
pub(crate) use text::IP;

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_facts::Inventory;
use linerate_facts::infiniband::{Guid, Ipoib};
use linerate_facts::nic::{Bond, Nic, Tunnel, TunnelKind, VIRTUAL_BUSES};

const VERSIONS: &str = "iproute2 4.0 to 6.15";
const UNKNOWN: &str =
    "Driver, speed and settings of a port are not in it; without -d, neither is its kind.";
const IPOIB: &str = "ipoib";
/// Kinds of ports that have one port below, which their name shows after `@`.
const ON_ONE: [&str; 7] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec", "ipoib"];

/// Names of options that add bytes to the headers of a tunnel.
const OPTIONS: [&str; 10] =
    ["key", "ikey", "okey", "csum", "icsum", "ocsum", "seq", "iseq", "oseq", "encap"];

/// A port as `ip` shows it. A text is empty if it is unknown.
#[derive(Debug, Default)]
struct Shown {
    /// Facts that need no other port. The kind is the one that `-d` shows.
    nic: Nic,
    /// The name after `@`: the port below, or the other end of a pair.
    lower: String,
    is_lower_hidden: bool,
    master: String,
    /// The kind of hardware: `ether`, `loopback`, `infiniband` or `none`.
    hardware: String,
    /// Hardware address of the port.
    address: String,
    /// Mode of a bond, or of IP over InfiniBand.
    mode: String,
    hash: String,
    active: String,
    /// Number of the LACP aggregator that a bond uses, or that its member belongs to.
    aggregator: Option<u16>,
    partner: String,
    tunnel: Ends,
    bus: String,
    /// Addresses that are valid beyond the link; `None` if the output shows no addresses.
    addresses: Option<Vec<String>>,
}

/// Settings of a tunnel, if `-d` shows them.
#[derive(Debug, Default)]
struct Ends {
    /// An outer address of the tunnel: that of the far end or, if unknown, of this end.
    outer: String,
    /// The port that the tunnel is bound to.
    carrier: String,
    /// Whether a program sets the destination of each packet (an external tunnel).
    is_external: bool,
    /// Whether options add bytes to the tunnel's headers.
    has_options: bool,
}

/// The flags of a port that is up and has a link, by the names that `ip` uses.
const UP: [&str; 2] = ["UP", "LOWER_UP"];

/// Whether both of the wanted flags are set.
fn has_all<'a>(flags: impl Iterator<Item = &'a str>, wanted: [&str; 2]) -> bool {
    let flags: Vec<&str> = flags.filter(|flag| wanted.contains(flag)).collect();
    wanted.iter().all(|flag| flags.contains(flag))
}

/// Adds the ports to the facts.
fn keep(facts: &mut Inventory, all: &[Shown]) {
    let names: BTreeMap<&str, u32> =
        all.iter().map(|port| (port.nic.name.as_str(), port.nic.index)).collect();
    let index = |name: &str| names.get(name).copied();
    let mut nics: Vec<Nic> = all.iter().map(|port| nic(port, &index)).collect();
    for port in all {
        let (Some(above), Some(below)) = (index(&port.master), index(&port.nic.name)) else {
            continue;
        };
        if let Some(upper) = nics.iter_mut().find(|nic| nic.index == above) {
            upper.stack.below.push(below);
        }
    }
    facts.network.nics = nics;
    let ipoib = all.iter().filter(|port| port.hardware == "infiniband");
    facts.infiniband.interfaces = ipoib.map(interface).collect();
}

fn nic(port: &Shown, index: &impl Fn(&str) -> Option<u32>) -> Nic {
    let is_loopback = port.hardware == "loopback";
    let kind = match port.hardware.as_str() {
        "infiniband" => IPOIB,
        _ => &port.nic.kind,
    };
    let is_software = is_loopback || !kind.is_empty() && kind != IPOIB;
    let is_virtual = is_software || VIRTUAL_BUSES.contains(&port.bus.as_str());
    let mut nic = Nic { kind: kind.to_owned(), is_virtual, ..port.nic.clone() };
    if is_loopback {
        "loopback".clone_into(&mut nic.driver);
    } else if is_software {
        nic.driver.clone_from(&nic.kind);
    }
    if port.bus == "pci" {
        nic.pci.clone_from(&port.nic.device);
    }
    stack(&mut nic, port, index);
    nic
}

fn stack(nic: &mut Nic, port: &Shown, index: &impl Fn(&str) -> Option<u32>) {
    nic.stack.above = index(&port.master);
    if ON_ONE.contains(&nic.kind.as_str()) {
        nic.stack.below.extend(index(&port.lower));
        nic.stack.below_hidden = port.is_lower_hidden;
    }
    if nic.kind == "bond" {
        nic.stack.bond = Some(Bond {
            mode: port.mode.clone(),
            hash: port.hash.clone(),
            active: index(&port.active),
            aggregator: port.aggregator,
            partner: port.partner.clone(),
        });
    } else {
        nic.stack.aggregator = port.aggregator;
    }
    if let Some(kind) = TunnelKind::named(&nic.kind).filter(|_| nic.is_wrapping()) {
        let ends = &port.tunnel;
        let outer: Option<IpAddr> = ends.outer.parse().ok();
        let version = outer.map(|ip| if ip.is_ipv4() { 4 } else { 6 });
        let besides = (!ends.has_options).then_some(0);
        nic.stack.tunnel = Some(Tunnel {
            external: ends.is_external,
            ..kind.tunnel(version, kind.frames, besides)
        });
        nic.stack.below.extend(index(&ends.carrier));
    }
}

/// The GUID of an InfiniBand port: the last 8 of the 20 bytes of its hardware address.
//= RFC 4391, section 9.1.1
fn guid(address: &str) -> Option<Guid> {
    let bytes: Vec<&str> = address.split(':').take(21).collect();
    let last = bytes.get(12..20).filter(|_| bytes.len() == 20)?;
    let is_byte = |byte: &&str| byte.len() == 2 && byte.bytes().all(|b| b.is_ascii_hexdigit());
    let digits = last.iter().all(is_byte).then(|| last.concat())?;
    u64::from_str_radix(&digits, 16).ok().map(Guid)
}

fn interface(port: &Shown) -> Ipoib {
    Ipoib {
        name: port.nic.name.clone(),
        pci: if port.bus == "pci" { port.nic.device.clone() } else { String::new() },
        mode: if port.nic.kind == IPOIB { port.mode.clone() } else { String::new() },
        addresses: port.addresses.clone(),
        guid: guid(&port.address),
        ..Ipoib::default()
    }
}
