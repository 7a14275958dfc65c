//! How an IOMMU translates the memory accesses of network cards.

use linerate_facts::parse::sysctl;
use linerate_facts::pci::{Device, Iommu};

use crate::{Machine, read};

const BOOT: &str = "/proc/cmdline";
const GROUPS: &str = "/sys/kernel/iommu_groups";

/// Sets `iommu` of each network card. It is `None` if the files do not show it.
pub(super) fn translations(machine: &dyn Machine, kernel: &str, all: &mut [Device]) {
    let boot = read(machine, BOOT, |text| Ok(sysctl::words(text))).unwrap_or_default();
    for card in all.iter_mut().filter(|device| device.is_network()) {
        // A card without an IOMMU group is not translated, whatever the kernel's boot parameters request.
        card.iommu = card.iommu_group.and_then(|group| {
            let path = format!("{GROUPS}/{group}/type");
            let domain = read(machine, &path, |text| Ok(sysctl::line(text)));
            Iommu::of(&domain.unwrap_or_default(), kernel, &boot)
        });
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::pci::Iommu;

    use crate::testing::tree;
    use crate::{Live, inventory};

    #[test]
    fn the_group_of_a_card_and_the_parameters_of_the_boot_tell_how_it_is_translated() {
        let of = |domain: &str, boot: &str| {
            let card = "/sys/bus/pci/devices/0000:01:00.0";
            // Start of a PCI configuration space: vendor, device, command, status, revision and class of a network
            // card.
            let config = "\u{6}\u{0}\u{2}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{2}";
            let config = format!("{config}{}", "\0".repeat(52));
            let root = tree(&[
                (&format!("{card}/config"), &config),
                ("/sys/kernel/iommu_groups/7/type", domain),
                ("/sys/kernel/iommu_groups/7/devices/0000:01:00.0/x", "1\n"),
                ("/proc/sys/kernel/osrelease", "6.8.0\n"),
                ("/proc/cmdline", boot),
            ]);
            inventory(&Live::under(root.path()).unwrap(), &|_| {}).pci[0].iommu
        };
        assert_eq!(of("DMA\n", "quiet\n"), Some(Iommu::Strict));
        assert_eq!(of("DMA-FQ\n", "quiet\n"), Some(Iommu::Lazy));
        assert_eq!(of("\n", "intel_iommu=on\n"), Some(Iommu::LazyByRequest));
        assert_eq!(of("\n", "quiet\n"), None);
    }
}
