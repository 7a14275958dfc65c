//! Reads the output of `ethtool -k eth0`: offloads.

use linerate_facts::nic::Offloads;

use super::{PROGRAM, VERSIONS, named, port};
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{Line, lookup};

pub(crate) static FEATURES: Format = Format {
    id: "ethtool-features",
    label: "ethtool -k",
    versions: VERSIONS,
    evidence: "run here: ethtool 6.1 of a virtio port",
    unknown: "Whether a feature that is off would help is not in it.",
    starts: |at| name_of(at.line.trim_end()).is_some(),
    read,
    ..Format::FACTS
};

const STARTS: [&str; 2] = ["Features for ", "Offload parameters for "];

/// Names that only ethtool uses for a feature, each with the name that the kernel uses.
//= ethtool, netlink/features.c and ethtool.c: off_flag_def
const NAMES: [(&str, &str); 9] = [
    ("rx-checksumming", "rx-checksum"),
    ("generic-segmentation-offload", "tx-generic-segmentation"),
    ("generic-receive-offload", "rx-gro"),
    ("large-receive-offload", "rx-lro"),
    ("rx-vlan-offload", "rx-vlan-hw-parse"),
    ("tx-vlan-offload", "tx-vlan-hw-insert"),
    ("ntuple-filters", "rx-ntuple-filter"),
    ("receive-hashing", "rx-hashing"),
    ("udp-fragmentation-offload", "tx-udp-fragmentation"),
];

/// ethtool's names for groups of features, whose members follow in their own lines.
const GROUPS: [&str; 3] = ["tx-checksumming", "scatter-gather", "tcp-segmentation-offload"];

fn name_of(line: &str) -> Option<&str> {
    STARTS.iter().find_map(|start| named(line, start))
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reading = super::reading(section);
    let mut name = "";
    reading.each(|reading, line| match name_of(line.text) {
        Some(of) => {
            name = of;
            port(reading, name).map(|nic| nic.offloads = Some(Offloads::default()))
        }
        None => take(reading, name, line),
    });
    for nic in &mut reading.facts.network.nics {
        let offloads = nic.offloads.iter_mut();
        for list in offloads.flat_map(|o| [&mut o.on, &mut o.off]) {
            list.sort();
            list.dedup();
        }
    }
    reading.found(PROGRAM)
}

/// Reads a line such as `tx-checksum-ipv4: off [fixed]`. A feature that is off and cannot be changed is left out, as
/// in the kernel's own list.
fn take(reading: &mut Reading<'_>, name: &str, line: Line<'_>) -> Option<()> {
    let (feature, value) = line.pair()?;
    let mut words = value.split(' ');
    let is_on = super::settings::switch(words.next()?)?;
    let is_fixed = words.next() == Some("[fixed]");
    if GROUPS.contains(&feature) || feature.contains(' ') {
        // Old versions of ethtool print long names, and only groups.
        return (!feature.contains(' ')).then_some(());
    }
    let feature = lookup(&NAMES, feature).unwrap_or(feature);
    let offloads = port(reading, name)?.offloads.as_mut()?;
    let list = match (is_on, is_fixed) {
        (true, _) => &mut offloads.on,
        (false, false) => &mut offloads.off,
        (false, true) => return Some(()),
    };
    if list.len() < 256 {
        list.push(feature.to_owned());
    }
    Some(())
}
