//! Conventional PCI and PCI-X: one bus, shared by both directions and by all its cards.

use super::Bounds;

/// A shared PCI bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bus {
    /// The name of the bus as users type it: `pci-32/33`.
    pub name: &'static str,
    /// Width of the bus: bits that move in one clock cycle.
    pub bits: u32,
    /// Clock rate in units of 100/3 MHz: the nominal 33 MHz are one unit.
    thirds: u32,
}

/// The standard buses: name, width in bits, and clock rate in units of 100/3 MHz.
//= PCI Local Bus Specification 3.0, section 1; PCI-X Addendum 1.0, section 1
pub const BUSES: [Bus; 7] = [
    bus("pci-32/33", 32, 1),
    bus("pci-32/66", 32, 2),
    bus("pci-64/33", 64, 1),
    bus("pci-64/66", 64, 2),
    bus("pcix-64/66", 64, 2),
    bus("pcix-64/100", 64, 3),
    bus("pcix-64/133", 64, 4),
];

const fn bus(name: &'static str, bits: u32, thirds: u32) -> Bus {
    Bus { name, bits, thirds }
}

impl Bus {
    /// Clock rate of the bus in Hz.
    pub fn clock(self) -> f64 {
        f64::from(self.thirds) * 1e8 / 3.0
    }

    /// Bytes per second for both directions together: one transfer in each clock cycle.
    pub fn capacity(self) -> Bounds {
        Bounds::exact(f64::from(self.bits) / 8.0 * self.clock())
    }

    /// The formula of the goodput that the bus allows.
    pub fn words(self) -> String {
        let clock = self.clock() / 1e6;
        format!("{} bit x {clock:.1} MHz, shared by both directions", self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buses_have_their_published_rates() {
        for (name, megabytes) in
            [("pci-32/33", 133.3), ("pci-64/66", 533.3), ("pcix-64/133", 1066.7)]
        {
            let bus = BUSES.into_iter().find(|b| b.name == name).unwrap();
            let got = bus.capacity().low() / 1e6;
            assert!((got - megabytes).abs() < 0.05, "{name}: {got}");
        }
    }
}
