//! The link of a port, as it was negotiated with the other end of the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Nic;
use linerate_units::Rate;

/// Drivers of USB classes and of modems. Their devices do not report duplex, and older kernels show half duplex for
/// them.
//= USB Class Definitions for Communications Devices 1.2: no duplex; Linux drivers/net/usb/usbnet.c,
//= usbnet_get_link_ksettings_internal, and the drivers that use it
const WITHOUT_DUPLEX: [&str; 12] = [
    "cdc_ncm",
    "cdc_ether",
    "cdc_mbim",
    "cdc_eem",
    "cdc_subset",
    "cdc_phonet",
    "huawei_cdc_ncm",
    "qmi_wwan",
    "r8153_ecm",
    "rndis_host",
    "sierra_net",
    "ipheth",
];

/// The link modes that the two ends of a wire agreed on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkModes {
    /// Speed of the link; `None` if the driver does not report it.
    pub speed: Option<Rate>,
    /// Duplex of the link: whether both ends may send at the same time.
    pub duplex: Option<Duplex>,
    /// Whether the speed was negotiated with the other end.
    pub autoneg: Option<bool>,
    /// Whether the driver logged that the port fell back from a faster negotiated speed to the present one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub downshifted: bool,
    /// Number of lanes in use.
    pub lanes: Option<u32>,
    /// Modes that the port and its transceiver support: `100000baseCR4/Full`.
    pub supported: Vec<String>,
    /// Modes that the port offers to the other end.
    pub advertised: Vec<String>,
    /// Modes that the other end offers; empty when unknown.
    pub peer: Vec<String>,
}

/// Whether both ends may send at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Duplex {
    /// Only one end sends at a time.
    Half,
    /// Both ends send at the same time.
    Full,
}

/// Forward error correction of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fec {
    /// The mode of error correction in use: `RS`, `BASER`, `LLRS`, `None`; empty if unknown.
    pub active: String,
    /// The modes of error correction that are configured.
    pub configured: Vec<String>,
    /// Whether the driver chooses the mode.
    pub auto: Option<bool>,
    /// Number of blocks with errors that were corrected.
    pub corrected: Option<u64>,
    /// Number of blocks that could not be corrected. Their packets are lost.
    pub uncorrectable: Option<u64>,
}

/// Flow control on the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pause {
    /// Whether flow control was negotiated with the other end.
    pub autoneg: Option<bool>,
    /// Whether the port pauses when the other end requests it.
    pub rx: Option<bool>,
    /// Whether the port requests pauses of the other end.
    pub tx: Option<bool>,
    /// Pause frames that the port received.
    pub rx_frames: Option<u64>,
    /// Pause frames that the port sent.
    pub tx_frames: Option<u64>,
}

impl LinkModes {
    /// Whether the link is half duplex: only one end may send at a time. Above 1 Gb/s there is no half duplex, whatever
    /// a driver reports.
    //= IEEE 802.3-2022, section 44.1: operation above 1 Gb/s is full duplex only
    pub fn is_half(&self) -> bool {
        const FASTEST: Rate = Rate(1_000_000_000);
        self.duplex == Some(Duplex::Half) && self.speed.is_none_or(|speed| speed <= FASTEST)
    }

    /// Speed of the fastest mode that both ends offer; `None` if the modes of the other end are unknown.
    pub fn fastest_common(&self) -> Option<Rate> {
        self.fastest_of(&self.advertised)
    }

    /// Speed of the fastest mode that this port supports and the other end offers, even if this port does not offer it.
    pub fn fastest_possible(&self) -> Option<Rate> {
        self.fastest_of(&self.supported)
    }

    /// Speed of the fastest mode that this port offers.
    pub fn fastest_offered(&self) -> Option<Rate> {
        fastest(&self.advertised)
    }

    /// Speed of the fastest mode that this port offers; if its offers are unknown, of the fastest mode that it
    /// supports.
    pub fn fastest_own(&self) -> Option<Rate> {
        self.fastest_offered().or_else(|| fastest(&self.supported))
    }

    /// Speed of the fastest twisted-pair mode that the port supports, if that mode needs negotiation; `None` if the
    /// port has modes of another medium.
    //= IEEE 802.3-2022, section 40.5.1: all 1000BASE-T PHYs negotiate
    pub fn fastest_of_pairs(&self) -> Option<Rate> {
        const NEGOTIATES: Rate = Rate(1_000_000_000);
        let is_of_pairs = |mode: &&String| mode.contains("baseT/");
        let mut modes = self.supported.iter().filter(|mode| mode_speed(mode).is_some());
        let speeds = modes.clone().filter_map(|mode| mode_speed(mode));
        let fastest = speeds.max().filter(|fastest| *fastest >= NEGOTIATES);
        fastest.filter(|_| modes.all(|mode| is_of_pairs(&mode)))
    }

    /// Modes that the port supports and does not offer.
    pub fn withheld(&self) -> impl Iterator<Item = &str> {
        let is_withheld =
            |mode: &&String| mode_speed(mode).is_some() && !self.advertised.contains(mode);
        self.supported.iter().filter(is_withheld).map(String::as_str)
    }

    fn fastest_of(&self, own: &[String]) -> Option<Rate> {
        let common = own.iter().filter(|mode| self.peer.contains(mode));
        common.filter_map(|mode| mode_speed(mode)).max()
    }
}

