//! Parses replies of the generic netlink family `ethtool`: the settings of a port.
//!
//! Attribute numbers are from linux/ethtool_netlink.h.

use super::Malformed;
use super::genetlink::{bodies, change_bodies};
use super::netlink::{attributes, string, u32_at, u64_at};
use crate::nic::{
    Channels, Coalesce, Duplex, Fec, LinkModes, Offloads, Pause, Rings, Rss, Setting, speed_of_mbps,
};

const WHAT: &str = "ethtool reply";

/// Decodes the reply to `ETHTOOL_MSG_LINKMODES_GET`: speed, duplex and link modes.
pub fn link_modes(reply: &[u8]) -> Result<LinkModes, Malformed> {
    let mut modes = LinkModes::default();
    each(reply, |kind, value| {
        match kind {
            2 => modes.autoneg = Some(flag(value)?),
            3 => {
                let bits = bits(value)?;
                modes.advertised = set(&bits);
                modes.supported = bits.into_iter().map(|(name, _)| name).collect();
            }
            4 => modes.peer = set(&bits(value)?),
            5 => modes.speed = speed_of_mbps(u64::from(word(value)?)),
            6 => modes.duplex = duplex(value),
            9 => modes.lanes = Some(word(value)?).filter(|&lanes| lanes > 0),
            _ => {}
        }
        Ok(())
    })?;
    Ok(modes)
}

/// Decodes the reply to `ETHTOOL_MSG_LINKSTATE_GET`: why a link is down; empty if the driver does not report it.
pub fn link_state(reply: &[u8]) -> Result<String, Malformed> {
    // Texts for the codes ETHTOOL_LINK_EXT_STATE_* of linux/ethtool.h, in their order.
    const REASONS: [&str; 11] = [
        "the two ends do not agree on a speed",
        "link training failed",
        "the two ends cannot negotiate",
        "the signal is bad",
        "no cable",
        "a bad cable",
        "the cable's description cannot be read",
        "calibration failed",
        "the module needs more power than the port gives",
        "too hot",
        "the module is not ready",
    ];
    let mut reason = String::new();
    each(reply, |kind, value| {
        if kind == 5 {
            let state = value.first().ok_or(Malformed::Short(WHAT))?;
            let text = REASONS.get(usize::from(*state)).copied();
            text.unwrap_or_default().clone_into(&mut reason);
        }
        Ok(())
    })?;
    Ok(reason)
}

/// Decodes the reply to `ETHTOOL_MSG_FEATURES_GET`. A feature is listed as off only if this port has it and can change
/// it.
pub fn features(reply: &[u8]) -> Result<Offloads, Malformed> {
    let (mut can, mut fixed) = (Vec::new(), Vec::new());
    let mut offloads = Offloads::default();
    each(reply, |kind, value| {
        match kind {
            2 => can = set(&bits(value)?),
            4 => offloads.on = set(&bits(value)?),
            5 => fixed = set(&bits(value)?),
            _ => {}
        }
        Ok(())
    })?;
    can.retain(|name| !offloads.on.contains(name) && !fixed.contains(name));
    offloads.off = can;
    offloads.on.sort();
    offloads.off.sort();
    Ok(offloads)
}

