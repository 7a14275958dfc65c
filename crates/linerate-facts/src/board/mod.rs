//! What is known of the boards of RDMA cards: a table by board id, and the families of chips by PCI device id.
//!
//! Nothing is claimed of a board that is not in the table: boards with the same chip differ in the speeds that their
//! firmware allows.

mod table;

use super::infiniband::IbDevice;
use super::pci;

pub use table::{BOARDS, Board, Family, Switched};

/// PCI vendor id of Mellanox, now NVIDIA.
pub const MELLANOX: u16 = 0x15b3;

/// PCI device ids of Mellanox virtual functions. In a guest these ids are the only sign of a virtual function.
//= torvalds/linux, mlx5_core_pci_table and mlx4_pci_table: the rows marked MLX5_PCI_DEV_IS_VF, MLX4_PCI_DEV_IS_VF
const VIRTUAL: [u16; 10] =
    [0x1002, 0x1004, 0x1012, 0x1014, 0x1016, 0x1018, 0x101a, 0x101c, 0x101e, 0xa2d3];

/// PCI classes of InfiniBand functions: the present class, the class of Omni-Path, and the class of old cards.
//= pci.ids: 02 07 "Infiniband controller", 02 08 "Fabric controller", 0c 06 "InfiniBand"
const CLASSES: [u32; 3] = [0x0207, 0x0208, 0x0c06];

/// Whether a PCI device id of Mellanox belongs to a virtual function.
pub fn is_virtual(device: u16) -> bool {
    VIRTUAL.contains(&device)
}

/// Returns the board with this id, as sysfs writes it in `board_id`.
pub fn of(id: &str) -> Option<&'static Board> {
    BOARDS.iter().find(|board| board.id == id)
}

/// Returns the family of chips that a PCI function belongs to, by its vendor and device id.
pub fn family(vendor: u16, device: u16) -> Option<&'static Family> {
    let mut all = table::FAMILIES.iter();
    all.find(|family| vendor == MELLANOX && family.devices.contains(&device))
}

/// Returns the family of an RDMA device's chip, by the PCI function of the device.
pub fn family_of(all: &[pci::Device], device: &IbDevice) -> Option<&'static Family> {
    let function = pci::at(all, device.pci.parse().ok()?)?;
    family(function.vendor, function.device)
}

/// Whether a PCI function may be a card for InfiniBand: by its class, or because it is a network function by Mellanox,
/// whose Ethernet class does not exclude InfiniBand.
pub fn is_candidate(function: &pci::Device) -> bool {
    let class = function.class >> 8;
    CLASSES.contains(&class) || function.vendor == MELLANOX && function.is_network()
}

impl Board {
    /// Returns what the ports support, in words: `2 ports, each InfiniBand up to FDR (56 Gb/s) or Ethernet 10 and 40
    /// Gb/s`.
    pub fn ports_in_words(&self) -> String {
        let ports = match self.ports {
            1 => "1 port".to_owned(),
            n => format!("{n} ports"),
        };
        format!("{ports}, each InfiniBand {} or Ethernet {}", self.infiniband, self.ethernet)
    }

    /// Returns the newest known firmware of the board, if it is newer than `own`. Only boards sold by the chip's maker
    /// have one: boards of other sellers number their firmware differently.
    pub fn newer_firmware(&self, own: &str) -> Option<&'static str> {
        let newest = self.family().firmware;
        let known = self.id.starts_with("MT_") && !newest.is_empty();
        (known && version(own)? < version(newest)?).then_some(newest)
    }

    /// Returns the family of chips that the board's chip belongs to.
    pub fn family(&self) -> &'static Family {
        &table::FAMILIES[self.family]
    }
}

/// Reads a firmware version of three numbers: `2.42.5000`.
fn version(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    let version = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_two_boards_that_are_taken_for_each_other() {
        let words = |id| of(id).unwrap().ports_in_words();
        assert_eq!(of("MT_1090120019").unwrap().part, "MCX354A-FCBT");
        assert_eq!(
            words("MT_1090120019"),
            "2 ports, each InfiniBand up to FDR (56 Gb/s) or Ethernet 10 and 40 Gb/s"
        );
        assert_eq!(of("MT_1090110018").unwrap().part, "MCX354A-QCBT");
        assert_eq!(
            words("MT_1090110018"),
            "2 ports, each InfiniBand up to QDR (40 Gb/s) or Ethernet 10 Gb/s"
        );
        for unknown in ["", "MT_1090110019", "mt_1090120019", "MT_109012001"] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn ids_are_unique_and_families_exist() {
        let ids: BTreeSet<&str> = BOARDS.iter().map(|board| board.id).collect();
        assert_eq!(ids.len(), BOARDS.len());
        for board in BOARDS {
            assert!(board.ports > 0 && !board.infiniband.is_empty() && !board.ethernet.is_empty());
            assert!(board.family().has_infiniband, "{}", board.id);
        }
    }

    #[test]
    fn firmware_is_old_only_below_a_known_version_of_the_same_maker() {
        let newer = |id, own| of(id).unwrap().newer_firmware(own);
        assert_eq!(newer("MT_1090120019", "2.36.5150"), Some("2.42.5000"));
        assert_eq!(newer("MT_1090120019", "2.42.4999"), Some("2.42.5000"));
        for own in ["2.42.5000", "2.43.0", "", "2.42", "2.x.1", "2.42.1.1"] {
            assert_eq!(newer("MT_1090120019", own), None, "{own}");
        }
        assert_eq!(newer("ISL1090110018", "2.36.5150"), None);
    }

    #[test]
    fn chips_are_known_by_their_ids_with_those_of_virtual_functions() {
        let name = |id| family(MELLANOX, id).map(|family| family.name);
        assert_eq!(name(0x1003), Some("ConnectX-3"));
        assert_eq!(name(0x1014), Some("ConnectX-4"));
        assert_eq!(name(0x1015), Some("ConnectX-4 Lx"));
        assert_eq!((name(0), family(0x8086, 0x1003)), (None, None));
        assert!(!family(MELLANOX, 0x1015).unwrap().has_infiniband);
    }
}
