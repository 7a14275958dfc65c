//! Rules about what is between a port and its card: a hypervisor's switch, or an IOMMU that translates addresses.

use super::Finding;
use crate::Inventory;
use crate::advice::{Advice, Step};
use crate::nic::Nic;
use crate::pci::{self, Address, Iommu};
use linerate_units::Rate;

/// A port in a cloud whose packets the hypervisor copies, although the cloud could give the guest a function of the
/// card.
pub(super) fn no_function(inventory: &Inventory, nic: &Nic) -> Option<Finding> {
    let cloud = inventory.machine.platform.cloud;
    let (what, fix) = match (cloud, nic.driver.as_str()) {
        ("Azure", "hv_netvsc") if nic.stack.below.is_empty() => (
            "no function of the card stands below it: packets cross the hypervisor's switch (no accelerated networking)",
            "switch accelerated networking on for this port, or take a size of machine that has it",
        ),
        ("AWS", "vif") => (
            "the emulated port of Xen (xen-netfront): packets cross the hypervisor (no ENA)",
            "take a type of machine with ENA, or switch ENA on if this type has it and the image has its driver",
        ),
        _ => return None,
    };
    nic.up.then(|| {
        Finding::new("port-no-function", &nic.name, what)
            .why(
                "each packet costs the hypervisor and this guest a copy: lower rates, \
                 longer and less even delays",
            )
            .fix(Advice::new(fix))
    })
}

/// Port speed from which the work of an IOMMU in lazy mode noticeably lowers the rate.
const VERY_FAST: Rate = Rate(100_000_000_000);

/// A fast port whose card reads and writes memory through an IOMMU that translates addresses.
pub(super) fn translated(inventory: &Inventory, nic: &Nic) -> Option<Finding> {
    let address: Address = nic.pci.parse().ok()?;
    let iommu = pci::at(&inventory.pci, address)?.iommu?;
    let speed = nic.link.speed.filter(|_| nic.up && nic.is_fast())?;
    let words = match iommu {
        Iommu::Strict => "strictly: each buffer is mapped, unmapped and flushed",
        Iommu::LazyByRequest => "lazily: each buffer is mapped and unmapped",
        Iommu::Lazy if speed >= VERY_FAST => "lazily: each buffer is mapped and unmapped",
        _ => return None,
    };
    Some(
        Finding::new(
            "iommu-translates",
            &nic.name,
            format!("the IOMMU translates what its card reads and writes {words}"),
        )
        .why("this costs CPU time for each packet, and small packets most")
        .fix(
            Advice::new(
                "boot with iommu.passthrough=1, unless guests, untrusted devices or \
                 programs with devices of their own need the translation; the card can \
                 then reach all of memory",
            )
            .step(Step::by_hand(
                "add iommu.passthrough=1 to the kernel's command line in the configuration \
                 of the boot loader, then boot",
            )),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::ids;
    use super::*;
    use crate::nic::tests::nic;
    use crate::pci::Device;

    #[test]
    fn a_guest_without_a_function_of_the_card_is_odd_in_clouds_that_have_them() {
        let result_of = |cloud: &'static str, driver: &str, below: &[u32]| {
            let mut machine = Inventory::default();
            machine.machine.platform.cloud = cloud;
            let mut port = nic(2, below);
            (port.up, port.is_virtual, port.driver) = (true, true, driver.to_owned());
            machine.network.nics = vec![port];
            ids(&machine)
        };
        assert_eq!(result_of("Azure", "hv_netvsc", &[]), ["port-no-function"]);
        assert_eq!(result_of("Azure", "hv_netvsc", &[3]), [""; 0], "it has one");
        assert_eq!(result_of("", "hv_netvsc", &[]), [""; 0], "somebody's own Hyper-V");
        assert_eq!(result_of("AWS", "vif", &[]), ["port-no-function"]);
        assert_eq!(result_of("AWS", "ena", &[]), [""; 0]);
        assert_eq!(result_of("", "vif", &[]), [""; 0], "somebody's own Xen");
    }

    #[test]
    fn an_iommu_that_translates_is_told_of_a_fast_port() {
        let result_of = |iommu: Option<Iommu>, giga: u64| {
            let mut port = nic(2, &[]);
            (port.up, port.pci) = (true, "0000:01:00.0".to_owned());
            port.link.speed = Some(Rate(giga * 1_000_000_000));
            let mut machine = Inventory::default();
            machine.network.nics = vec![port];
            machine.pci = vec![Device {
                address: "0000:01:00.0".parse().unwrap(),
                iommu,
                ..Device::default()
            }];
            ids(&machine)
        };
        for (iommu, giga, want) in [
            (Some(Iommu::Strict), 10, true),
            (Some(Iommu::Strict), 1, false),
            (Some(Iommu::LazyByRequest), 10, true),
            (Some(Iommu::LazyByRequest), 1, false),
            (Some(Iommu::Lazy), 99, false),
            (Some(Iommu::Lazy), 100, true),
            (Some(Iommu::Passed), 400, false),
            (None, 400, false),
        ] {
            let want: &[&str] = if want { &["iommu-translates"] } else { &[] };
            assert_eq!(result_of(iommu, giga), want, "{iommu:?} {giga}");
        }
    }
}