/// Decodes the reply to `ETHTOOL_MSG_RINGS_GET`: sizes of the descriptor rings.
pub fn rings(reply: &[u8]) -> Result<Rings, Malformed> {
    let mut rings = Rings::default();
    each(reply, |kind, value| {
        match kind {
            2 => rings.rx.most = Some(word(value)?),
            5 => rings.tx.most = Some(word(value)?),
            6 => rings.rx.now = Some(word(value)?),
            9 => rings.tx.now = Some(word(value)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(rings)
}

/// Decodes the reply to `ETHTOOL_MSG_CHANNELS_GET`: numbers of channels.
pub fn channels(reply: &[u8]) -> Result<Channels, Malformed> {
    let mut channels = Channels::default();
    let Channels { rx, tx, combined } = &mut channels;
    each(reply, |kind, value| {
        let into: &mut Setting = match kind {
            2 | 6 => &mut *rx,
            3 | 7 => &mut *tx,
            5 | 9 => &mut *combined,
            _ => return Ok(()),
        };
        match kind {
            2 | 3 | 5 => into.most = Some(word(value)?),
            _ => into.now = Some(word(value)?),
        }
        Ok(())
    })?;
    Ok(channels)
}

/// Decodes the reply to `ETHTOOL_MSG_COALESCE_GET`: interrupt coalescing.
pub fn coalesce(reply: &[u8]) -> Result<Coalesce, Malformed> {
    let mut coalesce = Coalesce::default();
    each(reply, |kind, value| {
        match kind {
            2 => coalesce.rx_usecs = Some(word(value)?),
            3 => coalesce.rx_frames = Some(word(value)?),
            6 => coalesce.tx_usecs = Some(word(value)?),
            7 => coalesce.tx_frames = Some(word(value)?),
            11 => coalesce.adaptive_rx = Some(flag(value)?),
            12 => coalesce.adaptive_tx = Some(flag(value)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(coalesce)
}

/// Decodes the reply to `ETHTOOL_MSG_PAUSE_GET`: flow control and its frames.
pub fn pause(reply: &[u8]) -> Result<Pause, Malformed> {
    let mut pause = Pause::default();
    each(reply, |kind, value| {
        match kind {
            2 => pause.autoneg = Some(flag(value)?),
            3 => pause.rx = Some(flag(value)?),
            4 => pause.tx = Some(flag(value)?),
            5 => {
                for statistic in attributes(value) {
                    match statistic? {
                        (2, value) => pause.tx_frames = Some(u64_at(value, 0, WHAT)?),
                        (3, value) => pause.rx_frames = Some(u64_at(value, 0, WHAT)?),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(pause)
}

/// Decodes the reply to `ETHTOOL_MSG_FEC_GET`: forward error correction.
pub fn fec(reply: &[u8]) -> Result<Fec, Malformed> {
    let mut fec = Fec::default();
    each(reply, |kind, value| {
        match kind {
            2 => fec.configured = set(&bits(value)?),
            3 => fec.auto = Some(flag(value)?),
            4 => correction(word(value)?).clone_into(&mut fec.active),
            5 => {
                for statistic in attributes(value) {
                    match statistic? {
                        // The first value is the total; the values of single lanes follow.
                        (2, value) => fec.corrected = Some(u64_at(value, 0, WHAT)?),
                        (3, value) => fec.uncorrectable = Some(u64_at(value, 0, WHAT)?),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(fec)
}

/// Decodes the reply to `ETHTOOL_MSG_RSS_GET` (Linux 6.2 and later): hash function and table of queues.
pub fn rss(reply: &[u8]) -> Result<Rss, Malformed> {
    let mut rss = Rss::default();
    each(reply, |kind, value| {
        match kind {
            3 => hash_function(word(value)?).clone_into(&mut rss.function),
            4 => {
                let entries = value.chunks(4).map(word);
                rss.table = entries.collect::<Result<_, _>>()?;
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(rss)
}

/// Overwrites all that [`rss`] does not read. With the key of the hash, somebody could send packets to a chosen queue.
pub fn mask_rss(reply: &mut [u8]) {
    change_bodies(reply, |kind, value| {
        if !matches!(kind, 3 | 4) {
            value.fill(0);
        }
    });
}

/// Calls `take` with each attribute of a reply, and fails if the reply has no message.
fn each(
    reply: &[u8],
    mut take: impl FnMut(u16, &[u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut found = false;
    for body in bodies(reply) {
        found = true;
        for attribute in attributes(body?) {
            let (kind, value) = attribute?;
            take(kind, value)?;
        }
    }
    found.then_some(()).ok_or(Malformed::Missing(WHAT))
}

/// The bits in a set of named bits, each with whether it is set. A set without a mask lists only the bits that are set.
fn bits(value: &[u8]) -> Result<Vec<(String, bool)>, Malformed> {
    let (mut unmasked, mut bits) = (false, Vec::new());
    for attribute in attributes(value) {
        match attribute? {
            (1, _) => unmasked = true,
            (3, list) => {
                for bit in attributes(list) {
                    bits.push(self::bit(bit?.1)?);
                }
            }
            _ => {}
        }
    }
    for bit in &mut bits {
        bit.1 |= unmasked;
    }
    Ok(bits)
}

fn bit(value: &[u8]) -> Result<(String, bool), Malformed> {
    let (mut name, mut is_set) = (None, false);
    for attribute in attributes(value) {
        match attribute? {
            (2, value) => name = Some(string(value).into_owned()),
            (3, _) => is_set = true,
            _ => {}
        }
    }
    // A bit that is newer than the kernel's own table of names has no name.
    Ok((name.unwrap_or_default(), is_set))
}

fn set(bits: &[(String, bool)]) -> Vec<String> {
    let set = bits.iter().filter(|(_, is_set)| *is_set);
    set.map(|(name, _)| name.clone()).collect()
}

fn word(value: &[u8]) -> Result<u32, Malformed> {
    u32_at(value, 0, WHAT)
}

fn flag(value: &[u8]) -> Result<bool, Malformed> {
    value.first().map(|&b| b != 0).ok_or(Malformed::Short(WHAT))
}

/// Decodes `DUPLEX_*` of linux/ethtool.h; 255 is unknown.
fn duplex(value: &[u8]) -> Option<Duplex> {
    match value {
        [0, ..] => Some(Duplex::Half),
        [1, ..] => Some(Duplex::Full),
        _ => None,
    }
}

/// Name of the error correction with this `ETHTOOL_LINK_MODE_FEC_*_BIT` of linux/ethtool.h.
fn correction(bit: u32) -> &'static str {
    match bit {
        49 => "None",
        50 => "RS",
        51 => "BASER",
        74 => "LLRS",
        _ => "",
    }
}

/// Name of the hash function with this bit, `ETH_RSS_HASH_*` of linux/ethtool.h.
fn hash_function(bits: u32) -> &'static str {
    match bits {
        1 => "toeplitz",
        2 => "xor",
        4 => "crc32",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse::netlink::tests::{attr, msg};
    use linerate_units::Rate;

    fn reply(attributes: &[Vec<u8>]) -> Vec<u8> {
        msg(21, &[&[4, 1, 0, 0][..], &attributes.concat()].concat())
    }

    fn word_attr(kind: u16, value: u32) -> Vec<u8> {
        attr(kind, &value.to_ne_bytes())
    }

    fn set_attr(kind: u16, masked: bool, bits: &[(&str, bool)]) -> Vec<u8> {
        let list = bits.iter().map(|(name, is_set)| {
            let name = attr(2, name.as_bytes());
            let value = if *is_set { attr(3, &[]) } else { vec![] };
            attr(1, &[name, value].concat())
        });
        let list = attr(3, &list.collect::<Vec<_>>().concat());
        let unmasked = if masked { vec![] } else { attr(1, &[]) };
        attr(kind, &[unmasked, list].concat())
    }

    fn modes() -> Vec<u8> {
        reply(&[
            attr(2, &[1]),
            set_attr(3, true, &[("1000baseT/Full", true), ("10000baseT/Full", false)]),
            set_attr(4, false, &[("1000baseT/Full", false)]),
            word_attr(5, 1000),
            attr(6, &[1]),
            word_attr(9, 4),
            attr(99, b"from a newer kernel"),
        ])
    }

    #[test]
    fn link_modes_parse_exactly() {
        let want = LinkModes {
            speed: Some(Rate(1_000_000_000)),
            duplex: Some(Duplex::Full),
            autoneg: Some(true),
            downshifted: false,
            lanes: Some(4),
            supported: vec!["1000baseT/Full".to_owned(), "10000baseT/Full".to_owned()],
            advertised: vec!["1000baseT/Full".to_owned()],
            peer: vec!["1000baseT/Full".to_owned()],
        };
        assert_eq!(link_modes(&modes()), Ok(want));
    }

    #[test]
    fn speeds_and_duplexes_that_are_not_known_are_none() {
        for speed in [0, 65_535, u32::MAX] {
            let got = link_modes(&reply(&[word_attr(5, speed), attr(6, &[255])])).unwrap();
            assert_eq!((got.speed, got.duplex), (None, None), "{speed}");
        }
        let half = link_modes(&reply(&[word_attr(5, 100), attr(6, &[0])])).unwrap();
        assert_eq!((half.speed, half.duplex), (Some(Rate(100_000_000)), Some(Duplex::Half)));
    }

    #[test]
    fn why_a_link_is_down_is_told_in_words() {
        for (state, want) in [(4, "no cable"), (10, "the module is not ready"), (11, "")] {
            assert_eq!(link_state(&reply(&[attr(5, &[state])])).unwrap(), want);
        }
        assert_eq!(link_state(&reply(&[attr(2, &[0])])).unwrap(), "");
    }

    #[test]
    fn settings_parse_exactly() {
        let setting = |now, most| Setting { now: Some(now), most: Some(most) };
        let numbers: Vec<_> = (2..=12).map(|n| word_attr(n, u32::from(n) * 10)).collect();
        let got = rings(&reply(&numbers)).unwrap();
        assert_eq!((got.rx, got.tx), (setting(60, 20), setting(90, 50)));
        let got = channels(&reply(&numbers)).unwrap();
        assert_eq!((got.rx, got.tx), (setting(60, 20), setting(70, 30)));
        assert_eq!(got.combined, setting(90, 50));
        let got = coalesce(&reply(&numbers)).unwrap();
        assert_eq!((got.rx_usecs, got.rx_frames), (Some(20), Some(30)));
        assert_eq!((got.tx_usecs, got.tx_frames), (Some(60), Some(70)));
        assert_eq!((got.adaptive_rx, got.adaptive_tx), (Some(true), Some(true)));
    }

    #[test]
    fn pause_and_error_correction_come_with_their_counters() {
        let counters = [attr(2, &7u64.to_ne_bytes()), attr(3, &8u64.to_ne_bytes())].concat();
        let got = pause(&reply(&[attr(3, &[1]), attr(4, &[0]), attr(5, &counters)])).unwrap();
        assert_eq!((got.rx, got.tx, got.autoneg), (Some(true), Some(false), None));
        assert_eq!((got.tx_frames, got.rx_frames), (Some(7), Some(8)));
        let modes = set_attr(2, false, &[("RS", false)]);
        let got = fec(&reply(&[modes, word_attr(4, 50), attr(5, &counters)])).unwrap();
        assert_eq!((got.active.as_str(), got.configured), ("RS", vec!["RS".to_owned()]));
        assert_eq!((got.corrected, got.uncorrectable), (Some(7), Some(8)));
    }

    #[test]
    fn features_are_sorted_and_a_table_is_read_whole() {
        let active = set_attr(4, false, &[("tx-tcp-segmentation", false), ("rx-gro", false)]);
        let can = set_attr(
            2,
            true,
            &[
                ("rx-gro", true),
                ("rx-lro", true),
                ("rx-vlan-filter", false),
                ("rx-all", true),
                ("rx-fcs", true),
            ],
        );
        let fixed = set_attr(5, false, &[("rx-all", false)]);
        let got = features(&reply(&[can, active, fixed])).unwrap();
        assert_eq!(got.on, ["rx-gro", "tx-tcp-segmentation"]);
        assert_eq!(got.off, ["rx-fcs", "rx-lro"]);
        let table: Vec<u8> = [0u32, 1, 0, 3].into_iter().flat_map(u32::to_ne_bytes).collect();
        let got = rss(&reply(&[word_attr(3, 1), attr(4, &table)])).unwrap();
        assert_eq!((got.function.as_str(), got.table), ("toeplitz", vec![0, 1, 0, 3]));
        assert!(rss(&reply(&[attr(4, &table[..15])])).is_err());
    }

    #[test]
    fn a_reply_without_a_message_or_cut_short_is_an_error() {
        assert!(rings(&[]).is_err());
        let reply = modes();
        for end in 0..reply.len() {
            let whole = link_modes(&reply[..end]) == link_modes(&reply);
            assert!(link_modes(&reply[..end]).is_err() || whole, "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn mutated_replies_never_panic(changes: Vec<(prop::sample::Index, u8)>, end: prop::sample::Index) {
            let mut reply = modes();
            for (at, byte) in changes {
                let at = at.index(reply.len());
                reply[at] = byte;
            }
            let part = &reply[..end.index(reply.len() + 1)];
            let _ = (link_modes(part), features(part), rings(part), channels(part));
            let _ = (coalesce(part), pause(part), fec(part), rss(part), link_state(part));
        }
    }
}
