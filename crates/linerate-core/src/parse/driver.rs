//! Replies of the `ethtool` ioctl (linux/ethtool.h): who drives a port, and what its driver counts.

use super::Malformed;
use super::netlink::{after, string, u32_at, u64_at};
use crate::facts::nic::Counter;

const COUNTERS: &str = "counters of the driver";
/// Bytes of a counter's name (`ETH_GSTRING_LEN`).
const NAME: usize = 32;

/// `struct ethtool_drvinfo`. Text that the driver does not tell is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info {
    /// Driver.
    pub driver: String,
    /// Version of the firmware.
    pub firmware: String,
}

/// What a driver's counter tells of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// Pause frames received.
    PauseReceived,
    /// Pause frames sent.
    PauseSent,
    /// Microseconds that received pauses stopped the port.
    PausedMicros,
    /// Packets over an allowance of a cloud.
    Allowance,
}

/// Counters of packets over an allowance.
//= Linux Documentation/networking/device_drivers/ethernet/amazon/ena.rst
const ALLOWANCES: [&str; 5] = [
    "bw_in_allowance_exceeded",
    "bw_out_allowance_exceeded",
    "pps_allowance_exceeded",
    "conntrack_allowance_exceeded",
    "linklocal_allowance_exceeded",
];

/// Words before the number of a priority that pauses are of: `rx_prio3_pause`, `port.rx_priority_3_xoff`,
/// `rx_pb_3_pxoff`, `rx_pfc_ena_frames_pri3`.
const OF_PRIORITY: [&str; 4] = ["priority_", "prio", "pb_", "pri"];

/// The priority that a counter is of. Such pauses stop packets of that priority alone (IEEE 802.1Qbb), and payload
/// without a mark has priority 0.
fn priority(name: &str) -> Option<u32> {
    OF_PRIORITY.iter().find_map(|word| {
        let (_, after) = name.split_once(word)?;
        let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    })
}

/// What a counter tells, by its name. Drivers name pauses as they like: `rx_pause`,
/// `rx_flow_control_xoff`, `port.link_xoff_rx`; how long they lasted is told by mlx5 alone.
//= Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst
pub fn tells(name: &str) -> Option<Tells> {
    if ALLOWANCES.contains(&name) {
        return Some(Tells::Allowance);
    }
    if priority(name).is_some_and(|priority| priority > 0) {
        return None;
    }
    let (receives, sends) = (name.contains("rx"), name.contains("tx"));
    if receives && name.ends_with("pause_duration") {
        return Some(Tells::PausedMicros);
    }
    let events = ["pause", "xoff"].iter().any(|word| name.contains(word));
    let states = ["duration", "transition", "storm", "unsupported", "discard"];
    if !events || states.iter().any(|word| name.contains(word)) {
        return None;
    }
    match (receives, sends) {
        (true, false) => Some(Tells::PauseReceived),
        (false, true) => Some(Tells::PauseSent),
        _ => None,
    }
}

/// Who drives a port.
pub fn info(reply: &[u8]) -> Result<Info, Malformed> {
    let text = |from: usize| {
        let field = reply
            .get(from..from + 32)
            .ok_or(Malformed::Short("driver"))?;
        let text = string(field).trim().to_owned();
        Ok(if text == "N/A" { String::new() } else { text })
    };
    Ok(Info {
        driver: text(4)?,
        firmware: text(68)?,
    })
}