fn fastest(modes: &[String]) -> Option<Rate> {
    modes.iter().filter_map(|mode| mode_speed(mode)).max()
}

impl Nic {
    /// Duplex of the port's link; `None` if its driver cannot know it, whatever the kernel shows.
    pub fn duplex(&self) -> Option<Duplex> {
        let is_reported = !WITHOUT_DUPLEX.contains(&self.driver.as_str());
        self.link.duplex.filter(|_| is_reported)
    }

    /// Whether the port's link is half duplex, by [`LinkModes::is_half`].
    pub fn is_half(&self) -> bool {
        self.duplex().is_some() && self.link.is_half()
    }
}

/// Twice the speed of the fastest specified port, in Mb/s. A higher value is no speed.
//= IEEE P802.3dj: 1.6 Tb/s Ethernet
const FASTEST_MBPS: u64 = 3_200_000;

/// Speed from Mb/s as drivers report it; `None` for values that mean unknown (0, and -1 in 16 or 32 bits), and for
/// impossible ones.
pub fn speed_of_mbps(mbps: u64) -> Option<Rate> {
    let known = mbps != 0 && mbps != u64::from(u16::MAX) && mbps <= FASTEST_MBPS;
    known.then_some(Rate(mbps.saturating_mul(1_000_000)))
}

/// Speed of a mode by its name: `100000baseCR4/Full`. `None` for names that are no mode (`Pause`).
pub fn mode_speed(name: &str) -> Option<Rate> {
    let (mbps, _) = name.split_once("base")?;
    speed_of_mbps(mbps.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_speed_is_none() {
        for mbps in [0, 65_535, u64::from(u32::MAX), u64::MAX, i32::MAX as u64, FASTEST_MBPS + 1] {
            assert_eq!(speed_of_mbps(mbps), None, "{mbps}");
        }
        assert_eq!(speed_of_mbps(1), Some(Rate(1_000_000)));
        assert_eq!(speed_of_mbps(65_534), Some(Rate(65_534_000_000)));
        assert_eq!(speed_of_mbps(800_000), Some(Rate(800_000_000_000)));
        assert_eq!(speed_of_mbps(FASTEST_MBPS), Some(Rate(3_200_000_000_000)));
        assert_eq!(mode_speed("100000baseCR4/Full"), Some(Rate(100_000_000_000)));
        assert_eq!(mode_speed("Pause"), None);
        assert_eq!(mode_speed("base"), None);
    }

    #[test]
    fn half_duplex_ends_at_a_gigabit() {
        let half = |duplex, mbps: Option<u64>| {
            let link =
                LinkModes { duplex, speed: mbps.and_then(speed_of_mbps), ..LinkModes::default() };
            link.is_half()
        };
        let duplex = Some(Duplex::Half);
        assert!(half(duplex, Some(1_000)) && half(duplex, None));
        assert!(!half(duplex, Some(2_500)) && !half(Some(Duplex::Full), Some(10)));
        assert!(!half(None, Some(10)));
    }

    #[test]
    fn what_a_driver_of_a_usb_class_shows_as_half_is_unknown() {
        let nic = |driver: &str| Nic {
            driver: driver.to_owned(),
            link: LinkModes {
                duplex: Some(Duplex::Half),
                speed: speed_of_mbps(1_000),
                ..LinkModes::default()
            },
            ..Nic::default()
        };
        for driver in WITHOUT_DUPLEX {
            let nic = nic(driver);
            assert_eq!((nic.duplex(), nic.is_half()), (None, false), "{driver}");
        }
        for driver in ["r8152", "8139too", "ax88179_178a", ""] {
            let nic = nic(driver);
            let half = Some(Duplex::Half);
            assert_eq!((nic.duplex(), nic.is_half()), (half, true), "{driver}");
        }
    }

    #[test]
    fn the_fastest_possible_mode_is_that_of_what_the_port_supports() {
        let text = |modes: &[&str]| modes.iter().map(|&m| m.to_owned()).collect();
        let link = LinkModes {
            supported: text(&["100baseT/Full", "1000baseT/Full", "2500baseT/Full"]),
            advertised: text(&["100baseT/Full"]),
            peer: text(&["100baseT/Full", "1000baseT/Full"]),
            ..LinkModes::default()
        };
        assert_eq!(link.fastest_common(), Some(Rate(100_000_000)));
        assert_eq!(link.fastest_possible(), Some(Rate(1_000_000_000)));
        let withheld: Vec<_> = link.withheld().collect();
        assert_eq!(withheld, ["1000baseT/Full", "2500baseT/Full"]);
    }

    #[test]
    fn the_fastest_common_mode_needs_both_ends() {
        let text = |modes: &[&str]| modes.iter().map(|&m| m.to_owned()).collect();
        let mut link = LinkModes {
            advertised: text(&["1000baseT/Full", "10000baseT/Full", "Pause"]),
            peer: text(&["1000baseT/Full", "Pause"]),
            ..LinkModes::default()
        };
        assert_eq!(link.fastest_common(), Some(Rate(1_000_000_000)));
        link.peer.clear();
        assert_eq!(link.fastest_common(), None);
    }
}
