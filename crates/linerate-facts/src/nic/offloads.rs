//! Offloads: work that a port or the stack does for many packets at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Offloads of a port, by the kernel's names as in `ethtool -k`, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Offloads {
    /// Offloads that are on.
    pub on: Vec<String>,
    /// Offloads that are off and could be switched on.
    pub off: Vec<String>,
}

/// Offloads without which each packet costs CPU time of its own: the common name, and the kernel's names, one of which
/// is enough.
//= net/ethtool/common.c, netdev_features_strings
const NEEDED: [(&str, &[&str]); 6] = [
    ("scatter-gather", &["tx-scatter-gather"]),
    ("tx checksum", &["tx-checksum-ip-generic", "tx-checksum-ipv4"]),
    ("TSO", &["tx-tcp-segmentation"]),
    ("GSO", &["tx-generic-segmentation"]),
    ("rx checksum", &["rx-checksum"]),
    ("GRO", &["rx-gro"]),
];

impl Offloads {
    /// Common names of the offloads that bulk traffic needs, that are off, and that can be switched on.
    pub fn lacking(&self) -> Vec<&'static str> {
        self.missing().map(|(name, _)| name).collect()
    }

    /// For each of the offloads in [`Offloads::lacking`], a name that `ethtool -K` accepts.
    pub fn lacking_features(&self) -> Vec<&'static str> {
        self.missing().map(|(_, feature)| feature).collect()
    }

    fn missing(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let has = |list: &[String], name: &str| list.iter().any(|offload| offload == name);
        NEEDED.iter().filter_map(move |(name, features)| {
            let mut off = features.iter().filter(|feature| has(&self.off, feature));
            let is_on = features.iter().any(|feature| has(&self.on, feature));
            let off = off.next().filter(|_| !is_on)?;
            Some((*name, *off))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_and_could_be_on_is_lacking() {
        let text = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
        let lacking = |on: &[&str], off: &[&str]| {
            let offloads = Offloads { on: text(on), off: text(off) };
            offloads.lacking()
        };
        assert_eq!(lacking(&["rx-gro"], &["rx-lro"]), [""; 0]);
        assert_eq!(lacking(&[], &["rx-gro", "tx-tcp-segmentation"]), ["TSO", "GRO"]);
        let other = lacking(&["tx-checksum-ip-generic"], &["tx-checksum-ipv4"]);
        assert_eq!(other, [""; 0], "the other one does it");
        assert_eq!(lacking(&[], &["tx-checksum-ipv4"]), ["tx checksum"]);
        let off = Offloads { on: Vec::new(), off: text(&["rx-gro", "tx-checksum-ipv4"]) };
        assert_eq!(off.lacking_features(), ["tx-checksum-ipv4", "rx-gro"]);
    }
}
