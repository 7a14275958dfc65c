//! Chooses the port of this host through which the InfiniBand network is queried.

use std::fmt;
use std::str::FromStr;

use linerate_facts::infiniband::PhysicalState;
use linerate_facts::parse::{infiniband, sysctl};

use super::error::UmadError;
use crate::Machine;

const DEVICES: &str = "/sys/class/infiniband";
const MAD_DEVICES: &str = "/sys/class/infiniband_mad";

/// Version of the kernel's user MAD interface that linerate implements.
//= Linux, include/uapi/rdma/ib_user_mad.h: IB_USER_MAD_ABI_VERSION
const VERSION: &str = "5";

/// A device that the user named, with or without a port number: `mlx5_0`, `mlx5_0:2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    device: String,
    /// Port number; `None` for any port of the device.
    port: Option<u32>,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (device, port) = match text.split_once(':') {
            Some((device, port)) => (device, Some(port)),
            None => (text, None),
        };
        let number = |text: &str| {
            let number = text.parse();
            number.map_err(|_| format!("{text:?} is no port number: write {device}:1"))
        };
        if device.is_empty() {
            return Err("a device is written like mlx5_0 or mlx5_0:2".to_owned());
        }
        Ok(Self { device: device.to_owned(), port: port.map(number).transpose()? })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.device)?;
        match self.port {
            Some(port) => write!(f, " port {port}"),
            None => Ok(()),
        }
    }
}

/// Name of a port: the RDMA device, and the port's number on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Name of the device, such as `mlx5_0`.
    pub device: String,
    /// Number of the port, from 1; port 0 is the management port of a switch itself.
    pub port: u32,
}

impl Name {
    /// Returns the port in the form of the `--device` option, such as `mlx5_0:1`.
    pub fn option(&self) -> String {
        format!("{}:{}", self.device, self.port)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} port {}", self.device, self.port)
    }
}

/// Protocol of a port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    InfiniBand,
    /// Ethernet, for RoCE or iWARP.
    Ethernet,
    /// Omni-Path: the kernel calls its link layer InfiniBand, and its management datagrams have another format.
    OmniPath,
}

/// A port of an RDMA device.
#[derive(Debug)]
struct Found {
    name: Name,
    kind: Kind,
    has_link: bool,
}

impl Found {
    fn suits(&self, wanted: Option<&Wanted>) -> bool {
        let Name { device, port } = &self.name;
        let suits = |wanted: &Wanted| {
            wanted.device == *device && wanted.port.is_none_or(|wanted| wanted == *port)
        };
        wanted.is_none_or(suits)
    }
}

/// The port through which the network is queried.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) name: Name,
    /// Name of the port's user MAD device, such as `umad0`.
    pub(super) umad: String,
    /// Other InfiniBand ports of this host.
    pub(super) others: Vec<Name>,
}

/// Chooses a port that matches `wanted`. If several match, the first one with a link is chosen.
pub(super) fn choose(machine: &dyn Machine, wanted: Option<&Wanted>) -> Result<Choice, UmadError> {
    let found = ports(machine);
    let suited = || found.iter().filter(|port| port.suits(wanted));
    let Some(any) = suited().next() else {
        return Err(match wanted {
            Some(wanted) if !found.is_empty() => UmadError::NotHere {
                wanted: wanted.to_string(),
                ports: found.into_iter().map(|port| port.name).collect(),
            },
            _ => UmadError::NoDevice,
        });
    };
    let fit = || suited().filter(|port| port.kind == Kind::InfiniBand);
    let first = fit().find(|port| port.has_link).or_else(|| fit().next());
    let Some(Found { name, .. }) = first else {
        let port = any.name.clone();
        return Err(match any.kind {
            Kind::OmniPath => UmadError::OmniPath { port },
            Kind::InfiniBand | Kind::Ethernet => UmadError::Ethernet { port },
        });
    };
    let others = found.iter().filter(|port| port.kind == Kind::InfiniBand);
    let others = others.map(|port| &port.name).filter(|other| *other != name);
    Ok(Choice {
        name: name.clone(),
        umad: mad_device(machine, name)?,
        others: others.cloned().collect(),
    })
}

/// Returns all ports of RDMA devices, sorted by device and number.
fn ports(machine: &dyn Machine) -> Vec<Found> {
    let mut found = Vec::new();
    for device in machine.list(DEVICES).unwrap_or_default() {
        let folder = format!("{DEVICES}/{device}/ports");
        let names = machine.list(&folder).unwrap_or_default();
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        let is_omni_path = is_omni_path(machine, &device);
        for port in numbers {
            let folder = format!("{folder}/{port}");
            let physical = machine.file(&format!("{folder}/phys_state"));
            let physical = physical.ok().and_then(|text| infiniband::state(&text).ok());
            let layer = line(machine, &format!("{folder}/link_layer"));
            found.push(Found {
                name: Name { device: device.clone(), port },
                kind: match layer.as_deref() {
                    Some("Ethernet") => Kind::Ethernet,
                    _ if is_omni_path => Kind::OmniPath,
                    _ => Kind::InfiniBand,
                },
                has_link: physical.and_then(PhysicalState::of) == Some(PhysicalState::LinkUp),
            });
        }
    }
    found
}

/// Returns whether a device is an Omni-Path device, by its driver or its name.
fn is_omni_path(machine: &dyn Machine, device: &str) -> bool {
    let uevent = machine.file(&format!("{DEVICES}/{device}/device/uevent"));
    let by_driver = uevent.is_ok_and(|text| {
        let text = String::from_utf8_lossy(&text).into_owned();
        text.lines().any(|line| line == "DRIVER=hfi1")
    });
    by_driver || device.starts_with("hfi1_")
}

/// Returns the name of the user MAD device of a port.
fn mad_device(machine: &dyn Machine, port: &Name) -> Result<String, UmadError> {
    let names =
        machine.list(MAD_DEVICES).map_err(|_| UmadError::NoModule { port: port.clone() })?;
    match line(machine, &format!("{MAD_DEVICES}/abi_version")) {
        Some(version) if version != VERSION => return Err(UmadError::Version { version }),
        _ => {}
    }
    let is_of = |name: &String| {
        let number = name.strip_prefix("umad").unwrap_or_default();
        let of = |file: &str| line(machine, &format!("{MAD_DEVICES}/{name}/{file}"));
        number.parse::<u32>().is_ok()
            && of("ibdev").as_ref() == Some(&port.device)
            && of("port") == Some(port.port.to_string())
    };
    let found = names.into_iter().find(is_of);
    found.ok_or_else(|| UmadError::NoMadDevice { port: port.clone() })
}

fn line(machine: &dyn Machine, path: &str) -> Option<String> {
    machine.file(path).ok().map(|text| sysctl::line(&text))
}

#[cfg(test)]
mod tests;
