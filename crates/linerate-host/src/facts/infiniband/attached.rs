//! What belongs to RDMA devices: device files for programs, IPoIB interfaces, and kernel modules for cards without a
//! driver.

use std::io;

use linerate_facts::board;
use linerate_facts::infiniband::{Claim, Infiniband, Ipoib};
use linerate_facts::parse::link::INFINIBAND;
use linerate_facts::parse::{address, alias, sysfs};
use linerate_facts::pci::Device;

use super::super::Reader;
use super::super::pci::DEVICES;
use crate::{Machine, Query, read};

const NET: &str = "/sys/class/net";
/// The bit of an IPoIB hardware address that is set if the interface can use connected mode.
//= torvalds/linux, drivers/infiniband/ulp/ipoib/ipoib.h: IPOIB_FLAGS_RC, which ipoib_set_mode checks. Interfaces whose
//= driver has its own data path (enhanced IPoIB of mlx5, hfi1_vnic) do not set it.
const CONNECTABLE: u8 = 0x80;

impl Reader<'_> {
    /// Returns the RDMA devices that have a device file of the class `class`; `None` if they are unknown.
    pub(super) fn users_of(&self, class: &str) -> Option<Vec<String>> {
        let class = format!("/sys/class/{class}");
        let names = match self.machine.list(&class) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(_) => return None,
        };
        // If the kernel module is not loaded, the class does not exist. If `/sys/class` does not exist either, nothing
        // is known.
        self.machine.list("/sys/class").ok()?;
        let device = |name: &String| self.optional_line(&format!("{class}/{name}/ibdev"));
        let mut found: Vec<String> = names.iter().map(device).filter(|d| !d.is_empty()).collect();
        found.sort();
        found.dedup();
        Some(found)
    }

    /// Reads the IPoIB interfaces.
    pub(super) fn interfaces(&self) -> Vec<Ipoib> {
        let names = self.machine.list(NET).unwrap_or_default();
        let mut addresses = None;
        let found = names.into_iter().filter_map(|name| {
            let folder = format!("{NET}/{name}");
            let kind = read(self.machine, &format!("{folder}/type"), sysfs::number_or_none);
            let is_ipoib = kind.ok().flatten() == Some(u64::from(INFINIBAND));
            is_ipoib.then(|| {
                let all = addresses.get_or_insert_with(|| self.global_addresses());
                self.interface(name, &folder, all.as_deref())
            })
        });
        found.collect()
    }

    fn interface(&self, name: String, folder: &str, all: Option<&[(u32, String)]>) -> Ipoib {
        let number = |file: &str| {
            let path = format!("{folder}/{file}");
            let value = read(self.machine, &path, sysfs::hexadecimal_or_decimal).ok()?;
            u32::try_from(value).ok()
        };
        let index = number("ifindex");
        let own = |index: u32| {
            let own = all?.iter().filter(|(port, _)| *port == index);
            Some(own.map(|(_, ip)| ip.clone()).collect())
        };
        let hardware = self.optional_line(&format!("{folder}/address"));
        Ipoib {
            pci: self.pci_above(&format!("{folder}/device")),
            port: number("dev_id").map(|id| id.saturating_add(1)),
            mode: self.optional_line(&format!("{folder}/mode")),
            connectable: connectable(&hardware),
            addresses: index.and_then(own),
            guid: None,
            name,
        }
    }

    /// Returns the IP addresses that are valid beyond their link, each with the index of its interface; `None` if
    /// unknown.
    fn global_addresses(&self) -> Option<Vec<(u32, String)>> {
        let reply = self.machine.query(&Query::Addresses).ok()?;
        let all: Result<Vec<_>, _> = address::parse(&reply).collect();
        let global = all.ok()?.into_iter().filter(|address| address.is_global);
        Some(global.map(|a| (a.port, format!("{}/{}", a.ip, a.prefix))).collect())
    }
}

/// Returns whether an interface can be set to connected mode, according to its hardware address of 20 bytes. `None` if
/// the address is masked.
fn connectable(hardware: &str) -> Option<bool> {
    let bytes: Vec<&str> = hardware.split(':').collect();
    let first = bytes.first().filter(|_| bytes.len() == 20)?;
    let flags = u8::from_str_radix(first, 16).ok()?;
    Some(flags & CONNECTABLE != 0)
}

/// Reads which kernel modules claim the cards that could have an RDMA device but have none.
pub(in crate::facts) fn claims(
    machine: &dyn Machine,
    pci: &[Device],
    kernel: &str,
    rdma: &Infiniband,
) -> Vec<Claim> {
    let idle = pci.iter().filter(|function| {
        let address = function.address.to_string();
        board::is_candidate(function) && rdma.devices.iter().all(|device| device.pci != address)
    });
    let idle: Vec<String> = idle.map(|function| function.address.to_string()).collect();
    if idle.is_empty() {
        return Vec::new();
    }
    let text = machine.file(&format!("/lib/modules/{kernel}/modules.alias"));
    let modules = |address: &str| {
        let text = text.as_ref().ok()?;
        let device = machine.file(&format!("{DEVICES}/{address}/modalias")).ok()?;
        let device = String::from_utf8_lossy(&device);
        Some(alias::claiming(text, device.trim_end()))
    };
    let claim = |pci: String| Claim { modules: modules(&pci), pci };
    idle.into_iter().map(claim).collect()
}

#[cfg(test)]
mod tests {
    use super::connectable;

    #[test]
    fn connected_mode_is_a_bit_of_the_hardware_address() {
        let address = |first: &str| format!("{first}{}", ":00".repeat(19));
        assert_eq!(connectable(&address("80")), Some(true));
        assert_eq!(connectable(&address("a0")), Some(true));
        assert_eq!(connectable(&address("20")), Some(false));
        assert_eq!(connectable(&address("00")), Some(false));
        for unknown in ["", "masked", "80:00:00:00:00:01", &address("zz")] {
            assert_eq!(connectable(unknown), None, "{unknown}");
        }
    }
}
