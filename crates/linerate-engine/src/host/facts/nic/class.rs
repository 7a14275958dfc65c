//! Ports from /sys alone, for a tree of files, which answers no queries.

use linerate_core::facts::nic::{Duplex, LinkModes, Nic, PortErrors, speed_of_mbps};
use linerate_core::parse::link::LOOPBACK;
use linerate_core::parse::{sysctl, sysfs};

use super::super::port::VIRTUAL_DRIVERS;
use super::{Port, Reader};
use crate::host::{gap, read};

const CLASS: &str = "/sys/class/net";

impl Reader<'_> {
    /// The ports that /sys lists. That the kernel was not asked has a gap already.
    pub(super) fn listed_nics(&mut self) -> Vec<Nic> {
        let names = self.machine.list(CLASS).unwrap_or_default();
        let (mut nics, mut missing) = (Vec::new(), Vec::new());
        for name in names {
            match self.listed_nic(&name) {
                Some(nic) => nics.push(nic),
                None => missing.push(name),
            }
        }
        if !missing.is_empty() {
            let why = format!(
                "{CLASS} lists them without their files: {}",
                missing.join(", ")
            );
            self.gaps.push(gap("facts.nic", &why, "ip link"));
        }
        nics.sort_by_key(|nic| nic.index);
        nics
    }

    fn listed_nic(&mut self, name: &str) -> Option<Nic> {
        let folder = format!("{CLASS}/{name}");
        let index = u32::try_from(self.whole(&format!("{folder}/ifindex"))?).ok()?;
        let mut nic = Nic {
            name: name.to_owned(),
            index,
            is_virtual: true,
            up: self.optional_line(&format!("{folder}/operstate")) == "up",
            mtu: self
                .whole(&format!("{folder}/mtu"))
                .and_then(|mtu| u32::try_from(mtu).ok()),
            kind: self.of_uevent(&folder, "DEVTYPE"),
            errors: self.listed_errors(&folder),
            ..Nic::default()
        };
        if self.whole(&format!("{folder}/type")) == Some(u64::from(LOOPBACK)) {
            "loopback".clone_into(&mut nic.driver);
            return Some(nic);
        }
        self.listed_device(&mut nic, &folder);
        self.listed_stack(&mut nic, &folder);
        nic.link = self.listed_link(&folder);
        let mut port = Port {
            name: name.to_owned(),
            index,
            went: false,
            reader: self,
        };
        port.queues(&mut nic, Some(&folder));
        Some(nic)
    }

    fn listed_device(&self, nic: &mut Nic, folder: &str) {
        let device = format!("{folder}/device");
        if self.machine.list(&device).is_err() {
            nic.driver.clone_from(&nic.kind);
            return;
        }
        nic.driver = self.of_uevent(&device, "DRIVER");
        nic.pci = self.pci_above(&device);
        nic.node = self.node_of(&nic.pci);
        // What a hypervisor made up sits on a bus of its own, and has no PCI address of its own.
        let own_pci = self.of_uevent(&device, "PCI_SLOT_NAME");
        nic.is_virtual = own_pci.is_empty() || VIRTUAL_DRIVERS.contains(&nic.driver.as_str());
    }

    /// `lower_NAME` leads to each port below, `master` to the one above.
    fn listed_stack(&self, nic: &mut Nic, folder: &str) {
        let index = |path: String| u32::try_from(self.whole(&path)?).ok();
        nic.stack.above = index(format!("{folder}/master/ifindex"));
        let names = self.machine.list(folder).unwrap_or_default();
        let lower = names.iter().filter(|name| name.starts_with("lower_"));
        let below = lower.filter_map(|name| index(format!("{folder}/{name}/ifindex")));
        nic.stack.below = below.collect();
        nic.stack.below.sort_unstable();
    }

    /// A port that is down has neither speed nor duplex: that is no gap.
    fn listed_link(&self, folder: &str) -> LinkModes {
        let speed = read(
            self.machine,
            &format!("{folder}/speed"),
            sysfs::number_or_none,
        );
        LinkModes {
            speed: speed.ok().flatten().and_then(speed_of_mbps),
            duplex: match self.optional_line(&format!("{folder}/duplex")).as_str() {
                "full" => Some(Duplex::Full),
                "half" => Some(Duplex::Half),
                _ => None,
            },
            ..LinkModes::default()
        }
    }

    fn listed_errors(&self, folder: &str) -> PortErrors {
        let count = |name: &str| self.whole(&format!("{folder}/statistics/{name}"));
        let changes = self.whole(&format!("{folder}/carrier_changes"));
        PortErrors {
            rx_errors: count("rx_errors"),
            tx_errors: count("tx_errors"),
            rx_dropped: count("rx_dropped"),
            tx_dropped: count("tx_dropped"),
            rx_missed: count("rx_missed_errors"),
            rx_fifo: count("rx_fifo_errors"),
            rx_crc: count("rx_crc_errors"),
            collisions: count("collisions"),
            carrier_changes: changes.and_then(|n| u32::try_from(n).ok()),
        }
    }

    fn whole(&self, path: &str) -> Option<u64> {
        read(self.machine, path, sysctl::number).ok()
    }

    fn of_uevent(&self, folder: &str, key: &str) -> String {
        let value = read(self.machine, &format!("{folder}/uevent"), |text| {
            Ok(sysctl::value_text(text, key))
        });
        value.ok().flatten().unwrap_or_default()
    }
}
