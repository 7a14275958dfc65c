//! The transport of a disk, and the paths to it.

use linerate_facts::block::{BlockDevice, Namespace, Path};
use linerate_facts::parse::{sysctl, sysfs};

use super::super::Reader;
use super::CLASS;
use crate::read;

const NVME: &str = "/sys/class/nvme";
/// Drivers of SCSI hosts (`proc_name`) that show how their disks are attached. SRP is not among them: it is
/// identified by the attribute `local_ib_device`.
const HOSTS: [(&str, &str); 6] = [
    ("iscsi_iser", "iser"),
    ("iscsi_tcp", "iscsi"),
    ("usb-storage", "usb"),
    ("uas", "usb"),
    ("ahci", "ata"),
    ("virtio_scsi", "virtio"),
];
/// Classes in sysfs in which a SCSI host has a folder with the host's name.
const CLASSES: [(&str, &str); 3] =
    [("fc_host", "fc"), ("sas_host", "sas"), ("iscsi_host", "iscsi")];

impl Reader<'_> {
    /// Reads a disk's model, transport, PCI function and node.
    pub(super) fn disk(&mut self, device: &mut BlockDevice, folder: &str, hidden: &[&String]) {
        let above = format!("{folder}/device");
        device.model = self.optional_line(&format!("{above}/model"));
        if device.name.starts_with("nvme") {
            self.nvme(device, &above, hidden);
        } else if let Some(transport) = self.scsi(&above) {
            transport.clone_into(&mut device.transport);
        } else {
            let driver = read(self.machine, &format!("{above}/uevent"), |text| {
                Ok(sysctl::value_text(text, "DRIVER"))
            });
            if driver.ok().flatten().is_some_and(|driver| driver == "virtio_blk") {
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

    /// Returns the transport of a disk according to its PCI function. It is used if nothing closer to the disk shows
    /// the transport: in directory trees without the classes, and for disks behind RAID controllers.
    fn by_function(&self, device: &BlockDevice) -> &'static str {
        /// PCI class of RAID controllers.
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
            _ if self.optional_line(&format!("{folder}/class")).starts_with(RAID) => "raid",
            _ => "",
        }
    }

    /// Reads the controllers of an NVMe namespace. In sysfs the namespace belongs to its controller or, if it may have
    /// several paths, to the controllers' subsystem. In the second case each path is a hidden device that belongs to
    /// the path's controller.
    fn nvme(&mut self, device: &mut BlockDevice, above: &str, hidden: &[&String]) {
        let names = self.machine.list(above).unwrap_or_default();
        let several = names.iter().any(|name| name == "iopolicy");
        if several {
            device.policy = self.optional_line(&format!("{above}/iopolicy"));
        }
        let mut ways: Vec<(u32, &str)> = hidden
            .iter()
            .filter_map(|name| Some((Namespace::of(name)?, name.as_str())))
            .filter(|(way, _)| way.is_way_to(&device.name))
            .filter_map(|(way, name)| Some((way.controller?, name)))
            .collect();
        ways.sort_unstable();
        device.paths = if !ways.is_empty() {
            let ways = ways.into_iter();
            ways.map(|(controller, name)| self.way(controller, name)).collect()
        } else if several {
            // Old kernels and some directory trees do not show paths.
            let controllers = names.iter().filter(|name| is_controller(name));
            controllers
                .map(|name| self.controller(name, &format!("{NVME}/{name}")))
                .filter(|path| !path.transport.is_empty())
                .collect()
        } else {
            self.only_controller(&device.name, above).into_iter().collect()
        };
        if let Some(first) = device.paths.first() {
            device.transport.clone_from(&first.transport);
            if first.transport == "pcie" {
                device.pci.clone_from(&first.address);
            }
        }
    }

    /// Returns the controller of a disk with a single path. The disk usually has the controller's number, since a
    /// subsystem has the number of its first controller.
    fn only_controller(&self, disk: &str, above: &str) -> Option<Path> {
        let by_name = &disk[..disk.rfind('n').unwrap_or(0)];
        let name = self.device_name(above);
        let name = name.filter(|name| is_controller(name));
        let name = name.as_deref().unwrap_or(by_name);
        let path = self.controller(name, &format!("{NVME}/{name}"));
        Some(path).filter(|path| !path.transport.is_empty())
    }

    /// Returns a path to a disk. The path is a hidden device, whose name contains the controller's number since Linux
    /// 4.18.
    fn way(&self, controller: u32, name: &str) -> Path {
        let folder = format!("{CLASS}/{name}");
        let above = format!("{folder}/device");
        let controller = self.device_name(&above).unwrap_or_else(|| format!("nvme{controller}"));
        let mut path = self.controller(&controller, &above);
        if path.transport.is_empty() {
            // A directory tree may lack the link from the path to the controller.
            path = self.controller(&controller, &format!("{NVME}/{controller}"));
        }
        Path {
            ana_state: self.optional_line(&format!("{folder}/ana_state")),
            device: name.to_owned(),
            ..path
        }
    }

    /// Returns the name in /dev of the device that `folder` describes.
    fn device_name(&self, folder: &str) -> Option<String> {
        let name = read(self.machine, &format!("{folder}/uevent"), |text| {
            Ok(sysctl::value_text(text, "DEVNAME"))
        });
        name.ok().flatten()
    }

    fn controller(&self, name: &str, folder: &str) -> Path {
        let line = |file: &str| self.optional_line(&format!("{folder}/{file}"));
        let number = |file: &str| {
            let number = read(self.machine, &format!("{folder}/{file}"), sysfs::number_or_none);
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
            ..Path::default()
        }
    }

    /// Returns how a SCSI disk is attached; `None` for other disks and for unknown SCSI hosts.
    fn scsi(&self, above: &str) -> Option<&'static str> {
        let names = self.machine.list(&format!("{above}/scsi_device")).ok()?;
        // The name consists of the numbers host:channel:target:unit.
        let host = format!("host{}", names.first()?.split(':').next()?);
        let folder = format!("/sys/class/scsi_host/{host}");
        if !self.optional_line(&format!("{folder}/local_ib_device")).is_empty() {
            return Some("srp");
        }
        let driver = self.optional_line(&format!("{folder}/proc_name"));
        if let Some((_, transport)) = HOSTS.iter().find(|(name, _)| *name == driver) {
            return Some(transport);
        }
        let listed = |class: &str| self.machine.list(&format!("/sys/class/{class}/{host}")).is_ok();
        let class = CLASSES.iter().find(|(class, _)| listed(class));
        class.map(|(_, transport)| *transport)
    }
}

/// Returns whether a name is a controller's, such as `nvme0`; `nvme0n1` and `nvme0c1n1` are not.
fn is_controller(name: &str) -> bool {
    let number = name.strip_prefix("nvme");
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}
