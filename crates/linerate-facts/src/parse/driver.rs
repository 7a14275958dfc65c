//! Parses replies of the `ethtool` ioctl (linux/ethtool.h): the driver of a port, and its counters.

use super::Malformed;
use super::netlink::{after, string, u32_at, u64_at};
use crate::nic::Counter;

const COUNTERS: &str = "counters of the driver";
/// Length of a counter's name in bytes (`ETH_GSTRING_LEN`).
const NAME: usize = 32;

/// The used fields of `struct ethtool_drvinfo`. Text that the driver does not report is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info {
    /// Name of the driver.
    pub driver: String,
    /// Version of the port's firmware.
    pub firmware: String,
}

/// Decodes the name and the firmware version of a port's driver.
pub fn info(reply: &[u8]) -> Result<Info, Malformed> {
    let text = |from: usize| {
        let field = reply.get(from..from + 32).ok_or(Malformed::Short("driver"))?;
        let text = string(field).trim().to_owned();
        Ok(if text == "N/A" { String::new() } else { text })
    };
    Ok(Info { driver: text(4)?, firmware: text(68)? })
}

/// Decodes the counters of a driver from `struct ethtool_gstrings` followed by `struct ethtool_stats`.
pub fn counters(reply: &[u8]) -> Result<Vec<Counter>, Malformed> {
    let count = u32_at(reply, 8, COUNTERS)? as usize;
    let names = after(reply, 12, COUNTERS)?;
    let size = count.checked_mul(NAME).ok_or(Malformed::Short(COUNTERS))?;
    let values = after(names, size, COUNTERS)?;
    // The driver may have changed the number of its counters between the two requests.
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

    use super::{Counter, counters, info};

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
            [5u64, u64::MAX].iter().flat_map(|v| v.to_ne_bytes()).collect(),
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
        assert_eq!((got.driver.as_str(), got.firmware.as_str()), ("mlx5_core", "16.35 (MT_8)"));
        reply[68..100].copy_from_slice(&field("N/A"));
        assert_eq!(info(&reply).unwrap().firmware, "");
        assert!(info(&reply[..99]).is_err() && info(&reply[..100]).is_ok());
    }

    #[test]
    fn counters_need_as_many_values_as_names() {
        let counter = |name: &str, value| Counter { name: name.to_owned(), value };
        let want = [counter("rx_dropped", 5), counter("a name as long as there is room", u64::MAX)];
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
