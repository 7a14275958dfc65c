//! USB: the hubs between a network adapter and its controller.

use serde::{Deserialize, Serialize};

use linerate_units::Rate;

/// Largest number of hubs that are kept in a record. USB allows at most five hubs in a row.
//= Universal Serial Bus Specification 2.0, section 4.1.1: seven tiers, the controller and the device among them
pub const HUBS_MAX: usize = 5;

/// A USB hub. All devices behind it share its wire to the controller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hub {
    /// Name of the hub, from the numbers of its bus and ports: `5-1`.
    pub name: String,
    /// Signalling rate of the hub's own wire; `None` when unknown.
    pub speed: Option<Rate>,
}

/// A function of a USB device. One driver serves it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// Class of the function: `Mass Storage`, `Vendor Specific Class`.
    pub class: String,
    /// Driver of the function: `uas`, `r8152`; empty if it has none.
    pub driver: String,
    /// Signalling rate of the device's wire.
    pub speed: Rate,
}

/// The slowest wire between an adapter and its host: the name of the hub that the wire belongs to, `None` for the
/// adapter's own wire, and the wire's signalling rate. Among equally slow wires the farthest from the adapter counts,
/// since other devices share it.
pub fn slowest(adapter: Rate, hubs: &[Hub]) -> (Option<&str>, Rate) {
    let hubs = hubs.iter().filter_map(|hub| Some((Some(hub.name.as_str()), hub.speed?)));
    hubs.fold((None, adapter), |least, hub| if hub.1 <= least.1 { hub } else { least })
}

/// Names of the hubs between an interface such as `5-1.2.4:1.0` and its controller, the nearest first: `5-1.2`, `5-1`.
/// Empty if the text is not the name of an interface.
pub fn hubs_above(interface: &str) -> Vec<String> {
    let Some((mut device, _)) = interface.split_once(':') else {
        return Vec::new();
    };
    let mut hubs = Vec::new();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_place = |text: &str| {
        let ports = text.split_once('-');
        ports.is_some_and(|(bus, ports)| is_number(bus) && ports.split('.').all(is_number))
    };
    if !is_place(device) {
        return hubs;
    }
    while let Some((hub, _)) = device.rsplit_once('.') {
        if hubs.len() == HUBS_MAX {
            break;
        }
        hubs.push(hub.to_owned());
        device = hub;
    }
    hubs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_wire_of_a_chain_is_the_farthest_of_those_that_are_alike() {
        let hub = |name: &str, mbps: Option<u64>| Hub {
            name: name.to_owned(),
            speed: mbps.map(|m| Rate(m * 1_000_000)),
        };
        let hubs = [hub("6-1.2", Some(10_000)), hub("6-1", Some(5_000)), hub("6", None)];
        assert_eq!(slowest(Rate(10_000_000_000), &hubs), (Some("6-1"), Rate(5_000_000_000)));
        assert_eq!(slowest(Rate(5_000_000_000), &hubs), (Some("6-1"), Rate(5_000_000_000)));
        assert_eq!(slowest(Rate(480_000_000), &[]), (None, Rate(480_000_000)));
    }

    #[test]
    fn names_tell_the_hubs_above() {
        for (interface, want) in [
            ("5-1.2.4:1.0", &["5-1.2", "5-1"][..]),
            ("2-1:1.0", &[]),
            ("5-1.2", &[]),
            ("0000:00:14.0", &[]),
            ("5-../..:1.0", &[]),
            ("5-1..2:1.0", &[]),
            ("usb5:1.0", &[]),
            ("", &[]),
        ] {
            assert_eq!(hubs_above(interface), want, "{interface}");
        }
        let deep = format!("1-1{}:1.0", ".1".repeat(1_000));
        assert_eq!(hubs_above(&deep).len(), HUBS_MAX);
    }
}
