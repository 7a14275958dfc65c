//! Classes of PCI devices by the names that `lspci` prints.

use crate::reading::lookup;

/// Names of classes, with the code of class and subclass. Only classes that linerate uses are listed.
//= pciutils, pci.ids: list of known device classes
const CLASSES: [(&str, u16); 36] = [
    ("SCSI storage controller", 0x0100),
    ("IDE interface", 0x0101),
    ("RAID bus controller", 0x0104),
    ("ATA controller", 0x0105),
    ("SATA controller", 0x0106),
    ("Serial Attached SCSI controller", 0x0107),
    ("Non-Volatile memory controller", 0x0108),
    ("Mass storage controller", 0x0180),
    ("Ethernet controller", 0x0200),
    ("Token ring network controller", 0x0201),
    ("Infiniband controller", 0x0207),
    ("InfiniBand controller", 0x0207),
    ("Fabric controller", 0x0208),
    ("Network controller", 0x0280),
    ("VGA compatible controller", 0x0300),
    ("XGA compatible controller", 0x0301),
    ("3D controller", 0x0302),
    ("Display controller", 0x0380),
    ("Audio device", 0x0403),
    ("Memory controller", 0x0580),
    ("RAM memory", 0x0500),
    ("Host bridge", 0x0600),
    ("ISA bridge", 0x0601),
    ("PCI bridge", 0x0604),
    ("CardBus bridge", 0x0607),
    ("Semi-transparent PCI-to-PCI bridge", 0x0609),
    ("Bridge", 0x0680),
    ("Serial controller", 0x0700),
    ("Communication controller", 0x0780),
    ("System peripheral", 0x0880),
    ("Co-processor", 0x0b40),
    ("USB controller", 0x0c03),
    ("Fibre Channel", 0x0c04),
    ("SMBus", 0x0c05),
    ("InfiniBand", 0x0c06),
    ("Processing accelerators", 0x1200),
];

/// The code of a class from its name: class, subclass, and 0 as programming interface.
pub(super) fn code(name: &str) -> Option<u32> {
    lookup(&CLASSES, name).map(|code: u16| u32::from(code) << 8)
}
