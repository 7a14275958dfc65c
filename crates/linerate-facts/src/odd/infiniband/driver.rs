//! Rule about InfiniBand cards without a driver.

use super::super::Finding;
use crate::advice::{Advice, Step};
use crate::pci::{self, Device};
use crate::{Inventory, board};
use linerate_units::shell::word;

/// InfiniBand cards without a driver, so that nothing on the host can use them.
pub(in super::super) fn missing(inventory: &Inventory) -> Vec<Finding> {
    if inventory.lacks(pci::DRIVERS) {
        return Vec::new();
    }
    let cards = inventory.pci.iter().filter(|card| {
        let family = board::family(card.vendor, card.device);
        let may_speak = family.is_none_or(|family| family.has_infiniband);
        board::is_candidate(card) && may_speak && card.driver.is_empty()
    });
    cards.map(|card| odd(inventory, card)).collect()
}

fn odd(inventory: &Inventory, card: &Device) -> Finding {
    let address = card.address.to_string();
    let family = board::family(card.vendor, card.device);
    let name = family.map_or(card.function(), |family| family.name);
    let mut claims = inventory.infiniband.claims.iter();
    let claim = claims.find(|claim| claim.pci == address);
    let modules = claim.and_then(|claim| claim.modules.as_deref());
    let (claimed, fix) = match modules {
        None => {
            let look = format!("lspci -k -s {address}");
            let fix = Advice::new("see which modules of the kernel claim it").on(None, look);
            ("which module claims it is unknown".to_owned(), fix)
        }
        Some([]) => (
            "no module of this kernel claims it".to_owned(),
            Advice::new("install the kernel's extra modules, or another kernel"),
        ),
        Some([only]) => (format!("{only} claims it"), load(only).step(messages())),
        Some([first, ..]) => (
            format!("several modules claim it: {}", modules.unwrap_or_default().join(", ")),
            load(first).step(messages()),
        ),
    };
    Finding::new("ib-no-driver", address, format!("no driver has this card ({name}); {claimed}"))
        .brief(format!("no driver has this card ({name})"))
        .why("without a driver the card has no ports")
        .fix(fix)
}

/// The step that shows the kernel's messages.
pub fn messages() -> Step {
    Step::on(None, "sudo dmesg | tail -n 50").about("if that does not help, what the kernel says")
}

/// Advice to load a kernel module.
pub fn load(module: &str) -> Advice {
    let module = word(module);
    Advice::new(format!("load {module}"))
        .set(None, format!("sudo modprobe {module}"))
        .undo_on(None, format!("sudo modprobe -r {module}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gap;
    use crate::infiniband::Claim;

    /// A host with a ConnectX-3 that has this driver, and that these modules have a driver for.
    fn host(device: u16, driver: &str, modules: Option<&[&str]>) -> Inventory {
        let card = Device {
            address: "0000:03:00.0".parse().unwrap(),
            vendor: board::MELLANOX,
            device,
            class: 0x02_8000,
            driver: driver.to_owned(),
            ..Device::default()
        };
        let claim = Claim {
            pci: "0000:03:00.0".to_owned(),
            modules: modules.map(|all| all.iter().map(|&name| name.to_owned()).collect()),
        };
        let mut host = Inventory { pci: vec![card], ..Inventory::default() };
        host.infiniband.claims = vec![claim];
        host
    }

    #[test]
    fn a_card_is_not_odd_where_no_driver_is_known() {
        let mut host = host(0x1003, "", None);
        assert_eq!(missing(&host).len(), 1);
        host.gaps.push(Gap {
            what: pci::DRIVERS.to_owned(),
            why: "it was not read".to_owned(),
            hint: String::new(),
        });
        assert_eq!(missing(&host), []);
    }

    #[test]
    fn a_card_without_a_driver_has_the_modules_that_claim_it() {
        let odd = |modules| missing(&host(0x1003, "", modules)).remove(0);
        let one = odd(Some(&["mlx4_core"]));
        assert_eq!((one.id, one.subject.as_str()), ("ib-no-driver", "0000:03:00.0"));
        assert_eq!(one.what, "no driver has this card (ConnectX-3); mlx4_core claims it");
        assert!(one.to_do().contains("sudo modprobe mlx4_core"));
        let two = odd(Some(&["mlx4_core", "mlx_other"]));
        assert!(two.what.ends_with("several modules claim it: mlx4_core, mlx_other"));
        assert!(odd(Some(&[])).to_do().contains("extra modules"));
        assert!(odd(None).to_do().contains("lspci -k -s 0000:03:00.0"));
    }

    #[test]
    fn a_card_with_a_driver_or_of_ethernet_is_silent() {
        assert_eq!(missing(&host(0x1003, "mlx4_core", None)), []);
        assert_eq!(missing(&host(0x1003, "vfio-pci", None)), []);
        // The chip of ConnectX-4 Lx has only Ethernet.
        assert_eq!(missing(&host(0x1015, "", Some(&["mlx5_core"]))), []);
        let mut other = host(0x1003, "", None);
        other.pci[0].vendor = 0x8086;
        assert_eq!(missing(&other), []);
    }
}