/// What a driver counts: `struct ethtool_gstrings` and `struct ethtool_stats`, one after the other.
pub fn counters(reply: &[u8]) -> Result<Vec<Counter>, Malformed> {
    let count = u32_at(reply, 8, COUNTERS)? as usize;
    let names = after(reply, 12, COUNTERS)?;
    let size = count.checked_mul(NAME).ok_or(Malformed::Short(COUNTERS))?;
    let values = after(names, size, COUNTERS)?;
    // The driver may have changed their number between the two questions.
    if u32_at(values, 4, COUNTERS)? as usize != count {
        return Err(Malformed::Missing(COUNTERS));
    }
    let names = names[..size].chunks_exact(NAME).enumerate();
    names
        .map(|(at, name)| {
            let value = u64_at(values, 8 + at * 8, COUNTERS)?;
            let name = string(name).trim().to_owned();
            Ok(Counter { name, value })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Counter, Tells, counters, info, tells};

    fn field(text: &str) -> Vec<u8> {
        let mut field = text.as_bytes().to_vec();
        field.resize(32, 0);
        field
    }

    fn sample(named: u32, counted: u32) -> Vec<u8> {
        let words =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_ne_bytes()).collect() };
        [
            words(&[0x1b, 1, named]),
            field("rx_dropped"),
            field("a name as long as there is room"),
            words(&[0x1d, counted]),
            [5u64, u64::MAX]
                .iter()
                .flat_map(|v| v.to_ne_bytes())
                .collect(),
        ]
        .concat()
    }

    #[test]
    fn a_driver_names_itself() {
        let mut reply = vec![0; 196];
        for (at, text) in [(4, "mlx5_core"), (36, "6.1.0"), (68, "16.35 (MT_8)")] {
            reply[at..at + 32].copy_from_slice(&field(text));
        }
        let got = info(&reply).unwrap();
        assert_eq!(
            (got.driver.as_str(), got.firmware.as_str()),
            ("mlx5_core", "16.35 (MT_8)")
        );
        reply[68..100].copy_from_slice(&field("N/A"));
        assert_eq!(info(&reply).unwrap().firmware, "");
        assert!(info(&reply[..99]).is_err() && info(&reply[..100]).is_ok());
    }

    #[test]
    fn names_tell_pauses_and_allowances_and_nothing_else() {
        for name in [
            "rx_pause",
            "rx_pause_ctrl_phy",
            "rx_prio0_pause",
            "rx_pb_0_pxoff",
            "rx_flow_control_xoff",
            "port.link_xoff_rx",
        ] {
            assert_eq!(tells(name), Some(Tells::PauseReceived), "{name}");
        }
        for name in ["tx_pause", "tx_prio0_pause", "link_xoff_tx.nic"] {
            assert_eq!(tells(name), Some(Tells::PauseSent), "{name}");
        }
        for name in ["rx_prio0_pause_duration", "rx_global_pause_duration"] {
            assert_eq!(tells(name), Some(Tells::PausedMicros), "{name}");
        }
        for name in [
            "rx_prio3_pause",
            "rx_prio3_pause_duration",
            "tx_prio1_pause",
            "port.rx_priority_7_xoff",
            "rx_pb_3_pxoff",
        ] {
            assert_eq!(tells(name), None, "{name}: of another priority");
        }
        assert_eq!(tells("bw_out_allowance_exceeded"), Some(Tells::Allowance));
        for name in [
            "conntrack_allowance_available",
            "tx_pause_storm_warning_events",
            "tx_prio3_pause_duration",
            "rx_prio3_pause_transition",
            "rx_bytes",
            "pause",
        ] {
            assert_eq!(tells(name), None, "{name}");
        }
    }

    #[test]
    fn counters_need_as_many_values_as_names() {
        let counter = |name: &str, value| Counter {
            name: name.to_owned(),
            value,
        };
        let want = [
            counter("rx_dropped", 5),
            counter("a name as long as there is room", u64::MAX),
        ];
        assert_eq!(counters(&sample(2, 2)).unwrap(), want);
        assert!(counters(&sample(2, 3)).is_err());
        assert!(counters(&sample(u32::MAX, 2)).is_err());
        let reply = sample(2, 2);
        for end in 0..reply.len() {
            assert!(counters(&reply[..end]).is_err(), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, count in 0u32..9) {
            let head: Vec<u8> = [0x1b, 1, count].iter().flat_map(|w: &u32| w.to_ne_bytes()).collect();
            let _ = (info(&bytes), counters(&bytes), counters(&[head, bytes].concat()));
        }
    }
}
