//! How a disk is reached, and by which ways.

use linerate_core::facts::block::{BlockDevice, Path};
use linerate_core::parse::{sysctl, sysfs};

use super::super::Reader;
use crate::host::read;

/// Drivers of SCSI hosts (`proc_name`) that tell how their disks are reached. SRP has no such name:
/// only its hosts have `local_ib_device`.
const HOSTS: [(&str, &str); 6] = [
    ("iscsi_iser", "iser"),
    ("iscsi_tcp", "iscsi"),
    ("usb-storage", "usb"),
    ("uas", "usb"),
    ("ahci", "ata"),
    ("virtio_scsi", "virtio"),
];
/// Classes in which a SCSI host has a folder of its own name.
const CLASSES: [(&str, &str); 3] = [
    ("fc_host", "fc"),
    ("sas_host", "sas"),
    ("iscsi_host", "iscsi"),
];

impl Reader<'_> {
    /// Model, transport and place of a disk.
    pub(super) fn disk(&mut self, device: &mut BlockDevice, folder: &str) {
        let above = format!("{folder}/device");
        device.model = self.optional_line(&format!("{above}/model"));
        if device.name.starts_with("nvme") {
            self.nvme(device, &above);
        } else if let Some(transport) = self.scsi(&above) {
            transport.clone_into(&mut device.transport);
        } else {
            let driver = read(self.machine, &format!("{above}/uevent"), |text| {
                Ok(sysctl::value_text(text, "DRIVER"))
            });
            if driver
                .ok()
                .flatten()
                .is_some_and(|driver| driver == "virtio_blk")
            {
                "virtio".clone_into(&mut device.transport);
            }
        }
        if device.pci.is_empty() {
            device.pci = self.pci_above(folder);
        }
        if device.transport.is_empty() {
            self.by_function(device).clone_into(&mut device.transport);
        }
        device.node = self.node_of(&device.pci);
    }

    /// How a disk is reached by the PCI function that it hangs on, where nothing nearer tells: of
    /// trees that lack the classes, and of disks behind RAID controllers.
    fn by_function(&self, device: &BlockDevice) -> &'static str {
        /// Class of RAID controllers.
        const RAID: &str = "0x0104";
        if device.pci.is_empty() {
            return "";
        }
        if device.name.starts_with("nvme") {
            return "pcie";
        }
        let folder = format!("/sys/bus/pci/devices/{}", device.pci);
        let driver = read(self.machine, &format!("{folder}/uevent"), |text| {
            Ok(sysctl::value_text(text, "DRIVER"))
        });
        match driver.ok().flatten().as_deref() {
            Some("ahci" | "ata_piix") => "ata",
            _ if self
                .optional_line(&format!("{folder}/class"))
                .starts_with(RAID) =>
            {
                "raid"
            }
            _ => "",
        }
    }

    /// A namespace hangs on its controller or, where there may be several, on their subsystem.
    fn nvme(&mut self, device: &mut BlockDevice, above: &str) {
        let names = self.machine.list(above).unwrap_or_default();
        let controllers: Vec<&str> = if names.iter().any(|name| name == "iopolicy") {
            device.policy = self.optional_line(&format!("{above}/iopolicy"));
            names
                .iter()
                .map(String::as_str)
                .filter(|name| is_controller(name))
                .collect()
        } else {
            // nvme0n1 of nvme0.
            let end = device.name.rfind('n').unwrap_or(0);
            vec![&device.name[..end]]
        };
        let paths = controllers.into_iter().map(|name| self.controller(name));
        // A tree of files, or a kernel of old, may not show them.
        device.paths = paths.filter(|path| !path.transport.is_empty()).collect();
        if let Some(first) = device.paths.first() {
            device.transport.clone_from(&first.transport);
            if first.transport == "pcie" {
                device.pci.clone_from(&first.address);
            }
        }
    }

    fn controller(&self, name: &str) -> Path {
        let folder = format!("/sys/class/nvme/{name}");
        let line = |file: &str| self.optional_line(&format!("{folder}/{file}"));
        let number = |file: &str| {
            let number = read(
                self.machine,
                &format!("{folder}/{file}"),
                sysfs::number_or_none,
            );
            number.ok().flatten()
        };
        Path {
            name: name.to_owned(),
            transport: line("transport"),
            address: line("address"),
            state: line("state"),
            node: number("numa_node").and_then(|node| u32::try_from(node).ok()),
            queues: number("queue_count"),
            depth: number("sqsize"),
        }
    }

    /// How a SCSI disk is reached; `None` for other disks and hosts that are not known.
    fn scsi(&self, above: &str) -> Option<&'static str> {
        let names = self.machine.list(&format!("{above}/scsi_device")).ok()?;
        // host:channel:target:unit.
        let host = format!("host{}", names.first()?.split(':').next()?);
        let folder = format!("/sys/class/scsi_host/{host}");
        if !self
            .optional_line(&format!("{folder}/local_ib_device"))
            .is_empty()
        {
            return Some("srp");
        }
        let driver = self.optional_line(&format!("{folder}/proc_name"));
        if let Some((_, transport)) = HOSTS.iter().find(|(name, _)| *name == driver) {
            return Some(transport);
        }
        let listed = |class: &str| {
            self.machine
                .list(&format!("/sys/class/{class}/{host}"))
                .is_ok()
        };
        let class = CLASSES.iter().find(|(class, _)| listed(class));
        class.map(|(_, transport)| *transport)
    }
}

/// `nvme0`, and neither `nvme0n1` nor `nvme0c1n1`.
fn is_controller(name: &str) -> bool {
    let number = name.strip_prefix("nvme");
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}
